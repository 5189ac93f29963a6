"""Batches for language models that carry their state: the text as parallel lanes, read in windows.

The stream of N tokens is cut into B lanes of equal length. Step k gives the k-th window of every
lane, so that row b of one batch goes on where row b of the batch before it stopped (truncated
back-propagation through time). The order does not change from epoch to epoch; where windows begin
does if their lengths are drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import Batch, Padded
from seqloom.errors import ConfigError, DataError

HALF = 0.05  # how often a window is drawn around half its length
LEAST = 5  # tokens a drawn window has at least


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
        spread: If above 0, the length of each window is drawn anew in every epoch, the same for all
            lanes: from a normal distribution of this standard deviation around `window`, or, once
            in 20 times, around half of it; at least 5 (Merity et al. 2018, "Regularizing and
            Optimizing LSTM Language Models", section 4.1). A pure function of seed and epoch.
        seed: Of these lengths.

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
        spread: float = 0.0,
        seed: int = 0,
    ) -> None:
        if batch_size < 1 or window < 1:
            raise ConfigError(
                f"batch_size and window must be at least 1, got {batch_size} and {window}"
            )
        if spread < 0:
            raise ConfigError(f"spread must not be negative, got {spread}")
        self.ids, self.window, self.before = ids, window, before
        self.spread, self.seed = spread, seed
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

        self._edges: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, np.int64))

    def __len__(self) -> int:
        """How many steps an epoch has; with a spread, the first one."""
        return self.steps(0)

    def steps(self, epoch: int) -> int:
        """How many steps an epoch has."""
        return len(self.edges(epoch)) - 1

    def edges(self, epoch: int) -> NDArray[np.int64]:
        """Where windows begin in a lane, counted in predicted tokens, and at last where it ends."""
        if not self.spread:
            epoch = 0  # all are alike
        if self._edges[0] == epoch:
            return self._edges[1]
        found = np.arange(0, self.longest + self.window, self.window)
        if self.spread:
            rng, drawn = np.random.default_rng([self.seed, epoch]), [0]
            while drawn[-1] < self.longest:
                around = self.window if rng.random() >= HALF else self.window / 2
                drawn.append(drawn[-1] + max(LEAST, int(rng.normal(around, self.spread))))
            found = np.array(drawn)
        found[-1] = self.longest
        self._edges = (epoch, found)
        return found

    def batches(
        self, start: int = 0, *, epoch: int = 0, rank: int = 0, world_size: int = 1
    ) -> Iterator[Batch]:
        """Yield the batches of an epoch from step `start` on; a process gets its share of lanes."""
        lanes = np.arange(rank, self.lanes, world_size)
        begins, ends = self.starts[lanes], self.starts[lanes + 1]
        edges = self.edges(epoch)
        for step in range(start, len(edges) - 1):
            places = begins + edges[step]
            lengths = np.minimum(ends - places, edges[step + 1] - edges[step]) + 1
            lengths[lengths < 2] = 0  # a lane that has no token left to predict
            values = np.zeros((len(lanes), int(lengths.max(initial=0))), self.ids.dtype)
            for row, place, length in zip(values, places - self._shift, lengths, strict=True):
                begin = max(place, 0)
                row[begin - place : length] = self.ids[begin : place + length]
                if place < 0 and self.before is not None:
                    row[0] = self.before
            first = np.full(len(lanes), step == 0)
            yield Batch(lanes, {"ids": Padded(values, lengths)}, {"begins": first})
