"""Sequences as features: ids of words or vectors, of different lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.data.batches import Padded
from seqloom.data.features import Moments
from seqloom.data.ragged import Ragged


class Sequences:
    """Sequences of N examples, none of them empty.

    Args:
        items: Ids, or vectors of one width.
        width: How many ids there are, or the width of the vectors.
        context: What there is of the context of each item, if anything; see
            `seqloom.nn.context.WordsInContext`.

    Examples:
        >>> Sequences(Ragged.of([[1, 2, 3], [4]]), 5).pad([1, 0]).values.tolist()
        [[4, 0, 0], [1, 2, 3]]
    """

    def __init__(self, items: Ragged, width: int, context: Ragged | None = None) -> None:
        self.items, self.width, self.context = items, width, context

    @property
    def are_ids(self) -> bool:
        """Whether these are ids, not vectors."""
        return self.items.flat.ndim == 1

    def __len__(self) -> int:
        return len(self.items)

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        """(B, 1), the lengths of the sequences at these places."""
        return self.items.lengths(index)[:, None]

    def pad(self, index: ArrayLike) -> Padded:
        """The sequences at these places side by side."""
        return Padded(*self.items.pad(index))

    def arrays(self, index: ArrayLike) -> dict[str, NDArray[Any]]:
        """The sequences at these places: padded `x` and their `lengths`."""
        padded = self.pad(index)
        return {"x": padded.values, "lengths": padded.lengths}

    def part(self, index: ArrayLike) -> Sequences:
        """Return the sequences at these places."""
        places = np.asarray(index, np.int64)
        context = None if self.context is None else _part(self.context, places)
        return Sequences(_part(self.items, places), self.width, context)

    def moments(self) -> Moments:
        """Mean and variance of each coordinate over all vectors; of ids there are none."""
        assert not self.are_ids
        flat = np.asarray(self.items.flat, np.float64)
        mean = flat.mean(axis=0)
        return Moments(mean, np.square(flat - mean).mean(axis=0))


def _part(whole: Ragged, places: NDArray[np.int64]) -> Ragged:
    return Ragged.of([whole[int(i)] for i in places], whole.flat.dtype)
