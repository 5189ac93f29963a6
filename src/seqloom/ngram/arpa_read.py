"""Reading ARPA files: one thread parses lines, another finds each n-gram's context.

An n-gram is its context's row and its last word, two numbers that fit 64 bits; one table over all
orders leads from them to the n-gram's own row, so that equality is exact.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads, inner, prefetch
from seqloom.errors import DataError
from seqloom.files import open_bytes
from seqloom.ngram.arpa_lines import ArpaLines, Batch, Unigrams
from seqloom.ngram.arpa_write import SLACK
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.words import NONE, mix

_U = np.uint64
_1, _32, _LOW = _U(1), _U(32), _U(0xFFFFFFFF)
_NONE = np.uint32(NONE)
_GROUP = 32  # rows that ask for memory together, before the first of them uses it

# The table has 64-bit slots: the upper half of the key's hash, and the row plus one (0 if free).
# The keys themselves, a context's row and a word, are a column.


@inner
def _key(row, word):  # type: ignore[no-untyped-def]
    return _U(row) << _32 | _U(word)


@inner
def _slot(key, scattered, table, keys):  # type: ignore[no-untyped-def]
    """The slot that holds a key whose hash is given, or the free one where it would be."""
    mask = _U(len(table) - 1)
    at = scattered & mask
    while table[at] & _LOW != 0:
        if table[at] >> _32 == scattered >> _32 and keys[(table[at] & _LOW) - _1] == key:
            break
        at = (at + _1) & mask
    return at


@inner
def _find(row, word, table, keys):  # type: ignore[no-untyped-def]
    """The row of an n-gram's extension by a word, NONE if it is not there."""
    key = _key(row, word)
    held = table[_slot(key, mix(key), table, keys)] & _LOW
    return np.uint32(held - _1) if held != 0 else _NONE


@inner
def _put(slot, scattered, row, table):  # type: ignore[no-untyped-def]
    table[slot] = (scattered >> _32) << _32 | _U(row + 1)


@inner
def _ask(scattered, table, keys):  # type: ignore[no-untyped-def]
    """Ask for the key that the slot where a search begins stands for."""
    held = table[scattered & _U(len(table) - 1)]
    if held >> _32 == scattered >> _32 and held & _LOW != 0:
        prefetch(keys, (held & _LOW) - _1)


@compiled
def _follow(rows, words, table, keys):  # type: ignore[no-untyped-def]
    """Put in place of each row that of its extension by a word; returns how many are not there."""
    missing = 0
    scattered = np.empty(_GROUP, np.uint64)
    for start in range(0, len(rows), _GROUP):
        end = min(start + _GROUP, len(rows))
        for i in range(start, end):
            scattered[i - start] = mix(_key(rows[i], words[i]))
            prefetch(table, scattered[i - start] & _U(len(table) - 1))
        for i in range(start, end):
            _ask(scattered[i - start], table, keys)
        for i in range(start, end):
            if rows[i] != _NONE:
                key = _key(rows[i], words[i])
                held = table[_slot(key, scattered[i - start], table, keys)] & _LOW
                rows[i] = held - _1 if held != 0 else _U(_NONE)
            if rows[i] == _NONE:
                missing += 1
    return missing


@compiled
def _enter(rows, words, table, keys, first):  # type: ignore[no-untyped-def]
    """Number the extensions of rows by words; returns the first that was there already, or -1."""
    scattered = np.empty(_GROUP, np.uint64)
    for start in range(0, len(rows), _GROUP):
        end = min(start + _GROUP, len(rows))
        for i in range(start, end):
            scattered[i - start] = mix(_key(rows[i], words[i]))
            prefetch(table, scattered[i - start] & _U(len(table) - 1))
        for i in range(start, end):
            key = _key(rows[i], words[i])
            slot = _slot(key, scattered[i - start], table, keys)
            if table[slot] & _LOW != 0:
                return i
            _put(slot, scattered[i - start], first + i, table)
            keys[first + i] = key
    return -1


@compiled
def _rehash(keys, first, end, table):  # type: ignore[no-untyped-def]
    """Enter rows that are known to differ."""
    mask = _U(len(table) - 1)
    scattered = np.empty(_GROUP, np.uint64)
    for start in range(first, end, _GROUP):
        size = min(_GROUP, end - start)
        for i in range(size):
            scattered[i] = mix(keys[start + i])
            prefetch(table, scattered[i] & mask)
        for i in range(size):
            at = scattered[i] & mask
            while table[at] & _LOW != 0:
                at = (at + _1) & mask
            _put(at, scattered[i], start + i, table)


@inner
def _backed_off(words, i, last, row, table, keys, prob, backoff):  # type: ignore[no-untyped-def]
    """What the model gives word `last` of the n-gram in column i after the words before it.

    The n-gram is not there; `row` is its context's.
    """
    total = backoff[row]
    for start in range(1, last):
        context = words[start, i]
        for k in range(start + 1, last):
            if context != _NONE:
                context = _find(context, words[k, i], table, keys)
        if context != _NONE:
            found = _find(context, words[last, i], table, keys)
            if found != _NONE:
                return total + prob[found]
            total += backoff[context]
    return total + prob[words[last, i]]


@compiled
def _add_contexts(rows, words, table, keys, prob, backoff, orders, used):  # type: ignore[no-untyped-def]
    """Add the contexts that are not there, with what the model gives them, so it stays the same.

    Returns the number of rows and the first column whose context has a probability above 1, or -1.
    """
    for i in range(len(rows)):
        if rows[i] != _NONE:
            continue
        row = words[0, i]
        for k in range(1, len(words) - 1):
            key = _key(row, words[k, i])
            slot = _slot(key, mix(key), table, keys)
            if table[slot] & _LOW == 0:
                value = _backed_off(words, i, k, row, table, keys, prob, backoff)
                if not value <= SLACK:
                    return used, i
                _put(slot, mix(key), used, table)
                keys[used], orders[used] = key, k + 1
                prob[used], backoff[used] = min(value, 0.0), 0.0
                used += 1
            row = np.uint32((table[slot] & _LOW) - _1)
        rows[i] = row
    return used, -1


@compiled
def _find_suffixes(start, end, order, orders, suffix, table, keys):  # type: ignore[no-untyped-def]
    """Find the n-grams of an order without their first words; False if one is not there."""
    mask = _U(len(table) - 1)
    scattered = np.empty(_GROUP, np.uint64)
    for first in range(start, end, _GROUP):
        size = min(_GROUP, end - first)
        for i in range(first, first + size):
            prefetch(suffix, keys[i] >> _32)
        for i in range(first, first + size):
            scattered[i - first] = mix(_key(suffix[keys[i] >> _32], keys[i] & _LOW))
            prefetch(table, scattered[i - first] & mask)
        for i in range(size):
            _ask(scattered[i], table, keys)
        for i in range(first, first + size):
            if orders[i] == order:
                row = np.uint32(keys[i] & _LOW)
                if order > 2:
                    row = _find(suffix[keys[i] >> _32], row, table, keys)
                if row == _NONE:
                    return False
                suffix[i] = row
    return True


class _Gathered:
    """All n-grams read so far, in columns over all orders; a context comes before what extends it.

    Args:
        unigrams: The first rows.
        name: The file's, for errors.
    """

    def __init__(self, unigrams: Unigrams, name: str) -> None:
        self.unigrams, self.name = unigrams, name
        self.used = len(unigrams.words)
        self.bases = [0, self.used]  # the first row of each order, and of the next
        self.added = 0
        self.table: NDArray[np.uint64] = np.zeros(1 << 10, np.uint64)
        self.keys: NDArray[np.uint64] = np.arange(self.used, dtype=np.uint64)
        self.orders: NDArray[np.uint8] = np.ones(self.used, np.uint8)
        self.prob, self.backoff = unigrams.prob, unigrams.backoff

    def add(self, batch: Batch, *, highest: bool) -> None:
        """Add n-grams of an order; all those of the orders below have been added."""
        order, size = batch.words.shape
        while len(self.bases) <= order:
            self.bases.append(self.used)
        self._make_room(size, backoff=not highest)
        rows = batch.words[0].copy()
        missing = 0
        for k in range(1, order - 1):
            missing = _follow(rows, batch.words[k], self.table, self.keys)
        if missing:
            self._add_contexts(rows, batch, missing)
        twice = _enter(rows, batch.words[-1], self.table, self.keys, self.used)
        if twice >= 0:
            raise DataError(
                f"each n-gram may stand once, got {self._spelled(batch, twice)} again; remove one",
                self.name,
                int(batch.lines[twice]),
            )
        here = slice(self.used, self.used + size)
        self.prob[here], self.orders[here] = batch.prob, order
        if not highest:
            self.backoff[here] = batch.backoff
        self.used += size
        self.bases[order:] = [self.used]

    def _add_contexts(self, rows: Rows, batch: Batch, missing: int) -> None:
        order, size = batch.words.shape
        self._make_room(size + missing * (order - 2), backoff=True)
        used, wrong = _add_contexts(
            rows, batch.words, self.table, self.keys, self.prob, self.backoff, self.orders,
            self.used,
        )  # fmt: skip
        if wrong >= 0:
            raise DataError(
                "an n-gram whose context is not in the file needs one that backing off gives a "
                f"log-probability of at most 0, got {self._spelled(batch, wrong)}; it is damaged",
                self.name,
                int(batch.lines[wrong]),
            )
        self.added += used - self.used
        self.used = used

    def _spelled(self, batch: Batch, column: int) -> str:
        words = (self.unigrams.words[int(number)] for number in batch.words[:, column])
        text = " ".join(word[:60] for word in words)
        return repr(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))

    def _make_room(self, rows: int, *, backoff: bool) -> None:
        """Let the columns and the table hold that many more rows."""
        need = self.used + rows
        if need >= NONE:
            raise DataError(f"a model may have {NONE} n-grams, got more", self.name)
        columns: list[NDArray[Any]] = [self.keys, self.prob, self.orders]
        for column in [*columns, self.backoff] if backoff else columns:
            if len(column) < need:
                # In place, which the system does without copying; nobody holds a part of it.
                column.resize(need + need // 4, refcheck=False)
        if 3 * need > 2 * len(self.table):
            del self.table  # before its successor takes memory
            self.table = np.zeros(1 << (3 * need // 2).bit_length(), np.uint64)
            _rehash(self.keys, len(self.unigrams.words), self.used, self.table)

    def ngrams(self, order: int) -> Ngrams:
        """The model, and whether the suffix of every n-gram is in it."""
        while len(self.bases) <= order:
            self.bases.append(self.used)
        suffixes = self._suffixes(order)
        del self.table
        levels = [self._level(k, highest=k == order) for k in range(1, order + 1)]
        about = {
            "format": "arpa",
            "file": self.name,
            "added_words": self.unigrams.added,
            "added_contexts": int(self.added),
        }
        return Ngrams(self.unigrams.words, levels, suffixes=suffixes, about=about)

    def _suffixes(self, order: int) -> bool:
        suffix = np.zeros(self.used, np.uint32)
        for k in range(2, order + 1):
            # With contexts added, the orders are mixed.
            start, end = (0, self.used) if self.added else self.bases[k - 1 : k + 1]
            cuts = np.linspace(start, end, cores() + 1).astype(np.int64)

            def find(part: int, k: int = k, cuts: NDArray[np.int64] = cuts) -> bool:
                columns = (self.orders, suffix, self.table, self.keys)
                return bool(_find_suffixes(cuts[part], cuts[part + 1], k, *columns))

            if not all(in_threads(find, range(cores()))):
                return False
        return True

    def _level(self, order: int, *, highest: bool) -> Level:
        if self.added:
            return self._picked_level(order, highest=highest)
        start, end = self.bases[order - 1 : order + 1]
        context, word = _split(self.keys[start:end], self.bases[max(order - 2, 0)])
        backoff = self.backoff[start : start if highest else end]
        return Level(context[: None if order > 1 else 0], word, self.prob[start:end], backoff)

    def _picked_level(self, order: int, *, highest: bool) -> Level:
        """A level where the rows of the orders are mixed."""
        here = np.flatnonzero(self.orders[: self.used] == order)
        context, word = _split(self.keys[here], 0)
        if order > 2:
            # Rows of the order below are numbered by how many of them come before.
            below = np.flatnonzero(self.orders[: self.used] == order - 1)
            context = np.searchsorted(below, context).astype(np.uint32)
        backoff = self.backoff[here[: 0 if highest else None]]
        return Level(context[: None if order > 1 else 0], word, self.prob[here], backoff)


def _split(keys: NDArray[np.uint64], base: int) -> tuple[Rows, Rows]:
    """The contexts of keys, numbered from a row on, and their words."""
    context, word = np.empty(len(keys), np.uint32), np.empty(len(keys), np.uint32)
    np.right_shift(keys, _32, out=context, casting="unsafe")
    context -= np.uint32(base if len(keys) else 0)
    np.bitwise_and(keys, _LOW, out=word, casting="unsafe")
    return context, word


def read_arpa(path: str | PathLike[str]) -> Ngrams:
    """Read an ARPA file as KenLM, SRILM or IRSTLM write it, of an order of at most 8.

    Words are numbered `<unk>`, `<s>`, `</s>`, then as in the file; those of these three that the
    file does not have get the probability 0. Logarithms of -99 and below are those of 0. Contexts
    that the file does not have are added with what backing off gives them, so that no probability
    changes. `about` says what was added.

    Args:
        path: A file, compressed or not; "-" is standard input.

    Raises:
        DataError: If the file cannot be read or is not a sound ARPA file; it names the line.
    """
    name = fspath(path)
    with open_bytes(path) as stream:
        lines = ArpaLines(stream, name)
        lines.header()
        unigrams = lines.unigrams()
        order = len(lines.counts)
        gathered = _Gathered(unigrams, name)
        with closing(_ahead(lines.batches(unigrams.words))) as batches:
            for batch in batches:
                gathered.add(batch, highest=len(batch.words) == order)
    return gathered.ngrams(order)


def _ahead(batches: Iterator[Batch]) -> Generator[Batch]:
    """The same, with the next one made by another thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch
