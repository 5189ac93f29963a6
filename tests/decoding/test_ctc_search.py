"""Labels are found as an enumeration of all alignments finds them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from seqloom.decoding import LabelLanguage, best_path, prefix_search
from seqloom.errors import ConfigError, ShapeError

C = 4


def some_rows(steps, seed, labels=C):
    scores = np.random.default_rng(seed).normal(size=(steps, labels)) * 1.5
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def by_counting(rows, blank):
    """The probability of each sequence of labels, over all paths."""
    found = {}
    for path in itertools.product(range(rows.shape[1]), repeat=len(rows)):
        labels = tuple(k for k, _ in itertools.groupby(path) if k != blank)
        chance = np.exp(rows[np.arange(len(rows)), path].sum())
        found[labels] = found.get(labels, 0.0) + chance
    return found


@pytest.mark.parametrize("blank", [0, 3])
def test_a_wide_search_is_exact(blank):
    rows = some_rows(5, 0)
    expected = by_counting(rows, blank)
    found = prefix_search(rows, blank=blank, beam=5000, n_best=5000)
    assert len(found) == len(expected)
    for each in found:
        assert np.exp(each.log_prob) == pytest.approx(expected[each.labels], rel=1e-9)
    assert found == sorted(found, key=lambda each: -each.score)


CHANCES = np.log(np.random.default_rng(5).dirichlet(np.ones(C), size=C))  # (before, next); 0: ends


def bigram(ids, state):
    """A language model over 0..3 whose 0 begins and ends; its state counts what it read."""
    return CHANCES[ids], (state[0] + 1, torch.as_tensor(state[1]) + 1)


def bigram_log_prob(labels):
    whole = [0, *labels, 0]
    return sum(CHANCES[a, b] for a, b in itertools.pairwise(whole))


def test_with_a_language_model_it_is_exact_too():
    rows, weight, bonus = some_rows(5, 1), 0.7, 0.3
    state = (np.zeros((1, 2)), torch.zeros(1))
    language = LabelLanguage(bigram, state, 0, np.arange(C), 0, weight, bonus)
    scores = {
        labels: np.log(chance) + weight * bigram_log_prob(labels) + bonus * len(labels)
        for labels, chance in by_counting(rows, 0).items()
    }
    found = prefix_search(rows, beam=5000, n_best=5, language=language)
    assert [each.labels for each in found] == sorted(scores, key=lambda k: -scores[k])[:5]
    for each in found:
        assert each.score == pytest.approx(scores[each.labels])
        assert each.language == pytest.approx(bigram_log_prob(each.labels))


def test_a_language_model_changes_a_narrow_search_only_by_its_weight():
    rows = some_rows(30, 2)
    state = (np.zeros((1, 2)), torch.zeros(1))
    none = LabelLanguage(bigram, state, 0, np.arange(C), 0, weight=0.0)
    alone, silent = prefix_search(rows, beam=8), prefix_search(rows, beam=8, language=none)
    assert alone[0].labels == silent[0].labels
    strong = LabelLanguage(bigram, state, 0, np.arange(C), 0, weight=50.0)
    loud = prefix_search(rows, beam=8, language=strong)[0]
    assert loud.language / (len(loud.labels) + 1) > bigram_log_prob(alone[0].labels) / (
        len(alone[0].labels) + 1
    )


def test_a_search_finds_more_than_the_best_path():
    rows = np.log(np.array([[0.4, 0.3, 0.3]] * 2))  # two blanks have 0.16, one label 0.33
    assert best_path(rows) == ()
    found = prefix_search(rows, beam=4, n_best=4)
    assert found[0].labels in ((1,), (2,))
    assert np.exp(found[0].log_prob) == pytest.approx(0.3 * 0.3 + 2 * 0.4 * 0.3)


def test_the_best_path_is_collapsed():
    path = [0, 1, 1, 0, 1, 2, 2, 0]
    rows = np.full((len(path), 3), -5.0)
    rows[np.arange(len(path)), path] = -0.1
    assert best_path(rows) == (1, 1, 2)
    assert best_path(torch.tensor(rows)) == (1, 1, 2)
    assert prefix_search(rows, beam=3)[0].labels == (1, 1, 2)
    assert best_path(rows, blank=2) == (0, 1, 0, 1, 0)


def test_impossible_steps_leave_what_there_is():
    rows = np.full((3, 3), -np.inf)
    assert prefix_search(rows)[0].log_prob == -np.inf


def test_bad_settings_are_refused():
    rows = some_rows(3, 0)
    with pytest.raises(ConfigError, match="beam must be at least 1, got 0"):
        prefix_search(rows, beam=0)
    with pytest.raises(ConfigError, match="between 1 and beam=2, got 3"):
        prefix_search(rows, beam=2, n_best=3)
    with pytest.raises(ConfigError, match=r"blank must lie in 0..3, got 4"):
        best_path(rows, blank=4)
    with pytest.raises(ShapeError, match=r"\(steps, labels\).*got \(4,\)"):
        best_path(rows[0])
    with pytest.raises(ShapeError, match="got NaN"):
        prefix_search(rows * np.nan)
    with pytest.raises(ConfigError, match="weight must be finite, got nan"):
        LabelLanguage(bigram, None, 0, np.arange(C), weight=float("nan"))
