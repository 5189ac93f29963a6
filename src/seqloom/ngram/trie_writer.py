"""Writing the small store: each order sorted, its words and values packed; see `trie_tables`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, in_threads
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.bits import (
    WORDS,
    fill_ranks,
    write_bits,
)
from seqloom.ngram.levels import Ngrams, Rows
from seqloom.ngram.quantized import Coded, quantize
from seqloom.ngram.trie_tables import (
    BOUNDS,
    CODE_BITS,
    HINTS,
    LOW_BITS,
    LOWS,
    MARKS,
    OTHERS,
    RECORDS,
    USUAL,
    WIDTH,
    layout_of,
    shapes_of,
)
from seqloom.ngram.words import NONE
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _32, _LOW = _U(1), _U(32), _U(0xFFFFFFFF)
_FEW = 24  # rows that sorting by insertion is the quickest for


class _Sink(Protocol):
    def write(self, name: str, values: NDArray[Any], start: int = 0) -> None:
        """Take an array, or a piece of it that begins at row `start`."""


class TriePlan:
    """A model on its way into a trie: the codes of its values, from which all sizes follow.

    Args:
        ngrams: The model.
        place: The memory that may be used.

    Raises:
        ConfigError: If an order has more n-grams than rows can be numbered.
        DataError: If a value is not a number.
    """

    def __init__(self, ngrams: Ngrams, place: Workspace) -> None:
        if max(ngrams.sizes) >= NONE:
            raise ConfigError(
                f"an order of a trie holds 2^32 - 2 n-grams at most, got {max(ngrams.sizes):,}; "
                "prune the model"
            )
        self._ngrams, self._place = ngrams, place
        top = ngrams.order - 1
        columns = [(ngrams.levels[order].prob, "log-probabilities") for order in range(1, top + 1)]
        columns += [(ngrams.levels[order].backoff, "back-offs") for order in range(1, top)]
        coded = in_threads(lambda column: quantize(column[0], place, column[1]), columns)
        self._probs: dict[int, Coded] = dict(enumerate(coded[:top], 1))
        self._backoffs: dict[int, Coded] = dict(enumerate(coded[top:], 1))
        usual, others = [0] * (top + 1), [0] * (top + 1)
        for order, backoff in self._backoffs.items():
            usual[order] = int(backoff.counts.argmax())
            others[order] = len(backoff.codes) - int(backoff.counts.max())
        self._layout = layout_of(ngrams.sizes, others, usual)

    @property
    def shapes(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """The type and shape of each array that `write` fills."""
        return shapes_of(self._layout)

    def write(self, sink: _Sink) -> None:
        """Lay the model out, order by order."""
        first, layout = self._ngrams.levels[0], self._layout
        sink.write("layout", layout)
        unigrams = np.zeros((len(first), 2), np.float32)
        unigrams[:, 0] = first.prob
        if self._ngrams.order > 1:
            unigrams[:, 1] = first.backoff
        sink.write("unigrams", unigrams)
        for name, coded in (("probs", self._probs), ("backoffs", self._backoffs)):
            books = np.zeros((self._ngrams.order, 256), np.float32)
            for order, column in coded.items():
                books[order] = column.book
            sink.write(name, books)
        names: Rows = np.arange(len(first), dtype=np.uint32)
        for order in range(1, self._ngrams.order):
            names = self._write_order(sink, order, names)
        for name in ("records", "lows"):
            sink.write(name, np.zeros(1, np.uint64), self.shapes[name][1][0] - 1)

    def _write_order(self, sink: _Sink, order: int, names: Rows) -> Rows:
        """Sort one order and write it and the bounds below it; returns its rows' new places.

        `names` has those of the order below.
        """
        keys, ends = self._sorted(order, names)
        self._write_bounds(sink, order - 1, ends)
        size, layout, place = len(keys), self._layout[order], self._place
        middle = order in self._backoffs
        names = place.empty(size if middle else 0, np.uint32)
        records = place.zeros(int(self._layout[order + 1, RECORDS] - layout[RECORDS]), np.uint64)
        backoffs = place.empty(size if middle else 0, np.uint8)
        given = self._backoffs[order].codes if middle else backoffs
        codes = self._probs[order].codes

        def one(piece: tuple[int, int]) -> None:
            _write_records(*piece, keys, codes, given, layout[WIDTH], names, backoffs, records)

        in_threads(one, _cut(size, place))
        sink.write("records", records, int(layout[RECORDS]))
        if middle:
            others = backoffs != layout[USUAL]
            bits = np.zeros(int(self._layout[order + 1, BOUNDS] - layout[MARKS]) * WORDS, np.uint64)
            marks = np.packbits(others, bitorder="little")
            bits.view(np.uint8)[: len(marks)] = marks
            self._write_set(sink, bits, int(layout[MARKS]), np.empty(0, np.uint32))
            sink.write("others", backoffs[others], int(layout[OTHERS]))
        return names

    def _sorted(self, order: int, names: Rows) -> tuple[NDArray[np.uint64], Rows]:
        """Word and row of an order's n-grams, sorted; and where those of each context end."""
        level, place = self._ngrams.levels[order], self._place
        ends = place.zeros(len(names), np.uint32)
        for start, end in place.chunks(len(level)):
            _count(start, end, level.context, names, ends)
        _add_up(ends)
        keys = place.empty(len(level), np.uint64)
        for start, end in place.chunks(len(level)):
            _scatter(start, end, level.context, level.word, names, ends, keys)
        shares = np.linspace(0, len(keys), 4 * cores() + 1)[1:-1]
        cuts = [0, *np.searchsorted(ends, shares).tolist(), len(ends)]
        twice = max(in_threads(lambda piece: _sort(*piece, ends, keys), pairwise(cuts)))
        if twice >= 0:
            word = self._ngrams.words[int(keys[twice] >> _32)]
            raise DataError(f"a model has each {order + 1}-gram once, got one with {word!r} again")
        return keys, ends

    def _write_bounds(self, sink: _Sink, order: int, ends: Rows) -> None:
        layout, after = self._layout[order], self._layout[order + 1]
        bits = np.zeros(int(layout[MARKS] - layout[BOUNDS]) * WORDS, np.uint64)
        lows = np.zeros(int(after[LOWS] - layout[LOWS]) + 1, np.uint64)
        _write_ends(ends, layout[LOW_BITS], bits, lows)
        hints = np.zeros(int(after[HINTS] - layout[HINTS]), np.uint32)
        self._write_set(sink, bits, int(layout[BOUNDS]), hints)
        sink.write("hints", hints, int(layout[HINTS]))
        sink.write("lows", lows[:-1], int(layout[LOWS]))

    def _write_set(self, sink: _Sink, bits: NDArray[np.uint64], block: int, hints: Rows) -> None:
        ranks = np.zeros(len(bits) // WORDS, np.uint32)
        fill_ranks(bits, ranks, hints)
        sink.write("bits", bits, block * WORDS)
        sink.write("ranks", ranks, block)


def _cut(size: int, place: Workspace) -> list[tuple[int, int]]:
    """Pieces of about equal size that begin at multiples of 64 rows, hence at whole words."""
    count = cores() if not place.spilling else max(cores(), size >> 20)
    cuts = [size * i // count // 64 * 64 for i in range(count)]
    return list(pairwise([*cuts, size]))


@compiled
def _count(start, end, context, names, counts):  # type: ignore[no-untyped-def]
    for row in range(start, end):
        counts[names[context[row]]] += 1


@compiled
def _add_up(counts):  # type: ignore[no-untyped-def]
    """Turn counts into where each begins."""
    total = np.uint32(0)
    for i in range(len(counts)):
        here = counts[i]
        counts[i] = total
        total += here


@compiled
def _scatter(start, end, context, word, names, places, keys):  # type: ignore[no-untyped-def]
    """Put rows where their context begins; this becomes where it ends."""
    for row in range(start, end):
        name = names[context[row]]
        keys[places[name]] = _U(word[row]) << _32 | _U(row)
        places[name] += 1


@compiled
def _sort(start, end, ends, keys):  # type: ignore[no-untyped-def]
    """Sort the rows of each context by their word; returns a place where one comes twice, or -1."""
    twice = -1
    for i in range(start, end):
        low, high = np.int64(ends[i - 1]) if i > 0 else 0, np.int64(ends[i])
        if high - low > _FEW:
            keys[low:high].sort()
        else:
            for j in range(low + 1, high):
                key = keys[j]
                k = j
                while k > low and keys[k - 1] > key:
                    keys[k] = keys[k - 1]
                    k -= 1
                keys[k] = key
        for j in range(low + 1, high):
            if keys[j] >> _32 == keys[j - 1] >> _32:
                twice = j
    return twice


@compiled
def _write_records(  # type: ignore[no-untyped-def]
    start, end, keys, codes, given, width, names, backoffs, records,
):  # fmt: skip
    """Write sorted rows, and where they lie by their old number; back-offs follow them."""
    for i in range(start, end):
        row = np.int64(keys[i] & _LOW)
        word = keys[i] >> _32
        write_bits(records, i * width, word << _U(CODE_BITS) | _U(codes[row]))
        if len(names):
            names[row] = i
            backoffs[i] = given[row]


@compiled
def _write_ends(ends, low_bits, bits, lows):  # type: ignore[no-untyped-def]
    """Write the bounds: 0, then where the rows of each context end."""
    mask = (_1 << _U(low_bits)) - _1
    bits[0] = _1
    for i in range(len(ends)):
        at = (np.int64(ends[i]) >> low_bits) + i + 1
        bits[at >> 6] |= _1 << _U(at & 63)
        if low_bits > 0:
            write_bits(lows, (i + 1) * low_bits, _U(ends[i]) & mask)
