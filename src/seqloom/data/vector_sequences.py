"""Sequences of vectors in JSON lines, with or without the labels they are to be read as."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.digits import STRIPS, digit_strips
from seqloom.data.rows import Row, missing_column, read_rows
from seqloom.errors import DataError
from seqloom.files import Source


class VectorSequences(NamedTuple):
    """Sequences (T, D), and the labels of each if they were asked for."""

    x: list[NDArray[np.float32]]
    labels: list[list[Any] | str]


def read_vector_sequences(
    source: Source, *, x: str = "x", labels: str | None = "labels", format: str | None = None
) -> VectorSequences:
    """Read JSON lines such as {"x": [[0.1, 0.2], [0.3, 0.4]], "labels": ["a"]}.

    Args:
        source: A file, compressed or not.
        x: The field of the vectors.
        labels: The field of the labels, a list or a string of characters; None for none.
        format: As for `read_rows`.

    Raises:
        DataError: With file and line, if a field is missing or not of that kind.
    """
    sequences, found = [], []
    for row in read_rows(source, format=format):
        sequences.append(_vectors(row, x))
        if labels is not None:
            value = _field(row, labels)
            if not isinstance(value, list | str):
                raise DataError(
                    f"{labels!r} must be a list of labels or a string, got {value!r}",
                    row.path,
                    row.line,
                )
            found.append(value)
    return VectorSequences(sequences, found)


def open_labeled_sequences(source: Source) -> VectorSequences:
    """Return labeled sequences of a file, or those of "digit-strips:SPLIT", which are made up."""
    name, _, split = fspath(source).partition(":")
    if name == STRIPS and not Path(fspath(source)).exists():
        strips = digit_strips(split)
        return VectorSequences(strips.columns, list(strips.digits))
    return read_vector_sequences(source)


def _field(row: Row, name: str) -> Any:
    if name not in row.fields:
        raise DataError(missing_column(name, row.fields), row.path, row.line)
    return row.fields[name]


def _vectors(row: Row, name: str) -> NDArray[np.float32]:
    value = _field(row, name)
    try:
        array = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        array = np.empty(0, np.float32)
    if array.ndim != 2 or not array.size:
        raise DataError(
            f"{name!r} must be a list of vectors of one width, got {str(value)[:60]}",
            row.path,
            row.line,
        )
    if not np.isfinite(array).all():
        raise DataError(
            f"{name!r} must hold finite numbers, got NaN or infinity", row.path, row.line
        )
    return array
