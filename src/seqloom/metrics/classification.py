"""How often a classifier is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError


def accuracy(predicted: ArrayLike, actual: ArrayLike) -> float:
    """Return the share of predictions that are right."""
    left, right = _same_length(predicted, actual)
    return float((left == right).mean())


def confusion_matrix(
    predicted: ArrayLike, actual: ArrayLike, labels: Sequence[object]
) -> NDArray[np.int64]:
    """Return how often each label (row) was predicted as each label (column)."""
    left, right = _same_length(predicted, actual)
    matrix = np.zeros((len(labels), len(labels)), np.int64)
    for i, row in enumerate(labels):
        for j, column in enumerate(labels):
            matrix[i, j] = int(((right == row) & (left == column)).sum())
    return matrix


def f1_scores(
    predicted: ArrayLike, actual: ArrayLike, labels: Sequence[object]
) -> dict[object, float]:
    r"""Return the F1 score of each label.

    $$F_1 = \frac{2 TP}{2 TP + FP + FN}$$

    A label that was neither there nor predicted scores 0.
    """
    left, right = _same_length(predicted, actual)
    scores: dict[object, float] = {}
    for label in labels:
        true = int(((left == label) & (right == label)).sum())
        wrong = int((left == label).sum() + (right == label).sum()) - 2 * true
        scores[label] = 2 * true / (2 * true + wrong) if true else 0.0
    return scores


def _same_length(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    left, right = np.asarray(a), np.asarray(b)
    if left.shape != right.shape or left.ndim != 1 or not len(left):
        raise ShapeError(
            "predictions and truths must be lists of one length, at least 1, got shapes "
            f"{left.shape} and {right.shape}"
        )
    return left, right
