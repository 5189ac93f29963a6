"""What a reader knows of words: their ids and their characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import log1p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqloom.tasks.classifier_sequences import SPECIALS
from seqloom.tasks.tagger_words import fold
from seqloom.text import Vocabulary
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.tasks.contextual import ContextReader

ROOT = 5  # letters that most forms of a word have in common
MAX_SPELLING = 16  # of a longer word the first and the last 8 characters are read


class ReaderVocabulary:
    """How words become the numbers a reader reads.

    A word is looked up in lower case. Where it is not known so, it is looked up with 0 for each
    digit: numbers have vectors of their shapes, such as that of all years, "0000".

    Args:
        words: The words known.
        characters: The characters known, if they are read.
        context: What reads the context of words, if it is read; it sees them as they are.
    """

    def __init__(
        self,
        words: Vocabulary,
        characters: Vocabulary | None = None,
        context: ContextReader | None = None,
    ) -> None:
        self.words, self.characters, self.context = words, characters, context
        self.unknown = words[words.specials.unk]

    @classmethod
    def learn(
        cls,
        texts: Iterable[Sequence[str]],
        *,
        min_count: int,
        vectors: WordVectors | None = None,
        others: Iterable[Sequence[str]] = (),
        characters: bool = True,
    ) -> ReaderVocabulary:
        """Choose the words: those with a vector, and of the others the frequent ones.

        Args:
            texts: The tokenized training data.
            min_count: How often a word without a vector must occur to be learned.
            vectors: Word vectors.
            others: Further texts, such as the validation data; their words are known where they
                have a vector.
            characters: Whether characters are read.
        """
        spelled = Counter(word for words in texts for word in words)
        counts: Counter[str] = Counter()
        for word, count in spelled.items():
            counts[word.lower()] += count
        has_vector: Callable[[str], bool] = (
            (lambda _: False) if vectors is None else (lambda word: word in vectors)
        )
        kept = {w: n for w, n in counts.items() if n >= min_count or has_vector(w)}
        folded: Counter[str] = Counter()
        for word, count in counts.items():
            if word not in kept:
                folded[fold(word)] += count
        kept |= {w: n for w, n in folded.items() if n >= min_count and w not in kept}
        if vectors is not None:
            new = {word.lower() for words in others for word in words}
            kept |= {word: 1 for word in new if word not in kept and has_vector(word)}
        known = Vocabulary.build(kept, specials=SPECIALS)
        if not characters:
            return cls(known)
        letters: Counter[str] = Counter()
        for word, count in spelled.items():
            for letter in word:
                letters[letter] += count
        return cls(known, Vocabulary.build(letters, min_count=min(2, min_count), specials=SPECIALS))

    def lookup(self, word: str) -> int:
        """The id of a word."""
        lower = word.lower()
        if lower in self.words:
            return self.words[lower]
        return self.words[fold(lower)]

    def rarity(self, word: str) -> float:
        r"""How rare a word is, $\ln(1 + r) / \ln(1 + V)$ where it is the r-th of V; else 1.

        By Zipf's law the logarithm of a word's rank falls with that of its frequency. A special
        word, such as "<unk>" in a text, says nothing: 0.
        """
        lower = word.lower()
        if lower not in self.words:
            return 1.0
        before = len(self.words.specials.names()) - 1
        rank = self.words[lower] - before
        return log1p(rank) / log1p(len(self.words) - 1 - before) if rank > 0 else 0.0

    def spelling(self, word: str) -> list[int]:
        """The ids of a word's characters."""
        assert self.characters is not None
        half = MAX_SPELLING // 2
        read = word if len(word) <= MAX_SPELLING else word[:half] + word[-half:]
        return [self.characters[letter] for letter in read]


class WordTable:
    """The different words of some texts, each looked up once.

    Args:
        known: What the reader knows.
    """

    def __init__(self, known: ReaderVocabulary) -> None:
        self.known = known
        self._places: dict[str, int] = {}
        self._ids: list[int] = []
        self._spellings: list[list[int]] = []
        self._lower: dict[str, int] = {}
        self._forms: list[int] = []
        self._begins: dict[str, int] = {}
        self._roots: list[int] = []
        self._rarities: list[float] = []

    def number(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The place of each word in the table; new words are added."""
        places = self._places
        found = np.empty(len(words), np.int32)
        for i, word in enumerate(words):
            place = places.get(word)
            if place is None:
                place = places[word] = len(self._ids)
                self._ids.append(self.known.lookup(word))
                lower = word.lower()
                self._forms.append(self._lower.setdefault(lower, len(self._lower)))
                self._roots.append(self._begins.setdefault(lower[:ROOT], len(self._begins)))
                self._rarities.append(self.known.rarity(lower))
                if self.known.characters is not None:
                    self._spellings.append(self.known.spelling(word))
            found[i] = place
        return found

    def ids(self) -> NDArray[np.int32]:
        """The ids of the words, by place."""
        return np.array(self._ids, np.int32)

    def forms(self) -> NDArray[np.int32]:
        """Numbers of the words in lower case, by place; unlike ids, they tell all words apart."""
        return np.array(self._forms, np.int32)

    def roots(self) -> NDArray[np.int32]:
        """Numbers of what the words begin with, by place."""
        return np.array(self._roots, np.int32)

    def rarities(self) -> NDArray[np.float64]:
        """How rare the words are, by place."""
        return np.array(self._rarities, np.float64)

    def spellings(self) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
        """Their characters (W, C), padded with 0, and how many there are; None if not read."""
        if self.known.characters is None:
            return None
        lengths = np.fromiter(map(len, self._spellings), np.int64, len(self._spellings))
        table = np.zeros((len(lengths), MAX_SPELLING), np.int32)
        for row, letters in zip(table, self._spellings, strict=True):
            row[: len(letters)] = letters
        return table, lengths
