"""Settings of extractive summarizers; light, so that options are checked before any work."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, get_args

from seqloom.errors import ConfigError, one_of

Language = Literal["auto", "en", "zh"]
FINITE = sys.float_info.max

FEATURES = (
    "length",
    "tfidf",
    "keywords",
    "position",
    "first",
    "last",
    "similarity",
    "textrank",
    "heading",
    "cues",
)
"""The features of a sentence, in the order of their columns."""

GIVEN_WEIGHTS = {"length": 0.1, "tfidf": 0.1, "keywords": 1.0, "position": 0.5, "similarity": 1.0}


def is_between(value: Any, least: float, most: float) -> bool:
    """Whether a value is a number from `least` to `most`; what is not a number is none."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(least <= value <= most)


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """How a text becomes sentences and terms.

    Args:
        language: "en", "zh", or "auto" to find out for each text, and for each paragraph of a text
            that holds Chinese characters.
        stop_words: Whether to leave out the small words of the language.
        more_stop_words: Further words to leave out, in lower case.
        numbers: Whether numbers are terms.
        stem: Whether the forms of an English word are one term (Porter's stemmer).
        headings: Whether a heading may be chosen; if not, it only serves the feature "heading".
        keep_tags: Parts of speech to keep, by the beginnings of their tags; needs a tagger.
    """

    language: Language = "auto"
    stop_words: bool = True
    more_stop_words: tuple[str, ...] = ()
    numbers: bool = False
    stem: bool = True
    headings: bool = False
    keep_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.language not in get_args(Language):
            raise ConfigError(one_of("language", self.language, get_args(Language)))


@dataclass(frozen=True, kw_only=True)
class LeadConfig:
    """Settings of `Lead`: there are none."""


@dataclass(frozen=True, kw_only=True)
class TfidfConfig:
    """Settings of `Tfidf`.

    Args:
        length_power: The sum over a sentence is divided by its length to this power: 1 is the mean,
            the printed formula; 0 is the sum, which favours long sentences.
    """

    length_power: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.length_power <= 1:
            raise ConfigError(f"length_power must lie between 0 and 1, got {self.length_power}")


@dataclass(frozen=True, kw_only=True)
class _GraphConfig:
    """Settings of a random walk over a graph.

    Args:
        damping: d, the chance of going on along an edge.
        tolerance: The walk ends when the scores change by less than this on average.
        max_steps: It ends after so many steps in any case.
        max_pairs: How many pairs a sentence are compared on average where pairs must be looked at
            one by one. Beyond it, which takes some 28,000 sentences of news, the commonest terms no
            longer make a pair, so that time and memory grow with the length of the text and not its
            square; None compares all. Unweighted TextRank counts such terms one by one instead.
    """

    damping: float = 0.85
    tolerance: float = 1e-8
    max_steps: int = 200
    max_pairs: int | None = 3000

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ConfigError(f"damping must lie in [0, 1), got {self.damping}")
        if not self.tolerance > 0 or self.max_steps < 1:
            raise ConfigError(
                "tolerance must be above 0 and max_steps at least 1, got "
                f"{self.tolerance} and {self.max_steps}"
            )
        if self.max_pairs is not None and self.max_pairs < 1:
            raise ConfigError(f"max_pairs must be at least 1 or None, got {self.max_pairs}")


@dataclass(frozen=True, kw_only=True)
class TextRankConfig(_GraphConfig):
    """Settings of `TextRank`, besides those of the walk.

    Args:
        weighted: Whether edges weigh what the sentences have in common; if not, they count alike.
        threshold: Sentences are joined if they have more in common than this. Above 0 pairs are
            looked at one by one.
    """

    weighted: bool = True
    threshold: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_between(self.threshold, 0, FINITE):
            raise ConfigError(f"threshold must not be negative, got {self.threshold}")


@dataclass(frozen=True, kw_only=True)
class LexRankConfig(_GraphConfig):
    """Settings of `LexRank`, besides those of the walk.

    Args:
        threshold: Sentences of a higher cosine are joined, all edges counting alike; None joins all
            by edges that weigh their cosine (the paper's continuous LexRank).
    """

    threshold: float | None = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and not 0 <= self.threshold < 1:
            raise ConfigError(f"threshold must lie in [0, 1) or be None, got {self.threshold}")


@dataclass(frozen=True, kw_only=True)
class FeaturesConfig:
    """Settings of `Features`.

    Args:
        weights: The weight of each feature by name; those left out weigh 0. `fit` replaces them.
        l2: How strongly fitted weights are drawn towards 0.
        keywords: How many of the text's commonest terms count as its keywords.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(GIVEN_WEIGHTS))
    l2: float = 1.0
    keywords: int = 20

    def __post_init__(self) -> None:
        for name in self.weights:
            if name not in FEATURES:
                raise ConfigError(one_of("feature", name, FEATURES))
        for name, weight in self.weights.items():
            if not is_between(weight, -FINITE, FINITE):
                raise ConfigError(f"the weight of {name} must be a finite number, got {weight!r}")
        if not is_between(self.l2, 0, FINITE) or self.keywords < 1:
            raise ConfigError(
                f"l2 must not be negative and keywords at least 1, got {self.l2}, {self.keywords}"
            )
