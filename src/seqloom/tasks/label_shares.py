"""Labels that are not certain: how probable each is for an example."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import InputError
from seqloom.tasks.labels import numbered
from seqloom.tasks.vectors import SINGLE, as_labels, check_length, is_several

SLACK = 1e-3  # how far from 1 probabilities may add up


class LabelShares(NamedTuple):
    """Labels of examples and how probable they are, as triples of one list.

    Args:
        rows: Which example each triple is of.
        labels: Its label.
        shares: How probable that is; those of an example add up to 1.
        examples: How many there are.
    """

    rows: NDArray[np.int64]
    labels: NDArray[Any]
    shares: NDArray[np.float64]
    examples: int

    def table(self, classes: NDArray[Any], what: str) -> NDArray[np.float32]:
        """The probabilities of all classes, (N, C); `what` data it is, for a message."""
        found = np.zeros((self.examples, len(classes)), np.float32)
        np.add.at(found, (self.rows, numbered(self.labels, classes, what)), self.shares)
        return found


def has_shares(y: Any) -> bool:
    """Whether labels of some examples are given with probabilities."""
    is_column = isinstance(getattr(y, "dtype", None), np.dtypes.ObjectDType)  # array or series
    if not isinstance(y, Sequence) and not is_column:
        return False
    return any(isinstance(label, Mapping) for label in y)


def as_label_shares(y: Sequence[Any], count: int) -> LabelShares:
    """Return labels with probabilities; a plain label is certain.

    Raises:
        InputError: If there are not as many as examples, or probabilities are none.
    """
    check_length(y, count)
    rows, labels, shares = [], [], []
    for number, given in enumerate(y):
        if is_several(given):
            raise InputError(SINGLE)
        own = given if isinstance(given, Mapping) else {given: 1.0}
        _check(own, number)
        total = math.fsum(own.values())
        for label, share in own.items():
            rows.append(number)
            labels.append(label)
            shares.append(float(share) / total)
    return LabelShares(
        np.array(rows, np.int64), as_labels(labels, len(labels)), np.array(shares), count
    )


def _check(shares: Mapping[Any, Any], number: int) -> None:
    for label, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float | np.number):
            raise InputError(
                f"a label's probability must be a number, got {share!r} for {label!r} of example "
                f"{number}"
            )
        if not 0 <= share <= 1 + SLACK:  # false for what is no number
            raise InputError(
                f"a label's probability must lie between 0 and 1, got {share} for {label!r} of "
                f"example {number}"
            )
    total = math.fsum(shares.values())
    if abs(total - 1) > SLACK:
        raise InputError(
            f"the probabilities of the labels of an example must add up to 1, got {total:g} for "
            f"example {number}"
        )
