"""Several labels an example: reading them, choosing them by thresholds, and counting mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.config import plain_scalar
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.vectors import check_length, require_targets

Floats = NDArray[np.float64]
THRESHOLD = 0.5


class LabelSets(NamedTuple):
    """The labels of examples.

    Args:
        sets: One set an example; it may be empty.
        columns: How many labels there are where they came as a table of 0 and 1, whose columns
            they are; None where they came as sets.
    """

    sets: list[frozenset[Any]]
    columns: int | None


def as_label_sets(y: Any, count: int) -> LabelSets:
    """Return labels as sets.

    Args:
        y: A list of collections of labels, or a table (N, C) of 0 and 1. Lists of equal length
            that hold nothing else are a table where one of them repeats a value, as no set does.
        count: How many examples there are.

    Raises:
        InputError: If it is neither, or of another length.
    """
    require_targets(y)
    table = _as_table(y)
    if table is not None:
        check_length(table, count)
        if not np.isin(table, (0, 1)).all():
            wrong = table[~np.isin(table, (0, 1))][0]
            raise InputError(f"a table of labels must hold 0 and 1 alone, got {wrong}")
        rows = [frozenset(np.flatnonzero(row).tolist()) for row in table]
        return LabelSets(rows, table.shape[1])
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise InputError(f"with multilabel=True y must be a list of sets of labels, got {y!r}")
    found = []
    for number, labels in enumerate(y):
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise InputError(
                "with multilabel=True every example must have a set of labels, got "
                f"{labels!r} for example {number}; write {{{labels!r}}}"
            )
        if isinstance(labels, Mapping):
            raise InputError(
                "labels with probabilities are for one label an example, got "
                f"{labels!r} for example {number} with multilabel=True; write {{*labels}}"
            )
        found.append(_as_set(labels, number))
    check_length(np.empty(len(found)), count)
    return LabelSets(found, None)


def _as_set(labels: Iterable[Any], number: int) -> frozenset[Any]:
    try:
        return frozenset(labels)
    except TypeError:  # what cannot be in a set, such as a list
        raise InputError(
            f"labels must be names or numbers, got {labels!r} for example {number}"
        ) from None


def check_columns(labels: LabelSets, classes: NDArray[Any]) -> None:
    """Refuse a table of labels with another number of columns than there are labels.

    Raises:
        InputError: With both numbers.
    """
    if labels.columns not in (None, len(classes)):
        raise InputError(f"y must have a column a label, {len(classes)}, got {labels.columns}")


def _as_table(y: Any) -> NDArray[Any] | None:
    """The table of 0 and 1, if that is what it is."""
    if hasattr(y, "toarray") and hasattr(y, "nnz"):
        y = y.toarray()
    if _is_nested_table(y):
        y = np.array(y)
    array = y if isinstance(y, np.ndarray) else getattr(y, "values", None)
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.dtype.kind in "biuf":
        return array
    return None


def _is_nested_table(y: Any) -> bool:
    """Whether these are rows of 0 and 1, and not sets of the labels 0 and 1."""
    if not isinstance(y, list | tuple) or not all(isinstance(row, list | tuple) for row in y):
        return False
    if len({len(row) for row in y}) != 1:
        return False
    values = [value for row in y for value in row]
    if not all(isinstance(value, int | float | np.generic) for value in values):
        return False
    return all(value in (0, 1) for value in values) and any(len({*row}) < len(row) for row in y)


def label_names(labels: LabelSets) -> NDArray[Any]:
    """Return the different labels, sorted.

    Raises:
        InputError: If there is none.
    """
    if labels.columns is not None:
        return np.arange(labels.columns)
    every = {label for row in labels.sets for label in row}
    if not every:
        raise InputError("there must be at least one label to learn, got none in any example")
    kinds = {type(plain_scalar(label)).__name__ for label in every}
    if len(kinds) > 1:
        raise InputError(f"labels must be all of one type, got {', '.join(sorted(kinds))} in y")
    array = np.array(list(every))
    if array.ndim != 1 or array.dtype.kind not in "biufU":
        raise InputError(f"labels must be names or numbers, got {kinds.pop()} in y")
    names: NDArray[Any] = np.unique(array)
    return names


def indicators(
    sets: Sequence[frozenset[Any]], classes: NDArray[Any], what: str
) -> NDArray[np.float64]:
    """Return 1 where an example has a label, (N, C).

    Raises:
        InputError: If a label is none of the classes.
    """
    numbers = {label: i for i, label in enumerate(classes.tolist())}
    unknown = sorted({repr(label) for row in sets for label in row if label not in numbers})
    if unknown:
        raise InputError(
            f"labels of the {what} data must occur in the training data, got {unknown[0]}; known: "
            f"{', '.join(repr(label) for label in list(numbers)[:20])}"
        )
    table = np.zeros((len(sets), len(classes)))
    for row, labels in zip(table, sets, strict=True):
        row[[numbers[label] for label in labels]] = 1
    return table


def check_threshold(threshold: Any) -> None:
    """Refuse thresholds that are none.

    Raises:
        ConfigError: Naming the value.
    """
    if threshold == "tune":
        return
    values = threshold.values() if isinstance(threshold, Mapping) else [threshold]
    for value in map(plain_scalar, values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= 1:
            raise ConfigError(
                "threshold must be 'tune', a number from 0 to 1, or such a number a label, got "
                f"{value!r}"
            )


def fixed_thresholds(threshold: Any, classes: NDArray[Any]) -> Floats:
    """Return the threshold of each label; one that is not named has 0.5.

    Raises:
        InputError: If a label is none of the classes.
    """
    if not isinstance(threshold, Mapping):
        return np.full(len(classes), THRESHOLD if threshold == "tune" else float(threshold))
    names = classes.tolist()
    for label in threshold:
        if label not in names:
            raise InputError(f"threshold must name labels of the training data, got {label!r}")
    return np.array([float(threshold.get(label, THRESHOLD)) for label in names])


def tuned_thresholds(probabilities: Floats, targets: NDArray[Any]) -> Floats:
    """Return for each label the threshold with the best F1.

    It lies in the middle between two probabilities, or between 0 and the least of them; where
    several are as good, it is the one nearest to 0.5. A label that does not occur keeps 0.5.

    Paper: Yang (2001), "A Study on Thresholding Strategies for Text Categorization", SIGIR, where
    it is called SCut.
    """
    found = np.full(probabilities.shape[1], THRESHOLD)
    for label, (chances, truth) in enumerate(zip(probabilities.T, targets.T, strict=True)):
        if not truth.any():
            continue
        values = np.unique(chances)
        lower = np.concatenate([[0.0], values[:-1]])
        middles = np.concatenate([[THRESHOLD], (values + lower) / 2])
        order = np.argsort(chances)
        below = np.searchsorted(chances[order], middles, side="left")
        hits = truth.sum() - np.concatenate([[0], np.cumsum(truth[order])])[below]
        f1 = 2 * hits / (len(truth) - below + truth.sum())
        best = middles[f1 == f1.max()]
        found[label] = best[np.argmin(np.abs(best - THRESHOLD))]
    return found


def multilabel_metrics(
    predicted: Sequence[frozenset[Any]], actual: Sequence[frozenset[Any]]
) -> dict[str, float]:
    r"""Return how well sets of labels were found.

    `accuracy` is the share of examples all of whose labels are right, `micro_f1` is
    $2 TP / (2 TP + FP + FN)$ over all labels together, `macro_f1` the mean of that of each label
    that occurs on either side.
    """
    labels = sorted({label for row in (*predicted, *actual) for label in row}, key=str)
    counts = np.zeros((len(labels), 2))  # hits, and labels on both sides
    places = {label: i for i, label in enumerate(labels)}
    for found, truth in zip(predicted, actual, strict=True):
        for label in found & truth:
            counts[places[label], 0] += 1
        for label in (*found, *truth):
            counts[places[label], 1] += 1
    hits, both = counts.sum(axis=0) if len(counts) else (0.0, 0.0)
    each = 2 * counts[:, 0] / counts[:, 1]
    same = [found == truth for found, truth in zip(predicted, actual, strict=True)]
    return {
        "accuracy": float(np.mean(same)),
        "micro_f1": float(2 * hits / both) if both else 1.0,
        "macro_f1": float(each.mean()) if len(each) else 1.0,
    }
