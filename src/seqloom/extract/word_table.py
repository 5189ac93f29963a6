"""The words of a text as numbers of terms, looked up and learned in compiled code."""

# ruff: noqa: PLR0917
# Compiled loops take columns.

from __future__ import annotations

from typing import Any

import numpy as np

from seqloom.compiled import compiled, inner
from seqloom.extract.characters import LETTER, WORD, text_of
from seqloom.extract.stemming import stem_codes

NO_TERM = -1  # the number of a word that is left out
EMPTY = -2  # of a place without a word
NO_ROOM = -3
FIRST_HASH, FACTOR = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a


class WordTable:
    """The number of each word's term, and the terms, exact.

    Words and terms are in one table by their hashes. Their code points stand one after the other in
    a pool; those of a term have a 0 before them, which no word holds.

    Args:
        size: Places to begin with, a power of 2.
    """

    def __init__(self, size: int = 1 << 13) -> None:
        self.used = np.zeros(3, np.int64)  # of places, of the pool, and terms
        self.pool = np.empty(8 * size, np.uint32)
        self.terms = np.empty((size, 2), np.int64)  # where in the pool each is
        self._make(size)

    def _make(self, size: int) -> None:
        self._hashes = np.empty(size, np.uint64)
        self._spans = np.empty((size, 2), np.int64)  # where in the pool a word is
        self._numbers = np.full(size, EMPTY, np.int32)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What compiled code needs of it."""
        return self.used, self.pool, self.terms, self._hashes, self._spans, self._numbers

    def terms_from(self, first: int) -> list[str]:
        """The terms of number `first` and above."""
        return [text_of(self.pool[a:b]) for a, b in self.terms[first : self.used[2]].tolist()]

    def grow(self) -> None:
        """Make twice the room."""
        spans, numbers = self._spans, self._numbers
        self.pool = np.concatenate([self.pool, np.empty_like(self.pool)])
        self.terms = np.concatenate([self.terms, np.empty_like(self.terms)])
        self._make(2 * len(numbers))
        _move(spans, numbers, self.arrays)


@inner
def _find(begin, end, table):  # type: ignore[no-untyped-def]
    """The hash of what the pool holds from `begin` to `end`, and its place, or the one for it."""
    _, pool, _, hashes, spans, numbers = table
    h = FIRST_HASH
    for i in range(begin, end):
        h = (h ^ np.uint64(pool[i])) * FACTOR
    h ^= h >> np.uint64(32)
    last = np.uint64(len(hashes) - 1)
    place = np.int64(h & last)
    while numbers[place] != EMPTY:
        first = spans[place, 0]
        if hashes[place] == h and spans[place, 1] - first == end - begin:
            k = 0
            while begin + k < end and pool[first + k] == pool[begin + k]:
                k += 1
            if begin + k == end:
                break
        place = np.int64(np.uint64(place + 1) & last)
    return h, place


@inner
def _take(place, h, begin, end, number, table):  # type: ignore[no-untyped-def]
    """Put what the pool holds at its end, from `begin` to `end`, into an empty place."""
    used, _, _, hashes, spans, numbers = table
    hashes[place], spans[place, 0], spans[place, 1], numbers[place] = h, begin, end, number
    used[0] += 1
    used[1] = end


@compiled
def _move(old_spans, old_numbers, table):  # type: ignore[no-untyped-def]
    """Put what was in other places into those of a table, which are empty."""
    _, _, _, hashes, spans, numbers = table
    for i in range(len(old_numbers)):
        if old_numbers[i] != EMPTY:
            h, place = _find(old_spans[i, 0], old_spans[i, 1], table)
            hashes[place], numbers[place] = h, old_numbers[i]
            spans[place, 0], spans[place, 1] = old_spans[i, 0], old_spans[i, 1]


@compiled
def leave_out(codes, words, table):  # type: ignore[no-untyped-def]
    """Let words, given by where they are in `codes`, be no terms; whether there was room."""
    used, pool, _, hashes, _, numbers = table
    for w in range(len(words)):
        at, size = used[1], words[w, 1] - words[w, 0]
        if 2 * (used[0] + 1) > len(hashes) or at + size > len(pool):
            return False
        for i in range(size):
            pool[at + i] = codes[words[w, 0] + i]
        h, place = _find(at, at + size, table)
        if numbers[place] == EMPTY:
            _take(place, h, at, at + size, NO_TERM, table)
    return True


@compiled
def _learn(begin, end, of_letters, table, stems):  # type: ignore[no-untyped-def]
    """The number of the term of a word that the pool holds; one of letters is stemmed."""
    used, pool, terms, _, _, numbers = table
    at, size = used[1], end - begin
    pool[at] = 0
    for i in range(size):
        pool[at + 1 + i] = pool[begin + i]
    if of_letters and stems:
        size = stem_codes(pool[at + 1 :], size)
    h, place = _find(at, at + 1 + size, table)
    if numbers[place] == EMPTY:
        terms[used[2], 0], terms[used[2], 1] = at + 1, at + 1 + size
        _take(place, h, at, at + 1 + size, used[2], table)
        used[2] += 1
    return numbers[place]


@inner
def _number(codes, begin, end, classes, small, table, with_numbers, stems):  # type: ignore[no-untyped-def]
    """The number of a word's term, learned if the word is new, or `NO_ROOM` for that.

    A word without a letter is a term only `with_numbers`; one of a single ASCII letter never is.
    """
    used, pool, _, hashes, _, numbers = table
    at, size = used[1], end - begin
    if 2 * (used[0] + 2) > len(hashes) or at + 2 * size + 2 > len(pool):
        return NO_ROOM
    for i in range(size):
        pool[at + i] = small[codes[begin + i]]
    h, place = _find(at, at + size, table)
    if numbers[place] == EMPTY:
        has, is_ascii = 0, True
        for i in range(size):
            has |= classes[codes[begin + i]]
            is_ascii &= pool[at + i] < 128
        _take(place, h, at, at + size, NO_TERM, table)
        if has & LETTER:
            if size > 1 or not is_ascii:
                numbers[place] = _learn(at, at + size, is_ascii, table, stems)
        elif has & WORD and with_numbers:
            numbers[place] = _learn(at, at + size, False, table, stems)
    return numbers[place]


@compiled
def number_words(codes, words, classes, small, table, with_numbers, stems):  # type: ignore[no-untyped-def]
    """The number of each word's term, and whether there was room for all.

    Words are given by where they are in `codes`.
    """
    found = np.empty(len(words), np.int32)
    for w in range(len(words)):
        found[w] = _number(
            codes, words[w, 0], words[w, 1], classes, small, table, with_numbers, stems
        )
        if found[w] == NO_ROOM:
            return found, False
    return found, True


@compiled
def find_words(codes, units, classes):  # type: ignore[no-untyped-def]
    """Where the words of units are, runs of letters and numbers, and where each unit begins."""
    words = np.empty(((len(codes) + len(units)) // 2 + 1, 2), np.int64)
    offsets = np.zeros(len(units) + 1, np.int64)
    count = 0
    for unit in range(len(units)):
        i, end = units[unit, 0], units[unit, 1]
        while i < end:
            begin = i
            while i < end and classes[codes[i]] & WORD:
                i += 1
            if i > begin:
                words[count, 0], words[count, 1] = begin, i
                count += 1
            i += 1
        offsets[unit + 1] = count
    return words[:count], offsets
