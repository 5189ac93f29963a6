"""Prepared data: what goes in comes out by its ids, and nothing half-made or altered is taken."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.data.examples import LabeledText, Question, TaggedTokens, Text, TextPair
from seqloom.data.prepare import prepare
from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.errors import ConfigError, DataError
from seqloom.text import Normalizer, Specials, SubwordTokenizer, TextConfig, Vocabulary

TEXTS = [Text("the cat sat"), Text(""), Text("the dog doesn't"), Text("我爱北京天安门")]
LABELED = [
    LabeledText("good film", ("pos", "short")),
    LabeledText("bad film", ("neg",)),
    LabeledText("so so", ()),
]
TAGGED = [TaggedTokens(("The", "cat"), ("DT", "NN")), TaggedTokens(("sat",), ("VB",))]
PAIRS = [TextPair("a cat", "eine Katze"), TextPair("the cat", "die Katze")]
SPECIALS = Specials().names()


def decoded(prepared, column, vocabulary="words"):
    words = prepared.vocabularies[vocabulary]
    return [words.decode(ids) for ids in prepared.data.sequences[column]]


def everything(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# What comes out


def test_text(tmp_path):
    prepared = prepare(TEXTS, tmp_path / "out")
    assert prepared.kind == "text" and len(prepared.data) == 4
    assert decoded(prepared, "ids") == [
        ["the", "cat", "sat", "</s>"],
        ["</s>"],
        ["the", "dog", "does", "n't", "</s>"],
        ["我", "爱", "北京", "天安门", "</s>"],
    ]
    assert prepared.vocabularies["words"].words[:5] == (*SPECIALS, "the")
    assert isinstance(prepared.data.sequences["ids"].flat, np.memmap)
    assert prepared.pipeline.words("a cat") == ["a", "cat"]


def test_text_without_ends_and_with_limits(tmp_path):
    text = [Text("a a a b b c")]
    config = PrepareConfig(min_count=2, max_size=1, ends=False)
    prepared = prepare(text, tmp_path / "out", config)
    assert prepared.vocabularies["words"].words == (*SPECIALS, "a")
    assert decoded(prepared, "ids") == [["a", "a", "a", "<unk>", "<unk>", "<unk>"]]
    assert PreparedData.open(tmp_path / "out").header.config == config


def test_labeled(tmp_path):
    prepared = prepare(LABELED, tmp_path / "out")
    assert prepared.kind == "labeled"
    assert prepared.vocabularies["labels"].words == ("neg", "pos", "short")
    labels = prepared.data.values["labels"]
    assert labels.dtype == np.uint8
    assert labels.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert decoded(prepared, "ids") == [["good", "film"], ["bad", "film"], ["so", "so"]]
    assert prepared.data.batch([2, 0]).values["labels"].tolist() == [[0, 0, 0], [0, 1, 1]]


def test_one_label_each(tmp_path):
    examples = [LabeledText(f"text {i}", (f"class {i % 3}",)) for i in range(6)]
    prepared = prepare(examples, tmp_path / "out")
    assert prepared.data.values["labels"].argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 2]
    assert (prepared.data.values["labels"].sum(axis=1) == 1).all()


def test_tagged(tmp_path):
    prepared = prepare(TAGGED, tmp_path / "out")
    assert prepared.kind == "tagged"
    assert decoded(prepared, "tokens") == [["The", "cat"], ["sat"]]
    assert decoded(prepared, "tags", "tags") == [["DT", "NN"], ["VB"]]
    assert prepared.vocabularies["tags"].words == ("<pad>", "DT", "NN", "VB")


def test_tokens_are_normalized_as_text_is(tmp_path):
    config = PrepareConfig(text=TextConfig(normalizer=Normalizer(lowercase=True)))
    prepared = prepare(TAGGED, tmp_path / "out", config)
    assert decoded(prepared, "tokens") == [["the", "cat"], ["sat"]]
    assert decoded(prepared, "tags", "tags") == [["DT", "NN"], ["VB"]]


def test_pairs(tmp_path):
    prepared = prepare(PAIRS, tmp_path / "out")
    assert prepared.kind == "pairs"
    assert decoded(prepared, "source", "source") == [["a", "cat"], ["the", "cat"]]
    assert decoded(prepared, "target", "target") == [
        ["eine", "Katze", "</s>"],
        ["die", "Katze", "</s>"],
    ]
    assert "cat" not in prepared.vocabularies["target"]


def test_pairs_that_share_a_vocabulary(tmp_path):
    prepared = prepare(PAIRS, tmp_path / "out", PrepareConfig(shared=True))
    assert set(prepared.vocabularies) == {"words"}
    assert decoded(prepared, "target")[0] == ["eine", "Katze", "</s>"]
    assert prepared.vocabularies["words"].words[4:6] == ("Katze", "cat")


@pytest.mark.parametrize("method", ["bpe", "unigram"])
def test_subword(tmp_path, method):
    pieces = SubwordTokenizer.train(
        [t.text for t in TEXTS] * 3, 300, method=method, specials=SPECIALS
    )
    config = PrepareConfig(text=TextConfig(unit="subword"))
    prepared = prepare(TEXTS, tmp_path / "out", config, subword=pieces)
    for text, ids in zip(TEXTS, prepared.data.sequences["ids"], strict=True):
        assert ids.tolist() == [*pieces.encode(text.text), SPECIALS.index("</s>")]
        assert (
            prepared.pipeline.detokenize(prepared.vocabularies["words"].decode(ids[:-1]))
            == text.text
        )
    again = prepare([Text("猫 unseen <s>")], tmp_path / "more", like=prepared)
    assert again.data.sequences["ids"][0].tolist() == [*pieces.encode("猫 unseen <s>"), 3]
    pairs = prepare(PAIRS, tmp_path / "pairs", config, subword=pieces)
    assert pairs.vocabularies["source"] == pairs.vocabularies["target"]


@settings(max_examples=25)
@given(st.lists(st.lists(st.text(st.characters(), min_size=1), max_size=5), min_size=1, max_size=6))
def test_any_words_come_back(tmp_path_factory, rows):
    examples = [TaggedTokens(tuple(row), tuple(f"t{word}" for word in row)) for row in rows]
    config = PrepareConfig(text=TextConfig(normalizer=Normalizer(form="none")))
    prepared = prepare(examples, tmp_path_factory.mktemp("any") / "out", config)
    assert decoded(prepared, "tokens") == rows
    assert decoded(prepared, "tags", "tags") == [[f"t{word}" for word in row] for row in rows]


def test_long_columns_are_renumbered_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("seqloom.data.prepare"), "BLOCK", 3)
    text = [Text(" ".join(str(i * k % 7) for i in range(10))) for k in range(5)]
    prepared = prepare(text, tmp_path / "out", PrepareConfig(ends=False))
    assert decoded(prepared, "ids") == [example.text.split() for example in text]


def test_more_data_is_read_like_the_first(tmp_path):
    config = PrepareConfig(text=TextConfig(normalizer=Normalizer(lowercase=True)))
    first = prepare(LABELED, tmp_path / "train", config)
    second = prepare([LabeledText("GOOD new", ("neg",))], tmp_path / "test", like=first)
    assert decoded(second, "ids") == [["good", "<unk>"]]
    assert second.data.values["labels"].tolist() == [[1, 0, 0]]
    assert second.vocabularies == first.vocabularies
    assert second.header.config == first.header.config


def test_opened_again_it_is_the_same(tmp_path):
    made = prepare(PAIRS, tmp_path / "out")
    opened = PreparedData.open(str(tmp_path / "out"))
    assert opened.header == made.header
    assert opened.vocabularies == made.vocabularies
    assert [*map(list, opened.data.sequences["source"])] == [
        *map(list, made.data.sequences["source"])
    ]


def test_progress_is_told_now_and_then(tmp_path):
    told = []
    prepare((Text("a") for _ in range(2500)), tmp_path / "out", progress=told.append)
    assert told == [1000, 2000]


def test_the_same_examples_make_the_same_files(tmp_path):
    prepare(LABELED, tmp_path / "a")
    prepare(iter(LABELED), tmp_path / "b")
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


# Complete or not at all


def failing(error, examples=TEXTS):
    yield from examples
    raise error


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt(), DataError("boom")])
def test_a_failure_in_the_middle_leaves_nothing_behind(tmp_path, error):
    with pytest.raises(type(error)):
        prepare(failing(error), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_system_names_the_target(tmp_path):
    with pytest.raises(DataError, match=r"out: cannot be written \(No space left"):
        prepare(failing(OSError(28, "No space left")), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_cleared(tmp_path):
    code = (
        "import os, sys\n"
        "from seqloom.data.prepare import prepare\n"
        "from seqloom.data.examples import Text\n"
        "def examples():\n"
        "    yield Text('a b c')\n"
        "    os._exit(9)\n"
        "prepare(examples(), sys.argv[1])\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=False)
    assert run.returncode == 9
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match="out: is not a prepared directory"):
        PreparedData.open(tmp_path / "out")
    prepare(TEXTS, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_exists_is_refused_and_untouched(tmp_path, kind):
    target = tmp_path / "out"
    if kind == "file":
        target.write_text("precious", encoding="utf-8")
    else:
        prepare(LABELED, target)
    before = everything(tmp_path)
    with pytest.raises(DataError, match="out: exists already"):
        prepare(TEXTS, target)
    assert everything(tmp_path) == before


def test_what_came_to_exist_meanwhile_is_untouched(tmp_path):
    target = tmp_path / "out"

    def examples():
        yield TEXTS[0]
        target.mkdir()
        (target / "precious").touch()

    with pytest.raises(DataError, match="out: cannot be written"):
        prepare(examples(), target)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "precious"]


def test_a_target_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="out: cannot be written"):
        prepare(TEXTS, tmp_path / "file" / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match=r"out: cannot be written \(Permission denied\)"):
        prepare(TEXTS, tmp_path / "out")


# Altered directories


@pytest.fixture
def made(tmp_path):
    prepare(LABELED, tmp_path / "out")
    return tmp_path / "out"


def change_header(folder, **changes):
    path = folder / "prepared.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | changes), encoding="utf-8")


@pytest.mark.parametrize("name", ["ids.items", "ids.offsets", "labels.items"])
@pytest.mark.parametrize("cut", [-1, -4, 4])
def test_a_column_of_another_size_is_refused(made, name, cut):
    path = made / name
    content = path.read_bytes()
    path.write_bytes(content[:cut] if cut < 0 else content + b"\0" * cut)
    with pytest.raises(DataError, match=rf"{name}: must hold {len(content)} bytes, got"):
        PreparedData.open(made)


@pytest.mark.parametrize("name", ["ids.items", "ids.offsets", "labels.items"])
def test_a_missing_column_is_refused(made, name):
    (made / name).unlink()
    with pytest.raises(DataError, match=rf"{name}: cannot be read"):
        PreparedData.open(made)


@pytest.mark.parametrize("offsets", [[0, 5, 2, 6], [1, 2, 4, 6], [0, 2, 4, 5], [0, -1, 4, 6]])
def test_altered_offsets_are_refused(made, offsets):
    (made / "ids.offsets").write_bytes(np.array(offsets, np.int64).tobytes())
    with pytest.raises(DataError, match=r"ids\.offsets: .*it was altered"):
        PreparedData.open(made)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"[]", r"format 1, got \[\]"),
        (b"{}", "format 1, got None"),
        (b'{"format": 2}', "format 1, got 2"),
        (b'{"format": 1}', "'kind' must be given"),
        (b'{"format": 1, "knd": "text"}', "'knd'; did you mean 'kind'"),
    ],
    ids=repr,
)
def test_a_broken_header_is_refused(made, content, message):
    (made / "prepared.json").write_bytes(content)
    with pytest.raises(DataError, match=rf"prepared\.json: .*{message}"):
        PreparedData.open(made)


def column(**changes):
    return {"dtype": "int32", "items": 6, "vocabulary": "words"} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": 1}, "unknown setting 'more'"),
        ({"kind": "txt"}, "got 'txt'; did you mean 'text'"),
        ({"kind": "pairs"}, r"\['source', 'target'\], got 3 of \['ids', 'labels'\]"),
        ({"examples": "3"}, "'examples' must be a whole number, got '3'"),
        ({"examples": -1}, "must have examples .*got -1"),
        ({"columns": {}}, r"got 3 of \[\]"),
        ({"columns": {"../../etc/x": column()}}, r"'\.\./\.\./etc/x' is no name of a field"),
        ({"columns": {"/etc/x": column()}}, "'/etc/x' is no name"),
        ({"vocabularies": {"../words": "0"}}, r"'\.\./words' is no name"),
        ({"vocabularies": {}}, "there is no vocabulary 'words'"),
        ({"columns": {"ids": column(dtype="object")}}, "'columns.ids.dtype' .*got 'object'"),
        ({"columns": {"ids": column(dtype="int64")}}, "'columns.ids.dtype' .*got 'int64'"),
        ({"columns": {"ids": column(pth=1)}}, "unknown setting 'columns.ids.pth'"),
        ({"config": {"min_count": 0}}, "min_count must be at least 1, got 0"),
        ({"config": {"text": {"unit": "wrd"}}}, "got 'wrd'; did you mean 'word'"),
    ],
)
def test_an_altered_header_is_refused(made, changes, message):
    change_header(made, **changes)
    with pytest.raises(DataError, match=rf"prepared\.json: .*{message}"):
        PreparedData.open(made)


@pytest.mark.parametrize("items", [-1, 7, 10**15])
def test_a_wrong_number_of_items_is_refused(made, items):
    header = json.loads((made / "prepared.json").read_text(encoding="utf-8"))
    change_header(made, columns=header["columns"] | {"ids": column(items=items)})
    with pytest.raises(DataError, match=r"ids\.items: must hold"):
        PreparedData.open(made)


def test_a_missing_or_broken_vocabulary_is_refused(made):
    path = made / "words.vocabulary.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"words\.vocabulary\.json: is not a vocabulary"):
        PreparedData.open(made)
    path.unlink()
    with pytest.raises(DataError, match=r"words\.vocabulary\.json: no such file"):
        PreparedData.open(made)


def test_a_swapped_vocabulary_is_refused(made):
    other = Vocabulary(["film", "x"])
    other.save(made / "words.vocabulary.json")
    with pytest.raises(
        DataError, match=rf"prepared\.json: vocabulary 'words' has hash {other.hash[:8]}"
    ):
        PreparedData.open(made)


def test_swapped_pieces_are_refused(tmp_path):
    config = PrepareConfig(text=TextConfig(unit="subword"))
    one = SubwordTokenizer.train(["aaaa bbbb"] * 3, 270, specials=SPECIALS)
    two = SubwordTokenizer.train(["cccc dddd"] * 3, 270, specials=SPECIALS)
    prepare(TEXTS, tmp_path / "out", config, subword=one)
    two.save(tmp_path / "out" / "subword.json")
    with pytest.raises(DataError, match=r"subword\.json: has other pieces than vocabulary 'words'"):
        PreparedData.open(tmp_path / "out")
    (tmp_path / "out" / "subword.json").unlink()
    with pytest.raises(DataError, match=r"subword\.json: no such file"):
        PreparedData.open(tmp_path / "out")


def test_what_is_no_prepared_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for name in ("none", "file", "."):
        with pytest.raises(DataError, match=r"is not a prepared directory \(no prepared\.json\)"):
            PreparedData.open(tmp_path / name)


def test_a_moved_directory_opens(made, tmp_path):
    shutil.move(made, tmp_path / "elsewhere")
    assert decoded(PreparedData.open(tmp_path / "elsewhere"), "ids")[0] == ["good", "film"]


# Examples that do not fit


def test_mixed_kinds_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"of kind text, got LabeledText\(text='good film'"):
        prepare([*TEXTS, *LABELED], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_other_things_are_refused(tmp_path):
    question = Question("1", "p", "q", ())
    for wrong in (question, "text", None, ("a", "b")):
        with pytest.raises(DataError, match="of kind text, labeled, tagged, pairs, got"):
            prepare([wrong], tmp_path / "out")


def test_no_example_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least one example to prepare, got none"):
        prepare([], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unseen_label_or_tag_is_refused(tmp_path):
    first = prepare(LABELED, tmp_path / "labels")
    with pytest.raises(DataError, match="'new' is not in the vocabulary of 3 words"):
        prepare([LabeledText("x", ("new",))], tmp_path / "out", like=first)
    second = prepare(TAGGED, tmp_path / "tags")
    with pytest.raises(DataError, match="'XX' is not in the vocabulary"):
        prepare([TaggedTokens(("x",), ("XX",))], tmp_path / "out", like=second)
    assert not (tmp_path / "out").exists()


def test_another_kind_than_before_is_refused(tmp_path):
    first = prepare(TEXTS, tmp_path / "text")
    with pytest.raises(DataError, match="of kind 'text' as before, got 'labeled'"):
        prepare(LABELED, tmp_path / "out", like=first)


def test_tokens_and_tags_of_different_number_are_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"got 2 tokens and 1 tags in TaggedTokens\(tokens=\('a', 'b'"
    ):
        prepare([TaggedTokens(("a", "b"), ("X",))], tmp_path / "out")


def test_settings_that_contradict_each_other_are_refused(tmp_path):
    first = prepare(TEXTS, tmp_path / "text")
    pieces = SubwordTokenizer.train(["a b"], 270, specials=SPECIALS)
    with pytest.raises(ConfigError, match="either config or like"):
        prepare(TEXTS, tmp_path / "out", PrepareConfig(), like=first)
    with pytest.raises(ConfigError, match="got unit='word' and subword="):
        prepare(TEXTS, tmp_path / "out", subword=pieces)
    subword = PrepareConfig(text=TextConfig(unit="subword"))
    with pytest.raises(ConfigError, match="got unit='subword' and subword=None"):
        prepare(TEXTS, tmp_path / "out", subword)
    with pytest.raises(ConfigError, match=r"specials=\['<pad>'.*begins with \['!'"):
        prepare(TEXTS, tmp_path / "out", subword, subword=SubwordTokenizer.train(["a b"], 260))
    with pytest.raises(ConfigError, match="words already, got unit='subword'"):
        prepare(TAGGED, tmp_path / "out", subword, subword=pieces)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"min_count": 0}, "at least 1, got 0"), ({"max_size": -1}, "not be negative, got -1")],
)
def test_limits_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        PrepareConfig(**options)
