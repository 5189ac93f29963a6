"""How sure a difference is, by drawing the test data again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seqloom.errors import ConfigError, ShapeError


def paired_bootstrap(
    ours: ArrayLike,
    theirs: ArrayLike,
    sizes: ArrayLike,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    r"""Return an interval for the difference of two means over the same sentences.

    $$\Delta = \frac{\sum_s (a_s - b_s)}{\sum_s n_s}$$

    Each of `resamples` times as many sentences are drawn as there are, with replacement, and the
    difference is computed on them; the interval leaves out equally many of the results at either
    end.

    Paper: Efron (1979), "Bootstrap Methods: Another Look at the Jackknife"; Koehn (2004),
    "Statistical Significance Tests for Machine Translation Evaluation", for pairs.

    Args:
        ours: By sentence, what one model reached in sum (a loss, say).
        theirs: By sentence, what the other reached.
        sizes: By sentence, over how many items (words) that is.
        resamples: How often to draw.
        level: The share of results inside the interval.
        seed: Of chance.

    Raises:
        ShapeError: If there are not as many of each, or none.
    """
    a, b, n = (np.asarray(each, np.float64) for each in (ours, theirs, sizes))
    if not a.shape == b.shape == n.shape or a.ndim != 1 or not a.size:
        raise ShapeError(
            f"ours, theirs and sizes must be of one length, got {a.shape}, {b.shape}, {n.shape}"
        )
    if resamples < 1 or not 0 < level < 1:
        raise ConfigError(
            f"resamples must be at least 1 and level lie between 0 and 1, got {resamples}, {level}"
        )
    chance = np.random.default_rng(seed)
    found = np.empty(resamples)
    for i in range(resamples):
        drawn = chance.integers(len(a), size=len(a))
        found[i] = (a[drawn] - b[drawn]).sum() / n[drawn].sum()
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
