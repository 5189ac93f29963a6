"""Numbers given in Python, checked: a table of features, a list of labels or of targets.

Messages begin with the words scikit-learn uses where it has some, since its tools and its users
look for them.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import InputError, InputTypeError
from seqloom.tasks.scikit import warn_of_column

Floats = NDArray[np.float64]


def as_vectors(x: Any, owner: str, width: int | None = None) -> Floats:
    """Return features as a (N, D) array of float64.

    Args:
        x: Anything numpy can make a table of numbers of.
        owner: The name of the estimator, for messages.
        width: The D it was fitted to, if it was.

    Raises:
        InputError: If it is no such table, or not of that width.
    """
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise InputError(f"X must be dense, got a sparse {type(x).__name__}; use X.toarray()")
    try:
        array = np.asarray(x)
    except ValueError:
        raise InputError("X must be a table of numbers, got rows of different lengths") from None
    if np.iscomplexobj(array):
        raise InputError(f"Complex data not supported: X must hold real numbers, got {array.dtype}")
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array of shape {array.shape} instead. Reshape "
            "your data: array.reshape(-1, 1) if it is one feature, array.reshape(1, -1) if it is "
            "one example"
        )
    array = _as_numbers(array, "X")
    for axis, what in ((0, "sample(s)"), (1, "feature(s)")):
        if not array.shape[axis]:
            raise InputError(
                f"Found array with 0 {what} (shape={array.shape}) while a minimum of 1 is "
                "required; there is nothing to learn from or to predict"
            )
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"X has {array.shape[1]} features, but {owner} is expecting {width} features as input"
        )
    _check_finite(array, "X")
    return array


def as_targets(y: Any, count: int) -> Floats:
    """Return numbers to predict as a (N, C) array of float64, of one row an example."""
    require_targets(y)
    array = _as_numbers(np.asarray(y), "y")
    if array.ndim not in (1, 2):
        raise InputError(f"y must be a list of numbers or a table, got shape {array.shape}")
    _check_finite(array, "y")
    check_length(array, count)
    return array.reshape(len(array), -1)


def as_labels(y: Any, count: int) -> NDArray[Any]:
    """Return labels as an array of one label an example."""
    require_targets(y)
    if isinstance(y, list | tuple) and len({type(label) for label in y}) > 1:
        y = np.array([*y, None], object)[:-1]  # else numpy would make text of mixed labels
    try:
        array = np.asarray(y)
    except ValueError:
        raise InputError(SINGLE) from None
    if array.ndim == 2 and array.shape[1] == 1:
        warn_of_column()
        array = array[:, 0]
    if array.ndim != 1 or (array.dtype == object and any(is_several(label) for label in array)):
        raise InputError(SINGLE)
    check_length(array, count)
    if array.dtype.kind == "f":
        _check_finite(array, "y")
        if (array != np.floor(array)).any():
            wrong = array[array != np.floor(array)][0]
            raise InputError(
                f"Unknown label type: labels must be names or whole numbers, got continuous "
                f"numbers such as {wrong}; use a Regressor for those"
            )
    if array.dtype == object:
        missing = [label for label in array if label is None or _is_nan(label)]
        if missing:
            raise InputError(f"every example must have a label, got {missing[0]!r} in y")
        kinds = {type(label).__name__ for label in array}
        if not all(isinstance(label, str) for label in array):
            array = _plain(array, kinds)
    return array


SINGLE = (
    "every example must have one label, got several of them in y; set multilabel=True for sets of "
    "labels"
)


def is_several(label: Any) -> bool:
    """Whether this is several labels, not one."""
    return isinstance(label, list | tuple | set | frozenset | np.ndarray)


def _is_nan(label: Any) -> bool:
    return isinstance(label, float) and math.isnan(label)


def _plain(array: NDArray[Any], kinds: set[str]) -> NDArray[Any]:
    """Labels in an array of objects as numbers, if that is what they all are."""
    if any(isinstance(label, str) for label in array):
        raise InputError(f"labels must be all of one type, got {', '.join(sorted(kinds))} in y")
    plain = np.asarray(array.tolist())
    if plain.dtype.kind not in "biuf" or plain.ndim != 1:
        raise InputError(f"labels must be names or numbers, got {', '.join(sorted(kinds))} in y")
    return plain


def require_targets(y: Any) -> None:
    """Refuse features that come without anything to learn."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None; call fit(X, y)")


def check_length(y: Sized, count: int) -> None:
    """Refuse a y of another length than X."""
    if len(y) != count:
        raise InputError(
            f"X and y must be of one length, got inconsistent numbers of samples: {count} and "
            f"{len(y)}"
        )


def _as_numbers(array: NDArray[Any], name: str) -> Floats:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        wrong = InputTypeError if isinstance(error, TypeError) else InputError
        raise wrong(f"{name} must hold numbers, got something else ({error})") from None


def _check_finite(array: Floats, name: str) -> None:
    if np.isfinite(array).all():
        return
    what = "NaN" if np.isnan(array).any() else "infinity"
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    raise InputError(
        f"Input {name} contains {what} (first at {place}); remove or replace such values"
    )
