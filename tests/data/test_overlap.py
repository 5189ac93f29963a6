"""Exact n-gram overlap, against sets of tuples."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.overlap import Overlap, overlap
from seqloom.errors import ConfigError, DataError

overlap_module = importlib.import_module("seqloom.data.overlap")  # the package exports the function
sentences = st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=12)


def by_sets(train: list[list[str]], test: list[list[str]], n: int) -> Overlap:
    def grams(sentence):
        return [tuple(sentence[i : i + n]) for i in range(len(sentence) - n + 1)]

    known = {gram for sentence in train for gram in grams(sentence)}
    running = [gram for sentence in test for gram in grams(sentence)]
    long = [s for s in test if len(s) >= n]
    return Overlap(
        n=n,
        ngrams=len(running),
        ngrams_seen=sum(gram in known for gram in running),
        distinct=len(set(running)),
        distinct_seen=len(set(running) & known),
        sentences=len(long),
        sentences_seen=sum(all(gram in known for gram in grams(s)) for s in long),
        short_sentences=len(test) - len(long),
    )


@given(sentences, sentences, st.integers(1, 5), st.integers(1, 7))
def test_equals_sets_of_tuples(train, test, n, block):
    whole, overlap_module.BLOCK_TOKENS = overlap_module.BLOCK_TOKENS, block
    try:
        if any(len(sentence) >= n for sentence in test):
            assert overlap(iter(train), iter(test), n) == by_sets(train, test, n)
        else:
            with pytest.raises(DataError, match=f"n={n} words"):
                overlap(train, test, n)
    finally:
        overlap_module.BLOCK_TOKENS = whole


def test_shares():
    found = overlap([["a", "b", "c"]], [["x", "a", "b"], ["b", "c"], ["b", "c"], ["a"]], n=2)
    assert (found.ngrams, found.ngrams_seen, found.share) == (4, 3, 0.75)
    assert (found.distinct, found.distinct_seen) == (3, 2)
    assert found.distinct_share == pytest.approx(2 / 3)
    assert (found.sentences, found.sentences_seen, found.short_sentences) == (3, 2, 1)


def test_a_match_does_not_cross_sentences():
    assert overlap([["a", "b"], ["c", "d"]], [["b", "c"]], n=2).ngrams_seen == 0


def test_characters_of_strings_count_too():
    assert overlap(["国泰民安"], ["泰民"], n=2).share == 1.0


def test_empty_train_shares_nothing():
    assert overlap([], [["a", "b"]], n=1).ngrams_seen == 0


def test_bad_n_is_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        overlap([], [["a"]], n=0)


def test_two_million_words():
    numbers = np.random.default_rng(0).zipf(1.2, 2_200_000) % 50_000
    words = [str(i) for i in numbers]
    text = [words[i : i + 25] for i in range(0, len(words), 25)]
    found = overlap(text[:80_000], text[80_000:], n=8)
    assert found.ngrams == 8_000 * 18
