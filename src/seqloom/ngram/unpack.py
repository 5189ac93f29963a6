"""Models read back as plain columns, from a store of either kind or from an ARPA file."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled
from seqloom.errors import DataError
from seqloom.files import Source
from seqloom.ngram import hashed, stores, trie
from seqloom.ngram.arpa import read_arpa
from seqloom.ngram.hashed import cell_size, hashed_backoff, hashed_prob, key_at
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.store_file import is_store
from seqloom.ngram.words import NONE
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _32, _LOW = _U(1), _U(32), _U(0xFFFFFFFF)
_NONE = np.uint32(NONE)
_BYTES = 28  # what a slot takes at most as columns, with the rows of slots


def read_ngrams(path: Source, place: Workspace | None = None) -> Ngrams:
    """A model as plain columns: a store, or an ARPA file ("-" for one on standard input).

    Raises:
        DataError: If the file is neither, or damaged.
    """
    return unpack(path, place) if is_store(path) else read_arpa(path)


def unpack(path: Source, place: Workspace | None = None) -> Ngrams:
    """The n-grams of a store as plain columns, their values as the store has them.

    Args:
        path: The store.
        place: Where the columns go.

    Raises:
        DataError: If it is no store, or damaged.
    """
    packed = stores.open_packed(path)
    place = place or Workspace()
    try:
        if isinstance(packed.tables, hashed.Hashed):
            levels = _unpack_hashed(packed.tables, len(packed.words), place)
        else:
            levels = trie.unpack(packed.tables)
    except DataError as error:
        raise DataError(error.message, path) from None
    about = {key: value for key, value in packed.about.items() if key not in ("sizes", "kind")}
    return Ngrams(packed.words, levels, packed.missing_backoff, packed.suffixes, about)


def _unpack_hashed(tables: hashed.Hashed, words: int, place: Workspace) -> list[Level]:
    """Rows in the order of their slots; a context's slot becomes its row."""
    starts = tables.starts.tolist()
    top = len(starts) - 2
    place.spill_above(starts[-1] * _BYTES)
    numbers: Rows = np.arange(words, dtype=np.uint32)
    prob, backoff = np.empty(words), np.empty(words if top else 0)
    _unpack_unigrams(tables, prob, backoff)
    levels = [Level(np.empty(0, np.uint32), numbers, prob, backoff)]
    row_of = numbers
    for order in range(1, top + 1):
        slots = starts[order + 1] - starts[order]
        size = sum(_used(tables, order, *chunk) for chunk in place.chunks(slots))
        level = Level(
            place.empty(size, np.uint32), place.empty(size, np.uint32),
            place.empty(size, np.float64), place.empty(size if order < top else 0, np.float64),
        )  # fmt: skip
        rows: Rows = place.empty(slots if order < top else 0, np.uint32)
        row = 0
        for start, end in place.chunks(slots):
            row = _unpack(
                tables, order, start, end, row, row_of,
                level.context, level.word, level.prob, level.backoff, rows,
            )  # fmt: skip
            if row < 0:
                raise DataError("the store's n-grams do not fit together; build it again")
        levels.append(level)
        row_of = rows
    return levels


@compiled
def _unpack_unigrams(tables, prob, backoff):  # type: ignore[no-untyped-def]
    for word in range(len(prob)):
        prob[word] = hashed_prob(tables, 0, word)
        if len(backoff):
            backoff[word] = hashed_backoff(tables, 0, word) + 0.0


@compiled
def _used(tables, order, start, end):  # type: ignore[no-untyped-def]
    """How many of an order's slots, from `start` to `end`, hold an n-gram."""
    n, size, begin = 0, _U(cell_size(tables)), tables.starts[order]
    for slot in range(begin + start, begin + end):
        if tables.cells[key_at(size, _U(slot))] != 0:
            n += 1
    return n


@compiled
def _unpack(  # type: ignore[no-untyped-def]
    tables, order, start, end, row, row_of, context, word, prob, backoff, rows
):
    """Fill the columns from `row` on with an order's slots from `start` to `end`.

    `row_of` has the rows of the slots of the order below, NONE where they are free, and `rows`
    gets those of this order unless it is the highest. Returns the next row, or -1 where a slot
    names a context or a word that is not there.
    """
    size, begin, below = _U(cell_size(tables)), tables.starts[order], tables.starts[order - 1]
    words = _U(tables.starts[1])
    for at in range(start, end):
        slot = begin + at
        key = tables.cells[key_at(size, _U(slot))]
        if key == 0:
            if len(rows):
                rows[at] = _NONE
            continue
        before = np.int64((key - _1) >> _32) - below
        last = (key - _1) & _LOW
        if before < 0 or before >= len(row_of) or last >= words or row_of[before] == _NONE:
            return -1
        context[row] = row_of[before]
        word[row] = last
        prob[row] = hashed_prob(tables, order, slot)
        if len(rows):
            backoff[row] = hashed_backoff(tables, order, slot) + 0.0
            rows[at] = row
        row += 1
    return row
