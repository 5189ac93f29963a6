"""The fast store: every n-gram in a hash table whose slots are the n-grams' names.

A key is the slot of the context and the last word, 32 bits each, so a match is exact. Keys lie by
themselves, eight to a cache line; the values are read only where they count. Slots 0 to V - 1 are
the unigrams; each higher order has a stretch of its own, filled to three quarters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads, inner
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.store_file import StoreWriter
from seqloom.ngram.words import NONE, mix
from seqloom.ngram.workspace import Workspace

KIND = "hashed"
TAIL = 1 << 12  # free slots after each stretch, so that looking never runs over its end
EXACT = 1_000_000  # up to so many n-grams, values are kept in double precision
_U = np.uint64
_1, _32 = _U(1), _U(32)
_NONE = np.uint32(NONE)


class Hashed(NamedTuple):
    """The arrays of a hashed store, as compiled code takes them.

    Args:
        keys: By slot from the first bigram on, 0 where free.
        values: By slot, below the highest order: log10 of probability and back-off. A back-off of
            minus zero says that no n-gram goes on from here.
        last: By slot of the highest order: log10 of the probability.
        starts: The first slot of each order, and the end.
        homes: How many slots of each order keys are scattered over.
    """

    keys: NDArray[np.uint64]
    values: NDArray[Any]
    last: NDArray[Any]
    starts: NDArray[np.int64]
    homes: NDArray[np.int64]


@inner
def home_of(key, homes):  # type: ignore[no-untyped-def]
    """The first slot to look at, in its stretch."""
    return np.int64(((mix(key) >> _32) * _U(homes)) >> _32)


@inner
def find_hashed(tables, order, context, word):  # type: ignore[no-untyped-def]
    """The slot of an n-gram, by the slot of its context and its last word; or NONE.

    Orders count from 0 here and below: the unigrams.
    """
    key = (_U(context) << _32 | _U(word)) + _1
    at = tables.starts[order] - tables.starts[1] + home_of(key, tables.homes[order])
    keys = tables.keys
    while True:
        found = keys[at]
        if found == key:
            return np.uint32(at + tables.starts[1])
        if found == 0:
            return _NONE
        at += 1


@inner
def hashed_prob(tables, order, slot):  # type: ignore[no-untyped-def]
    """log10 of the probability of an n-gram."""
    if order > 0 and order == len(tables.homes) - 1:
        return tables.last[slot - tables.starts[order]]
    return tables.values[slot, 0]


@inner
def hashed_backoff(tables, order, slot):  # type: ignore[no-untyped-def]
    """log10 of the back-off of an n-gram below the highest order."""
    return tables.values[slot, 1]


@inner
def hashed_extends(tables, order, slot):  # type: ignore[no-untyped-def]
    """Whether some longer n-gram goes on from this one."""
    backoff = tables.values[slot, 1]
    return backoff != 0 or not np.signbit(backoff)


@compiled
def _insert(  # type: ignore[no-untyped-def]
    start, end, context, word, prob, backoff, extends, slot_of, slots,
    begin, low, high, homes, keys, values, carried, carry,
):  # fmt: skip
    """Enter the rows whose home lies in the section from `low` to `high`.

    Rows that find no room before its end are listed in `carry`, for the section after it.
    """
    top = values.shape[1] == 1
    for row in range(start, end):
        key = (_U(slot_of[context[row]]) << _32 | _U(word[row])) + _1
        home = home_of(key, homes)
        if home < low or home >= high:
            continue
        carried = _enter(
            row, home, key, prob, backoff, extends, slots, begin, low, keys, values, carried, carry, top
        )
    return carried


@inner
def _enter(  # type: ignore[no-untyped-def]
    row, slot, key, prob, backoff, extends, slots, begin, low, keys, values, carried, carry, top,
):  # fmt: skip
    at = slot - low
    while at < len(keys) and keys[at] != 0:
        at += 1
    if at == len(keys):
        if carried < len(carry):
            carry[carried] = row
        return carried + 1
    keys[at] = key
    values[at, 0] = prob[row]
    if not top:
        leaves = extends[row] or backoff[row] != 0
        values[at, 1] = backoff[row] + 0.0 if leaves else -0.0
        slots[row] = begin + low + at
    return carried


@compiled
def _insert_carried(  # type: ignore[no-untyped-def]
    rows, context, word, prob, backoff, extends, slot_of, slots,
    begin, low, keys, values, carried, carry,
):  # fmt: skip
    """Enter what the section before had no room for, from this section's first slot on."""
    top = values.shape[1] == 1
    for row in rows:
        key = (_U(slot_of[context[row]]) << _32 | _U(word[row])) + _1
        carried = _enter(
            row, low, key, prob, backoff, extends, slots, begin, low, keys, values, carried, carry, top
        )
    return carried


@compiled
def _mark(start, end, context, extends):  # type: ignore[no-untyped-def]
    for row in range(start, end):
        extends[context[row]] = True


def homes_for(rows: int) -> int:
    """How many slots `rows` n-grams are scattered over: a load of three quarters."""
    return max(rows * 4 // 3, 1)


def layout(sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first slot of each order with the end, and how many of an order's slots are homes."""
    homes = [sizes[0], *(homes_for(size) for size in sizes[1:])]
    stretches = [sizes[0], *(count + TAIL for count in homes[1:])]
    starts = np.concatenate([[0], np.cumsum(stretches)]).astype(np.int64)
    if starts[-1] >= NONE:
        raise ConfigError(
            f"a hashed store holds 2^32 slots at most, got {starts[-1]:,}; prune the model"
        )
    return starts, np.array(homes, np.int64)


def check(tables: Hashed, words: int) -> None:
    """Refuse arrays that do not fit together: looking a word up in them must end inside them.

    Raises:
        DataError: If they do not.
    """
    starts, homes = tables.starts, tables.homes
    top = len(homes) - 1
    good = (
        starts.ndim == homes.ndim == 1
        and 1 <= len(homes) == len(starts) - 1
        and starts[0] == 0
        and starts[1] == homes[0] == words
        and starts[-1] - starts[1] == len(tables.keys)
        and starts[-1] < NONE
        and bool(np.all(np.diff(starts[1:]) > homes[1:]))
        and bool(np.all(homes >= 1))
        and tables.values.shape == (starts[max(top, 1)], 2)
        and tables.last.shape == (starts[-1] - starts[top] if top else 0,)
    )
    if not good or any(tables.keys[end - starts[1] - 1] for end in starts[2:]):
        raise DataError("the store's tables do not fit together; build it again")


def shapes(ngrams: Ngrams) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """The arrays a model will fill."""
    starts, homes = layout(ngrams.sizes)
    real = np.float64 if sum(ngrams.sizes) <= EXACT else np.float32
    top = len(starts) - 2  # the index of the highest order
    return {
        "keys": (np.uint64, (int(starts[-1] - starts[1]),)),
        "values": (real, (int(starts[max(top, 1)]), 2)),
        "last": (real, (int(starts[-1] - starts[top]) if top else 0,)),
        "starts": (np.int64, starts.shape),
        "homes": (np.int64, homes.shape),
    }


def pack_hashed(ngrams: Ngrams, sink: StoreWriter, place: Workspace) -> None:
    """Lay a model out as a hashed store, order by order, section by section."""
    starts, homes = layout(ngrams.sizes)
    plan = shapes(ngrams)
    real = plan["values"][0]
    sink.write("starts", starts)
    sink.write("homes", homes)
    extends = _extended(ngrams, 0, place)
    first = ngrams.levels[0]
    values = np.stack([first.prob, np.zeros_like(first.prob)], 1)
    if ngrams.order > 1:
        values[:, 1] = np.where(extends | (first.backoff != 0), first.backoff + 0.0, -0.0)
    sink.write("values", values.astype(real))
    slot_of: Rows = np.arange(len(first), dtype=np.uint32)
    for index, level in enumerate(ngrams.levels[1:], 1):
        top = index + 1 == ngrams.order
        extends = _extended(ngrams, index, place)
        slots = np.empty(0 if top else len(level), np.uint32)
        job = _Stretch(level, extends, slot_of, slots, int(starts[index]), int(homes[index]), real)
        for low, keys, cells in job.sections(place):
            at = int(starts[index]) + low
            sink.write("keys", keys, at - int(starts[1]))
            if top:
                sink.write("last", cells[:, 0], low)
            else:
                sink.write("values", cells, at)
        slot_of = slots


class _Stretch(NamedTuple):
    """One order on its way into the table."""

    level: Level
    extends: NDArray[np.bool_]
    slot_of: Rows
    slots: Rows
    begin: int
    homes: int
    real: Any

    def sections(self, place: Workspace) -> Any:
        """The first slot, keys and values of each section, in order."""
        columns = 2 if len(self.slots) else 1
        bytes_a_slot = 8 + np.dtype(self.real).itemsize * columns
        count = cores()
        if place.spilling:
            count *= max(1, -(-self.homes * bytes_a_slot // (place.memory // 4)))
        bounds = np.linspace(0, self.homes, count + 1).astype(np.int64)
        waiting = np.empty(0, np.uint32)
        for turn in range(0, count, cores()):
            ids = range(turn, min(turn + cores(), count))
            built = in_threads(lambda i: self._build(bounds[i], bounds[i + 1], place), ids)
            for i, (keys, values, carry) in zip(ids, built, strict=True):
                waiting = self._carry_in(waiting, bounds[i], keys, values, carry)
                yield int(bounds[i]), keys, values
        keys, values = np.zeros(TAIL, np.uint64), np.zeros((TAIL, columns), self.real)
        left = self._carry_in(waiting, np.int64(self.homes), keys, values, waiting[:0])
        assert not len(left) and keys[-1] == 0, "the tail of a stretch is never full"
        yield self.homes, keys, values

    def _build(self, low: np.int64, high: np.int64, place: Workspace) -> Any:
        keys = np.zeros(high - low, np.uint64)
        values = np.zeros((high - low, 2 if len(self.slots) else 1), self.real)
        carry = np.empty(TAIL, np.uint32)
        level, carried = self.level, 0
        for start, end in place.chunks(len(level)):
            carried = _insert(
                start, end, level.context, level.word, level.prob, level.backoff, self.extends,
                self.slot_of, self.slots, self.begin, low, high, self.homes, keys, values,
                carried, carry,
            )  # fmt: skip
        assert carried < TAIL
        return keys, values, carry[:carried]

    def _carry_in(self, rows: Rows, low: np.int64, keys: Any, values: Any, carry: Rows) -> Rows:
        """Enter rows of the section before; returns what the next one has to take."""
        level, more = self.level, np.empty(len(rows), np.uint32)
        carried = _insert_carried(
            rows, level.context, level.word, level.prob, level.backoff, self.extends,
            self.slot_of, self.slots, self.begin, low, keys, values, 0, more,
        )  # fmt: skip
        return np.concatenate([carry, more[:carried]])


def _extended(ngrams: Ngrams, index: int, place: Workspace) -> NDArray[np.bool_]:
    """Which n-grams of an order some longer one goes on from."""
    if index + 1 == ngrams.order:
        return np.empty(0, np.bool_)
    extends = np.zeros(len(ngrams.levels[index]), np.bool_)
    above = ngrams.levels[index + 1]
    for start, end in place.chunks(len(above)):
        _mark(start, end, above.context, extends)
    return extends
