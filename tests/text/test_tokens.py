"""Offsets always point at the very text, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import DataError
from seqloom.text import (
    CharacterTokenizer,
    SubwordTokenizer,
    Tokenizer,
    Tokens,
    WhitespaceTokenizer,
    WordTokenizer,
)
from texts import any_text

LETTERWISE = {
    "en": WordTokenizer("en"),
    "zh": WordTokenizer("zh"),
    "auto": WordTokenizer(),
    "space": WhitespaceTokenizer(),
}
CORPUS = ["the lowest and the slower lows <s> 低头思故乡，举头望明月。 naïve café 👍🏽 don't"] * 5
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]
SUBWORD = {
    method: SubwordTokenizer.train(CORPUS, 320, method=method, specials=SPECIALS)
    for method in ("bpe", "unigram")
}


@pytest.mark.parametrize("name", LETTERWISE)
@given(text=any_text)
def test_every_visible_character_is_in_exactly_one_word(name, text):
    tokens = LETTERWISE[name](text)
    end = 0
    for word, (start, stop) in zip(tokens.words, tokens.spans, strict=True):
        assert text[start:stop] == word
        assert word and not word.isspace()
        assert end <= start
        assert not text[end:start].strip()
        end = stop
    assert not text[end:].strip()


@pytest.mark.parametrize("name", LETTERWISE)
@given(text=any_text)
def test_words_alone_are_the_words_with_offsets(name, text):
    assert LETTERWISE[name].words(text) == list(LETTERWISE[name](text))


@given(any_text)
def test_characters_are_each_a_word(text):
    tokens = CharacterTokenizer()(text)
    assert tokens.words == list(text) == CharacterTokenizer().words(text)
    assert tokens.spans == [(i, i + 1) for i in range(len(text))]
    assert CharacterTokenizer().detokenize(tokens) == text


@pytest.mark.parametrize("method", SUBWORD)
@given(text=any_text)
def test_pieces_cover_every_character(method, text):
    tokens = SUBWORD[method](text)
    assert tokens.words == SUBWORD[method].words(text)
    before, covered = (0, 0), set()
    for start, end in tokens.spans:
        assert 0 <= start < end <= len(text)
        assert before <= (start, end)
        before = (start, end)
        covered.update(range(start, end))
    assert covered == set(range(len(text)))


@pytest.mark.parametrize("blank", [chr(c) for c in range(0x110000) if chr(c).isspace()], ids=ascii)
def test_every_blank_sets_words_apart(blank):
    for tokenizer in LETTERWISE.values():
        assert tokenizer.words(f"{blank}a{blank}{blank}b{blank}") == ["a", "b"]
        assert tokenizer(f"中{blank}国").words == ["中", "国"]


def test_tokens_are_a_sequence_of_words():
    tokens = WhitespaceTokenizer()("to be or not to be")
    assert len(tokens) == 6
    assert tokens[0] == "to" and tokens[-1] == "be" and tokens[2:4] == ["or", "not"]
    assert tokens.spans == [(0, 2), (3, 5), (6, 8), (9, 12), (13, 15), (16, 18)]
    assert "not" in tokens and tokens.index("be") == 1
    assert repr(tokens) == "Tokens(['to', 'be', 'or', 'not', 'to', 'be'])"


def test_tokens_are_equal_when_text_words_and_places_are():
    made = Tokens("a b", ["a", "b"])
    assert made == Tokens("a b", ["a", "b"], [(0, 1), (2, 3)])
    assert made != Tokens("a b", ["a", "b"], [(0, 1), (1, 3)])
    assert made != Tokens("a  b", ["a", "b"])
    assert made != ["a", "b"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


@pytest.mark.parametrize(
    "tokenizer",
    [*LETTERWISE.values(), CharacterTokenizer(), *SUBWORD.values()],
    ids=lambda t: type(t).__name__,
)
def test_every_tokenizer_meets_the_protocol(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    empty = tokenizer("")
    assert (empty.words, empty.spans, tokenizer.detokenize([])) == ([], [], "")


class Halves:
    """Cuts a text in two, whatever it says."""

    def cut(self, text):
        return [text[: len(text) // 2], text[len(text) // 2 :]]


class Fixed:
    """Returns the same words for every text."""

    def __init__(self, words):
        self._words = words

    def cut(self, text):
        return self._words


@given(any_text)
def test_a_segmenter_of_ones_own_keeps_offsets_right(text):
    tokens = WordTokenizer("zh", Halves())(text)
    assert [text[a:b] for a, b in tokens.spans] == tokens.words
    assert all(word and not word.isspace() for word in tokens)


@pytest.mark.parametrize("words", [["中", "國"], ["中"], ["中", "国", "国"]])
def test_a_segmenter_that_changes_the_text_is_refused(words):
    with pytest.raises(DataError, match=rf"make up the text.*'{words[-1]}'\] for '中国'"):
        WordTokenizer("zh", Fixed(words)).words("中国")


@given(st.lists(st.text("abc中", min_size=1), max_size=5))
def test_words_between_single_spaces_come_back(words):
    text = " ".join(words)
    assert WhitespaceTokenizer().detokenize(WhitespaceTokenizer().words(text)) == text
