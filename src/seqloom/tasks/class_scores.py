"""Scores of classes: their loss, the probabilities and the decision they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from seqloom.metrics import accuracy, f1_scores

Floats = NDArray[np.float64]


def softmax_loss(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return $-\sum_i \sum_c w_c t_{ic} \ln p_{ic}$, the cross-entropy; $p = \mathrm{softmax}(s)$.

    Labels are the numbers of classes, then $t_{ic} = 1$ for that one alone, or probabilities t.
    """
    weights = None if weights is None else weights.to(scores)
    labels = labels.to(scores.dtype) if labels.is_floating_point() else labels
    return functional.cross_entropy(scores, labels, weights, reduction="sum")


def logistic_loss(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return $-\sum_i w_{y_i} \sum_c t_{ic} \ln \sigma(s_{ic}) + (1 - t_{ic}) \ln(1 - \sigma(s_{ic}))$.

    A single score a row is that of the second of two classes; else each class is told from all the
    others. Of labels that are probabilities t, $w_{y_i}$ is $\sum_c t_{ic} w_c$.
    """  # noqa: E501
    if not labels.is_floating_point():
        labels = functional.one_hot(labels, max(2, scores.shape[1]))
    labels = labels.to(scores.dtype)
    targets = labels[:, 1:] if scores.shape[1] == 1 else labels
    rows = None if weights is None else (labels @ weights.to(scores))[:, None].expand_as(scores)
    return functional.binary_cross_entropy_with_logits(scores, targets, rows, reduction="sum")


def multilabel_loss(scores: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Return the cross-entropy of one sigmoid a label, summed.

    $$-\sum_i \sum_c w_c t_{ic} \ln \sigma(s_{ic}) + (1 - t_{ic}) \ln(1 - \sigma(s_{ic}))$$
    """
    return functional.binary_cross_entropy_with_logits(
        scores,
        targets.to(scores.dtype),
        pos_weight=None if weights is None else weights.to(scores),
        reduction="sum",
    )


def divergence(scores: Tensor, others: Tensor, *, multilabel: bool = False) -> Tensor:
    r"""Return how far two sets of scores of the same rows are apart, both ways, summed.

    $$\sum_i \tfrac12 \left(KL(p_i \| q_i) + KL(q_i \| p_i)\right)
    = \sum_i \tfrac12 \sum_c (p_{ic} - q_{ic}) (\ln p_{ic} - \ln q_{ic})$$

    with p and q the softmax of the scores, or one sigmoid a label (Liang et al. 2021, R-Drop).
    """
    if multilabel or scores.shape[1] == 1:
        return ((scores.sigmoid() - others.sigmoid()) * (scores - others)).sum() / 2
    first, second = scores.log_softmax(dim=1), others.log_softmax(dim=1)
    return ((first.exp() - second.exp()) * (first - second)).sum() / 2


class ClassLoss(Protocol):
    """Scores and targets to the summed loss."""

    def __call__(self, scores: Tensor, targets: Tensor, /, weights: Tensor | None) -> Tensor:
        """Sum the losses, each times the weight of its class."""
        ...


class Link(NamedTuple):
    """How an architecture's scores are read: the loss, and as which probabilities."""

    loss: ClassLoss
    probabilities: Callable[[Floats], Floats]


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _heights(scores: Floats) -> Floats:
    heights: Floats = np.exp(-np.logaddexp(0.0, -scores))
    return heights


def _sigmoid(scores: Floats) -> Floats:
    heights = _heights(scores)
    if scores.shape[1] == 1:
        return np.hstack([np.exp(-np.logaddexp(0.0, scores)), heights])
    total = heights.sum(axis=1, keepdims=True)
    return np.where(total > 0, heights / np.where(total > 0, total, 1.0), 1 / heights.shape[1])


def find_link(arch: str, *, multilabel: bool = False) -> Link | None:
    """Return how the scores of an architecture are read; the perceptron's are no probabilities."""
    if arch == "perceptron":
        return None
    if multilabel:
        return Link(multilabel_loss, _heights)
    return Link(logistic_loss, _sigmoid) if arch == "logistic" else Link(softmax_loss, _softmax)


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
