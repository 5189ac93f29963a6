"""A table of words for compiled code: bytes to numbers, exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled

BLANK = 32
EMPTY = -2  # the number of a place without a word


class WordTable:
    """Numbers by the words of plain text, which is letters, digits and blanks in ASCII.

    Args:
        size: Places to begin with, a power of 2.
    """

    def __init__(self, size: int = 1 << 13) -> None:
        self.count = self._used = 0
        self._pool = np.empty(8 * size, np.uint8)
        self._make(size)

    def _make(self, size: int) -> None:
        self._places = (
            np.empty(size, np.uint64),  # hashes
            np.empty((size, 2), np.int64),  # where in the pool a word is
            np.full(size, EMPTY, np.int32),  # numbers
        )

    def find(
        self, plain: bytes, spans: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], list[bytes]]:
        """The numbers of the words of pieces of a text, one after the other, without negative ones.

        And where each piece begins among them, with the end, and the words that are not here.
        """
        text = np.frombuffer(plain, np.uint8)
        ids, offsets, unknown = _find(text, spans, self._pool, self._places)
        return ids, offsets, [plain[a:b] for a, b in unknown.tolist()]

    def add(self, words: Sequence[bytes], numbers: Sequence[int]) -> None:
        """Add words that are not here."""
        while 2 * (self.count + len(words)) > len(self._places[0]):
            _, spans, old = self._places
            kept = old != EMPTY
            self._make(2 * len(old))
            _insert(self._pool, spans[kept], old[kept], self._places)
        data = b"".join(words)
        while self._used + len(data) > len(self._pool):
            self._pool = np.concatenate([self._pool, np.empty_like(self._pool)])
        self._pool[self._used : self._used + len(data)] = np.frombuffer(data, np.uint8)
        spans = np.empty((len(words), 2), np.int64)
        np.cumsum([len(word) for word in words], out=spans[:, 1])
        spans[0, 0], spans[1:, 0] = 0, spans[:-1, 1]
        _insert(self._pool, spans + self._used, np.array(numbers, np.int32), self._places)
        self.count, self._used = self.count + len(words), self._used + len(data)


@compiled
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    """FNV-1a."""
    h = np.uint64(14695981039346656037)
    for i in range(begin, end):
        h = (h ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return h ^ (h >> np.uint64(32))


@compiled
def _find(text, pieces, pool, places):  # type: ignore[no-untyped-def]
    hashes, spans, numbers = places
    most = len(text) // 2 + len(pieces) + 1
    ids = np.empty(most, np.int32)
    unknown = np.empty((most, 2), np.int64)
    offsets = np.zeros(len(pieces) + 1, np.int64)
    last = np.uint64(len(hashes) - 1)
    found, missed = 0, 0
    for piece in range(len(pieces)):
        i, end = pieces[piece, 0], pieces[piece, 1]
        while i < end:
            if text[i] == BLANK:
                i += 1
                continue
            begin = i
            while i < end and text[i] != BLANK:
                i += 1
            h = _hash(text, begin, i)
            slot = np.int64(h & last)
            number = np.int32(EMPTY)
            while numbers[slot] != EMPTY:
                first = spans[slot, 0]
                if hashes[slot] == h and spans[slot, 1] - first == i - begin:
                    k = 0
                    while begin + k < i and pool[first + k] == text[begin + k]:
                        k += 1
                    if begin + k == i:
                        number = numbers[slot]
                        break
                slot = np.int64(np.uint64(slot + 1) & last)
            if number >= 0:
                ids[found] = number
                found += 1
            elif number == EMPTY:
                unknown[missed, 0], unknown[missed, 1] = begin, i
                missed += 1
        offsets[piece + 1] = found
    return ids[:found], offsets, unknown[:missed]


@compiled
def _insert(pool, new, given, places):  # type: ignore[no-untyped-def]
    hashes, spans, numbers = places
    last = np.uint64(len(hashes) - 1)
    for w in range(len(new)):
        h = _hash(pool, new[w, 0], new[w, 1])
        slot = np.int64(h & last)
        while numbers[slot] != EMPTY:
            slot = np.int64(np.uint64(slot + 1) & last)
        hashes[slot] = h
        spans[slot, 0], spans[slot, 1] = new[w, 0], new[w, 1]
        numbers[slot] = given[w]


@compiled
def numbered(ids):  # type: ignore[no-untyped-def]
    """Numbers in the order of their first occurrence, from 0 on, and what each stands for."""
    size = 16
    while size < 2 * len(ids):
        size *= 2
    place = np.full(size, -1, np.int32)
    own = np.empty(len(ids), np.int32)
    kinds = np.empty(len(ids), np.int32)
    count = 0
    for i in range(len(ids)):
        slot = (np.int64(ids[i]) * 40503) & (size - 1)
        while place[slot] >= 0 and kinds[place[slot]] != ids[i]:
            slot = (slot + 1) & (size - 1)
        if place[slot] < 0:
            place[slot] = count
            kinds[count] = ids[i]
            count += 1
        own[i] = place[slot]
    return own, kinds[:count]


@compiled
def apart(ids, offsets, is_heading):  # type: ignore[no-untyped-def]
    """The numbers of sentences, those of headings after them, and where each sentence begins."""
    n = len(offsets) - 1
    found = np.empty(len(ids), np.int32)
    ends = np.zeros(n + 1, np.int64)
    at, sentences = 0, 0
    for of_headings in (False, True):
        for i in range(n):
            if is_heading[i] == of_headings:
                for k in range(offsets[i], offsets[i + 1]):
                    found[at] = ids[k]
                    at += 1
                if not of_headings:
                    sentences += 1
                    ends[sentences] = at
    return found, ends[: sentences + 1]
