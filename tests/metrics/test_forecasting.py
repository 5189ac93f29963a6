"""Measures of forecasts equal what a hand computes."""

from __future__ import annotations

import numpy as np
import pytest

from seqloom.errors import ShapeError
from seqloom.metrics.forecasting import coverage, mase, naive_error, pinball_loss, seasonal_naive


def test_the_naive_forecast_repeats_the_last_season():
    assert seasonal_naive([1, 2, 3, 4, 5], 7, season=3).tolist() == [3, 4, 5, 3, 4, 5, 3]
    assert seasonal_naive([[1, 9], [2, 8]], 2).tolist() == [[2, 8], [2, 8]]


def test_scaled_errors_by_hand():
    history = [1.0, 5.0, 2.0, 7.0, 4.0]  # season 2: |2-1|, |7-5|, |4-2|, a mean of 5/3
    assert naive_error(history, 2) == pytest.approx(5 / 3)
    assert mase([3.0, 3.0], [4.0, 1.0], history, 2) == pytest.approx(1.5 / (5 / 3))


def test_the_naive_forecast_in_sample_scores_one():
    series = np.random.default_rng(0).normal(size=400).cumsum()
    assert mase(series[4:-4], series[8:], series[:-4], 4) == pytest.approx(1, rel=0.1)


def test_coverage_and_pinball_by_hand():
    assert coverage([0, 0, 0, 0], [1, 1, 1, 1], [0, 0.5, 1, 1.1]) == 0.75
    assert pinball_loss([2.0, 2.0], [3.0, 0.0], 0.9) == pytest.approx((0.9 * 1 + 0.1 * 2) / 2)


def test_the_best_constant_forecast_is_the_quantile():
    numbers = np.random.default_rng(1).gamma(2.0, size=2001)
    tried = np.linspace(0, 10, 2001)
    losses = [pinball_loss(np.full(2001, value), numbers, 0.9) for value in tried]
    assert tried[np.argmin(losses)] == pytest.approx(np.quantile(numbers, 0.9), abs=0.01)


def test_bad_input_is_refused():
    with pytest.raises(ShapeError, match="got 3 rows and season=4"):
        seasonal_naive([1, 2, 3], 1, season=4)
    with pytest.raises(ShapeError, match=r"one shape, got \(2,\) and \(3,\)"):
        mase([1, 2], [1, 2, 3], [1, 2, 3])
    with pytest.raises(ShapeError, match="must change from season to season"):
        mase([1.0], [1.0], [2.0, 2.0, 2.0])
