"""Metrics of numbers against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as oracle

from seqloom.errors import ShapeError
from seqloom.metrics import mean_squared_error, r_squared

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(20,), (20, 3)])
def test_they_equal_scikit_learns(shape):
    actual, predicted = RNG.normal(size=shape), RNG.normal(size=shape)
    assert r_squared(predicted, actual) == pytest.approx(oracle.r2_score(actual, predicted))
    expected = oracle.mean_squared_error(actual, predicted)
    assert mean_squared_error(predicted, actual) == pytest.approx(expected)


def test_a_truth_that_does_not_vary():
    assert r_squared([3, 3], [3, 3]) == oracle.r2_score([3, 3], [3, 3]) == 1.0
    assert r_squared([3, 4], [3, 3]) == oracle.r2_score([3, 3], [3, 4]) == 0.0


def test_shapes_must_agree():
    with pytest.raises(ShapeError, match=r"got \(2,\) and \(3,\)"):
        r_squared([1, 2], [1, 2, 3])


def test_a_constant_truth_whose_mean_is_rounded():
    assert r_squared([0.1, 0.2, 0.1], [0.1] * 3) == 0.0
    assert r_squared([[1, 0.1], [2, 0.1], [3, 0.2]], [[1, 0.1], [2, 0.1], [3, 0.1]]) == 0.5
