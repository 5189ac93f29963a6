"""Words, alignment and the spans of windows: what a reader reads."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.examples import Answer, Question
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader import misaligned
from seqloom.tasks.reader_data import (
    encode_texts,
    encode_training,
    encode_windows,
)
from seqloom.tasks.reader_results import FoundAnswer
from seqloom.tasks.reader_spans import (
    Candidate,
    FoundSpans,
    as_answer,
    find_spans,
    joined,
    merge_windows,
)
from seqloom.tasks.reader_text import WordSplitter, align, read_all
from seqloom.tasks.reader_training import set_apart
from seqloom.tasks.reader_words import MAX_SPELLING, ReaderVocabulary
from seqloom.text import TextConfig, TextPipeline

SPLITTER = WordSplitter(TextPipeline(TextConfig(language="en")))
PASSAGE = "Ada was born in London. Max was born in Rome."


def test_words_are_cut_where_answers_end() -> None:
    text = "In 1990-95 the well-known U.S. firm paid $5million; it didn't, the 20th. John's 3,000.5"
    words, spans = SPLITTER(text)
    assert words == (
        "In 1990 - 95 the well - known U.S. firm paid $ 5 million ; it did n't , the 20th . "
        "John 's 3,000.5"
    ).split(" ")
    assert [text[a:b] for a, b in spans] == words
    whole = WordSplitter(TextPipeline(TextConfig(language="en")), cut=False)
    assert "well-known" in whole(text).words


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_every_word_is_the_text_at_its_place(text: str) -> None:
    words, spans = SPLITTER(text)
    assert [text[a:b] for a, b in spans] == words
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    visible = [i for i, letter in enumerate(text) if not letter.isspace()]
    assert set(visible) <= {i for a, b in spans for i in range(a, b)}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1), st.data())
def test_alignment_is_that_of_a_visible_loop(sizes: list[tuple[int, int]], data: Any) -> None:
    spans, place = [], 0
    for gap, size in sizes:
        spans.append((place + gap, place + gap + size))
        place += gap + size
    start = data.draw(st.integers(0, place - 1))
    end = data.draw(st.integers(start + 1, place))
    touched = [i for i, (a, b) in enumerate(spans) if a < end and b > start]
    assert align(spans, start, end) == ((touched[0], touched[-1]) if touched else None)


def test_misaligned_answers_are_listed_and_learned_by_the_words_they_touch() -> None:
    wrong = Question("7", "The Japanese ate.", "Who?", (Answer("Japan", 4),), "Food")
    right = Question("8", PASSAGE, "Where was Ada born?", (Answer("London", 16),))
    found = misaligned([wrong, right])
    assert [(each.id, each.answer, each.words) for each in found] == [("7", "Japan", "Japanese")]
    data = read_all([wrong], SPLITTER, "training")
    assert data.spans == [(1, 1)]


def test_published_answers_align(shared_data: Path) -> None:
    data = read_all("squad-v1.1:valid", SPLITTER, "evaluation")
    for example, which, (first, last) in zip(data.examples, data.which, data.spans, strict=True):
        spans = data.passages[which].spans
        told = example.passage[spans[first][0] : spans[last][1]]
        assert example.answers[0].text.strip() in told
    assert len(data) == 10570
    assert 0 < len(data.misaligned) < 100  # positions in dev are guesses


def test_numbers_are_known_by_their_shape() -> None:
    texts = [["In", "1990", "and", "1991", "in", "1992", "1993"]]
    known = ReaderVocabulary.learn(texts, min_count=2)
    assert known.lookup("IN") == known.words["in"] != known.unknown
    assert known.lookup("1855") == known.lookup("1990") == known.words["0000"] != known.unknown
    assert known.lookup("and") == known.unknown
    assert len(known.spelling("x" * 40)) == MAX_SPELLING


def test_long_training_passages_keep_their_answer() -> None:
    passage = " ".join(f"w{i}" for i in range(60))
    examples = [
        Question(str(i), passage, "which?", (Answer(f"w{i}", passage.index(f"w{i}")),))
        for i in (10, 30, 59)
    ]
    data = read_all(examples, SPLITTER, "training")
    known = ReaderVocabulary.learn([*data.texts()], min_count=1)
    encoded, left_out = encode_training(data, known, 20)
    assert left_out == 0 and encoded.sizes.tolist() == [20, 20, 20]
    batch = encoded.batch(np.arange(3))
    for row, (first, last), example in zip(
        batch["passage"].values, batch.values["spans"], data.examples, strict=True
    ):
        words = [known.words.words[batch.values["words"][place]] for place in row]
        told = "".join(words[first : last + 1])
        assert told == example.answers[0].text
    assert encode_training(data, known, 1)[1] == 3  # "w", "10": two words do not fit into one


@pytest.mark.parametrize("longest", [1, 2, 5, 6])
def test_a_stretch_around_an_answer_of_its_length_holds_it(longest: int) -> None:
    words = list("abcdefghijklmnop")
    for first in range(len(words) - longest + 1):
        answer = Answer(" ".join(words[first : first + longest]), 2 * first)
        data = read_all([Question("1", " ".join(words), "which?", (answer,))], SPLITTER, "training")
        known = ReaderVocabulary.learn([*data.texts()], min_count=1)
        encoded, left_out = encode_training(data, known, longest)
        assert left_out == 0
        assert encoded.spans.tolist() == [[0, longest - 1]]
        assert encoded.first.tolist() == [first]


def test_articles_are_set_apart_whole() -> None:
    examples = [
        Question(str(i), PASSAGE, "Where?", (Answer("Rome", 40),), f"article {i % 10}")
        for i in range(100)
    ]
    data = read_all(examples, SPLITTER, "training")
    train, valid = set_apart(data, 0.2, 0)
    assert valid is not None
    assert len(train) + len(valid) == 100 and 10 <= len(valid) <= 22
    titles = [{each.title for each in part.examples} for part in (train, valid)]
    assert not titles[0] & titles[1]
    assert set_apart(data, 0.0, 0)[1] is None


def test_texts_are_numbered_once_for_each_different_word() -> None:
    known = ReaderVocabulary.learn([["a", "b", "a"]], min_count=1)
    texts = encode_texts([["a", "b", "a"]], [["b", "A"]], known)
    assert texts.passages[0].tolist() == [0, 1, 0]
    assert texts.questions[0].tolist() == [1, 2]
    assert texts.words[0] == texts.words[2]  # "a" and "A" are one word of two spellings


def test_probabilities_of_windows_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    known = ReaderVocabulary.learn([["a", "b", "c", "d"]], min_count=1)
    texts = encode_texts([[*"abcd"]] * 3, [["a"]], known)
    data, _ = encode_windows(texts, [(0, 0), (1, 0), (2, 0)])
    total = start[:, :, None] + end[:, None, :]
    chances = np.exp(total) / np.exp(total).sum()
    spans = [(w, i, j) for w in range(3) for i in range(4) for j in range(i, 4)]
    best = sorted(spans, key=lambda span: -chances[span])[:5]
    kept = [
        sorted(((i, j) for v, i, j in spans if v == w), key=lambda s: -total[(w, *s)])[:5]
        for w in range(3)
    ]
    found = FoundSpans(
        np.array([[total[w, i, j] for i, j in kept[w]] for w in range(3)]),
        np.array([[i for i, _ in kept[w]] for w in range(3)]),
        np.array([[j for _, j in kept[w]] for w in range(3)]),
        np.log(np.exp(total).sum(axis=(1, 2))),
    )
    merged = merge_windows(data, found, np.arange(3), 5)
    assert [each[:3] for each in merged] == best
    np.testing.assert_allclose([each.probability for each in merged], [chances[s] for s in best])
    more = merge_windows(data, found.favor(np.array([0.0, 50.0, 0.0])), np.arange(3), 5)
    assert {each.passage for each in more} == {1}


@pytest.mark.parametrize("level", [16.0, 60.0, 1000.0])
def test_rounding_makes_no_probability_greater_than_one(level: float) -> None:
    """Five of six words have a millionth of the probability, less than half a step of 32 bits."""

    class Sure(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.place = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x: Any) -> SpanOutput:
            scores = torch.full(x.passage.shape, level - 15.5)
            scores[:, -1] = level
            return SpanOutput(scores, scores, torch.zeros(0))

    known = ReaderVocabulary.learn([["a"]], min_count=1)
    data, _ = encode_windows(encode_texts([["a"] * 6], [["a"]], known), [(0, 0)])
    found = find_spans(Sure(), data, 6, 100)
    said = [each.probability for each in merge_windows(data, found, np.zeros(1, np.int64), 100)]
    side = np.exp(-15.5) / (1 + 5 * np.exp(-15.5))
    expected = [(1 - 5 * side) ** 2] + 5 * [side * (1 - 5 * side)] + 15 * [side**2]
    np.testing.assert_allclose(said, expected, rtol=1e-9)
    assert sum(said) <= 1


def test_spans_that_say_the_same_are_one_answer() -> None:
    text = "the Rhine , Rome and the Rhine the"
    spans = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    found = [
        Candidate(0, 3, 3, 0.3),
        Candidate(0, 1, 1, 0.2),
        Candidate(0, 0, 1, 0.15),
        Candidate(0, 5, 6, 0.1),
        Candidate(0, 0, 0, 0.05),
        Candidate(0, 7, 7, 0.04),
    ]
    answers = [as_answer(one, spans, text, 2) for one in found]
    assert answers[2] == FoundAnswer("the Rhine", 0, 9, 0.15, 2)
    said = joined(answers, "squad")
    assert [(each.text, each.start) for each in said] == [("Rhine", 4), ("Rome", 12), ("the", 0)]
    assert [round(each.probability, 6) for each in said] == [0.45, 0.3, 0.09]
