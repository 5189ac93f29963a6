"""Word vectors in plain Python and double precision: what the compiled training must equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.word2vec.tables import WHOLE, Paths

Floats = NDArray[np.float64]
_MASK = (1 << 64) - 1


def random_bits(state: int) -> Iterator[int]:
    """64 random bits at a time; see `updates.scatter`."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def loss(
    vectors: Floats,
    output: Floats,
    inputs: Sequence[int],
    targets: Sequence[int],
    labels: Sequence[float],
) -> float:
    """L of one prediction; see `updates`."""
    h = vectors[list(inputs)].mean(axis=0)
    chances, y = sigmoid(output[list(targets)] @ h), np.asarray(labels)
    return float(-(y * np.log(chances) + (1 - y) * np.log(1 - chances)).sum())


def update(
    vectors: Floats,
    output: Floats,
    inputs: Sequence[int],
    targets: Sequence[int],
    labels: Sequence[float],
    rate: float,
    *,
    mean_gradient: bool = True,
) -> None:
    """One update, in place; a row that is named several times moves several times."""
    h = vectors[list(inputs)].mean(axis=0)
    u = output[list(targets)]
    g = sigmoid(u @ h) - np.asarray(labels)
    error = g @ u * (1 / len(inputs) if mean_gradient else 1.0)
    for target, slope in zip(targets, g, strict=True):
        output[target] -= rate * slope * h
    for row in inputs:
        vectors[row] -= rate * error


def train_piece(
    sentences: Sequence[Sequence[int]],
    vectors: Floats,
    output: Floats,
    *,
    keep: Floats,
    table: NDArray[np.uint32],
    paths: Paths,
    window: int,
    negatives: int,
    is_cbow: bool,
    mean_gradient: bool,
    rate: float,
    state: int,
) -> int:
    """Train on sentences of rows, in place; the arguments are those of `updates.train_piece`.

    Returns:
        How many updates there were.
    """
    bits, updates = random_bits(state), 0
    for sentence in sentences:
        words = [row for row in sentence if next(bits) >> 32 < int(keep[row] * WHOLE)]
        for i, word in enumerate(words):
            reach = 1 + ((next(bits) >> 32) * window >> 32)
            near = words[max(0, i - reach) : i] + words[i + 1 : i + reach + 1]
            groups = [near] if is_cbow and near else [[row] for row in near]
            for inputs in groups:
                if len(table):
                    drawn = [draw(table, next(bits)) for _ in range(negatives)]
                    targets = [word, *(row for row in drawn if row != word)]
                    labels = [1.0] + [0.0] * (len(targets) - 1)
                else:
                    way = slice(paths.starts[word], paths.starts[word + 1])
                    targets, labels = paths.nodes[way].tolist(), paths.labels[way].tolist()
                share = mean_gradient or not is_cbow
                update(vectors, output, inputs, targets, labels, rate, mean_gradient=share)
                updates += 1
    return updates


def draw(table: NDArray[np.uint32], bits: int) -> int:
    """A word from an alias table: a slot by the high bits, its word or the other by the low."""
    slot = (bits >> 32) * (len(table) // 2) >> 32
    return slot if (bits & 0xFFFFFFFF) < int(table[2 * slot]) else int(table[2 * slot + 1])
