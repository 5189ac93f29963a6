"""How far sequences are from what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.errors import ShapeError


def edit_distance(left: Sequence[Any], right: Sequence[Any]) -> int:
    r"""Return how many insertions, deletions and replacements make one sequence of the other.

    $$d_{ij} = \min(d_{i-1,j} + 1, d_{i,j-1} + 1, d_{i-1,j-1} + [a_i \ne b_j])$$

    Paper: Levenshtein (1966), "Binary Codes Capable of Correcting Deletions, Insertions and
    Reversals".

    Examples:
        >>> edit_distance("kitten", "sitting")
        3
    """
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def error_rate(predicted: Sequence[Sequence[Any]], actual: Sequence[Sequence[Any]]) -> float:
    """Return all edits that predictions need, a label of the truth.

    Of characters it is the character error rate, of words the word error rate; it can be above 1.

    Examples:
        >>> error_rate(["abc", "x"], ["abd", "xy"])
        0.4
    """
    if len(predicted) != len(actual):
        raise ShapeError(
            f"there must be as many predictions as truths, got {len(predicted)} and {len(actual)}"
        )
    labels = sum(len(each) for each in actual)
    if not labels:
        raise ShapeError("the truths must hold at least one label, got none")
    pairs = zip(predicted, actual, strict=True)
    return sum(edit_distance(left, right) for left, right in pairs) / labels
