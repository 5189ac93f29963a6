"""The report of the scorer of SemEval-2010 Task 8, to the letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqloom.metrics.relations import RelationEvaluation, RelationReport

_TITLES = (
    "<<< (2*9+1)-WAY EVALUATION (USING DIRECTIONALITY)>>>:",
    "<<< (9+1)-WAY EVALUATION IGNORING DIRECTIONALITY >>>:",
    "<<< (9+1)-WAY EVALUATION TAKING DIRECTIONALITY INTO ACCOUNT -- OFFICIAL >>>:",
)
_NAME = re.compile(r"(.)[^-]*-(.)[^(]*(?:\(e([12]))?")
_OTHER = "_Other"


def print_report(report: RelationReport) -> str:
    """Return what the official program prints for these predictions."""
    evaluations = (report.directed, report.undirected, report.official)
    parts = [_warnings(report.directed)]
    parts += [f"{title}\n\n{_evaluation(e)}" for title, e in zip(_TITLES, evaluations, strict=True)]
    parts.append(
        "<<< The official score is (9+1)-way evaluation with directionality taken into account: "
        f"macro-averaged F1 = {100 * report.macro_f1:.2f}% >>>\n"
    )
    return "".join(parts)


def _warnings(directed: RelationEvaluation) -> str:
    first = len(directed.labels)
    counts = [sum(row[first + i] for row in directed.matrix) for i in range(len(directed.extra))]
    return "".join(
        f"!!!WARNING!!! The proposed file contains {count} label(s) of type '{label}', which is "
        "NOT present in the key file.\n\n"
        for label, count in zip(directed.extra, counts, strict=True)
    )


def _evaluation(e: RelationEvaluation) -> str:
    right = "".join(
        f"{label:>25} :    {_precision(s.correct, s.predicted, s.reversed, e.is_official)}     "
        f"{_ratio('R', s.correct, s.actual)}     F1 = {100 * s.f1:6.2f}%\n"
        for label, s in e.scores.items()
    )
    micro = e.micro
    return (
        f"Confusion matrix:\n{_matrix(e)}\n{_accuracies(e)}\n"
        f"Results for the individual relations:\n{right}\n"
        "Micro-averaged result (excluding Other):\n"
        f"{_ratio('P', micro.correct, micro.predicted + micro.reversed)}     "
        f"{_ratio('R', micro.correct, micro.actual)}     F1 = {100 * micro.f1:6.2f}%\n\n"
        "MACRO-averaged result (excluding Other):\n"
        f"P = {100 * e.macro_precision:6.2f}%\tR = {100 * e.macro_recall:6.2f}%\t"
        f"F1 = {100 * e.macro_f1:6.2f}%\n\n\n\n"
    )


def _ratio(name: str, part: int, whole: int) -> str:
    return f"{name} = {part:4d}/{whole:4d} = {100 * part / whole if whole else 0:6.2f}%"


def _precision(correct: int, predicted: int, reversed_: int, is_official: bool) -> str:
    if not is_official:
        return _ratio("P", correct, predicted)
    whole = predicted + reversed_
    share = 100 * correct / whole if whole else 0
    return f"P = {correct:4d}/({predicted:4d} + {reversed_:3d}) = {share:6.2f}%"


def _accuracies(e: RelationEvaluation) -> str:
    others = e.skipped[e.labels.index(_OTHER)] if _OTHER in e.labels else 0
    rows = (
        ("Coverage", e.answered, e.examples),
        ("Accuracy (calculated for the above confusion matrix)", e.correct, e.answered),
        ("Accuracy (considering all skipped examples as Wrong)", e.correct, e.examples),
        ("Accuracy (considering all skipped examples as Other)", e.correct + others, e.examples),
    )
    return "".join(
        f"{name} = {part}/{whole} = {100 * part / whole if whole else 0:5.2f}%\n"
        for name, part, whole in rows
    )


def _matrix(e: RelationEvaluation) -> str:
    names = [_short(label, "{}-{}") for label in e.labels]
    names += [_short(label, "*{}{}") for label in e.extra]
    border = "+" + "-" * (5 * len(names)) + "+"
    sides = " -SUM- xDIRx skip  ACTUAL" if e.is_official else " -SUM- skip ACTUAL"
    lines = [
        "       " + "".join(f" {name:>4}" for name in names) + " <-- classified as",
        f"      {border}{sides}",
    ]
    ends = []
    for i, row in enumerate(e.matrix):
        total, turned, skipped = sum(row), e.reversed[i], e.skipped[i]
        ends.append((total, turned, skipped, total + turned + skipped))
        lines.append(f"{names[i]:>5} |{_cells(row)}|{_end(ends[-1], e.is_official)}")
    totals = [sum(column) for column in zip(*e.matrix, strict=True)]
    whole = [sum(column) for column in zip(*ends, strict=True)]
    lines.append(f"      {border}")
    lines.append(f" -SUM- {_cells(totals)} {_end(whole, e.is_official)}")
    return "\n".join(lines) + "\n"


def _cells(row: Sequence[int]) -> str:
    return "".join(f"{count:4d} " for count in row)


def _end(sums: Sequence[int], is_official: bool) -> str:
    total, turned, skipped, actual = sums
    if is_official:
        return f"{total:5d}{turned:6d}{skipped:6d}{actual:7d}"
    return f"{total:5d}{skipped:5d}{actual:5d}"


def _short(label: str, form: str) -> str:
    if label == _OTHER:
        return "_O_"
    match = _NAME.match(label)
    if match is None:
        return label[:4]
    return form.format(match[1], match[2]) + (match[3] or "")
