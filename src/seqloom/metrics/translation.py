"""BLEU and chrF: how much of a translation is in a reference, by the package sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from seqloom.errors import BackendError, ShapeError


class TranslationScore(NamedTuple):
    """A score from 0 to 100, and how it was computed, as sacrebleu writes it."""

    score: float
    signature: str


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> TranslationScore:
    r"""BLEU of a corpus with one reference a sentence.

    $$\mathrm{BLEU} = \min(1, e^{1 - r / c}) \Bigl(\prod_{n=1}^4 p_n\Bigr)^{1/4}$$

    where $p_n$ is the share of runs of n words that the references have too, and c and r are the
    lengths of translations and references.

    Paper: Papineni et al. (2002), "BLEU: a Method for Automatic Evaluation of Machine Translation",
    ACL; Post (2018), "A Call for Clarity in Reporting BLEU Scores", WMT.

    Args:
        translations: The texts.
        references: A reference each.
        tokenize: How sacrebleu splits them: "13a", "zh", "char", "none" for text that has blanks
            between words already, ...
        lowercase: Whether case is ignored.
    """
    _check(translations, references)
    metric = _sacrebleu().BLEU(tokenize=tokenize, lowercase=lowercase)
    return _scored(metric, translations, references)


def chrf(translations: Sequence[str], references: Sequence[str]) -> TranslationScore:
    """Return chrF of a corpus with one reference a sentence: F2 of runs of up to 6 characters.

    Paper: Popovic (2015), "chrF: character n-gram F-score for automatic MT evaluation", WMT.

    Args:
        translations: The texts.
        references: A reference each.
    """
    _check(translations, references)
    return _scored(_sacrebleu().CHRF(), translations, references)


def _scored(
    metric: Any, translations: Sequence[str], references: Sequence[str]
) -> TranslationScore:
    found = metric.corpus_score(list(translations), [list(references)])
    return TranslationScore(float(found.score), str(metric.get_signature()))


def _check(translations: Sequence[str], references: Sequence[str]) -> None:
    if not translations or len(translations) != len(references):
        raise ShapeError(
            f"there must be a reference a translation, got {len(references)} for "
            f"{len(translations)}"
        )


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ModuleNotFoundError:
        raise BackendError(
            "BLEU and chrF need sacrebleu, which is not installed; "
            "pip install 'seqloom[translation]'"
        ) from None
    return metrics
