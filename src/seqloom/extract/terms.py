"""The terms of words: small letters without endings, no stop words, no punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import accumulate, chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.extract.characters import CLASSES, SMALL, Codes, codes_of
from seqloom.extract.config import ReadingConfig
from seqloom.extract.stop_words import CHINESE, ENGLISH
from seqloom.extract.units import UnitTable
from seqloom.extract.word_table import WordTable, find_words, leave_out, number_words

MOST_KEPT = 500_000  # words whose terms are remembered
WORD = re.compile(r"[^\W_]+")

Numbers = NDArray[np.int32]
Offsets = NDArray[np.int64]


class Terms:
    """Terms as numbers, those of every word met so far. Threads may share one.

    Args:
        config: The settings.
    """

    def __init__(self, config: ReadingConfig) -> None:
        self._options = config.numbers, config.stem
        self._lock = Lock()
        self._names: list[str] = []
        self._words: dict[str, int] = {}  # of `of_words`
        self._table = WordTable()
        left_out = {*config.more_stop_words, *(ENGLISH | CHINESE if config.stop_words else ())}
        codes, spans = _joined(left_out)
        while not leave_out(codes, spans, self._table.arrays):
            self._table.grow()

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock, which a copy has of its own, as no thread is changing it."""
        with self._lock:
            return {name: deepcopy(v) for name, v in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    @property
    def is_full(self) -> bool:
        """Whether so many words were met that it is time to begin anew."""
        return len(self._words) + int(self._table.used[0]) > MOST_KEPT

    def names(self, numbers: Iterable[int]) -> list[str]:
        """The terms of these numbers, negative ones left out."""
        with self._lock:
            self._names += self._table.terms_from(len(self._names))
            return [self._names[number] for number in numbers if number >= 0]

    def of_text(self, codes: Codes, units: UnitTable) -> tuple[Numbers, Offsets]:
        """The terms of the words of units, one after the other, and where each unit begins.

        A word that is no term has a negative number. No character may be of class `ODD`.
        """
        words, offsets = find_words(codes, units, CLASSES)
        with self._lock:
            return self._numbers(codes, words), offsets

    def of_words(self, sentences: Sequence[Sequence[str]]) -> tuple[Numbers, Offsets]:
        """The same of sentences that are cut into words."""
        with self._lock:
            new = list(set(chain.from_iterable(sentences)).difference(self._words))
            if new:
                numbers = self._numbers(*_joined(word.lower() for word in new))
                self._words.update(zip(new, numbers.tolist(), strict=True))
            number = self._words.__getitem__
            found = np.fromiter(map(number, chain.from_iterable(sentences)), np.int32)
        return found, np.cumsum([0, *map(len, sentences)], dtype=np.int64)

    def _numbers(self, codes: Codes, words: NDArray[np.int64]) -> Numbers:
        """The numbers of the terms of words, which are learned if need be."""
        while True:
            numbers: Numbers
            numbers, done = number_words(
                codes, words, CLASSES, SMALL, self._table.arrays, *self._options
            )
            if done:
                return numbers
            self._table.grow()


def _joined(words: Iterable[str]) -> tuple[Codes, NDArray[np.int64]]:
    """Words one after the other, and where each is."""
    listed = list(words)
    codes, _ = codes_of("".join(listed))
    spans = np.zeros((len(listed), 2), np.int64)
    spans[:, 1] = np.fromiter(accumulate(map(len, listed)), np.int64)
    spans[1:, 0] = spans[:-1, 1]
    return codes, spans
