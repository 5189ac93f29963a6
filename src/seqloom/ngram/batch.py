"""Scoring whole lines of text on every core, in room that is used again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import in_threads
from seqloom.ngram.known import PADDING, tokenize_known
from seqloom.ngram.scoring import score_ids, sum_sentences
from seqloom.ngram.words import Words

STRETCH = 1 << 15  # bytes a thread takes at a time, so that what is found stays in the cache

ROOM = 4 * STRETCH  # positions there is room for


class LineScores(NamedTuple):
    """What a model says of some lines, in natural logarithms.

    By line: the log-probability of its words and its end (`totals`), how many these are (`counts`),
    how many of them the model does not know (`unknown`) and the log-probability of the others
    (`known_totals`). By word, if asked for: its number, `<s>` and `</s>` of each line among them
    but not those that stand in the text itself (`ids`), its log-probability (`values`) and the
    length of the n-gram that gave it, 0 for `<s>` (`orders`).
    """

    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    unknown: NDArray[np.int64]
    known_totals: NDArray[np.float64]
    ids: NDArray[np.uint32]
    values: NDArray[np.float64]
    orders: NDArray[np.uint8]


class _Room:
    """What one thread works in: memory that was touched before is quicker than fresh memory."""

    ids: NDArray[np.uint32]
    values: NDArray[np.float64]
    orders: NDArray[np.uint8]
    below: NDArray[np.uint32]
    here: NDArray[np.uint32]
    paid: NDArray[np.float64]
    pays: NDArray[np.float64]
    slots: NDArray[np.uint64]
    keys: NDArray[np.uint64]

    def __init__(self, size: int) -> None:
        self.size = size
        kinds = {
            "ids": np.uint32, "values": np.float64, "orders": np.uint8, "below": np.uint32,
            "here": np.uint32, "paid": np.float64, "pays": np.float64, "slots": np.uint64,
            "keys": np.uint64,
        }  # fmt: skip
        memory = np.empty(sum(size * np.dtype(k).itemsize + 8192 for k in kinds.values()), np.uint8)
        at = 0
        for number, (name, kind) in enumerate(kinds.items()):
            # Columns that begin at the same place of a page would get into each other's way.
            at += -at % 4096 + 448 * number
            end = at + size * np.dtype(kind).itemsize
            setattr(self, name, memory[at:end].view(kind))
            at = end


class BatchScorer:
    """Scores lines by one model.

    Args:
        words: Its vocabulary.
        tables: Its packed tables.
        order: The length of its longest n-grams.
        suffixes: Whether the suffix of every n-gram is one too.
        missing: log10 of what a context pays that is not there.
    """

    def __init__(
        self, words: Words, tables: Any, order: int, *, suffixes: bool, missing: float
    ) -> None:
        self._words, self._settings = words, (tables, order, suffixes, missing)
        self._spare: list[_Room] = []

    def lines(self, block: bytes, *, by_word: bool = False) -> LineScores:
        """Score whole lines on every core."""
        text = np.frombuffer(block + PADDING, np.uint8)
        done = in_threads(
            lambda part: self._stretch(text, *part, by_word=by_word), stretches(block)
        )
        if len(done) == 1:
            return done[0]
        columns = zip(*done, strict=True) if done else [(np.empty(0),)] * len(LineScores._fields)
        return LineScores(*map(np.concatenate, columns))

    def _stretch(
        self, text: NDArray[np.uint8], start: int, end: int, lines: int, *, by_word: bool
    ) -> LineScores:
        """Score some of the lines on this thread, which leaves Python free for others."""
        need = 2 * (end - start) + 2  # a byte is an empty line, two marks, at most
        usual = need <= ROOM
        room = self._spare.pop() if usual and self._spare else _Room(max(need, ROOM))
        try:
            return self._score(text, start, end, lines, room, by_word=by_word)
        finally:
            if usual:
                self._spare.append(room)

    def _score(
        self, text: NDArray[np.uint8], start: int, end: int, lines: int, room: _Room, *,
        by_word: bool,
    ) -> LineScores:  # fmt: skip
        words = self._words
        n = tokenize_known(
            text, start, end, room.ids, words.table, words.pool, words.offsets,
            room.keys, room.slots, room.below, room.here,
        )  # fmt: skip
        ids, values, orders = room.ids[:n], room.values[:n], room.orders[:n]
        work = (room.below, room.here, room.paid, room.pays, room.slots, room.keys)
        score_ids(*self._settings, ids, *work, values, orders)
        totals, known_totals = np.empty(lines), np.empty(lines)
        counts, unknown = np.empty(lines, np.int64), np.empty(lines, np.int64)
        sum_sentences(ids, values, totals, counts, unknown, known_totals)
        if by_word:
            ids, values, orders = ids.copy(), values.copy(), orders.copy()
        else:
            ids, values, orders = ids[:0], values[:0], orders[:0]
        return LineScores(totals, counts, unknown, known_totals, ids, values, orders)


def stretches(block: bytes) -> Iterator[tuple[int, int, int]]:
    """Whole lines in pieces for threads to take: where each begins and ends, and how many lines."""
    at = 0
    while at < len(block):
        end = block.find(b"\n", min(at + STRETCH, len(block)) - 1) + 1 or len(block)
        yield at, end, block.count(b"\n", at, end)
        at = end
