"""Metrics against hand counts, definitions and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seqloom.errors import ShapeError
from seqloom.metrics import accuracy, bits_per, confusion_matrix, f1_scores, perplexity

sklearn_metrics = pytest.importorskip("sklearn.metrics")
PREDICTED = ["a", "b", "a", "c", "b", "a"]
ACTUAL = ["a", "b", "b", "c", "a", "a"]


def test_perplexity_of_a_fair_die():
    assert perplexity(10 * math.log(6), 10) == pytest.approx(6)
    assert bits_per(10 * math.log(8), 10) == pytest.approx(3)


def test_perplexity_is_infinite_where_a_float_ends():
    assert perplexity(1e6, 1) == math.inf
    assert perplexity(math.inf, 3) == math.inf


def test_perplexity_of_a_real_distribution():
    chances = np.array([0.5, 0.25, 0.125])
    assert perplexity(-np.log(chances).sum(), 3) == pytest.approx(1 / chances.prod() ** (1 / 3))


def test_counts_by_hand():
    assert accuracy(PREDICTED, ACTUAL) == pytest.approx(4 / 6)
    assert confusion_matrix(PREDICTED, ACTUAL, ["a", "b", "c"]).tolist() == [
        [2, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]
    assert f1_scores(PREDICTED, ACTUAL, ["a", "b", "c", "d"]) == {
        "a": pytest.approx(2 / 3),
        "b": pytest.approx(1 / 2),
        "c": 1.0,
        "d": 0.0,
    }


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    actual, predicted = rng.integers(0, 5, (2, 200))
    labels = list(range(5))
    assert accuracy(predicted, actual) == sklearn_metrics.accuracy_score(actual, predicted)
    ours = confusion_matrix(predicted, actual, labels)
    assert (ours == sklearn_metrics.confusion_matrix(actual, predicted)).all()
    expected = sklearn_metrics.f1_score(actual, predicted, average=None)
    np.testing.assert_allclose(list(f1_scores(predicted, actual, labels).values()), expected)


@pytest.mark.parametrize("metric", [accuracy, lambda a, b: f1_scores(a, b, [1])])
@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([1, 2], [1], r"got shapes \(2,\) and \(1,\)"),
        ([], [], r"at least 1, got shapes \(0,\)"),
        ([[1]], [[1]], r"\(1, 1\)"),
    ],
)
def test_lists_that_do_not_match_are_refused(metric, left, right, message):
    with pytest.raises(ShapeError, match=message):
        metric(left, right)
