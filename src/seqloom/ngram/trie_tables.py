"""The small store: a trie without pointers, its values in a byte each.

The n-grams of an order lie sorted by the row of their context and by their last word, so that
those which go on from row i are the rows from bound i to bound i + 1 of the order above. A row is
a record of a few bits: the word's number and the code of the log-probability. Bounds rise, so they
are kept in about two bits each: their low bits as they are, their high bits as a set that has a
member at `high + i` for bound i. Most contexts of an order share one back-off (that of contexts
whose words all came once); only the others have theirs, found by counting the marks before them.

Papers: Elias (1974), "Efficient storage and retrieval by content and address of static files", for
the bounds; Whittaker and Raj (2001), "Quantization-based language model compression".
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, inner
from seqloom.errors import DataError
from seqloom.ngram.bits import (
    WORDS,
    blocks,
    fill_ranks,
    find_member,
    first_bit,
    hints_for,
    is_member,
    members_before,
    read_bits,
)
from seqloom.ngram.levels import Level, Rows
from seqloom.ngram.words import NONE

KIND = "trie"
CODE_BITS = 8
# The columns of the layout: where an order's part of each array begins, and four facts about it.
SIZE, WIDTH, LOW_BITS, USUAL = 0, 1, 2, 3
RECORDS, BOUNDS, MARKS, HINTS, LOWS, OTHERS = 4, 5, 6, 7, 8, 9
_U = np.uint64
_1 = _U(1)
_NONE = np.uint32(NONE)


class Packed(NamedTuple):
    """The arrays of a trie, as compiled code takes them; each holds all orders, one after another.

    Args:
        layout: By order, and once more for the end: how many n-grams there are, the bits of a
            record, the low bits of a bound and the code of the usual back-off; then the first
            word of its records, block of its bounds, block of its marks, hint, word of its low
            bits, and place of its other back-offs.
        unigrams: log10 of probability and back-off.
        records: From the bigrams on, word and code, as many bits each as the layout says.
        bits: The high bits of the bounds, and the marks of rows with another back-off.
        ranks: How many members of its set come before each block of `bits`.
        hints: The block of every 512th bound.
        lows: The low bits of the bounds.
        others: The codes of back-offs that are not the usual one.
        probs: By order and code: the log-probability.
        backoffs: By order and code: the back-off.
    """

    layout: NDArray[np.int64]
    unigrams: NDArray[np.float32]
    records: NDArray[np.uint64]
    bits: NDArray[np.uint64]
    ranks: NDArray[np.uint32]
    hints: NDArray[np.uint32]
    lows: NDArray[np.uint64]
    others: NDArray[np.uint8]
    probs: NDArray[np.float32]
    backoffs: NDArray[np.float32]


@inner
def _children(tables, order, row):  # type: ignore[no-untyped-def]
    """The rows of the order above that go on from a row: the first, and the one after the last."""
    above = tables.layout[order + 1, SIZE]
    block, hint = tables.layout[order, BOUNDS], tables.layout[order, HINTS]
    width = tables.layout[order, LOW_BITS]
    at = find_member(tables.bits, tables.ranks, tables.hints, block, hint, row)
    rest = (tables.bits[block * WORDS + (at >> 6)] >> _U(at & 63)) >> _1
    if rest != 0:
        next_at = at + 1 + first_bit(rest)
    else:
        next_at = find_member(tables.bits, tables.ranks, tables.hints, block, hint, row + 1)
    start, end = at - row, next_at - row - 1
    if width > 0:
        low = (tables.layout[order, LOWS] << 6) + row * width
        start = start << width | np.int64(read_bits(tables.lows, low, width))
        end = end << width | np.int64(read_bits(tables.lows, low + width, width))
    return min(start, above), min(end, above)


@inner
def find_packed(tables, order, context, word):  # type: ignore[no-untyped-def]
    """The row of an n-gram, by the row of its context and its last word; or NONE.

    Orders count from 0 here and below: the unigrams, whose rows are the words' numbers.
    """
    if np.int64(context) >= tables.layout[order - 1, SIZE]:
        return _NONE
    row, end = _children(tables, order - 1, np.int64(context))
    if row >= end:
        return _NONE
    width = tables.layout[order, WIDTH]
    base = (tables.layout[order, RECORDS] << 6) + CODE_BITS
    sought = _U(word)
    left = end - row
    while left > 1:
        half = left >> 1
        middle = read_bits(tables.records, base + (row + half) * width, width - CODE_BITS)
        row += half if middle <= sought else 0
        left -= half
    if read_bits(tables.records, base + row * width, width - CODE_BITS) == sought:
        return np.uint32(row)
    return _NONE


@inner
def packed_prob(tables, order, row):  # type: ignore[no-untyped-def]
    """log10 of the probability of an n-gram."""
    if order == 0:
        return tables.unigrams[row, 0]
    at = (tables.layout[order, RECORDS] << 6) + np.int64(row) * tables.layout[order, WIDTH]
    return tables.probs[order, np.int64(read_bits(tables.records, at, CODE_BITS))]


@inner
def packed_backoff(tables, order, row):  # type: ignore[no-untyped-def]
    """log10 of the back-off of an n-gram below the highest order."""
    if order == 0:
        return tables.unigrams[row, 1]
    block = tables.layout[order, MARKS]
    at = np.int64(row)
    code = tables.layout[order, USUAL]
    if is_member(tables.bits, block, at):
        other = tables.layout[order, OTHERS] + members_before(tables.bits, tables.ranks, block, at)
        code = np.int64(tables.others[other])
    return tables.backoffs[order, code]


@inner
def packed_extends(tables, order, row):  # type: ignore[no-untyped-def]
    """Whether some longer n-gram goes on from this one."""
    if order + 2 >= len(tables.layout):
        return False
    start, end = _children(tables, order, np.int64(row))
    return start < end


def layout_of(sizes: list[int], others: list[int], usual: list[int]) -> NDArray[np.int64]:
    """Where the parts of each order begin, from how much there is; see `Packed`."""
    top = len(sizes) - 1
    width = max(1, (sizes[0] - 1).bit_length()) + CODE_BITS
    layout = np.zeros((len(sizes) + 1, OTHERS + 1), np.int64)
    for order, size in enumerate(sizes):
        here, after = layout[order], layout[order + 1]
        here[SIZE], here[WIDTH], here[USUAL] = size, width, usual[order]
        after[RECORDS:] = here[RECORDS:]
        if order > 0:
            after[RECORDS] += -(-size * width // 64)
        here[MARKS] = here[BOUNDS]
        if order < top:
            low_bits = max(0, (sizes[order + 1] // max(size, 1)).bit_length() - 1)
            here[LOW_BITS] = low_bits
            here[MARKS] += blocks(size + 1 + (sizes[order + 1] >> low_bits))
            after[HINTS] += hints_for(size + 1)
            after[LOWS] += -(-(size + 1) * low_bits // 64)
            after[OTHERS] += others[order]
        after[BOUNDS] = after[MARKS] = here[MARKS] + blocks(size if 0 < order < top else 0)
    return layout


def shapes_of(layout: NDArray[np.int64]) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """The arrays of a layout; streams have a word more, as numbers are read across two."""
    order, last = len(layout) - 1, layout[-1].tolist()
    return {
        "layout": (np.int64, layout.shape),
        "unigrams": (np.float32, (int(layout[0, SIZE]), 2)),
        "records": (np.uint64, (last[RECORDS] + 1,)),
        "bits": (np.uint64, (last[BOUNDS] * WORDS,)),
        "ranks": (np.uint32, (last[BOUNDS],)),
        "hints": (np.uint32, (last[HINTS],)),
        "lows": (np.uint64, (last[LOWS] + 1,)),
        "others": (np.uint8, (last[OTHERS],)),
        "probs": (np.float32, (order, 256)),
        "backoffs": (np.float32, (order, 256)),
    }


def check(tables: Packed, words: int) -> None:
    """Refuse arrays that do not fit together: looking a word up in them must end inside them.

    Raises:
        DataError: If they do not.
    """
    if not _fits(tables, words):
        raise DataError("the store's tables do not fit together; build it again")


def _fits(tables: Packed, words: int) -> bool:
    layout = tables.layout
    if layout.dtype != np.int64 or layout.ndim != 2 or layout.shape[1] != OTHERS + 1:
        return False
    rows = layout.tolist()
    sizes = [row[SIZE] for row in rows[:-1]]
    usual = [row[USUAL] for row in rows[:-1]]
    others = [after[OTHERS] - here[OTHERS] for here, after in pairwise(rows)]
    if not sizes or sizes[0] != words or not all(0 <= size < NONE for size in sizes):
        return False
    if not all(0 <= n <= size for n, size in zip(others, sizes, strict=True)):
        return False
    if not all(0 <= code < 256 for code in usual):
        return False
    if not np.array_equal(layout, layout_of(sizes, others, usual)):
        return False
    for name, (kind, shape) in shapes_of(layout).items():
        array = getattr(tables, name)
        if array.dtype != kind or array.shape != shape:
            return False
    for order in range(len(sizes) - 1):
        here, after = rows[order], rows[order + 1]
        hints = tables.hints[here[HINTS] : after[HINTS]]
        if not _is_set(tables, here[BOUNDS], here[MARKS], hints, sizes[order] + 1):
            return False
        if not _is_set(tables, here[MARKS], after[BOUNDS], hints[:0], others[order]):
            return False
    return True


def _is_set(tables: Packed, start: int, end: int, hints: Rows, members: int) -> bool:
    """Whether the blocks hold so many members, and ranks and hints say where."""
    ranks, true_hints = np.empty(end - start, np.uint32), np.empty(len(hints), np.uint32)
    found = fill_ranks(tables.bits[start * WORDS : end * WORDS], ranks, true_hints)
    return bool(
        found == members
        and np.array_equal(ranks, tables.ranks[start:end])
        and np.array_equal(true_hints, hints)
    )


@compiled
def _unpack_order(tables, order, context, word, prob, backoff):  # type: ignore[no-untyped-def]
    """Fill the columns of an order; returns whether contexts and words are what they should be."""
    row, size, words = 0, len(word), tables.layout[0, SIZE]
    base = (tables.layout[order, RECORDS] << 6) + CODE_BITS
    width = tables.layout[order, WIDTH]
    for i in range(tables.layout[order - 1, SIZE]):
        start, end = _children(tables, order - 1, i)
        if start != row or end < start:
            return False
        for row in range(start, end):
            context[row] = i
            word[row] = read_bits(tables.records, base + row * width, width - CODE_BITS)
            if word[row] >= words or (row > start and word[row] <= word[row - 1]):
                return False
            prob[row] = packed_prob(tables, order, row)
            if len(backoff):
                backoff[row] = packed_backoff(tables, order, row)
        row = end
    return row == size


def unpack(tables: Packed) -> list[Level]:
    """The n-grams of a trie as plain columns, their values as its books have them.

    Raises:
        DataError: If rows are out of order, as in a file that was altered.
    """
    unigrams = tables.unigrams.astype(np.float64)
    top = len(tables.layout) - 2
    none = np.empty(0)
    levels = [
        Level(
            none.astype(np.uint32), np.arange(len(unigrams), dtype=np.uint32),
            unigrams[:, 0].copy(), unigrams[:, 1].copy() if top else none,
        )
    ]  # fmt: skip
    for order in range(1, top + 1):
        size = int(tables.layout[order, SIZE])
        context, word = np.empty(size, np.uint32), np.empty(size, np.uint32)
        prob, backoff = np.empty(size), np.empty(size if order < top else 0)
        if not _unpack_order(tables, order, context, word, prob, backoff):
            raise DataError("the store's n-grams are out of order; build it again")
        levels.append(Level(context, word, prob, backoff))
    return levels
