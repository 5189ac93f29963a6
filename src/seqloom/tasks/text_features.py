"""Texts to bags: which terms a text has, and how much each of them counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqloom.data.features import Bags
from seqloom.errors import ConfigError, InputError
from seqloom.text import Specials, Vocabulary

FeatureName = Literal["bag", "ngrams", "embedding"]
Weighting = Literal["count", "binary", "tfidf"]

NO_SPECIALS = Specials(pad="", unk="", bos="", eos="")


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    r"""How words become features.

    Args:
        features: "bag" (the words), "ngrams" (runs of up to `max_n` words) or "embedding" (the
            words, each worth the same, for vectors that are averaged).
        max_n: The longest run of "ngrams".
        weighting: What a term that occurs c times weighs in "bag" and "ngrams": "count" c,
            "binary" 1, "tfidf" $c (\ln\frac{1 + N}{1 + n} + 1)$ where n of N texts have the term,
            scaled so that the squares of a text sum to 1 (Salton and Buckley 1988).
    """

    features: FeatureName = "bag"
    max_n: int = 2
    weighting: Weighting = "count"

    def __post_init__(self) -> None:
        if self.max_n < 1:
            raise ConfigError(f"max_n must be at least 1, got {self.max_n}")
        if self.features == "embedding" and self.weighting != "count":
            raise ConfigError(
                f"features='embedding' averages all words alike, got weighting={self.weighting!r}"
            )


@dataclass(frozen=True, kw_only=True)
class TermLimits:
    """Which terms are kept.

    Args:
        min_count: How often a term must occur.
        max_size: How many to keep at most, the most frequent ones.
    """

    min_count: int = 1
    max_size: int | None = None

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ConfigError(f"vocabulary.min_count must be at least 1, got {self.min_count}")
        if self.max_size is not None and self.max_size < 1:
            raise ConfigError(f"vocabulary.max_size must be at least 1, got {self.max_size}")


def terms(words: Sequence[str], config: FeatureConfig) -> list[str]:
    """Return the terms of a text: its words, and the runs of them if those count.

    >>> terms(["not", "so", "bad"], FeatureConfig(features="ngrams", max_n=2))
    ['not', 'so', 'bad', 'not so', 'so bad']
    """
    if config.features != "ngrams":
        return list(words)
    return [
        " ".join(words[i : i + n])
        for n in range(1, config.max_n + 1)
        for i in range(len(words) - n + 1)
    ]


class TextFeatures:
    """The terms a classifier knows, and what each of them weighs.

    Args:
        config: How words become features.
        vocabulary: The terms; others are passed over.
        idf: What a term's rarity multiplies it by, for "tfidf".
    """

    def __init__(
        self,
        config: FeatureConfig,
        vocabulary: Vocabulary,
        idf: NDArray[np.float64] | None = None,
    ) -> None:
        self.config, self.vocabulary, self.idf = config, vocabulary, idf

    @classmethod
    def learn(
        cls,
        texts: Iterable[Sequence[str]],
        config: FeatureConfig,
        limits: TermLimits | None = None,
    ) -> tuple[TextFeatures, Bags]:
        """Choose the terms of tokenized texts; return them and the bags of those texts."""
        limits = limits or TermLimits()
        numbers: dict[str, int] = {}
        bags = _count(
            (terms(words, config) for words in texts),
            lambda term: numbers.setdefault(term, len(numbers)),
            0,
        )
        totals = np.bincount(bags.ids, bags.weights, len(numbers))
        counts = {term: int(n) for term, n in zip(numbers, totals, strict=True)}
        vocabulary = Vocabulary.build(
            counts,
            min_count=limits.min_count,
            max_size=limits.max_size,
            specials=NO_SPECIALS,
            out_of_vocabulary="error",
        )
        if not len(vocabulary):
            raise InputError(
                "the texts must hold at least one word that occurs often enough, got none among "
                f"{len(bags)} texts with {len(numbers)} words (min_count={limits.min_count})"
            )
        renumber = np.full(len(numbers), -1, np.int64)
        for term, number in numbers.items():
            if term in vocabulary:
                renumber[number] = vocabulary[term]
        known = _renumbered(bags, renumber, len(vocabulary))
        idf = None
        if config.weighting == "tfidf":
            having = np.bincount(known.ids, minlength=len(vocabulary))
            idf = np.log((1 + len(known)) / (1 + having)) + 1
        features = cls(config, vocabulary, idf)
        return features, features._weigh(known)

    def __call__(self, texts: Iterable[Sequence[str]]) -> Bags:
        """Return the bags of tokenized texts."""
        known = self.vocabulary
        found = ([t for t in terms(words, self.config) if t in known] for words in texts)
        return self._weigh(_count(found, known.__getitem__, len(known)))

    def _weigh(self, bags: Bags) -> Bags:
        weights, lengths = bags.weights, np.diff(bags.offsets)
        rows = np.repeat(np.arange(len(bags)), lengths)
        if self.config.features == "embedding":
            weights = weights / np.bincount(rows, weights, len(bags))[rows]
        elif self.config.weighting == "binary":
            weights = np.ones_like(weights)
        elif self.idf is not None:
            weights = weights * self.idf[bags.ids]
            weights = weights / np.sqrt(np.bincount(rows, np.square(weights), len(bags)))[rows]
        return Bags(bags.ids, weights, bags.offsets, bags.width)

    def to_dict(self) -> dict[str, Any]:
        """What else than the vocabulary and the settings must be kept."""
        return {"idf": None if self.idf is None else self.idf.tolist()}

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], config: FeatureConfig, vocabulary: Vocabulary
    ) -> TextFeatures:
        """The features that `to_dict` wrote."""
        idf = values["idf"]
        return cls(config, vocabulary, None if idf is None else np.array(idf, np.float64))


def _count(texts: Iterable[list[str]], number: Any, width: int) -> Bags:
    """Count the terms of each text; `number` gives a term its id."""
    ids: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.float64]] = []
    offsets = [0]
    for found in texts:
        counted = Counter(map(number, found))
        ids.append(np.fromiter(counted.keys(), np.int64, len(counted)))
        counts.append(np.fromiter(counted.values(), np.float64, len(counted)))
        offsets.append(offsets[-1] + len(counted))
    if not ids:
        raise InputError("there must be at least one text, got none")
    return Bags(np.concatenate(ids), np.concatenate(counts), np.array(offsets, np.int64), width)


def _renumbered(bags: Bags, renumber: NDArray[np.int64], width: int) -> Bags:
    """Give terms their final ids; those that have none (-1) go."""
    ids = renumber[bags.ids]
    kept = ids >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return Bags(ids[kept], bags.weights[kept], before[bags.offsets], width)
