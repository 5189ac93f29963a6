"""Which sentences make the summary: a limit, a query, and no two that say the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, InputError
from seqloom.extract import loops
from seqloom.extract.config import FINITE, is_between
from seqloom.extract.reading import Document, Reader
from seqloom.extract.table import TermTable

Floats = NDArray[np.float64]
DEFAULT_SENTENCES = 5
SAME = 10  # decimals; scores that differ after them are equal


@dataclass(frozen=True, kw_only=True)
class Length:
    """How long a summary may be; all limits that are given hold.

    Args:
        sentences: At most so many sentences; 5 if no limit is given.
        words: At most so many words, punctuation not counted.
        characters: At most so many characters, those between sentences not counted.
        ratio: At most this share of the sentences, but at least one.
        threshold: Only sentences whose score is at least so many times the mean.
    """

    sentences: int | None = None
    words: int | None = None
    characters: int | None = None
    ratio: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name in ("sentences", "words", "characters"):
            value = getattr(self, name)
            if value is None:
                continue
            if not (isinstance(value, Integral) and is_between(value, 1, FINITE)):
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.ratio is not None and not (is_between(self.ratio, 0, 1) and self.ratio):
            raise ConfigError(f"ratio must lie in (0, 1], got {self.ratio!r}")
        if self.threshold is not None and not is_between(self.threshold, 0, FINITE):
            raise ConfigError(f"threshold must not be negative, got {self.threshold!r}")
        if self.words is not None and self.characters is not None:
            raise ConfigError(
                "words and characters must not both be given, got "
                f"words={self.words} and characters={self.characters}; choose one"
            )

    def count(self, available: int) -> int:
        """How many of so many sentences may be chosen."""
        given = (self.words, self.characters, self.ratio, self.threshold)
        most = available
        if self.sentences is not None:
            most = min(most, self.sentences)
        elif all(value is None for value in given):
            most = min(most, DEFAULT_SENTENCES)
        if self.ratio is not None:
            most = min(most, max(1, round(self.ratio * available)))
        return most


def choose(
    document: Document,
    scores: Floats,
    length: Length,
    reader: Reader,
    diversity: float = 0.0,
) -> list[int]:
    r"""Return the numbers of the sentences chosen, in the order of the text.

    The best is taken first, then the next best that still fits; of equal ones the earlier, those
    that differ by rounding alone being equal. A sentence that repeats another word for word is
    never taken. With `diversity` $\delta$ the next is the one of the highest

    $$(1 - \delta) \frac{S_i}{\max S} - \delta \max_{j \text{ chosen}} \cos(s_i, s_j)$$

    Paper: Carbonell and Goldstein (1998), "The Use of MMR, Diversity-Based Reranking for Reordering
    Documents and Producing Summaries"; $\delta$ is their $1 - \lambda$.

    Args:
        document: What was read.
        scores: The score of each sentence.
        length: The limits.
        reader: What counts words.
        diversity: From 0, the scores alone, to 1, unlikeness alone.
    """
    if not is_between(diversity, 0, 1):
        raise ConfigError(f"diversity must lie between 0 and 1, got {diversity!r}")
    scores = scores.round(SAME)
    allowed = _first_copies(document)
    if length.threshold is not None:
        allowed &= scores >= length.threshold * scores.mean()
    count = length.count(len(document))
    budget = length.words or length.characters or 0
    if diversity:
        sizes = np.zeros(len(document), np.int64)
        if budget:
            sizes = np.array([_size(document, i, length, reader) for i in range(len(document))])
        table = TermTable(document)
        highest = scores.max(initial=0.0)
        scaled = scores / highest if highest > 0 else scores
        chosen = loops.choose_diverse(
            scaled,
            allowed,
            sizes,
            budget or np.iinfo(np.int64).max,
            count,
            float(diversity),
            table.rows,
            table.terms,
            table.vectors,
            *table.postings,
        )
        return sorted(chosen.tolist())
    ranked = np.argsort(-scores, kind="stable")
    ranked = ranked[allowed[ranked]]
    if not budget:
        return sorted(ranked[:count].tolist())
    found: list[int] = []
    left = budget
    for i in ranked.tolist():
        if len(found) == count or left <= 0:
            break
        size = _size(document, i, length, reader)
        if size <= left:
            found.append(i)
            left -= size
    return sorted(found)


def _size(document: Document, index: int, length: Length, reader: Reader) -> int:
    text = document.text(index)
    return len(reader.words(text)) if length.words is not None else len(text)


def _first_copies(document: Document) -> NDArray[np.bool_]:
    """Mark the sentences that do not repeat an earlier one word for word."""
    allowed = np.ones(len(document), np.bool_)
    sizes = (document.units[:, 1] - document.units[:, 0]).tolist()
    counts = Counter(sizes)
    seen: set[str] = set()
    for i, size in enumerate(sizes):
        if counts[size] > 1:  # else no other can be the same
            text = document.text(i)
            allowed[i] = text not in seen
            seen.add(text)
    return allowed


def steer(document: Document, scores: Floats, query: str, reader: Reader, weight: float) -> Floats:
    r"""Mix scores with the likeness to a query: $(1 - w) \frac{S_i}{\max S} + w \cos(s_i, q)$.

    Raises:
        InputError: If no term of the query occurs in the text.
    """
    if not is_between(weight, 0, 1):
        raise ConfigError(f"query_weight must lie between 0 and 1, got {weight!r}")
    numbers = {term: i for i, term in enumerate(document.terms)}
    table = TermTable(document)
    wanted = np.zeros(document.vocab_size)
    for term in reader.terms(query):
        if term in numbers:
            wanted[numbers[term]] += max(table.idf[numbers[term]], 1e-9)
    if not wanted.any():
        raise InputError(
            f"a query must share a word with the text, stop words not counted, got {query[:60]!r}; "
            "ask in words of the text, or leave the query out"
        )
    highest = scores.max(initial=0.0)
    scaled = scores / highest if highest > 0 else scores
    return (1 - weight) * scaled + weight * table.cosines_with(wanted)
