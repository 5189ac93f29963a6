"""Which examples go into which batch: by length, in an order that is a pure function of numbers.

Epoch e of a data set of N examples is cut like this. A keyed permutation of 0..N-1, computed where
it is needed and never stored, gives the order. It is read in pools of `pool` batches; each pool is
sorted by length and cut into batches, the most wasteful of which are split until the pool's padding
is within its limit, and the batches of the pool are shuffled. So memory does not grow with the
data, any step of any epoch can be found without reading an example, and padding is bounded whatever
the lengths are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.data.batches import Batch, EncodedData
from seqloom.errors import ConfigError

Index = NDArray[np.int64]

ROUNDS = 6  # of the Feistel network; 4 suffice in theory (Luby and Rackoff 1988)


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """How batches are cut.

    Args:
        batch_size: Examples in a batch at most, over all processes.
        max_items: If given, a batch also holds at most so many items (tokens) with the padding; an
            example longer than that is a batch of its own.
        max_waste: The share of padding among the items of a pool, 1 for no limit. To keep it,
            batches whose lengths differ much are split, so an epoch has a few more of them.
        pool: How many batches are sorted by length together. More splits fewer batches and mixes
            lengths less.
        shuffle: Whether the order changes from epoch to epoch; without it batches follow the
            order of the data, which evaluation wants.
        seed: What the order depends on besides the epoch.
    """

    batch_size: int = 32
    max_items: int | None = None
    max_waste: float = 0.04
    pool: int = 128
    shuffle: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_size", "pool"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.max_items is not None and self.max_items < 1:
            raise ConfigError(f"max_items must be at least 1, got {self.max_items}")
        if not 0 <= self.max_waste <= 1:
            raise ConfigError(f"max_waste must lie in [0, 1], got {self.max_waste}")
        if self.seed < 0:
            raise ConfigError(f"seed must not be negative, got {self.seed}")


class Lengths(Protocol):
    """What bucketing must know of a data set."""

    def __len__(self) -> int: ...
    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        """(B, fields): the lengths of the examples at these places."""
        ...


class Bucketing:
    """The batches of a data set, epoch by epoch.

    Args:
        data: Anything with a length and lengths, usually `EncodedData`.
        config: How batches are cut.

    Examples:
        >>> from seqloom.data.ragged import Ragged
        >>> data = EncodedData({"ids": Ragged.of([[1], [2, 3], [4], [5, 6]])})
        >>> plan = Bucketing(data, BatchConfig(batch_size=2))
        >>> sorted(i for batch in plan.indices(epoch=0) for i in batch.tolist())
        [0, 1, 2, 3]
    """

    def __init__(self, data: Lengths, config: BatchConfig | None = None) -> None:
        self.data, self.config = data, config or BatchConfig()
        self._counted = -1, 0  # the last epoch whose batches were counted, and how many they are
        if not len(data):
            raise ConfigError("there must be at least one example to batch, got none")

    def indices(self, epoch: int, start: int = 0) -> Iterator[Index]:
        """Yield the places of the examples of each batch of an epoch, from batch `start` on."""
        size = self.config.batch_size * self.config.pool
        for begin in range(0, len(self.data), size):
            batches = self._cut_pool(epoch, begin, min(begin + size, len(self.data)))
            yield from batches[start:]
            start = max(0, start - len(batches))

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has; it may differ a little between epochs."""
        if self._counted[0] != epoch:
            self._counted = epoch, sum(1 for _ in self.indices(epoch))
        return self._counted[1]

    def batches(
        self, data: EncodedData, epoch: int, start: int = 0, *, rank: int = 0, world_size: int = 1
    ) -> Iterator[Batch]:
        """Yield the padded batches of an epoch; a process gets its share of each of them."""
        for index in self.indices(epoch, start):
            yield data.batch(index[rank::world_size])

    def _cut_pool(self, epoch: int, begin: int, end: int) -> list[Index]:
        config = self.config
        order = np.arange(begin, end, dtype=np.int64)
        if not config.shuffle:
            return [order[a:b] for a, b in _cut(self.data.lengths(order), config)]
        order = permuted(order, len(self.data), seed=config.seed, epoch=epoch)
        lengths = self.data.lengths(order)
        # By the longest field, then by each of them; equal ones stay in the order of the
        # permutation, since lexsort is stable. Its last key counts first.
        by_length = np.lexsort((*lengths.T[::-1], lengths.max(axis=1)))
        order, lengths = order[by_length], lengths[by_length]
        cuts = _split(_cut(lengths, config), lengths, config.max_waste)
        shuffled = np.random.default_rng([config.seed, epoch, begin]).permutation(len(cuts))
        return [order[slice(*cuts[i])] for i in shuffled]


def _cut(lengths: NDArray[np.int64], config: BatchConfig) -> list[tuple[int, int]]:
    """Cut examples in the order they stand in: (begin, end) of each batch."""
    total = len(lengths)
    if config.max_items is None:
        edges = [*range(0, total, config.batch_size), total]
        return list(pairwise(edges))
    cuts, begin = [], 0
    longest = np.zeros(lengths.shape[1], np.int64)
    for i, row in enumerate(lengths):
        widest = np.maximum(longest, row)
        many = i - begin + 1
        if i > begin and (many > config.batch_size or many * widest.sum() > config.max_items):
            cuts.append((begin, i))
            begin, widest = i, row
        longest = widest
    cuts.append((begin, total))
    return cuts


def _split(
    cuts: list[tuple[int, int]], lengths: NDArray[np.int64], max_waste: float
) -> list[tuple[int, int]]:
    """Split the most wasteful batches, each where it saves most, until the waste is allowed."""
    real = int(lengths.sum())
    allowed = max_waste / (1 - max_waste) * real if max_waste < 1 else np.inf
    waiting = [(-_padding(lengths[a:b]), a, b) for a, b in cuts]
    heapify(waiting)
    total = -sum(entry[0] for entry in waiting)
    while total > allowed:
        wasted, a, b = heappop(waiting)
        rows = lengths[a:b]
        # Padded items of rows[:k] and rows[k:] for every k, from running maxima of each field.
        left = np.maximum.accumulate(rows)[:-1].sum(axis=1) * np.arange(1, b - a)
        right = np.maximum.accumulate(rows[::-1])[:-1].sum(axis=1)[::-1] * np.arange(
            b - a - 1, 0, -1
        )
        middle = a + 1 + int(np.argmin(left + right))
        for part in ((a, middle), (middle, b)):
            padding = _padding(lengths[slice(*part)])
            heappush(waiting, (-padding, *part))
            total += padding
        total += wasted
    return sorted((a, b) for _, a, b in waiting)


def _padding(lengths: NDArray[np.int64]) -> int:
    """How many items of padding a batch of these examples has."""
    return int(len(lengths) * lengths.max(axis=0).sum() - lengths.sum())


def permuted(index: Index, size: int, *, seed: int, epoch: int) -> Index:
    """Where a keyed permutation of 0..size-1 takes each entry of `index`.

    A Feistel network on the smallest even number of bits that holds `size`, walked until it falls
    below `size` (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    keys = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)
    result = index.astype(np.uint64)
    waiting = np.arange(len(result))
    while len(waiting):
        left, right = result[waiting] >> np.uint64(half), result[waiting] & mask
        for key in keys:
            left, right = right, left ^ (_mix(right ^ key) & mask)
        moved = (left << np.uint64(half)) | right
        result[waiting] = moved
        waiting = waiting[moved >= size]
    return result.astype(np.int64)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64: every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def padding_waste(batches: Iterator[Batch]) -> float:
    """The share of padded items in all items of the batches."""
    real = padded = 0
    for batch in batches:
        real += batch.real_items
        padded += batch.padded_items
    return 1 - real / padded if padded else 0.0
