"""Sequences of different lengths stored end to end, in memory or mapped from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import DataError, ShapeError

BLOCK = 1 << 20  # offsets checked at once


class Ragged:
    """N sequences end to end: sequence i is `flat[offsets[i]:offsets[i + 1]]`.

    Args:
        flat: All items, ids of shape (total,) or vectors of shape (total, D); may be a memory map.
        offsets: N + 1 rising places in `flat`, the first 0 and the last its length.

    Examples:
        >>> words = Ragged.of([[1, 2, 3], [4]])
        >>> words[1].tolist(), words.lengths([0, 1]).tolist()
        ([4], [3, 1])
    """

    def __init__(self, flat: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        if offsets.ndim != 1 or len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(flat):
            raise ShapeError(
                f"offsets must rise from 0 to the number of items {len(flat)}, got "
                f"{offsets[:1]}..{offsets[-1:]} of shape {offsets.shape}"
            )
        self.flat, self.offsets = flat, offsets

    @classmethod
    def of(cls, sequences: Sequence[ArrayLike], dtype: Any = None) -> Ragged:
        """Store sequences given as lists or arrays; ids become int32 and numbers float32."""
        arrays = [np.asarray(sequence) for sequence in sequences]
        if dtype is None:
            whole = all(np.issubdtype(a.dtype, np.integer) for a in arrays if a.size)
            dtype = np.int32 if whole else np.float32
        widths = {array.shape[1:] for array in arrays if len(array)}
        if len(widths) > 1:
            raise ShapeError(f"vectors of all sequences must be of one width, got {sorted(widths)}")
        width = next(iter(widths), ())
        offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        flat = np.empty((int(offsets[-1]), *width), dtype)
        for array, start in zip(arrays, offsets[:-1], strict=True):
            if len(array):
                flat[start : start + len(array)] = array
                if dtype is np.int32 and not np.array_equal(
                    flat[start : start + len(array)], array
                ):
                    raise ShapeError(f"ids must fit into 32 bits, got {array.max()}; give a dtype")
        return cls(flat, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        if not -len(self) <= i < len(self):
            raise IndexError(f"sequence {i} of {len(self)}")
        i %= len(self)
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for i in range(len(self)):
            yield self[i]

    def lengths(self, index: ArrayLike | None = None) -> NDArray[np.int64]:
        """The lengths of all sequences, or of those in `index`."""
        if index is None:
            return np.diff(self.offsets)
        places = np.asarray(index, np.int64)
        if places.size and not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"places must lie in 0..{len(self) - 1}, got {places}")
        found: NDArray[np.int64] = self.offsets[places + 1] - self.offsets[places]
        return found

    def pad(self, index: ArrayLike, fill: float = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the sequences in `index` side by side, (B, T) or (B, T, D), and their lengths."""
        places = np.asarray(index, np.int64)
        lengths = self.lengths(places)
        longest = int(lengths.max(initial=0))
        padded = np.full((len(places), longest, *self.flat.shape[1:]), fill, self.flat.dtype)
        for row, start, length in zip(padded, self.offsets[places], lengths, strict=True):
            row[:length] = self.flat[start : start + length]
        return padded, lengths

    def check(self) -> None:
        """Raise `DataError` if the offsets do not rise: a file that was altered."""
        for start in range(0, len(self), BLOCK):
            steps = np.diff(self.offsets[start : start + BLOCK + 1])
            if steps.min() < 0:
                fall = start + int(np.argmin(steps))
                raise DataError(f"the offsets of stored sequences must rise, got a fall at {fall}")
