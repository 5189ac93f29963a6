"""The terms of words: small letters without endings, no stop words, no punctuation."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from seqloom.extract.config import ReadingConfig
from seqloom.extract.stemming import stem, stem_all
from seqloom.extract.stop_words import CHINESE, ENGLISH
from seqloom.extract.units import Unit
from seqloom.extract.word_table import WordTable

MOST_KEPT = 500_000  # words whose terms are remembered
WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d_]")
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")
# Of text whose letters are ASCII: they in lower case and digits stay, all else becomes a blank.
_PLAIN = "".join(
    chr(i).lower() if chr(i) in string.ascii_letters + string.digits else " " for i in range(256)
).encode("ascii")

Numbers = NDArray[np.int32]
Offsets = NDArray[np.int64]


class Terms:
    """Terms as numbers, those of every word met so far. Threads may share one.

    Args:
        config: The settings.

    Attributes:
        names: The terms by their numbers.
    """

    def __init__(self, config: ReadingConfig) -> None:
        self._digits, self._stem = config.numbers, config.stem
        self._left_out = frozenset(config.more_stop_words) | (
            ENGLISH | CHINESE if config.stop_words else frozenset()
        )
        self._lock = Lock()
        self.names: list[str] = []
        self._number_of: dict[str, int] = {"": -1}
        self._words: dict[str, int] = {}  # -1 for a word that is no term
        self._table = WordTable()

    @property
    def is_full(self) -> bool:
        """Whether so many words were met that it is time to begin anew."""
        return len(self._words) + self._table.count > MOST_KEPT

    def of_text(self, text: str, units: Sequence[Unit]) -> tuple[Numbers, Offsets] | None:
        """The terms of pieces of a text, one after the other, and where each begins, with the end.

        None if a letter is not ASCII: such a text has to be cut into words first.
        """
        if not text.isascii() and _FOREIGN.search(text) is not None:
            return None
        plain = text.encode("ascii", "replace").translate(_PLAIN)
        spans = np.array([unit[:2] for unit in units], np.int64).reshape(-1, 2)
        with self._lock:
            ids, offsets, unknown = self._table.find(plain, spans)
            if unknown:
                new = list(dict.fromkeys(unknown))
                numbers = self._learn([word.decode("ascii") for word in new])
                self._table.add(new, numbers)
                ids, offsets, _ = self._table.find(plain, spans)
        return ids, offsets

    def of_words(self, sentences: Sequence[Sequence[str]]) -> tuple[Numbers, Offsets]:
        """The same of sentences that are cut into words."""
        with self._lock:
            new = list(set(chain.from_iterable(sentences)).difference(self._words))
            self._words.update(zip(new, self._learn(new), strict=True))
            number = self._words.__getitem__
            found = [[n for n in map(number, some) if n >= 0] for some in sentences]
        flat = np.fromiter(chain.from_iterable(found), np.int32)
        return flat, np.cumsum([0, *map(len, found)], dtype=np.int64)

    def _learn(self, words: Sequence[str]) -> list[int]:
        """The numbers of the terms of words; most are stemmed all at once."""
        lowered = [word.lower() for word in words]
        plain = {word for word in lowered if len(word) > 1 and word.isascii() and word.isalpha()}
        listed = list(plain - self._left_out)
        forms = dict(zip(listed, stem_all(listed) if self._stem else listed, strict=True))
        return [self._number(forms[w] if w in forms else self._form(w)) for w in lowered]

    def _number(self, term: str) -> int:
        number = self._number_of.get(term)
        if number is None:
            number = self._number_of[term] = len(self.names)
            self.names.append(term)
        return number

    def _form(self, word: str) -> str:
        if word in self._left_out or WORD.search(word) is None:  # stop word, punctuation
            return ""
        if _LETTER.search(word) is None:
            return word if self._digits else ""
        if word.isascii():
            if len(word) == 1:
                return ""
            return stem(word) if self._stem else word
        return word
