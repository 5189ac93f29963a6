"""The one batch type: padded sequences side by side, each with its lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.data.ragged import Ragged
from seqloom.errors import BackendError, ConfigError, ShapeError, one_of

if TYPE_CHECKING:
    import torch

Array = Any  # a numpy array, or a torch tensor after `Batch.tensors`


@dataclass(frozen=True, eq=False)
class Padded:
    """Sequences of one field: `values` (B, T) of ids or (B, T, D) of floats, `lengths` (B,)."""

    values: Array
    lengths: Array

    @property
    def mask(self) -> Array:
        """(B, T), True where there is a real item."""
        steps = self.values.shape[1]
        if isinstance(self.values, np.ndarray):
            return np.arange(steps) < self.lengths[:, None]
        import torch

        return torch.arange(steps, device=self.lengths.device) < self.lengths[:, None]


@dataclass(frozen=True, eq=False)
class Batch:
    """What a model is given: named padded sequences and named plain values of B examples.

    Args:
        index: (B,), the place of each example in its data set, so that results can be put back.
        sequences: Fields of varying length.
        values: Fields of fixed shape (B, ...), such as labels.
        origin: The same batch as NumPy arrays, where these are tensors.
    """

    index: NDArray[np.int64]
    sequences: Mapping[str, Padded]
    values: Mapping[str, Array] = field(default_factory=dict)
    origin: Batch | None = None

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, name: str) -> Padded:
        if name not in self.sequences:
            raise ConfigError(one_of("sequence field", name, self.sequences))
        return self.sequences[name]

    def tensors(self, device: str | torch.device | None = None) -> Batch:
        """Return the same batch as torch tensors on a device; ids and labels become int64."""
        try:
            import torch
        except ModuleNotFoundError:
            raise BackendError(
                "tensors need torch, which is not installed; pip install 'seqloom[neural]'"
            ) from None

        def convert(array: NDArray[Any]) -> torch.Tensor:
            if np.issubdtype(array.dtype, np.integer):
                array = array.astype(np.int64, copy=False)
            return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

        return Batch(
            self.index,
            {k: Padded(convert(s.values), convert(s.lengths)) for k, s in self.sequences.items()},
            {k: convert(v) for k, v in self.values.items()},
            self,
        )

    @property
    def host(self) -> Batch:
        """The batch in this process's memory, where looking at it makes no device wait."""
        return self.origin or self

    @property
    def real_items(self) -> int:
        """How many items of all sequence fields are real."""
        return sum(int(s.lengths.sum()) for s in self.sequences.values())

    @property
    def padded_items(self) -> int:
        """How many items of all sequence fields there are with the padding."""
        return sum(int(np.prod(s.values.shape[:2])) for s in self.sequences.values())


class EncodedData:
    """A data set ready for a model, one column a field; the columns may be memory maps.

    Args:
        sequences: Fields of varying length.
        values: Fields of fixed shape (N, ...).

    Examples:
        >>> data = EncodedData({"ids": Ragged.of([[5, 6, 7], [8]])}, {"label": np.array([1, 0])})
        >>> batch = data.batch([1, 0])
        >>> batch["ids"].values.tolist(), batch["ids"].lengths.tolist()
        ([[8, 0, 0], [5, 6, 7]], [1, 3])
    """

    def __init__(
        self, sequences: Mapping[str, Ragged], values: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self.sequences, self.values = dict(sequences), dict(values or {})
        sizes = {k: len(column) for k, column in (self.sequences | self.values).items()}
        if len(set(sizes.values())) != 1:
            raise ShapeError(f"all fields must hold the same number of examples, got {sizes}")
        self._size = next(iter(sizes.values()))

    def __len__(self) -> int:
        return self._size

    def batch(self, index: ArrayLike) -> Batch:
        """Return the examples at these places as one padded batch, in this order."""
        places = np.asarray(index, np.int64)
        return Batch(
            places,
            {name: Padded(*column.pad(places)) for name, column in self.sequences.items()},
            {name: np.asarray(column[places]) for name, column in self.values.items()},
        )

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        """(B, number of sequence fields), the lengths of the examples at these places."""
        return np.stack([column.lengths(index) for column in self.sequences.values()], axis=1)
