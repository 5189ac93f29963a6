"""Windows of long passages: what they hold, where they are cut, which are read."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.tasks.reader_data import encode_texts, encode_windows
from seqloom.tasks.reader_ranking import best_windows, unread_features, window_scores
from seqloom.tasks.reader_windows import cut_passage, pack
from seqloom.tasks.reader_words import ReaderVocabulary

SIZES = {"window": st.integers(1, 30), "piece": st.integers(1, 20), "overlap": st.integers(0, 12)}
PARAGRAPHS = st.lists(  # of sentences, each so many words
    st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=8
)


def written(paragraphs: list[list[int]], gap: str) -> str:
    return gap.join(
        " ".join(" ".join(["So", *["go"] * (size - 1)]) + "." for size in sentences)
        for sentences in paragraphs
    )


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


@given(
    PARAGRAPHS, st.sampled_from(["\n\n", "\n", "\n \n", "\r\n\r\n"]), st.fixed_dictionaries(SIZES)
)
def test_windows_hold_every_word_and_whole_paragraphs(paragraphs, gap, sizes) -> None:
    text = written(paragraphs, gap)
    words = words_of(text)
    found = cut_passage(text, words, language="en", **sizes)
    window = sizes["window"]
    if len(words) <= window:
        assert found == [(0, len(words))]
        return
    assert all(0 < end - begin <= window for begin, end in found)
    assert {i for begin, end in found for i in range(begin, end)} == set(range(len(words)))
    for (a, b), (c, d) in pairwise(found):
        assert a < c <= b < d and b - c <= sizes["overlap"]
    place = 0
    for sentences in paragraphs:
        parts = sentences if sum(sentences) > window else [sum(sentences)]
        for size in parts:
            kept = any(begin <= place and place + size <= end for begin, end in found)
            assert kept or (parts is sentences and size > min(window, sizes["piece"]))
            place += size


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(1, 20), st.integers(0, 12), st.data())
def test_neighbors_share_a_window_while_there_is_room(steps, piece, overlap, data) -> None:
    window = data.draw(st.integers(max(piece, *steps, 1), 30))
    overlap = min(overlap, piece - 1)
    edges = np.cumsum([0, *steps]).tolist()

    def may_be(begin: int, end: int) -> bool:
        inside = [b - a for a, b in pairwise(edges) if begin <= a and b <= end]
        size = sum(inside)
        return len(inside) == 1 or size <= piece or (size <= window and sum(inside[:-1]) <= overlap)

    found = pack(edges, window, piece, overlap)
    for begin, end in found:
        assert may_be(begin, end)
        if end != edges[-1]:
            assert not may_be(begin, edges[edges.index(end) + 1])
    for (first, before), (begin, end) in pairwise(found):
        # Nothing that could be read again is left out.
        earlier = [edge for edge in edges if first < edge < begin and before - edge <= overlap]
        new = edges[edges.index(before) + 1]
        assert end >= new and not any(may_be(edge, new) for edge in earlier)


def test_a_heading_is_read_with_what_it_stands_over() -> None:
    text = "First one.\n\nA head\n\n" + "So it goes on. " * 3 + "\n\nMore of it."
    found = cut_passage(text, words_of(text), window=14, piece=6, overlap=2, language="en")
    assert found == [(0, 4), (2, 16), (16, 19)]


def test_lines_end_paragraphs_after_a_stop_only() -> None:
    text = "A head\nAda was\nborn here. She\nleft.\nMax ran (far.)\nHe sat.\n\nNo stop\n\nMore"
    words = words_of(text)
    found = cut_passage(text, words, window=8, piece=1, overlap=0, language="en")
    told = [" ".join(text[words[a][0] : words[b - 1][1]].split()) for a, b in found]
    assert told == [
        "A head Ada was born here. She left.",
        "Max ran (far.)",
        "He sat.",
        "No stop",
        "More",
    ]


def test_chinese_is_cut_between_sentences() -> None:
    text = "小明生于上海。他去了北京！小红呢？她在广州，后来走了。"
    words = [(i, i + 1) for i in range(len(text))]
    found = cut_passage(text, words, window=14, piece=14, overlap=7, language="auto")
    told = [text[a:b] for a, b in found]
    assert told == [
        "小明生于上海。他去了北京！",
        "他去了北京！小红呢？",
        "小红呢？她在广州，后来走了。",
    ]


def test_what_has_no_sentences_is_cut_by_words() -> None:
    text = "go " * 20
    found = cut_passage(text, words_of(text), window=10, piece=8, overlap=2, language="en")
    assert found == [(0, 8), (6, 14), (12, 20)]


# -- which windows are read ------------------------------------------------------------------------


def test_windows_are_ranked_as_the_equation_says() -> None:
    passage = "the cat sat the dog ran the catalog Cat sleepiness".split()
    known = ReaderVocabulary.learn([[*passage, "the", "the", "cat"]], min_count=1)
    texts = encode_texts([passage], [["which", "cat", "sleeping", "the", "cat"]], known)
    cuts = [(0, 3), (3, 6), (6, 8), (8, 10)]
    data, owners = encode_windows(texts, [(0, 0)], [cuts])
    windows = [[word.lower()[:5] for word in passage[a:b]] for a, b in cuts]
    ranks = known.words.words[len(known.words.specials.names()) :]
    assert ranks[:2] == ("the", "cat")
    rare = {"which": 1, "cat": np.log(3) / np.log(1 + len(ranks)), "sleep": 1}
    rare["the"] = np.log(2) / np.log(1 + len(ranks))
    expected = []
    for words in windows:
        score = 0.0
        for term, weight in rare.items():
            having = sum(term in each for each in windows)
            count = words.count(term)
            rarity = weight * np.log(1 + (len(windows) - having + 0.5) / (having + 0.5))
            length = 0.25 + 0.75 * len(words) / 2.5
            score += rarity * count * 2.2 / (count + 1.2 * length)
        expected.append(score)
    np.testing.assert_allclose(window_scores(data, np.arange(4)), expected)
    vectors = torch.randn(len(known.words), 3, generator=torch.Generator().manual_seed(0))
    told = unread_features(data, owners, vectors, known.unknown)
    np.testing.assert_allclose(told.terms, expected)
    np.testing.assert_allclose(told.log_length, np.log([3, 3, 2, 2]))
    np.testing.assert_array_equal(told.reading, 0)


def test_the_windows_with_the_greatest_scores_of_each_question_are_read() -> None:
    draw = np.random.default_rng(0)
    owners = np.sort(draw.integers(0, 9, 60))
    scores = draw.integers(0, 5, 60).astype(float)
    for count in (1, 3, 60):
        expected: list[int] = []
        for owner in np.unique(owners):
            rows = np.flatnonzero(owners == owner).tolist()
            expected += sorted(sorted(rows, key=lambda row: (-scores[row], row))[:count])
        assert best_windows(scores, owners, count).tolist() == expected


def test_rare_words_are_those_that_come_late() -> None:
    known = ReaderVocabulary.learn([["a"] * 9 + ["b"] * 3 + ["2001", "2002", "c"]], min_count=1)
    found = [known.rarity(word) for word in ("A", "b", "c", "2003")]
    assert found == sorted(found) and found[-1] == 1
    assert found[0] == pytest.approx(np.log(2) / np.log(6))


def test_special_words_of_a_text_say_nothing() -> None:
    known = ReaderVocabulary.learn([["a", "<pad>", "<unk>"]], min_count=1)
    assert [known.rarity(word) for word in ("<pad>", "<UNK>", "a", "b")] == [0, 0, 1, 1]
    nothing = ReaderVocabulary.learn([["a"]], min_count=2)
    assert [nothing.rarity(word) for word in ("<unk>", "a")] == [0, 1]
