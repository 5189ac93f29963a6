"""Looking at words in context: neighbours, senses, what each layer knows, what a task reads.

Plain arrays in, plain values out: the vectors are those `Embedder.embed_sentences` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ConfigError, ShapeError
from seqloom.figures import grouped_bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def cosines(vectors: ArrayLike) -> Floats:
    """The cosine of each vector (N, D) with each other one; 0 where one is all zeros."""
    rows = np.asarray(vectors, np.float64)
    if rows.ndim != 2:
        raise ShapeError(f"vectors must be (N, D), got shape {rows.shape}")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    found: Floats = unit @ unit.T
    return found


def nearest_in_context(vectors: ArrayLike, place: int, k: int = 5) -> list[tuple[int, float]]:
    """Return the k occurrences nearest to one of them by cosine, with it; ties by their order.

    Args:
        vectors: The vector of each occurrence in its context, (N, D).
        place: Which of them.
        k: How many.
    """
    found = cosines(vectors)[place]
    found[place] = -np.inf
    order = np.argsort(-found, kind="stable")[: min(k, len(found) - 1)]
    return [(int(i), float(found[i])) for i in order]


def sense_accuracy(vectors: ArrayLike, senses: Sequence[str]) -> float:
    """Return how often the nearest other occurrence has the same sense.

    Among equally near ones it is the share of those that have it; so vectors that are all the same
    score by chance.

    Args:
        vectors: The vector of each occurrence, (N, D).
        senses: The sense of each.
    """
    near = cosines(vectors)
    if len(near) != len(senses) or len(near) < 2:
        raise ShapeError(
            f"there must be a sense for each of two or more vectors, got {len(senses)} for "
            f"{len(near)}"
        )
    np.fill_diagonal(near, -np.inf)
    labels, total = np.array(senses), 0.0
    for row, label in zip(near, labels, strict=True):
        best = row >= row.max() - 1e-9
        total += float((labels[best] == label).mean())
    return total / len(labels)


class Probe(NamedTuple):
    """What a linear probe finds in one layer.

    Args:
        accuracy: Share of the test words it labels right.
        majority: Share that the most frequent label of the training words would.
    """

    accuracy: float
    majority: float


def linear_probe(
    train: ArrayLike,
    labels: Sequence[str],
    test: ArrayLike,
    test_labels: Sequence[str],
    *,
    l2: float = 1.0,
) -> Probe:
    r"""Return how well labels can be read off vectors by one linear map.

    $$W = \mathrm{argmin}_W \lVert \tilde X W - Y \rVert^2 + \lambda \lVert W \rVert^2$$

    for the standardized vectors with a constant 1, $\tilde X$, and Y of 1 for the label and 0 for
    the others; a word has the label of the greatest score.

    Paper: Alain and Bengio (2017), "Understanding intermediate layers using linear classifier
    probes", with a squared loss, which has a solution in one step.

    Args:
        train: Vectors to learn from, (N, D).
        labels: Their labels.
        test: Vectors to measure on, (M, D).
        test_labels: Theirs.
        l2: The penalty $\lambda$.
    """
    x, z = np.asarray(train, np.float64), np.asarray(test, np.float64)
    if len(x) != len(labels) or len(z) != len(test_labels) or not len(x) or not len(z):
        raise ShapeError(
            f"there must be a label a vector, got {len(labels)} for {len(x)} and "
            f"{len(test_labels)} for {len(z)}"
        )
    if l2 <= 0:
        raise ConfigError(f"l2 must be positive, got {l2}")
    names, numbers = np.unique(np.array(labels), return_inverse=True)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    scale = 1 / np.where(deviation > 0, deviation, 1.0)
    x, z = ((each - mean) * scale for each in (x, z))
    targets = np.eye(len(names))[numbers]
    middle = targets.mean(axis=0)  # the constant: standardized columns have mean 0
    weights = np.linalg.solve(x.T @ x + l2 * np.eye(x.shape[1]), x.T @ (targets - middle))
    chosen = names[(z @ weights + middle).argmax(axis=1)]
    actual = np.array(test_labels)
    usual = names[np.bincount(numbers).argmax()]
    return Probe(float((chosen == actual).mean()), float((actual == usual).mean()))


def layer_shares(model: Any) -> dict[str, list[float]]:
    """How much each layer counts in a fitted task with `contextual`, by where it is read.

    Args:
        model: A `Tagger`, `Classifier` or `RelationClassifier`, or its network.

    Raises:
        ConfigError: If it reads no words in context.
    """
    network = getattr(model, "model_", model)
    context = getattr(getattr(network, "input", None), "context", None)
    if context is None:
        raise ConfigError("there are shares of layers where contextual= was given, got none")
    found: dict[str, list[float]] = context.shares()
    return found


def draw_layer_shares(shares: Mapping[str, Sequence[float]], *, title: str = "") -> Figure:
    """Draw how much each layer counts as bars: the words alone, then layer after layer.

    Args:
        shares: As `layer_shares` gives them, or by the names of several tasks.
        title: The title.
    """
    count = len(next(iter(shares.values())))
    names = ["word", *(f"layer {k}" for k in range(1, count))]
    values = {name: dict(zip(names, own, strict=True)) for name, own in shares.items()}
    return grouped_bars(values, label="share of the mix", title=title)
