"""Answers against answers: exact match and F1, as SQuAD and as CMRC score them.

SQuAD compares words: in lower case, without ASCII punctuation and without a, an and the. CMRC
compares characters: in lower case, without a list of punctuation, a run of other letters cut into
words; its F1 counts the longest run of pieces that both have.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from seqloom.errors import ConfigError, InputError, one_of

Rules = Literal["squad", "cmrc"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CMRC_MARKS = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
_CMRC_DELETED = str.maketrans("", "", _CMRC_MARKS)
_HAN = re.compile(r"[\u4e00-\u9fa5]")
# The Treebank's words inside a run of other letters, as far as answers have them.
_OTHER = re.compile(r"\w+(?:[.,]\w+)*|[^\w\s]")


class AnswerScore(NamedTuple):
    """How good one answer is, each from 0 to 1."""

    exact: float
    f1: float


def normalize_answer(text: str) -> str:
    """Return an answer as SQuAD compares it.

    >>> normalize_answer("The  Eiffel Tower!")
    'eiffel tower'
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def squad_score(prediction: str, answer: str) -> AnswerScore:
    r"""Compare two answers by their words.

    $$F_1 = \frac{2 P R}{P + R}, \quad P = \frac{|p \cap a|}{|p|}, \quad
    R = \frac{|p \cap a|}{|a|}$$

    over the bags of words p and a.

    Paper: Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
    EMNLP, section 6.1.

    >>> squad_score("the tall tower", "Tower")
    AnswerScore(exact=0.0, f1=0.6666666666666666)
    """
    said, right = normalize_answer(prediction), normalize_answer(answer)
    p, a = said.split(), right.split()
    return AnswerScore(
        float(said == right), _f1(sum((Counter(p) & Counter(a)).values()), len(p), len(a))
    )


def cmrc_pieces(text: str) -> list[str]:
    """Return the characters of an answer, other letters as words, without punctuation.

    >>> cmrc_pieces("《BBC》公司1.5亿")
    ['bbc', '公', '司', '1.5', '亿']
    """
    pieces: list[str] = []
    run = ""
    for character in text.lower().strip().translate(_CMRC_DELETED):
        if _HAN.match(character):
            pieces += _OTHER.findall(run)
            pieces.append(character)
            run = ""
        else:
            run += character
    return pieces + _OTHER.findall(run)


def cmrc_score(prediction: str, answer: str) -> AnswerScore:
    """Compare two answers by the longest run of pieces both have.

    Paper: Cui et al. (2019), "A Span-Extraction Dataset for Chinese Machine Reading
    Comprehension", EMNLP, section 4; its script takes the longest common run, not subsequence.

    >>> cmrc_score("在北京大学", "北京大学。")
    AnswerScore(exact=0.0, f1=0.888888888888889)
    """
    exact = _cmrc_bare(prediction) == _cmrc_bare(answer)
    p, a = cmrc_pieces(prediction), cmrc_pieces(answer)
    return AnswerScore(float(exact), _f1(_longest_run(p, a), len(p), len(a)))


def _cmrc_bare(text: str) -> str:
    return text.lower().strip().translate(_CMRC_DELETED)


def _f1(common: int, said: int, right: int) -> float:
    if not common:
        return 0.0
    precision, recall = common / said, common / right
    return 2 * precision * recall / (precision + recall)


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    best, before = 0, [0] * (len(second) + 1)
    for x in first:
        now = [0] * (len(second) + 1)
        for j, y in enumerate(second):
            if x == y:
                now[j + 1] = before[j] + 1
                best = max(best, now[j + 1])
        before = now
    return best


RULES: dict[str, Callable[[str, str], AnswerScore]] = {"squad": squad_score, "cmrc": cmrc_score}
_BARE: dict[str, Callable[[str], str]] = {"squad": normalize_answer, "cmrc": _cmrc_bare}


def bare_answer(text: str, rules: Rules = "squad") -> str:
    """Return an answer as rules compare it; two that are the same here match exactly.

    One of which nothing is left, as "the" by SQuAD's rules, is returned as it is.

    >>> bare_answer("The Tower!"), bare_answer("the")
    ('tower', 'the')
    """
    if rules not in _BARE:
        raise ConfigError(one_of("rules", rules, _BARE))
    return _BARE[rules](text) or text


def best_score(prediction: str, answers: Iterable[str], rules: Rules = "squad") -> AnswerScore:
    """Compare with every accepted answer; exact match and F1 each take their best.

    A question without answers is answered right by "", and wrong by anything else.
    """
    if rules not in RULES:
        raise ConfigError(one_of("rules", rules, RULES))
    scores = [RULES[rules](prediction, answer) for answer in answers]
    if not scores:
        right = float(not prediction)
        return AnswerScore(right, right)
    return AnswerScore(max(s.exact for s in scores), max(s.f1 for s in scores))


def score_answers(
    predictions: Mapping[str, str],
    answers: Mapping[str, Sequence[str]],
    rules: Rules = "squad",
) -> dict[str, float]:
    """Return exact match and F1 over all questions, from 0 to 100.

    Args:
        predictions: The answer to each question by its id; one that is missing counts 0.
        answers: The accepted answers by id, of all questions.
        rules: "squad" or "cmrc".

    Returns:
        `exact`, `f1`, `questions` and `unanswered`, how many had no prediction.

    Raises:
        InputError: If there is no question.

    Examples:
        >>> found = score_answers({"1": "in 1990"}, {"1": ["1990"], "2": ["Rome"]})
        >>> found["exact"], round(found["f1"], 1), found["unanswered"]
        (0.0, 33.3, 1.0)
    """
    if not answers:
        raise InputError("there must be at least one question to score, got none")
    exact = f1 = missing = 0.0
    for name, accepted in answers.items():
        if name not in predictions:
            missing += 1
            continue
        score = best_score(predictions[name], accepted, rules)
        exact, f1 = exact + score.exact, f1 + score.f1
    count = len(answers)
    return {
        "exact": 100 * exact / count,
        "f1": 100 * f1 / count,
        "questions": float(count),
        "unanswered": missing,
    }
