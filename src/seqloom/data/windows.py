"""Batches for language models that carry their state: the text as parallel lanes, read in windows.

The stream of N tokens is cut into B lanes of equal length. Step k gives the k-th window of every
lane, so that row b of one batch goes on where row b of the batch before it stopped (truncated
back-propagation through time). The order does not change from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import Batch, Padded
from seqloom.errors import ConfigError, DataError


class Windows:
    """The windows of a token stream, which may be a memory map larger than memory.

    Each batch holds `window + 1` tokens a lane under the name "ids": inputs are all but the last,
    targets all but the first. `values["begins"]` is true in the first batch, where a model starts
    from its initial state. The last window may be shorter.

    Args:
        ids: (N,) token ids.
        batch_size: Lanes B, over all processes.
        window: Tokens T predicted a lane and step.
        before: The id that stands before the first token, so that this one is predicted too.
        keep_rest: Whether the last tokens, too few for every lane, go into the first lanes; an
            evaluation needs every token, training does not.

    Examples:
        >>> windows = Windows(np.arange(9), batch_size=2, window=2)
        >>> [batch["ids"].values.tolist() for batch in windows.batches()]
        [[[0, 1, 2], [4, 5, 6]], [[2, 3, 4], [6, 7, 8]]]
    """

    def __init__(
        self,
        ids: NDArray[Any],
        *,
        batch_size: int,
        window: int,
        before: int | None = None,
        keep_rest: bool = False,
    ) -> None:
        if batch_size < 1 or window < 1:
            raise ConfigError(
                f"batch_size and window must be at least 1, got {batch_size} and {window}"
            )
        self.ids, self.window, self.before = ids, window, before
        self._shift = 0 if before is None else 1
        predicted = len(ids) - 1 + self._shift
        if predicted < 1:
            raise DataError(f"a language model needs a token to predict, got {len(ids)} tokens")
        self.lanes = min(batch_size, predicted)
        targets, rest = divmod(predicted, self.lanes)
        # Lane b predicts the tokens after starts[b] up to and including starts[b + 1].
        sizes = np.full(self.lanes, targets, np.int64)
        if keep_rest:
            sizes[:rest] += 1
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.longest = int(sizes.max())

    def __len__(self) -> int:
        """How many steps an epoch has."""
        return (self.longest + self.window - 1) // self.window

    def batches(self, start: int = 0, *, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Yield the batches from step `start` on; a process gets its share of the lanes."""
        lanes = np.arange(rank, self.lanes, world_size)
        begins, ends = self.starts[lanes], self.starts[lanes + 1]
        for step in range(start, len(self)):
            places = begins + step * self.window
            lengths = np.minimum(ends - places, self.window) + 1
            lengths[lengths < 2] = 0  # a lane that has no token left to predict
            values = np.zeros((len(lanes), int(lengths.max(initial=0))), self.ids.dtype)
            for row, place, length in zip(values, places - self._shift, lengths, strict=True):
                begin = max(place, 0)
                row[begin - place : length] = self.ids[begin : place + length]
                if place < 0 and self.before is not None:
                    row[0] = self.before
            first = np.full(len(lanes), step == 0)
            yield Batch(lanes, {"ids": Padded(values, lengths)}, {"begins": first})
