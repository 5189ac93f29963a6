"""How well vectors agree with people on which words are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError

Floats = NDArray[np.float64]
AT_ONCE = 1 << 24  # scores held at once


def spearman(predicted: ArrayLike, actual: ArrayLike) -> float:
    r"""Return Spearman's rank correlation, -1 to 1.

    $$\rho = \frac{\operatorname{cov}(r(x), r(y))}{\sigma_{r(x)} \sigma_{r(y)}}$$

    with r the ranks; equal values share the mean of theirs. NaN where one side is constant
    or has a NaN.
    Paper: Spearman (1904), "The Proof and Measurement of Association between Two Things".
    """
    left, right = np.asarray(predicted, np.float64), np.asarray(actual, np.float64)
    if left.shape != right.shape or left.ndim != 1 or not left.size:
        raise ShapeError(
            f"two lists of one length must be compared, got shapes {left.shape} and {right.shape}"
        )
    if np.isnan(left).any() or np.isnan(right).any():
        return float("nan")
    a, b = (ranks - ranks.mean() for ranks in (_ranks(left), _ranks(right)))
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread > 0 else float("nan")


def _ranks(values: Floats) -> Floats:
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2)[group])


def analogy_answers(
    vectors: NDArray[np.float32], questions: NDArray[np.int64]
) -> NDArray[np.int64]:
    r"""Return the rows that best complete "a is to b as c is to d" (3CosAdd), -1 if there is none.

    $$d^* = \mathrm{argmax}_{d \notin \{a, b, c\}} \cos(d, b - a + c)$$

    with a, b and c scaled to length 1 first.
    Paper: Levy and Goldberg (2014), "Linguistic Regularities in Sparse and Explicit Word
    Representations", equation 1.

    Args:
        vectors: (V, D).
        questions: The rows of a, b and c (Q, 3).
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(norms > 0, norms, 1)
    answers = np.empty(len(questions), np.int64)
    size = max(1, AT_ONCE // len(vectors))
    for start in range(0, len(questions), size):
        a, b, c = questions[start : start + size].T
        scores = (unit[b] - unit[a] + unit[c]) @ unit.T  # (Q, V)
        scores[:, norms[:, 0] == 0] = -np.inf
        np.put_along_axis(scores, questions[start : start + size], -np.inf, axis=1)
        best = scores.argmax(axis=1)
        found = scores[np.arange(len(best)), best] > -np.inf
        answers[start : start + size] = np.where(found, best, -1)
    return answers
