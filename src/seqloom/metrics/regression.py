"""How close predicted numbers come."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError

Floats = NDArray[np.float64]


def mean_squared_error(predicted: ArrayLike, actual: ArrayLike) -> float:
    """Return the mean of the squared errors, over all examples and outputs."""
    left, right = _same_shape(predicted, actual)
    return float(np.square(left - right).mean())


def r_squared(predicted: ArrayLike, actual: ArrayLike) -> float:
    r"""Return the share of the variance that is explained, the mean over several outputs.

    $$R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}$$

    Where the truth does not vary it is 1 for right predictions and 0 for others.
    """
    left, right = _same_shape(predicted, actual)
    error = np.square(left - right).sum(axis=0)
    spread = np.square(right - right.mean(axis=0)).sum(axis=0)
    varies = (right != right[0]).any(axis=0) & (spread > 0)
    explained = np.where(varies, 1 - error / np.where(varies, spread, 1.0), error == 0)
    return float(np.mean(explained))


def _same_shape(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.shape != right.shape or left.ndim not in (1, 2) or not left.size:
        raise ShapeError(
            "predictions and truths must be of one shape, (N,) or (N, C), got "
            f"{left.shape} and {right.shape}"
        )
    return left, right
