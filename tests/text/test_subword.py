"""Learned pieces: every text comes back, whatever it holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import ConfigError, DataError, InputError
from seqloom.text import SubwordTokenizer, subword
from texts import any_text

CORPUS = ["the lowest and the slower lows, 低头思故乡，举头望明月。 naïve café 👍🏽 don't"] * 5
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]
TRAINED = {
    method: SubwordTokenizer.train(CORPUS, 320, method=method, specials=SPECIALS)
    for method in ("bpe", "unigram")
}


@pytest.fixture(params=TRAINED)
def pieces(request):
    return TRAINED[request.param]


@pytest.mark.parametrize("method", TRAINED)
@given(text=any_text)
def test_every_text_comes_back(method, text):
    trained = TRAINED[method]
    ids = trained.encode(text)
    assert trained.decode(ids) == text
    assert trained.detokenize(trained.words(text)) == text
    assert all(0 <= i < len(trained) for i in ids)
    assert [trained.pieces[i] for i in ids] == trained.words(text)


@pytest.mark.parametrize("method", TRAINED)
@given(parts=st.lists(st.sampled_from([*SPECIALS, "<", "s>", " ", "a", "é", "中"]), max_size=9))
def test_the_spelling_of_specials_comes_back(method, parts):
    text = "".join(parts)
    assert TRAINED[method].decode(TRAINED[method].encode(text)) == text


def test_specials_come_first_and_are_never_split(pieces):
    assert pieces.pieces[:4] == SPECIALS
    assert pieces.encode("<s>")[0] == 2
    assert pieces("low</s>").spans[-1] == (3, 7)


def test_a_merge_is_learned_from_what_is_frequent():
    trained = SubwordTokenizer.train(["ab ab ab cd"], 260, min_count=2)
    assert "ab" in trained.pieces and "cd" not in trained.pieces
    assert trained.words("abcd") == ["ab", "c", "d"]


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("size", [261, 300, 400, 1000])
def test_there_are_never_more_pieces_than_asked_for(method, size):
    text = [" ".join(f"{a}{b}ing" for a in "bcdfgh" for b in "aeiou")] * 3
    trained = SubwordTokenizer.train(text, size, method=method, specials=SPECIALS)
    assert 260 <= len(trained) <= size
    assert len(trained) == len(set(trained.pieces)) == len(trained.pieces)


def test_training_again_gives_the_same(pieces):
    again = SubwordTokenizer.train(iter(CORPUS), 320, specials=SPECIALS)
    assert again.pieces == TRAINED["bpe"].pieces


def test_a_character_of_several_pieces_is_covered_by_each(pieces):
    tokens = pieces("x𠀀y")  # not in the training text: four bytes
    assert tokens.spans == [(0, 1), *[(1, 2)] * (len(tokens) - 2), (2, 3)]
    assert len(tokens) > 3


def test_pieces_are_shown_as_they_stand_in_the_text(pieces):
    text = "the lower 鱻 slowest"
    shown = pieces.shown(pieces.words(text))
    assert "".join(shown).replace("\ufffd", "") == text.replace("鱻", "")  # of bytes never met
    assert shown.count("\ufffd") == len("鱻".encode())
    more = SubwordTokenizer.train(["我在 那里"] * 9, vocab_size=280)
    assert "".join(more.shown(more.words("我在 那里"))) == "我在 那里"
    assert more.shown(["</s>", "没"]) == ["</s>", "没"]


def test_the_table_of_bytes_is_that_of_the_library():
    from tokenizers.pre_tokenizers import ByteLevel

    from seqloom.text.subword import _bytes_by_character

    table = _bytes_by_character()
    assert set(table) == set(ByteLevel.alphabet())
    assert sorted(table.values()) == list(range(256))


def test_saved_and_loaded(pieces, tmp_path):
    pieces.save(tmp_path / "pieces.json")
    loaded = SubwordTokenizer.load(tmp_path / "pieces.json")
    assert loaded.pieces == pieces.pieces
    text = "the slowest 月亮 <s> 🙂"
    assert loaded.encode(text) == pieces.encode(text)
    assert loaded(text) == pieces(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 255}, "at least 256.*got 255"),
        ({"vocab_size": 257, "specials": ["<a>", "<b>"]}, "at least 258.*got 257"),
        ({"vocab_size": 256, "method": "unigram"}, "at least 257 for 'unigram'.*got 256"),
        ({"vocab_size": 300, "method": "bbe"}, "unknown subword method 'bbe'; did you mean 'bpe'"),
        ({"vocab_size": 300, "specials": ["<a>", "<a>"]}, r"differ, got \['<a>', '<a>'\]"),
        ({"vocab_size": 300, "specials": [""]}, r"not empty.*got \[''\]"),
        ({"vocab_size": 300, "specials": ["<é>"]}, r"ASCII text.*got \['<é>'\]"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SubwordTokenizer.train(CORPUS, **options)


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_no_text_at_all_is_refused(method, texts):
    with pytest.raises(DataError, match="no text at all"):
        SubwordTokenizer.train(texts, 300, method=method)


@pytest.mark.parametrize("use", ["encode", "words", "__call__"])
def test_half_a_surrogate_pair_is_refused(pieces, use):
    with pytest.raises(InputError, match=r"surrogate pair \('\\ud800'\) at place 1"):
        getattr(pieces, use)("a\ud800b")


@pytest.mark.parametrize("method", TRAINED)
def test_nothing_is_learned_from_half_a_surrogate_pair(method):
    with pytest.raises(InputError, match=r"surrogate pair \('\\udfff'\) at place 0"):
        SubwordTokenizer.train([*CORPUS, "\udfff"], 300, method=method)


@pytest.mark.parametrize("wrong", [-1, 10**6, 10**12])
def test_ids_out_of_range_are_refused(pieces, wrong):
    with pytest.raises(DataError, match=rf"0\.\.{len(pieces) - 1}, got {wrong}"):
        pieces.decode([5, wrong])


def test_a_word_that_is_no_piece_is_refused(pieces):
    with pytest.raises(DataError, match="'低头' is not a piece"):
        pieces.detokenize(["低头"])


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"null", b'{"version": "1.0"}', b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "cut", "list", "table", "null", "no model", "not utf-8", "deep"],
)
def test_a_broken_file_is_refused_with_its_path(tmp_path, content):
    path = tmp_path / "pieces.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"pieces\.json: is not a tokenizer file"):
        SubwordTokenizer.load(path)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "pieces.json"
    TRAINED["bpe"].save(path)
    whole = path.read_text(encoding="utf-8")
    json.loads(whole)
    for size in range(0, len(whole) - 1, 997):
        path.write_text(whole[:size], encoding="utf-8")
        with pytest.raises(DataError, match=r"pieces\.json"):
            SubwordTokenizer.load(path)


def test_missing_large_or_foreign_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"none\.json: no such file"):
        SubwordTokenizer.load(tmp_path / "none.json")
    with pytest.raises(DataError, match=f"{tmp_path.name}: is not a tokenizer file"):
        SubwordTokenizer.load(tmp_path)
    TRAINED["bpe"].save(tmp_path / "pieces.json")
    monkeypatch.setattr(subword, "MAX_FILE_BYTES", 100)
    with pytest.raises(DataError, match="larger than 100 bytes"):
        SubwordTokenizer.load(tmp_path / "pieces.json")
