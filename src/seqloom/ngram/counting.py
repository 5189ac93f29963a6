"""Counting: from text to the n-grams it holds, each order from the one below.

An n-gram that ends at position i is its context (the n-gram of the order below that ends at i - 1)
and a word, two numbers that fit 64 bits, so equality is exact. A table finds equal ones; most need
no look: where the context or the suffix occurs once in the text, the n-gram does too.

The contexts are split into ranges, one a thread, and each thread reads the whole text. With a cap
on memory there are many: the n-grams are first sorted into them on disk, then each range is
counted in a table that fits, and their rows are put back in the order of the text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads, inner, prefetch
from seqloom.ngram.levels import CountLevel, Counts, Rows
from seqloom.ngram.words import BOS, NONE, Words, mix
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _2, _32 = _U(1), _U(2), _U(32)
_5, _31, _FIRST = np.uint32(5), np.uint32(31), np.uint32(1 << 31)
_NONE = np.uint32(NONE)
SKIP, NEW = -1, -2  # of a position: not in range; certainly a new n-gram
AHEAD = 64  # look-ups on their way to memory at once
_SLOT = 16  # bytes of the table an n-gram takes, at a load of at most two thirds


@inner
def key_of(context, word):  # type: ignore[no-untyped-def]
    """An n-gram as one number, never 0."""
    return (_U(context) << _32 | _U(word)) + _1


@compiled
def _extend(  # type: ignore[no-untyped-def]
    start, end, order, text, below, often, low, high,
    table, used, here, context, suffix, word, count, begins, n,
):  # fmt: skip
    """Number the n-grams that end at the positions from `start` on and whose context is in range.

    `below` has the rows of the order below by position, `here` gets those of this order; `often`
    tells which rows of the order below occur more than once. Returns the position it came to,
    before `end` if the table is full, and the numbers of rows and of slots used.
    """
    mask = _U(len(table) // 2 - 1)
    limit = len(table) // 3 - AHEAD
    slots = np.empty(AHEAD, np.int64)
    for block in range(start, end, AHEAD):
        if used >= limit:
            return block, n, used
        size = min(AHEAD, end - block)
        for j in range(size):  # what is needed from the table is called for first
            i = block + j
            slots[j] = SKIP
            if i == 0 or text[i] == BOS or below[i - 1] == _NONE:
                if low == 0:
                    here[i] = _NONE
                continue
            before = below[i - 1]
            if before >= low and before < high:
                slots[j] = NEW
                if is_set(often, before) and is_set(often, below[i]):
                    slots[j] = np.int64(mix(key_of(before, text[i])) & mask) << 1
                    prefetch(table, slots[j])
        for j in range(size):
            if slots[j] == SKIP:
                continue
            i = block + j
            here[i], n, used = _number(
                below[i - 1], below[i], text[i], text[i - order + 1] == BOS,
                slots[j], table, used, context, suffix, word, count, begins, n,
            )  # fmt: skip
    return end, n, used


@inner
def _number(  # type: ignore[no-untyped-def]
    before, near, last, is_first, place, table, used, context, suffix, word, count, begins, n
):
    """The row of an n-gram whose slot may be `place`, which is made if it is new; with n, used."""
    row = n
    if place != NEW:
        mask = _U(len(table) - 2)
        key, slot = key_of(before, last), _U(place)
        while table[slot] != 0 and table[slot] != key:
            slot = (slot + _2) & mask
        if table[slot] == 0:
            table[slot] = key
            table[slot + _1] = _U(n)
            used += 1
        else:
            row = np.int64(table[slot + _1])
    if row == n:
        context[n], suffix[n], word[n] = before, near, last
        count[n] = 1
        begins[n] = is_first
        n += 1
    else:
        count[row] += 1
    return row, n, used


@inner
def _range_of(row, bounds):  # type: ignore[no-untyped-def]
    """Which range a row is in, by halving."""
    low, high = 0, len(bounds) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if row >= bounds[middle]:
            low = middle
        else:
            high = middle
    return low


@compiled
def _sort(start, end, order, text, below, bounds, next_row, records):  # type: ignore[no-untyped-def]
    """Put the n-grams that end at some positions into the records of their ranges.

    A record is the context, the suffix, and the word with a bit that says if `<s>` comes first.
    """
    for i in range(max(start, 1), end):
        if text[i] != BOS and below[i - 1] != _NONE:
            part = _range_of(below[i - 1], bounds)
            at = 3 * next_row[part]
            next_row[part] += 1
            records[at] = below[i - 1]
            records[at + 1] = below[i]
            records[at + 2] = text[i] | (_FIRST if text[i - order + 1] == BOS else np.uint32(0))


@compiled
def _extend_sorted(  # type: ignore[no-untyped-def]
    start, end, records, often, table, used, context, suffix, word, count, begins, n
):
    """What `_extend` does, of records; each one's row takes its context's place."""
    mask = _U(len(table) // 2 - 1)
    for k in range(start, end):
        if used >= len(table) // 3 - 1:
            return k, n, used
        before, near, last = records[3 * k], records[3 * k + 1], records[3 * k + 2] & ~_FIRST
        slot = np.int64(NEW)
        if is_set(often, before) and is_set(often, near):
            slot = np.int64(mix(key_of(before, last)) & mask) << 1
        records[3 * k], n, used = _number(
            before, near, last, records[3 * k + 2] >= _FIRST, slot, table, used,
            context, suffix, word, count, begins, n,
        )  # fmt: skip
    return end, n, used


@compiled
def _put_back(start, end, text, below, bounds, bases, buffers, taken, here):  # type: ignore[no-untyped-def]
    """The rows of sorted n-grams by position; `bases` has the first row of each range.

    Rows come from the ranges' buffers, of which so many were taken. Returns the position it came
    to and the range whose buffer is used up, or -1.
    """
    for i in range(start, end):
        if i == 0 or text[i] == BOS or below[i - 1] == _NONE:
            here[i] = _NONE
            continue
        part = _range_of(below[i - 1], bounds)
        if taken[part] == buffers.shape[1]:
            return i, part
        here[i] = buffers[part, taken[part]] + bases[part]
        taken[part] += 1
    return end, -1


@inner
def is_set(bits, row):  # type: ignore[no-untyped-def]
    """Whether a row is in a set of one bit a row."""
    return bits[row >> _5] >> (row & _31) & np.uint32(1) != 0


@compiled
def _find_often(start, end, count, often):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        if count[i] > 1:
            often[i >> 5] |= np.uint32(1 << (i & 31))


@compiled
def _rehash(old, new):  # type: ignore[no-untyped-def]
    mask = _U(len(new) // 2 - 1)
    for i in range(0, len(old), 2):
        if old[i] != 0:
            slot = (mix(old[i]) & mask) << _1
            while new[slot] != 0:
                slot = (slot + _2) & (mask << _1)
            new[slot] = old[i]
            new[slot + _1] = old[i + 1]


@compiled
def _split(start, end, count, total, bounds, shares, done):  # type: ignore[no-untyped-def]
    """Cut rows into ranges with about equal sums of counts; `shares` gets those sums.

    `done` has the range it is in and the sum up to here.
    """
    parts = len(shares)
    for i in range(start, end):
        if done[1] >= total * (done[0] + 1) // parts and done[0] + 1 < parts:
            done[0] += 1
            bounds[done[0]] = i
        shares[done[0]] += count[i]
        done[1] += count[i]


@compiled
def _shift(start, end, below, here, bounds, bases):  # type: ignore[no-untyped-def]
    """Turn the rows of each range into rows of the whole order."""
    for i in range(max(start, 1), end):
        if here[i] != _NONE:
            part = 0
            while below[i - 1] >= bounds[part + 1]:
                part += 1
            here[i] += bases[part]


@compiled
def _move(column, to, start, size):  # type: ignore[no-untyped-def]
    """Move rows towards the front of their column."""
    if to != start:
        for i in range(size):
            column[to + i] = column[start + i]


@compiled
def _count_words(start, end, text, count):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        count[text[i]] += 1


def count_ngrams(text: Rows, words: Words, order: int, place: Workspace) -> Counts:
    """Count the n-grams of a tokenized text, of every order up to `order`."""
    count = np.zeros(len(words), np.uint32)
    for start, end in place.chunks(len(text)):
        _count_words(start, end, text, count)
    none = np.empty(0, np.uint32)
    begins = np.zeros(len(words), np.bool_)
    begins[BOS] = True
    levels = [CountLevel(none, none, np.arange(len(words), dtype=np.uint32), count, begins)]
    below = text
    for higher in range(2, order + 1):
        level, below = _count_order(text, below, levels[-1].count, higher, place)
        levels.append(level)
    return Counts(words, levels, len(text) - 2 * int(count[BOS]))


def _count_order(
    text: Rows, below: Rows, count_below: NDArray[np.uint32], order: int, place: Workspace
) -> tuple[CountLevel, Rows]:
    here = place.empty(len(text), np.uint32)
    parts = _parts(len(text), place)
    bounds, shares = np.full(parts + 1, len(count_below), np.uint32), np.zeros(parts, np.int64)
    bounds[0], done = 0, np.zeros(2, np.int64)
    often = np.zeros((len(count_below) >> 5) + 1, np.uint32)
    total = sum(int(count_below[slice(*piece)].sum()) for piece in place.chunks(len(count_below)))
    for start, end in place.chunks(len(count_below)):
        _split(start, end, count_below, total, bounds, shares, done)
        _find_often(start, end, count_below, often)
    starts = np.cumsum([0, *shares])  # no range has more n-grams than positions
    kinds = (np.uint32, np.uint32, np.uint32, np.uint32, np.bool_)
    columns = [place.empty(starts[-1], kind) for kind in kinds]

    records = np.empty(0, np.uint32)
    if place.spilling:
        records = place.empty(3 * starts[-1], np.uint32)
        ends = starts[:-1].copy()
        for start, end in place.chunks(len(text)):
            _sort(start, end, order, text, below, bounds, ends, records)

    def one(part: int) -> int:
        own = [column[starts[part] : starts[part + 1]] for column in columns]
        if place.spilling:
            return _count_sorted(records[3 * starts[part] : 3 * ends[part]], often, own, place)
        return _count_range(text, below, often, order, bounds[part : part + 2], here, own)

    sizes = in_threads(one, range(parts))
    bases = np.cumsum([0, *sizes])
    for column in columns:
        for part, size in enumerate(sizes):
            for start, end in place.chunks(size):
                _move(column, bases[part] + start, starts[part] + start, end - start)
    firsts = bases.astype(np.uint32)
    if place.spilling:
        _put_rows_back(text, below, bounds, firsts, starts, records, here, place)
    else:
        place.in_pieces(_shift, 0, len(text), below, here, bounds, firsts)
    return CountLevel(*(column[: bases[-1]] for column in columns)), here


def _put_rows_back(
    text: Rows, below: Rows, bounds: Rows, bases: Rows, starts: NDArray[np.int64],
    records: Rows, here: Rows, place: Workspace,
) -> None:  # fmt: skip
    """Rows from many places of a file at once: through buffers, as each look may load megabytes."""
    parts = len(bases) - 1
    buffers = np.empty((parts, max(64, place.spare() // (4 * parts))), np.uint32)
    taken, next_row = np.full(parts, buffers.shape[1]), starts.copy()
    for start, end in place.chunks(len(text)):
        at = start
        while True:
            at, part = _put_back(at, end, text, below, bounds, bases, buffers, taken, here)
            if part < 0:
                break
            first = next_row[part]
            last = min(first + buffers.shape[1], starts[part + 1])
            buffers[part, : last - first] = records[3 * first : 3 * last : 3]
            next_row[part], taken[part] = last, 0
            place.breathe()


def _parts(tokens: int, place: Workspace) -> int:
    """One range a core, or as many as keep the tables of all cores in what memory is to spare."""
    if not place.spilling:
        return cores()
    return cores() * max(1, -(-tokens * 2 * _SLOT // place.spare()))


def _count_range(
    text: Rows, below: Rows, often: NDArray[np.uint32], order: int,
    bounds: NDArray[np.uint32], here: Rows, columns: list[NDArray[Any]],
) -> int:  # fmt: skip
    """Number and count the n-grams whose context is in a range; returns how many there are."""
    table = _first_table(len(columns[0]))
    at = n = used = 0
    while True:
        at, n, used = _extend(
            at, len(text), order, text, below, often, *bounds, table, used, here, *columns, n
        )
        if at == len(text):
            return int(n)
        table = _grow(table)


def _count_sorted(
    records: Rows, often: NDArray[np.uint32], columns: list[NDArray[Any]], place: Workspace
) -> int:
    """The same of records that were sorted into a range.

    The table grows with what is found: one frequent context may have millions of records.
    """
    table = _first_table(min(len(records) // 3, 1 << 15))
    n = used = 0
    for start, end in place.chunks(len(records) // 3):
        at = start
        while True:
            at, n, used = _extend_sorted(at, end, records, often, table, used, *columns, n)
            if at == end:
                break
            table = _grow(table)
    return int(n)


def _first_table(ngrams: int) -> NDArray[np.uint64]:
    return np.zeros(2 << max(10, (ngrams // 2).bit_length()), np.uint64)


def _grow(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    grown = np.zeros(2 * len(table), np.uint64)
    _rehash(table, grown)
    return grown
