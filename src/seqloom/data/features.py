"""Feature vectors of examples as arrays: dense ones, and bags of numbered terms with weights."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """Mean (D,) and variance (D,) of each feature over all examples."""

    mean: Floats
    variance: Floats


class Features(Protocol):
    """The feature vectors of N examples."""

    width: int
    """D, how many features there are."""

    def __len__(self) -> int: ...
    def arrays(self, index: ArrayLike) -> dict[str, NDArray[Any]]:
        """The examples at these places as named arrays for a `Batch`."""
        ...

    def part(self, index: ArrayLike) -> Features:
        """The features of the examples at these places."""
        ...

    def moments(self) -> Moments:
        """Mean and variance of each feature."""
        ...


class Vectors:
    """Dense feature vectors, (N, D)."""

    def __init__(self, x: Floats) -> None:
        self.x, self.width = x, x.shape[1]

    def __len__(self) -> int:
        return len(self.x)

    def arrays(self, index: ArrayLike) -> dict[str, NDArray[Any]]:
        """The rows at these places as `x` (B, D)."""
        return {"x": self.x[np.asarray(index, np.int64)]}

    def part(self, index: ArrayLike) -> Vectors:
        """Return the vectors at these places."""
        return Vectors(self.arrays(index)["x"])

    def moments(self) -> Moments:
        """Mean and variance of each feature."""
        mean = self.x.mean(axis=0)
        variance: Floats = np.square(self.x - mean).mean(axis=0)
        return Moments(mean, variance)


class Bags:
    """Sparse feature vectors end to end: example i has `weights[k]` at `ids[k]`.

    k runs from `offsets[i]` to `offsets[i + 1]`; no id stands twice in an example.

    Args:
        ids: Which features, (total,).
        weights: How much of each, (total,).
        offsets: N + 1 rising places.
        width: How many features there are.

    Examples:
        >>> bags = Bags(np.array([0, 2, 1]), np.array([1.0, 2.0, 1.0]), np.array([0, 2, 3]), 3)
        >>> {name: array.tolist() for name, array in bags.arrays([1, 0]).items()}
        {'ids': [1, 0, 2], 'weights': [1.0, 1.0, 2.0], 'starts': [0, 1]}
    """

    def __init__(
        self, ids: NDArray[np.int64], weights: Floats, offsets: NDArray[np.int64], width: int
    ) -> None:
        if len(ids) != len(weights) or offsets[-1] != len(ids):
            raise ShapeError(
                "ids and weights must be as many as the offsets say, got "
                f"{len(ids)}, {len(weights)} and {offsets[-1]}"
            )
        self.ids, self.weights, self.offsets, self.width = ids, weights, offsets, width

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def arrays(self, index: ArrayLike) -> dict[str, NDArray[Any]]:
        """The bags at these places end to end; `starts` (B,) says where each begins."""
        places = np.asarray(index, np.int64)
        lengths = self.offsets[places + 1] - self.offsets[places]
        starts = np.cumsum(lengths) - lengths
        flat = np.repeat(self.offsets[places] - starts, lengths) + np.arange(lengths.sum())
        return {"ids": self.ids[flat], "weights": self.weights[flat], "starts": starts}

    def part(self, index: ArrayLike) -> Bags:
        """Return the bags at these places."""
        found = self.arrays(index)
        offsets = np.append(found["starts"], len(found["ids"]))
        return Bags(found["ids"], found["weights"], offsets, self.width)

    def moments(self) -> Moments:
        """Mean and variance of each feature, its zeros included."""
        count = len(self)
        mean = np.bincount(self.ids, self.weights, self.width) / count
        square = np.bincount(self.ids, np.square(self.weights), self.width) / count
        return Moments(mean, np.maximum(square - np.square(mean), 0.0))
