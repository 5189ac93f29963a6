"""How good forecasts of a series are, beside what is forecast without any model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError

Floats = NDArray[np.float64]


def seasonal_naive(history: ArrayLike, horizon: int, season: int = 1) -> Floats:
    r"""Return the last season again and again: $\hat y_{T+k} = y_{T+k-m \lceil k/m \rceil}$.

    Args:
        history: What is known, (T,) or (T, D).
        horizon: How many steps to forecast.
        season: Steps m of a season; 1 repeats the last value.

    Examples:
        >>> seasonal_naive([1, 2, 3, 4], 3, season=2).tolist()
        [3.0, 4.0, 3.0]
    """
    known = np.asarray(history, np.float64)
    _check_season(len(known), season)
    return known[len(known) - season + np.arange(horizon) % season]


def naive_error(history: ArrayLike, season: int = 1) -> float:
    """Return the mean absolute error of the seasonal naive forecast one season ahead, in sample."""
    known = np.asarray(history, np.float64)
    _check_season(len(known) - 1, season)
    return float(np.abs(known[season:] - known[:-season]).mean())


def mase(predicted: ArrayLike, actual: ArrayLike, history: ArrayLike, season: int = 1) -> float:
    r"""Return the mean absolute scaled error; below 1 is better than the naive forecast in sample.

    $$\frac{\frac{1}{h} \sum_k |y_{T+k} - \hat y_{T+k}|}
    {\frac{1}{T - m} \sum_{t=m+1}^{T} |y_t - y_{t-m}|}$$

    Paper: Hyndman and Koehler (2006), "Another Look at Measures of Forecast Accuracy",
    International Journal of Forecasting 22(4), with the season of Hyndman and Athanasopoulos.

    Args:
        predicted: The forecasts, (h,).
        actual: What came, (h,).
        history: What was known before, (T,).
        season: Steps m of a season.
    """
    left, right = _same_shape(predicted, actual)
    scale = naive_error(history, season)
    if not scale:
        raise ShapeError(
            "the history must change from season to season for a scaled error, got none that does"
        )
    return float(np.abs(left - right).mean()) / scale


def coverage(lower: ArrayLike, upper: ArrayLike, actual: ArrayLike) -> float:
    """Return the share of numbers that lie within their interval, its ends included."""
    low, truth = _same_shape(lower, actual)
    high, _ = _same_shape(upper, actual)
    return float(((low <= truth) & (truth <= high)).mean())


def pinball_loss(predicted: ArrayLike, actual: ArrayLike, level: float) -> float:
    r"""Return the mean loss whose best forecast is the quantile of this level.

    $$\max(\tau (y - \hat y), (\tau - 1) (y - \hat y))$$

    Paper: Koenker and Bassett (1978), "Regression Quantiles", Econometrica 46(1).
    """
    left, right = _same_shape(predicted, actual)
    error = right - left
    return float(np.maximum(level * error, (level - 1) * error).mean())


def _check_season(rows: int, season: int) -> None:
    if not 1 <= season <= rows:
        raise ShapeError(
            f"the history must be longer than a season and the season at least 1, got {rows} rows "
            f"and season={season}"
        )


def _same_shape(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.shape != right.shape or not left.size:
        raise ShapeError(
            f"forecasts and truths must be of one shape, got {left.shape} and {right.shape}"
        )
    return left, right
