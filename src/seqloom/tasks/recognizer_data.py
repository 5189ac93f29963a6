"""What a recognizer is given, checked, and its labels as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged
from seqloom.errors import InputError
from seqloom.nn.ctc import steps_needed
from seqloom.tasks.classifier_sequences import as_sequences, is_sequence_list
from seqloom.tasks.labels import numbered
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.supervised_objective import Examples
from seqloom.tasks.vectors import check_length, require_targets

LABELS = (str, bytes, int, float, np.generic)
PADDING = -1  # after the last label of a row
OWNER = "Recognizer"


class Labeled(NamedTuple):
    """Sequences of vectors, and the labels of each."""

    x: list[NDArray[np.float32]]
    y: list[list[Any]]


def read_vectors(x: Any, width: int | None = None) -> list[NDArray[np.float32]]:
    """Return sequences of vectors as arrays (T, D); what is none is refused."""
    if hasattr(x, "__len__") and not len(x):
        raise InputError("there must be at least one sequence, got none")
    if not is_sequence_list(x):
        raise InputError(
            "X must be sequences of vectors, (steps, features) each, got something else; give a "
            "list of tables, also for one sequence"
        )
    return as_sequences(x, OWNER, width)


def read_labeled(x: Any, y: Any, width: int | None = None) -> Labeled:
    """Return sequences and their labels; a string is a label a character."""
    vectors = read_vectors(x, width)
    require_targets(y)
    labels = []
    for number, one in enumerate(y):
        if not isinstance(one, str | list | tuple | np.ndarray) or np.ndim(one) > 1:
            raise InputError(
                f"y must be a sequence of labels an example, got {one!r} for example {number}"
            )
        labels.append(one.tolist() if isinstance(one, np.ndarray) else list(one))
        wrong = [label for label in labels[-1] if not isinstance(label, LABELS)]
        if wrong:
            raise InputError(
                f"labels must be names or numbers, got {wrong[0]!r} for example {number}"
            )
    check_length(np.empty(len(labels)), len(vectors))
    return Labeled(vectors, labels)


def all_labels(labels: Sequence[Sequence[Any]]) -> NDArray[Any]:
    """Return the different labels of all examples, sorted.

    Raises:
        InputError: If there are none, they are of several types, or an array makes others of them.
    """
    found = {label for each in labels for label in each}
    if not found:
        raise InputError("y must hold at least one label, got none in all examples")
    kinds = {type(label).__name__ for label in found}
    if len({kind.rstrip("0123456789_") for kind in kinds}) > 1:
        raise InputError(f"labels must be all of one type, got {', '.join(sorted(kinds))} in y")
    known: NDArray[Any] = np.unique(np.array(sorted(found)))
    changed = found - set(known.tolist())
    if changed:  # it cuts null characters off at the end
        raise InputError(f"labels must be what an array can hold, got {changed.pop()!r}")
    return known


def encode(given: Labeled, labels: NDArray[Any], what: str) -> Examples:
    """Return examples to learn from: the blank is 0, so labels begin at 1.

    Raises:
        InputError: If a sequence is too short for its labels, or one of those is not known.
    """
    sizes = np.array([len(each) for each in given.y], np.int64)
    flat = np.fromiter((label for each in given.y for label in each), object)
    targets = np.full((len(sizes), max(int(sizes.max()), 1)), PADDING, np.int64)
    targets[np.arange(targets.shape[1]) < sizes[:, None]] = numbered(flat, labels, what) + 1
    steps = np.array([len(one) for one in given.x])
    needed = steps_needed(torch.from_numpy(targets), torch.from_numpy(sizes)).numpy()
    if (steps < needed).any():
        wrong = int(np.flatnonzero(steps < needed)[0])
        raise InputError(
            f"a sequence must have a step a label, and one between two that are equal: at least "
            f"{needed[wrong]} for example {wrong} of the {what} data, got {steps[wrong]}"
        )
    return Examples(as_features(given.x), targets)


def as_features(x: list[NDArray[np.float32]]) -> Sequences:
    """Return sequences as features."""
    return Sequences(Ragged.of(x, np.float32), x[0].shape[1])
