"""The fast store: every n-gram in a hash table whose slots are the n-grams' names.

A key is the slot of the context and the last word, 32 bits each, so a match is exact. Eight slots
make a bucket: a line of memory with their keys, which are compared at once, and next to it their
probabilities and back-offs. Slots 0 to V - 1 are the unigrams, by word; each higher order has a
stretch of its own, filled to two thirds: few buckets are full, and only from those a look-up goes
on to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads, inner, prefetch
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.counting import key_of
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.words import NONE, mix
from seqloom.ngram.workspace import Workspace

KIND = "hashed"
BUCKET = 8  # slots whose keys are one line of memory
TAIL = 1 << 12  # free slots after each stretch, so that looking never runs over its end
AHEAD = 64  # look-ups on their way to memory at once
EXACT = 4_000_000  # up to so many n-grams, values are kept in double precision
_U = np.uint64
_1, _2, _3, _32 = _U(1), _U(2), _U(3), _U(32)
_BUCKET, _LANE = _U(BUCKET), _U(BUCKET - 1)
_NONE = np.uint32(NONE)


class Sink(Protocol):
    """Where packed arrays go: a file being written, or memory."""

    def write(self, name: str, values: NDArray[Any], start: int = 0) -> None:
        """Take an array, or a piece of it that begins at row `start`."""


class Hashed(NamedTuple):
    """The arrays of a hashed store, as compiled code takes them.

    Args:
        cells: By bucket, the keys of its slots (0 where free), then log10 of probability and
            back-off of each as two floats or two doubles. A back-off of minus zero says that no
            n-gram goes on from here.
        values: The same memory as floats or doubles.
        starts: The first slot of each order, and the end.
        homes: How many slots of each order keys are scattered over.
    """

    cells: NDArray[np.uint64]
    values: NDArray[Any]
    starts: NDArray[np.int64]
    homes: NDArray[np.int64]


def of_cells(
    cells: NDArray[np.uint64], starts: NDArray[np.int64], homes: NDArray[np.int64], *, exact: bool
) -> Hashed:
    """Put the arrays together."""
    return Hashed(cells, cells.view(np.float64 if exact else np.float32), starts, homes)


@inner
def cell_size(tables):  # type: ignore[no-untyped-def]
    """How many numbers of 64 bits a slot takes."""
    return 3 if len(tables.values) == len(tables.cells) else 2


@inner
def key_at(size, slot):  # type: ignore[no-untyped-def]
    """Where in `cells` a slot's key lies. All unsigned."""
    return slot + (size - _1) * (slot & ~_LANE)


@inner
def value_at(size, slot):  # type: ignore[no-untyped-def]
    """Where in `values` a slot's probability lies; its back-off comes next. All unsigned."""
    at = key_at(size, slot) + _BUCKET
    return at + (slot & _LANE) if size == _3 else _2 * at


@inner
def bucket_of(key, buckets):  # type: ignore[no-untyped-def]
    """The first slot to look at, in a stretch of so many buckets."""
    return (((mix(key) >> _32) * buckets) >> _32) * _BUCKET


@inner
def home_of(key, homes):  # type: ignore[no-untyped-def]
    """The same as a signed number, by the number of slots."""
    return np.int64(bucket_of(key, _U(homes // BUCKET)))


@inner
def look_in_buckets(cells, size, slot, key):  # type: ignore[no-untyped-def]
    """The slot that holds a key, looking from the beginning of a bucket on, and whether one does.

    The keys of a bucket are compared without branches, as which of them it is cannot be foreseen.
    Slots are filled in order, so the last one tells whether to go on.
    """
    while True:
        at = size * slot
        match = _U(0)
        for lane in range(BUCKET):
            match |= _U(cells[at + _U(lane)] == key) << _U(lane)
        if match != 0 or cells[at + _LANE] == 0:
            return slot + (trailing_zeros(match) & _LANE), match != 0
        slot += _BUCKET


@inner
def find_hashed(tables, order, context, word):  # type: ignore[no-untyped-def]
    """The slot of an n-gram, by the slot of its context and its last word; or NONE.

    Orders count from 0 here and below: the unigrams.
    """
    key = key_of(context, word)
    slot = _U(tables.starts[order]) + bucket_of(key, _U(tables.homes[order] // BUCKET))
    found, is_found = look_in_buckets(tables.cells, _U(cell_size(tables)), slot, key)
    return np.uint32(found) if is_found else _NONE


@inner
def hashed_prob(tables, order, slot):  # type: ignore[no-untyped-def]
    """log10 of the probability of an n-gram."""
    return tables.values[value_at(_U(cell_size(tables)), _U(slot))]


@inner
def hashed_backoff(tables, order, slot):  # type: ignore[no-untyped-def]
    """log10 of the back-off of an n-gram below the highest order."""
    return tables.values[value_at(_U(cell_size(tables)), _U(slot)) + _1]


@inner
def hashed_extends(tables, order, slot):  # type: ignore[no-untyped-def]
    """Whether some longer n-gram goes on from this one."""
    backoff = hashed_backoff(tables, order, slot)
    return backoff != 0 or not np.signbit(backoff)


@compiled
def _insert(  # type: ignore[no-untyped-def]
    start, end, context, word, prob, backoff, extends, slot_of, slots,
    begin, low, high, homes, cells, values, carried, carry,
):  # fmt: skip
    """Enter the rows whose home lies in the section from `low` to `high`.

    Rows that find no room before its end are listed in `carry`, for the section after it.
    """
    size = 3 if len(values) == len(cells) else 2
    rows, found = np.empty(AHEAD, np.int64), np.empty(AHEAD, np.int64)
    row = start
    while row < end:
        n = 0  # rows of this section, whose homes are called for before they are needed
        while row < end and n < AHEAD:
            home = home_of(key_of(slot_of[context[row]], word[row]), homes)
            if home >= low and home < high:
                rows[n], found[n] = row, home - low
                prefetch(cells, size * (home - low))
                n += 1
            row += 1
        for i in range(n):
            key = key_of(slot_of[context[rows[i]]], word[rows[i]])
            carried = _enter(
                rows[i], found[i], key, prob, backoff, extends, slots, begin + low,
                cells, values, carried, carry,
            )  # fmt: skip
    return carried


@inner
def _enter(  # type: ignore[no-untyped-def]
    row, slot, key, prob, backoff, extends, slots, first, cells, values, carried, carry
):
    size, end = _U(3 if len(values) == len(cells) else 2), _U(len(cells))
    slot = _U(slot)
    while size * slot < end and cells[key_at(size, slot)] != 0:
        slot += _1
    if size * slot == end:
        if carried < len(carry):
            carry[carried] = row
        return carried + 1
    cells[key_at(size, slot)] = key
    at = value_at(size, slot)
    values[at] = prob[row]
    if len(slots):
        values[at + _1] = marked(backoff[row], extends[row])
        slots[row] = first + np.int64(slot)
    return carried


@inner
def marked(backoff, extends):  # type: ignore[no-untyped-def]
    """A back-off that says by its sign, where it is 0, whether a longer n-gram goes on."""
    return backoff + 0.0 if extends or backoff != 0 else -0.0


@compiled
def _insert_carried(  # type: ignore[no-untyped-def]
    rows, context, word, prob, backoff, extends, slot_of, slots, first, cells, values, carry
):
    """Enter what the section before had no room for, from this section's first slot on."""
    carried = 0
    for row in rows:
        key = key_of(slot_of[context[row]], word[row])
        carried = _enter(
            row, 0, key, prob, backoff, extends, slots, first, cells, values, carried, carry
        )
    return carried


@compiled
def _mark(start, end, context, extends):  # type: ignore[no-untyped-def]
    for row in range(start, end):
        extends[context[row]] = True


def layout(sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first slot of each order with the end, and how many of an order's slots are homes."""
    homes = [sizes[0], *(BUCKET * (3 * size // 16 + 1) for size in sizes[1:])]
    stretches = [-(-sizes[0] // BUCKET) * BUCKET, *(count + TAIL for count in homes[1:])]
    starts = np.concatenate([[0], np.cumsum(stretches)]).astype(np.int64)
    if starts[-1] >= NONE:
        raise ConfigError(
            f"a hashed store holds 2^32 slots at most, got {starts[-1]:,}; prune the model"
        )
    return starts, np.array(homes, np.int64)


def is_exact(sizes: list[int]) -> bool:
    """Whether a model of so many n-grams is kept in double precision."""
    return sum(sizes) <= EXACT


def check(tables: Hashed, words: int) -> None:
    """Refuse arrays that do not fit together: looking a word up in them must end inside them.

    Raises:
        DataError: If they do not.
    """
    starts, homes = tables.starts, tables.homes
    size = 3 if len(tables.values) == len(tables.cells) else 2
    good = (
        starts.ndim == homes.ndim == tables.cells.ndim == 1
        and 1 <= len(homes) == len(starts) - 1
        and starts[0] == 0
        and homes[0] == words <= starts[1]
        and int(starts[-1]) * size == len(tables.cells)
        and starts[-1] < NONE
        and bool(np.all(np.diff(starts[1:]) > homes[1:]))
        and bool(np.all(homes[1:] >= BUCKET))
        and not bool(np.any(homes[1:] % BUCKET))
        and not bool(np.any(starts[1:] % BUCKET))
    )
    if not good or any(tables.cells[(end - BUCKET) * size + BUCKET - 1] for end in starts[2:]):
        raise DataError("the store's tables do not fit together; build it again")


def shapes(sizes: list[int]) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """The arrays that a model with so many n-grams fills."""
    starts, homes = layout(sizes)
    cells = int(starts[-1]) * (3 if is_exact(sizes) else 2)
    return {
        "cells": (np.uint64, (cells,)),
        "starts": (np.int64, starts.shape),
        "homes": (np.int64, homes.shape),
    }


def pack_hashed(ngrams: Ngrams, sink: Sink, place: Workspace) -> None:
    """Lay a model out as a hashed store, order by order, section by section."""
    starts, homes = layout(ngrams.sizes)
    exact = is_exact(ngrams.sizes)
    size = 3 if exact else 2
    sink.write("starts", starts)
    sink.write("homes", homes)
    first = ngrams.levels[0]
    extends = _extended(ngrams, 0, place)
    sink.write("cells", _unigram_cells(first, extends, exact=exact))
    slot_of: Rows = np.arange(len(first), dtype=np.uint32)
    for index, level in enumerate(ngrams.levels[1:], 1):
        top = index + 1 == ngrams.order
        extends = _extended(ngrams, index, place)
        slots = place.empty(0 if top else len(level), np.uint32)
        job = _Stretch(level, extends, slot_of, slots, int(starts[index]), int(homes[index]), exact)
        for low, cells in job.sections(place):
            sink.write("cells", cells, (int(starts[index]) + low) * size)
        slot_of = slots


def _unigram_cells(level: Level, extends: NDArray[np.bool_], *, exact: bool) -> NDArray[np.uint64]:
    buckets, real = -(-len(level) // BUCKET), np.float64 if exact else np.float32
    cells = np.zeros((buckets, BUCKET * (3 if exact else 2)), np.uint64)
    values = np.zeros((buckets * BUCKET, 2), real)
    values[: len(level), 0] = level.prob
    if len(extends):
        leaves = extends | (level.backoff != 0)
        values[: len(level), 1] = np.where(leaves, level.backoff + 0.0, -0.0)
    cells[:, BUCKET:] = values.reshape(buckets, -1).view(np.uint64)
    return cells.reshape(-1)


class _Stretch(NamedTuple):
    """One order on its way into the table."""

    level: Level
    extends: NDArray[np.bool_]
    slot_of: Rows
    slots: Rows
    begin: int
    homes: int
    exact: bool

    def sections(self, place: Workspace) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """The first slot and the cells of each section, in order."""
        count = cores()
        if place.spilling:
            bytes_a_slot = 24 if self.exact else 16
            count *= max(1, -(-self.homes * bytes_a_slot // place.spare()))
        bounds = np.linspace(0, self.homes // BUCKET, count + 1).astype(np.int64) * BUCKET
        waiting = np.empty(0, np.uint32)
        for turn in range(0, count, cores()):
            ids = range(turn, min(turn + cores(), count))
            built = in_threads(lambda i: self._build(bounds[i], bounds[i + 1], place), ids)
            for i, (cells, carry) in zip(ids, built, strict=True):
                waiting = self._carry_in(waiting, bounds[i], cells, carry)
                yield int(bounds[i]), cells
        cells = self._empty(TAIL)
        left = self._carry_in(waiting, np.int64(self.homes), cells, waiting[:0])
        assert not len(left) and cells[-BUCKET * (2 if self.exact else 1) - 1] == 0, (
            "a tail is never full"
        )
        yield self.homes, cells

    def _empty(self, slots: int) -> NDArray[np.uint64]:
        return np.zeros(slots * (3 if self.exact else 2), np.uint64)

    def _values(self, cells: NDArray[np.uint64]) -> NDArray[Any]:
        return cells.view(np.float64 if self.exact else np.float32)

    def _build(
        self, low: np.int64, high: np.int64, place: Workspace
    ) -> tuple[NDArray[np.uint64], Rows]:
        """One section, and the rows it had no room for."""
        cells = self._empty(int(high - low))
        carry = np.empty(TAIL, np.uint32)
        level, carried = self.level, 0
        for start, end in place.chunks(len(level)):
            carried = _insert(
                start, end, level.context, level.word, level.prob, level.backoff, self.extends,
                self.slot_of, self.slots, self.begin, low, high, self.homes,
                cells, self._values(cells), carried, carry,
            )  # fmt: skip
        assert carried < TAIL, "a section overflows by a few slots at most"
        return cells, carry[:carried]

    def _carry_in(self, rows: Rows, low: np.int64, cells: NDArray[np.uint64], carry: Rows) -> Rows:
        """Enter rows of the section before; returns what the next one has to take."""
        level, more = self.level, np.empty(len(rows), np.uint32)
        carried = _insert_carried(
            rows, level.context, level.word, level.prob, level.backoff, self.extends,
            self.slot_of, self.slots, self.begin + low, cells, self._values(cells), more,
        )  # fmt: skip
        return np.concatenate([carry, more[:carried]])


def _extended(ngrams: Ngrams, index: int, place: Workspace) -> NDArray[np.bool_]:
    """Which n-grams of an order some longer one goes on from."""
    if index + 1 == ngrams.order:
        return np.empty(0, np.bool_)
    extends = place.zeros(len(ngrams.levels[index]), np.bool_)
    above = ngrams.levels[index + 1]
    for start, end in place.chunks(len(above)):
        _mark(start, end, above.context, extends)
    return extends
