"""ROUGE: how many words, pairs of words and runs of words a summary shares with a reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from seqloom.errors import BackendError, ConfigError, ShapeError, one_of

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CHARACTER = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
MEASURES = {
    "rouge_1": "rouge1",
    "rouge_2": "rouge2",
    "rouge_l": "rougeL",
    "rouge_lsum": "rougeLsum",
}
"""Our names of the measures, and those of rouge-score."""


class Rouge(NamedTuple):
    """One measure of one summary: precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


class _Characters:
    """Splits text as ROUGE of Chinese does: each Chinese character, each other word."""

    def tokenize(self, text: str) -> list[str]:
        return _CHARACTER.findall(text.lower())


def rouge(
    summary: str | Sequence[str],
    references: str | Sequence[str],
    *,
    language: str = "en",
    stem: bool = True,
) -> dict[str, Rouge]:
    r"""Compare a summary with one reference, or with each of several, the best of which counts.

    $$\mathrm{ROUGE}_n = F_1 \text{ of runs of } n \text{ words}, \quad
    \mathrm{ROUGE}_L = F_1 \text{ of the longest common subsequence}$$

    `rouge_l` is at the level of the sentence: the texts are taken as one sequence each.
    `rouge_lsum` is at the level of the summary: for each sentence of the reference, the union of
    its longest common subsequences with the sentences of the summary. It needs to know the
    sentences: give them as a list, or a line each.

    Paper: Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries", sections 2, 3.1 and
    3.2. Computed by the package rouge-score.

    Args:
        summary: The summary: a text, or its sentences.
        references: A reference, or several. A line of it is a sentence.
        language: "en" (words, as rouge-score splits them) or "zh" (characters).
        stem: Whether words are stemmed (Porter), as published results have it; "en" only.

    Returns:
        The measures by name: rouge_1, rouge_2, rouge_l and rouge_lsum. Of several references, the
        one of the highest F1, for each measure.
    """
    if language not in ("en", "zh"):
        raise ConfigError(one_of("language", language, ("en", "zh")))
    own = summary if isinstance(summary, str) else "\n".join(summary)
    others = [references] if isinstance(references, str) else list(references)
    if not others:
        raise ShapeError("there must be a reference to compare with, got none")
    scorer = _scorer(language, stem)
    found: dict[str, Rouge] = {}
    for reference in others:
        scores = scorer.score(reference, own)
        for name, theirs in MEASURES.items():
            value = Rouge(*map(float, scores[theirs]))
            if name not in found or value.f1 > found[name].f1:
                found[name] = value
    return found


@cache
def _scorer(language: str, stem: bool) -> Any:
    try:
        from rouge_score import rouge_scorer
    except ModuleNotFoundError:
        raise BackendError(
            "ROUGE needs rouge-score, which is not installed; pip install 'seqloom[summaries]'"
        ) from None
    names = list(MEASURES.values())
    if language == "zh":
        return rouge_scorer.RougeScorer(names, tokenizer=_Characters())
    return rouge_scorer.RougeScorer(names, use_stemmer=stem)
