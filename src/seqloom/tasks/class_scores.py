"""Scores of classes: their loss, the probabilities and the decision they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from seqloom.metrics import accuracy, f1_scores
from seqloom.tasks.supervised_objective import Loss

Floats = NDArray[np.float64]


def softmax_loss(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Return the cross-entropy $-\sum_i \ln p_{y_i}$ with $p = \mathrm{softmax}(s)$, summed."""
    return functional.cross_entropy(scores, labels, reduction="sum")


def logistic_loss(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Return $-\sum_i \sum_c t_{ic} \ln \sigma(s_{ic}) + (1 - t_{ic}) \ln(1 - \sigma(s_{ic}))$.

    A single score a row is that of the second of two classes; else each class is told from all the
    others.
    """
    if scores.shape[1] == 1:
        targets = labels[:, None].to(scores.dtype)
    else:
        targets = functional.one_hot(labels, scores.shape[1]).to(scores.dtype)
    return functional.binary_cross_entropy_with_logits(scores, targets, reduction="sum")


class Link(NamedTuple):
    """How an architecture's scores are read: the loss, and as which probabilities."""

    loss: Loss
    probabilities: Any


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(scores: Floats) -> Floats:
    heights: Floats = np.exp(-np.logaddexp(0.0, -scores))
    if scores.shape[1] == 1:
        return np.hstack([np.exp(-np.logaddexp(0.0, scores)), heights])
    total = heights.sum(axis=1, keepdims=True)
    return np.where(total > 0, heights / np.where(total > 0, total, 1.0), 1 / heights.shape[1])


LINKS: Mapping[str, Link] = {
    "softmax": Link(softmax_loss, _softmax),
    "mlp": Link(softmax_loss, _softmax),
    "logistic": Link(logistic_loss, _sigmoid),
}
"""Architecture -> its link; the perceptron has none."""


def decisions(scores: Floats) -> Floats:
    """Return one number a class, (N, C); for two classes that of the second alone, (N,)."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    if scores.shape[1] == 2:
        return scores[:, 1] - scores[:, 0]
    return scores


def chosen(scores: Floats) -> NDArray[np.int64]:
    """Return the number of the class with the highest score."""
    found = decisions(scores)
    return (found > 0).astype(np.int64) if found.ndim == 1 else found.argmax(axis=1)


def class_metrics(predicted: NDArray[Any], actual: NDArray[Any]) -> dict[str, float]:
    """Return accuracy and macro F1, the mean F1 of all labels that occur on either side."""
    labels = sorted({*predicted.tolist(), *actual.tolist()}, key=str)
    scores = f1_scores(predicted, actual, labels)
    return {
        "accuracy": accuracy(predicted, actual),
        "macro_f1": float(np.mean([*scores.values()])),
    }
