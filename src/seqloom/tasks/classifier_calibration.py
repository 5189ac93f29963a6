"""Probabilities that mean what they say: the temperature of scores, and how far off they are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS = 15  # as in the paper
COLDEST, HOTTEST = 1e-2, 1e2
_GOLDEN = (math.sqrt(5) - 1) / 2
_TINY = 1e-300


def calibration_error(confidences: Floats, correct: NDArray[np.bool_], bins: int = BINS) -> float:
    r"""Return the expected calibration error.

    $$\mathrm{ECE} = \sum_m \frac{|B_m|}{N} \, |\mathrm{acc}(B_m) - \mathrm{conf}(B_m)|$$

    with the predictions sorted into bins of equal width by their confidence.

    Paper: Guo et al. (2017), "On Calibration of Modern Neural Networks", ICML, equation 3.

    Args:
        confidences: The probability of each prediction.
        correct: Whether it was right.
        bins: How many bins.
    """
    places = np.clip(np.ceil(confidences * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(places, correct - confidences, bins)  # |B| (acc - conf) of each bin
    return float(np.abs(gaps).sum() / len(confidences))


def log_loss(probabilities: Floats, targets: NDArray[np.int64] | Floats) -> float:
    """Return the mean negative log-probability of what is true.

    Args:
        probabilities: Of each class (N, C), or of each label on its own.
        targets: The numbers of the classes (N,), or 1 and 0 of each label (N, C).
    """
    if targets.ndim == 1:
        own = probabilities[np.arange(len(targets)), targets.astype(np.int64)]
        return float(-np.log(np.maximum(own, _TINY)).mean())
    own = np.where(targets > 0, probabilities, 1 - probabilities)
    return float(-np.log(np.maximum(own, _TINY)).sum(axis=1).mean())


def fit_temperature(
    scores: Floats,
    targets: NDArray[np.int64] | Floats,
    probabilities: Callable[[Floats], Floats],
) -> float:
    r"""Return the T for which the probabilities of $s / T$ fit best.

    It minimizes the mean negative log-probability by golden-section search over $\ln T$, between
    0.01 and 100. For softmax and for sigmoids that is convex in $1 / T$, so there is one minimum.
    Where every example is classified right there is none: the colder the better, which says
    nothing of other examples, so T stays 1.

    Paper: Guo et al. (2017), section 4.2.

    Args:
        scores: Of examples that were not trained on, (N, C).
        targets: Their classes (N,) or labels (N, C).
        probabilities: What makes probabilities of scores.
    """

    def loss(log_temperature: float) -> float:
        return log_loss(probabilities(scores / math.exp(log_temperature)), targets)

    low, high = math.log(COLDEST), math.log(HOTTEST)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 1e-9:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
    found = math.exp((low + high) / 2)
    return 1.0 if found < 1.01 * COLDEST else found
