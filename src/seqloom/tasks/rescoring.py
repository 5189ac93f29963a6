"""Reordering n-best lists of a recognizer or translator by a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from seqloom.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel


class Rescored(NamedTuple):
    """A candidate of an n-best list.

    Args:
        text: The candidate.
        total: What it is ranked by now.
        score: Its score by the other model.
        log_prob: Its log-probability by the language model.
        words: How many words it has, its end not counted.
    """

    text: str
    total: float
    score: float
    log_prob: float
    words: int


def rescore(
    model: LanguageModel,
    lists: Sequence[Sequence[tuple[str, float]]],
    *,
    weight: float,
    length_bonus: float,
) -> list[list[Rescored]]:
    r"""Rank the candidates of each list anew, best first; equals keep their order.

    $$s'(Y) = s(Y) + \lambda \log P(Y) + \beta |Y|$$

    Paper: Ostendorf et al. (1991), "Integration of Diverse Recognition Methodologies Through
    Reevaluation of N-Best Sentence Hypotheses".

    Args:
        model: The language model.
        lists: Candidates and their scores by another model.
        weight: Lambda.
        length_bonus: Beta, which makes up for a language model's liking for short texts.
    """
    for name, value in (("weight", weight), ("length_bonus", length_bonus)):
        if not math.isfinite(value):
            raise ConfigError(f"{name} must be finite, got {value}")
    for number, candidates in enumerate(lists):
        for text, score in candidates:
            if math.isnan(score):
                raise DataError(f"scores must be numbers, got nan for {text!r} of list {number}")
    scored = iter(model.score([text for candidates in lists for text, _ in candidates]))
    found = []
    for candidates in lists:
        ranked = []
        for text, score in candidates:
            said = next(scored)
            words = len(said.words) - 1
            likely = weight * said.total if weight else 0.0
            total = score + likely + length_bonus * words
            ranked.append(Rescored(text, total, score, said.total, words))
        found.append(sorted(ranked, key=lambda each: -each.total))
    return found
