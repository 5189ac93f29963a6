"""Counting: from text to the n-grams it holds, each order from the one below.

An n-gram that ends at position i is its context (the n-gram of the order below that ends at i - 1)
and a word, two numbers that fit 64 bits, so equality is exact. A table finds equal ones; most need
no look: where the context or the suffix occurs once in the text, the n-gram does too.

With a cap on memory the contexts are split into ranges, and the positions are read once a range
(and, in any case, once a thread).
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
    start, end, order, text, below, count_below, low, high,
    table, used, here, context, suffix, word, count, begins, n,
):  # fmt: skip
    """Number the n-grams that end at the positions from `start` on and whose context is in range.

    `below` has the rows of the order below by position, `here` gets those of this order. Returns
    the position it came to, before `end` if the table is full, and the numbers of rows and of
    slots used.
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
                if count_below[before] != 1 and count_below[below[i]] != 1:
                    slots[j] = np.int64(mix(key_of(before, text[i])) & mask) << 1
                    prefetch(table, slots[j])
        for j in range(size):
            if slots[j] == SKIP:
                continue
            i, row = block + j, n
            if slots[j] != NEW:
                key, slot = key_of(below[i - 1], text[i]), _U(slots[j])
                while table[slot] != 0 and table[slot] != key:
                    slot = (slot + _2) & (mask << _1)
                if table[slot] == 0:
                    table[slot] = key
                    table[slot + _1] = _U(n)
                    used += 1
                else:
                    row = np.int64(table[slot + _1])
            here[i] = row
            if row == n:
                context[n] = below[i - 1]
                suffix[n] = below[i]
                word[n] = text[i]
                count[n] = 1
                begins[n] = text[i - order + 1] == BOS
                n += 1
            else:
                count[row] += 1
    return end, n, used


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
def _split(count, parts, bounds, shares):  # type: ignore[no-untyped-def]
    """Cut the rows into ranges with about equal sums of counts; `shares` gets those sums."""
    total = np.int64(0)
    for i in range(len(count)):
        total += count[i]
    part = 0
    done = np.int64(0)
    for i in range(len(count)):
        if done >= total * (part + 1) // parts and part + 1 < parts:
            part += 1
            bounds[part] = i
        shares[part] += count[i]
        done += count[i]
    for later in range(part + 1, parts + 1):
        bounds[later] = len(count)


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
    bounds, shares = np.zeros(parts + 1, np.uint32), np.zeros(parts, np.int64)
    _split(count_below, parts, bounds, shares)
    starts = np.cumsum([0, *shares])  # no range has more n-grams than positions
    kinds = (np.uint32, np.uint32, np.uint32, np.uint32, np.bool_)
    columns = [place.empty(starts[-1], kind) for kind in kinds]

    def one(part: int) -> int:
        own = [column[starts[part] : starts[part + 1]] for column in columns]
        low, high = bounds[part], bounds[part + 1]
        return _count_range(text, below, count_below, order, low, high, here, own, place)

    sizes = in_threads(one, range(parts))
    bases = np.cumsum([0, *sizes])
    for column in columns:
        for part, size in enumerate(sizes):
            for start, end in place.chunks(size):
                _move(column, bases[part] + start, starts[part] + start, end - start)

    place.in_pieces(_shift, 0, len(text), below, here, bounds, bases.astype(np.uint32))
    return CountLevel(*(column[: bases[-1]] for column in columns)), here


def _parts(tokens: int, place: Workspace) -> int:
    """One range a core, or as many as keep the tables of all cores below an eighth of the cap."""
    if not place.spilling:
        return cores()
    return cores() * max(1, -(-tokens * 2 * _SLOT // (place.memory // 8)))


def _count_range(
    text: Rows, below: Rows, count_below: NDArray[np.uint32], order: int,
    low: np.uint32, high: np.uint32, here: Rows, columns: list[NDArray[Any]], place: Workspace,
) -> int:  # fmt: skip
    """Number and count the n-grams whose context is in a range; returns how many there are."""
    table = np.zeros(2 << max(10, (len(columns[0]) // 2).bit_length()), np.uint64)
    n = used = 0
    for start, end in place.chunks(len(text)):
        at = start
        while True:
            at, n, used = _extend(
                at, end, order, text, below, count_below, low, high, table, used, here, *columns, n
            )
            if at == end:
                break
            grown = np.zeros(2 * len(table), np.uint64)
            _rehash(table, grown)
            table = grown
    return int(n)
