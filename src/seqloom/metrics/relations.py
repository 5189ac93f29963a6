"""The official scores of SemEval-2010 Task 8: directed relations, and one that is none of them.

Hendrickx et al. (2010), "SemEval-2010 Task 8: Multi-Way Classification of Semantic Relations
Between Pairs of Nominals", section 5; the rules are those of the task's scorer, version 1.2, and
`str(report)` is what that program prints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqloom.errors import InputError, ShapeError

OTHER = "Other"
_SHOWN_OTHER = "_Other"  # as the scorer prints it; it also sorts behind the relations
_DIRECTION = re.compile(r"\((e[12]),(e[12])\)$")


@dataclass(frozen=True)
class RelationScore:
    r"""How well one relation was found.

    $$P = \frac{correct}{predicted + reversed}, \quad R = \frac{correct}{actual}, \quad
    F_1 = \frac{2 P R}{P + R}$$

    A ratio without a denominator is 0.

    Args:
        correct: Examples of it that were found.
        predicted: Examples it was predicted for, without the reversed ones.
        actual: Examples of it there are.
        reversed: Examples of it found in the wrong direction, where those are counted apart.
    """

    correct: int
    predicted: int
    actual: int
    reversed: int = 0

    @property
    def precision(self) -> float:
        """P, from 0 to 1."""
        return _share(self.correct, self.predicted + self.reversed)

    @property
    def recall(self) -> float:
        """R, from 0 to 1."""
        return _share(self.correct, self.actual)

    @property
    def f1(self) -> float:
        """F1, from 0 to 1."""
        return _f1(self.precision, self.recall)


@dataclass(frozen=True)
class RelationEvaluation:
    """One of the three ways to count.

    Args:
        labels: The labels of the key, sorted, the other relation last if it is there.
        extra: Labels that were predicted and are not in the key.
        matrix: How often each label of the key (row) was predicted as each label of the key and
            then each extra one (column).
        reversed: For each label of the key, how often only the direction was wrong; those are not
            in the matrix. All 0 unless this is the official evaluation.
        skipped: For each label of the key, how many examples have no prediction.
        is_official: Whether it is the evaluation that counts.
    """

    labels: tuple[str, ...]
    extra: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    reversed: tuple[int, ...]
    skipped: tuple[int, ...]
    is_official: bool = False

    @property
    def scores(self) -> dict[str, RelationScore]:
        """The score of each label of the key, the other relation included."""
        columns = [sum(column) for column in zip(*self.matrix, strict=True)]
        return {
            label: RelationScore(
                self.matrix[i][i],
                columns[i],
                sum(self.matrix[i]) + self.reversed[i] + self.skipped[i],
                self.reversed[i],
            )
            for i, label in enumerate(self.labels)
        }

    @property
    def relations(self) -> list[RelationScore]:
        """The scores that are averaged: all but that of the other relation."""
        return [score for label, score in self.scores.items() if label != _SHOWN_OTHER]

    @property
    def micro(self) -> RelationScore:
        """All relations as one."""
        found = self.relations
        return RelationScore(
            sum(score.correct for score in found),
            sum(score.predicted for score in found),
            sum(score.actual for score in found),
            sum(score.reversed for score in found),
        )

    @property
    def macro_precision(self) -> float:
        """The mean precision of the relations."""
        return _mean(score.precision for score in self.relations)

    @property
    def macro_recall(self) -> float:
        """The mean recall of the relations."""
        return _mean(score.recall for score in self.relations)

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of the relations, not the F1 of the means."""
        return _mean(score.f1 for score in self.relations)

    @property
    def correct(self) -> int:
        """How many predictions are right."""
        return sum(row[i] for i, row in enumerate(self.matrix))

    @property
    def answered(self) -> int:
        """How many examples have a prediction."""
        return sum(map(sum, self.matrix)) + sum(self.reversed)

    @property
    def examples(self) -> int:
        """How many examples there are."""
        return self.answered + sum(self.skipped)

    @property
    def accuracy(self) -> float:
        """The share of the examples that are right, those without a prediction being wrong."""
        return _share(self.correct, self.examples)


@dataclass(frozen=True)
class RelationReport:
    """The three evaluations of the official scorer.

    Args:
        directed: Every direction of a relation is a label of its own: (2*9+1)-way.
        undirected: Directions are ignored: (9+1)-way.
        official: (9+1)-way, and a relation in the wrong direction is wrong. A reversed prediction
            counts among those of its relation, so it costs precision and recall.
    """

    directed: RelationEvaluation
    undirected: RelationEvaluation
    official: RelationEvaluation

    @property
    def macro_f1(self) -> float:
        """The official score, from 0 to 1."""
        return self.official.macro_f1

    def metrics(self) -> dict[str, float]:
        """The scores by name: `macro_f1` is the official one; `f1/<relation>` of each relation."""
        by_relation = {
            f"f1/{label.removeprefix('_')}": score.f1
            for label, score in self.official.scores.items()
        }
        return {
            "macro_f1": self.macro_f1,
            "accuracy": self.directed.accuracy,
            "macro_f1_directed": self.directed.macro_f1,
            "macro_f1_undirected": self.undirected.macro_f1,
            **by_relation,
        }

    def __str__(self) -> str:
        from seqloom.metrics.relation_report import print_report

        return print_report(self)


def relation_name(label: str) -> str:
    """Return the relation without its direction.

    >>> relation_name("Cause-Effect(e2,e1)"), relation_name("Other")
    ('Cause-Effect', 'Other')
    """
    return _DIRECTION.sub("", label)


def score_relations(
    predicted: Sequence[str | None], actual: Sequence[str], *, other: str = OTHER
) -> RelationReport:
    """Return the three evaluations of predictions.

    The means are over the relations of the key. What is predicted as a relation the key does not
    have is a mistake like any other, and is in no mean.

    Args:
        predicted: A label an example, as "Cause-Effect(e1,e2)"; None where there is no prediction.
        actual: The key.
        other: The label that stands for no relation: predicted or missed it counts against the
            others, and it is in no mean.

    Raises:
        ShapeError: If the two are not of one length, or empty.
        InputError: If a label is no text, or one of the key is missing.

    Examples:
        >>> key = ["Cause-Effect(e1,e2)", "Cause-Effect(e1,e2)", "Other"]
        >>> report = score_relations(["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other"], key)
        >>> report.macro_f1, report.undirected.macro_f1
        (0.5, 1.0)
    """
    if len(predicted) != len(actual) or not len(actual):
        raise ShapeError(
            "predictions and truths must be lists of one length, at least 1, got "
            f"{len(predicted)} and {len(actual)}"
        )
    for number, (found, true) in enumerate(zip(predicted, actual, strict=True)):
        _check_label(true, f"label {number} of the key")
        if found is not None:
            _check_label(found, f"prediction {number}")
    pairs = [
        (_shown(true, other), None if found is None else _shown(found, other))
        for found, true in zip(predicted, actual, strict=True)
    ]
    names = [
        (relation_name(true), None if found is None else relation_name(found))
        for true, found in pairs
    ]
    is_reversed = [
        name == found_name and true != found
        for (true, found), (name, found_name) in zip(pairs, names, strict=True)
    ]
    plain = [False] * len(pairs)
    return RelationReport(
        _evaluate(pairs, plain),
        _evaluate(names, plain),
        _evaluate(names, is_reversed, is_official=True),
    )


def _check_label(label: object, what: str) -> None:
    if not isinstance(label, str):
        raise InputError(f"{what} must be a text, got {label!r}")


def _shown(label: str, other: str) -> str:
    return _SHOWN_OTHER if label == other else label


def _evaluate(
    pairs: Sequence[tuple[str, str | None]],
    is_reversed: Sequence[bool],
    *,
    is_official: bool = False,
) -> RelationEvaluation:
    labels = tuple(sorted({true for true, _ in pairs}))
    extra = tuple(sorted({found for _, found in pairs if found is not None} - set(labels)))
    counts: Counter[tuple[str, str | None]] = Counter()
    turned: Counter[str] = Counter()
    for (true, found), wrong_way in zip(pairs, is_reversed, strict=True):
        if wrong_way:
            turned[true] += 1
        else:
            counts[true, found] += 1
    return RelationEvaluation(
        labels,
        extra,
        tuple(tuple(counts[row, column] for column in (*labels, *extra)) for row in labels),
        tuple(turned[label] for label in labels),
        tuple(counts[label, None] for label in labels),
        is_official,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
