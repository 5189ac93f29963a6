"""The fast store: every n-gram in a hash table whose slots are the n-grams' names.

A key is the slot of the context and the last word, 32 bits each, so a match is exact. A slot holds
its key, probability and back-off side by side: one way to memory an n-gram. Slots 0 to V - 1 are
the unigrams, by word; each higher order has a stretch of its own, filled to three quarters and
looked at from the beginning of a line of memory on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads, inner, prefetch
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.counting import key_of
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.words import NONE, mix
from seqloom.ngram.workspace import Workspace

KIND = "hashed"
LINE = 4  # slots of a line of memory
TAIL = 1 << 12  # free slots after each stretch, so that looking never runs over its end
AHEAD = 64  # look-ups on their way to memory at once
EXACT = 4_000_000  # up to so many n-grams, values are kept in double precision
_U = np.uint64
_1, _2, _3, _4, _32 = _U(1), _U(2), _U(3), _U(4), _U(32)
_LINE = _U(LINE)
_NONE = np.uint32(NONE)


class Sink(Protocol):
    """Where packed arrays go: a file being written, or memory."""

    def write(self, name: str, values: NDArray[Any], start: int = 0) -> None:
        """Take an array, or a piece of it that begins at row `start`."""


class Hashed(NamedTuple):
    """The arrays of a hashed store, as compiled code takes them.

    Args:
        cells: By slot, two or three numbers of 64 bits: the key (0 where free), then log10 of
            probability and back-off as two floats or two doubles. A back-off of minus zero says
            that no n-gram goes on from here.
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
def value_at(size, slot):  # type: ignore[no-untyped-def]
    """Where in `values` a slot's probability lies; its back-off comes next. All unsigned."""
    return _3 * slot + _1 if size == _3 else _4 * slot + _2


@inner
def line_of(key, lines):  # type: ignore[no-untyped-def]
    """The first slot to look at, in a stretch of so many lines: where a line of memory begins."""
    return (((mix(key) >> _32) * lines) >> _32) * _LINE


@inner
def home_of(key, homes):  # type: ignore[no-untyped-def]
    """The same as a signed number, by the number of slots."""
    return np.int64(line_of(key, _U(homes // LINE)))


@inner
def look_by_lines(cells, size, slot, key):  # type: ignore[no-untyped-def]
    """The slot that holds a key, looking from the beginning of a line on, and whether one does.

    The four keys of a line are compared without branches, as which of them it is cannot be
    foreseen. Slots of a line are filled in order, so the last one tells whether to go on.
    """
    while True:
        at = size * slot
        last = cells[at + _3 * size]
        match = (
            _U(cells[at] == key)
            | _U(cells[at + size] == key) << _1
            | _U(cells[at + _2 * size] == key) << _2
            | _U(last == key) << _3
        )
        if match != 0 or last == 0:
            return slot + ((match >> _1) - (match >> _3)), match != 0
        slot += _LINE


@inner
def find_hashed(tables, order, context, word):  # type: ignore[no-untyped-def]
    """The slot of an n-gram, by the slot of its context and its last word; or NONE.

    Orders count from 0 here and below: the unigrams.
    """
    key = key_of(context, word)
    slot = _U(tables.starts[order]) + line_of(key, _U(tables.homes[order] // LINE))
    found, is_found = look_by_lines(tables.cells, _U(cell_size(tables)), slot, key)
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
    size = 3 if len(values) == len(cells) else 2
    while size * slot < len(cells) and cells[size * slot] != 0:
        slot += 1
    if size * slot == len(cells):
        if carried < len(carry):
            carry[carried] = row
        return carried + 1
    cells[size * slot] = key
    at = 3 * slot + 1 if size == 3 else 4 * slot + 2
    values[at] = prob[row]
    if len(slots):
        values[at + 1] = marked(backoff[row], extends[row])
        slots[row] = first + slot
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
    homes = [sizes[0], *(LINE * (size // 3 + 1) for size in sizes[1:])]
    stretches = [-(-sizes[0] // LINE) * LINE, *(count + TAIL for count in homes[1:])]
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
        and starts[-1] * size == len(tables.cells)
        and starts[-1] < NONE
        and bool(np.all(np.diff(starts[1:]) > homes[1:]))
        and bool(np.all(homes[1:] >= LINE))
        and not bool(np.any(homes[1:] % LINE))
        and not bool(np.any(starts[1:] % LINE))
    )
    if not good or any(tables.cells[(end - 1) * size] for end in starts[2:]):
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
        slots = np.empty(0 if top else len(level), np.uint32)
        job = _Stretch(level, extends, slot_of, slots, int(starts[index]), int(homes[index]), exact)
        for low, cells in job.sections(place):
            sink.write("cells", cells, (int(starts[index]) + low) * size)
        slot_of = slots


def _unigram_cells(level: Level, extends: NDArray[np.bool_], *, exact: bool) -> NDArray[np.uint64]:
    real = np.float64 if exact else np.float32
    values = np.zeros((len(level), 3 if exact else 4), real)
    values[:, -2] = level.prob
    if len(extends):
        leaves = extends | (level.backoff != 0)
        values[:, -1] = np.where(leaves, level.backoff + 0.0, -0.0)
    return values.reshape(-1).view(np.uint64)


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
            count *= max(1, -(-self.homes * bytes_a_slot // (place.memory // 8)))
        bounds = np.linspace(0, self.homes // LINE, count + 1).astype(np.int64) * LINE
        waiting = np.empty(0, np.uint32)
        for turn in range(0, count, cores()):
            ids = range(turn, min(turn + cores(), count))
            built = in_threads(lambda i: self._build(bounds[i], bounds[i + 1], place), ids)
            for i, (cells, carry) in zip(ids, built, strict=True):
                waiting = self._carry_in(waiting, bounds[i], cells, carry)
                yield int(bounds[i]), cells
        cells = self._empty(TAIL)
        left = self._carry_in(waiting, np.int64(self.homes), cells, waiting[:0])
        assert not len(left) and cells[-3 if self.exact else -2] == 0, "a tail is never full"
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
    extends = np.zeros(len(ngrams.levels[index]), np.bool_)
    above = ngrams.levels[index + 1]
    for start, end in place.chunks(len(above)):
        _mark(start, end, above.context, extends)
    return extends
