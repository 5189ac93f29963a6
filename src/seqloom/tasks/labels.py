"""The classes of a classifier: labels to numbers, and to a model directory, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import InputError


def class_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels, sorted, in an array of their own type.

    Raises:
        InputError: If there is nothing to tell apart, or labels are neither names nor numbers, such
            as bytes and dates, which no model directory could keep.
    """
    classes: NDArray[Any] = np.unique(y)
    if classes.dtype.kind == "T":  # numpy's strings of any length
        classes = np.array(classes.tolist())
    if classes.dtype.kind not in "biufUO":
        raise InputError(
            f"labels must be names or numbers, got {classes.dtype} such as {classes[0]!r} in y; "
            "make texts of them"
        )
    if len(classes) < 2:
        raise InputError(
            "there must be at least two classes to tell apart, got 1 class: "
            f"{classes.tolist()[0]!r}"
        )
    return classes


def numbered(y: NDArray[Any], classes: NDArray[Any], what: str) -> NDArray[np.int64]:
    """Return the number of each label among the classes.

    Raises:
        InputError: If one of them is none of the classes.
    """
    numbers = {label: i for i, label in enumerate(classes.tolist())}
    unknown = sorted({repr(label) for label in y.tolist() if label not in numbers})
    if unknown:
        raise InputError(
            f"labels of the {what} data must occur in the training data, got {unknown[0]}; known: "
            f"{', '.join(repr(label) for label in list(numbers)[:20])}"
        )
    return np.array([numbers[label] for label in y.tolist()], np.int64)


def check_kind(labels: Iterable[Any], classes: NDArray[Any]) -> None:
    """Refuse labels to measure by that are names where numbers were learned, or the other way.

    Raises:
        InputError: If all of them are, with both types.
    """
    given, known = set(labels), classes.tolist()
    learned_names = isinstance(known[0], str)
    if not given or any(isinstance(label, str) is learned_names for label in given):
        return
    found = next(iter(given))
    raise InputError(
        f"labels must be of the type that was learned, {type(known[0]).__name__} such as "
        f"{known[0]!r}, got {type(found).__name__} such as {found!r}"
    )


def labels_to_dict(classes: NDArray[Any]) -> dict[str, Any]:
    """The classes as plain values for JSON."""
    return {"type": classes.dtype.str, "labels": classes.tolist()}


def labels_from_dict(values: Mapping[str, Any]) -> NDArray[Any]:
    """The classes that `labels_to_dict` wrote."""
    return np.array(values["labels"], np.dtype(values["type"]))
