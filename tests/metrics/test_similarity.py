"""Rank correlation against scipy, analogies against a visible loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from seqloom.errors import ShapeError
from seqloom.metrics import analogy_answers, spearman
from seqloom.metrics import similarity as module
from seqloom.text import WordVectors


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("values", [4, 1000], ids=["ties", "no ties"])
def test_rank_correlation_is_scipys(seed, values):
    chance = np.random.default_rng(seed)
    x, y = chance.integers(0, values, 60), chance.integers(0, values, 60)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_rank_correlation_by_hand():
    assert spearman([1, 2, 30], [0.1, 0.2, 0.3]) == 1
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    # Ranks 1, 2, 3, 4 and 2, 1, 4, 3: 1 - 6 * 4 / (4 * 15).
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    assert math.isnan(spearman([1, 1], [1, 2]))


def test_lists_must_match():
    with pytest.raises(ShapeError, match=r"\(2,\) and \(3,\)"):
        spearman([1, 2], [1, 2, 3])
    with pytest.raises(ShapeError, match=r"\(0,\) and \(0,\)"):
        spearman([], [])


def test_analogies_are_those_of_word_vectors(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 100)  # three questions at once
    chance = np.random.default_rng(3)
    matrix = chance.normal(size=(30, 5)).astype(np.float32)
    words = WordVectors([str(i) for i in range(30)], matrix)
    asked = np.array([chance.permutation(30)[:3] for _ in range(40)])
    found = analogy_answers(matrix, asked)
    for (a, b, c), d in zip(asked, found, strict=True):
        assert words.analogy(str(a), str(b), str(c))[0][0] == str(d)


def test_an_analogy_without_another_word_has_no_answer():
    matrix = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)  # the last has no direction
    assert analogy_answers(matrix, np.array([[0, 1, 2]])).tolist() == [-1]


def test_a_number_that_is_none_leaves_no_correlation():
    values = [1.0, float("nan"), 3.0]
    assert np.isnan(spearman(values, [1, 2, 3]))
    assert np.isnan(spearman([1, 2, 3], values))
    assert np.isnan(spearmanr(values, [1, 2, 3]).statistic)
