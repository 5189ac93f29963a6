"""Logarithms in one byte: a book of 256 values, and for each number the place of the nearest.

Zero and minus infinity are always exact, and so is everything (to single precision) if there are
no more than 254 others. Else these fall into cells, which begin as dense as the cube root of the
distribution, the best for a smooth one, and are moved to their means by Lloyd's iteration.

Paper: Lloyd (1982), "Least squares quantization in PCM"; Panter and Dite (1951) for the start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled
from seqloom.errors import DataError
from seqloom.ngram.workspace import Workspace

ZERO, NEVER = 0, 1  # the codes of zero and of minus infinity
FREE = 2  # the first code of another value
CELLS = 256 - FREE
_BINS = 1 << 16
_GROUP = 1 << 6
_ROUNDS = 40
_SLOTS = 1 << 12


class Coded(NamedTuple):
    """A column in bytes.

    Args:
        codes: By row, the place in the book.
        book: The 256 values.
        counts: How many rows have each code.
    """

    codes: NDArray[np.uint8]
    book: NDArray[np.float32]
    counts: NDArray[np.int64]


@compiled
def _round(start, end, values, column):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        column[i] = values[i]


@compiled
def _survey(start, end, column, table, state):  # type: ignore[no-untyped-def]
    """Collect up to CELLS distinct finite values other than 0; least and greatest in `state`.

    Returns the first row that holds no number or is infinite, or -1.
    """
    bits = column.view(np.uint32)
    for i in range(start, end):
        value = column[i]
        if value == 0.0 or value == -np.inf:
            continue
        if not value < np.inf:
            return i
        state[0] = min(state[0], value)
        state[1] = max(state[1], value)
        if state[2] <= CELLS:
            slot = (np.int64(bits[i]) * 0x9E3779B1 >> 20) & (_SLOTS - 1)
            while table[slot] != 0 and table[slot] != bits[i]:
                slot = (slot + 1) & (_SLOTS - 1)
            if table[slot] == 0:
                table[slot] = bits[i]
                state[2] += 1
    return -1


@compiled
def _histogram(start, end, column, low, scale, counts, sums):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        value = np.float64(column[i])
        if value != 0.0 and value != -np.inf:
            cell = min(np.int64((value - low) * scale), _BINS - 1)
            counts[cell] += 1
            sums[cell] += value


@compiled
def _encode(start, end, column, edges, codes, counts):  # type: ignore[no-untyped-def]
    """The code of each value: that of the cell between two edges, of which there are 255."""
    for i in range(start, end):
        value = np.float64(column[i])
        if value == 0.0:
            code = ZERO
        elif value == -np.inf:
            code = NEVER
        else:
            code, step = 0, 128
            while step > 0:
                code += step if edges[code + step - 1] <= value else 0
                step >>= 1
            code += FREE
        codes[i] = code
        counts[code] += 1


def quantize(values: NDArray[Any], place: Workspace, what: str) -> Coded:
    """One byte for each logarithm of a column.

    Args:
        values: The logarithms.
        place: Where the columns lie.
        what: What the column holds, for the message.

    Raises:
        DataError: If a value is not a number or plus infinity.
    """
    column = place.empty(len(values), np.float32)
    table, state = np.zeros(_SLOTS, np.uint32), np.array([np.inf, -np.inf, 0.0])
    for start, end in place.chunks(len(values)):
        _round(start, end, values, column)
        bad = _survey(start, end, column, table, state)
        if bad >= 0:
            raise DataError(f"{what} must be numbers below infinity, got {values[bad]}")
    if state[2] <= CELLS:
        centres = np.sort(table[table != 0].view(np.float32)).astype(np.float64)
        inside = (centres[1:] + centres[:-1]) / 2
    else:
        centres, inside = _cells(column, float(state[0]), float(state[1]), place)
    book = np.zeros(256, np.float32)
    book[NEVER] = -np.inf
    book[FREE : FREE + len(centres)] = centres
    edges = np.full(255, np.inf)
    edges[: len(inside)] = inside
    codes, counts = place.empty(len(values), np.uint8), np.zeros(256, np.int64)
    for start, end in place.chunks(len(values)):
        _encode(start, end, column, edges, codes, counts)
    return Coded(codes, book, counts)


def _cells(
    column: NDArray[np.float32], low: float, high: float, place: Workspace
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means of the cells of least squared error, and the edges between them."""
    width = (high - low) / _BINS
    counts, sums = np.zeros(_BINS), np.zeros(_BINS)
    for start, end in place.chunks(len(column)):
        _histogram(start, end, column, low, 1 / width, counts, sums)
    middles = low + width * (np.arange(_BINS) + 0.5)
    # The density is that of a group of bins, shared among those of them that hold anything.
    groups = counts.reshape(-1, _GROUP)
    full = groups > 0
    dense = np.cbrt(groups.sum(1)) / np.maximum(full.sum(1), 1)
    share = np.cumsum(full * dense[:, None])
    # An eighth of the cells begins evenly spread, lest a few far values end up in one.
    share = share / share[-1] * 7 / 8 + np.arange(1, _BINS + 1) / _BINS / 8
    targets = share[-1] * (np.arange(CELLS) + 0.5) / CELLS
    centres = middles[np.searchsorted(share, targets)]
    counts_to = np.concatenate([[0], np.cumsum(counts)])
    sums_to = np.concatenate([[0], np.cumsum(sums)])
    for _ in range(_ROUNDS):
        cuts = np.searchsorted(middles, (centres[1:] + centres[:-1]) / 2)
        bounds = np.concatenate([[0], cuts, [_BINS]])
        inside, total = np.diff(counts_to[bounds]), np.diff(sums_to[bounds])
        centres = np.where(inside > 0, total / np.maximum(inside, 1), centres)
    return centres, low + width * cuts
