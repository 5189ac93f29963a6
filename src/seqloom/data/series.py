"""Series of numbers: tables whose rows follow each other in time at equal steps."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from os import fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.data.datasets import dataset_names
from seqloom.data.inputs import read_input
from seqloom.data.problems import Records, shown
from seqloom.data.rows import Row, is_missing, read_rows
from seqloom.errors import DataError
from seqloom.files import Source

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
SLICE = re.compile(r"\[(-?\d*):(-?\d*)\]$")
MONTH = re.compile(r"\d{4}-\d{2}")
LIKE_A_DATE = re.compile(r"\b(?:1[5-9]|2\d)\d\d\b|\d[/.:-]\d")
SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


class GapWarning(UserWarning):
    """The times of a series are not evenly spaced, or not known to be; its rows are taken so."""


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers at equal steps of time.

    Args:
        values: (T, D); NaN where a number is missing.
        columns: The name of each column.
        times: What each row is called, if a column said so.
        start: How many rows of the whole series come before these.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    times: tuple[str, ...] | None = None
    start: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, begin: int | None, end: int | None) -> Series:
        """Return the rows from `begin` to before `end`, counted as Python counts."""
        first, last, _ = slice(begin, end).indices(len(self))
        times = None if self.times is None else self.times[first:last]
        return Series(self.values[first:last], self.columns, times, self.start + first)


def read_series(source: Source) -> Series:
    """Read a table of numbers, one row a step of time.

    A first column that does not hold numbers names the times; where these are dates, with or
    without an hour, that rise unevenly, a `GapWarning` says so, and so it does where they look like
    dates and are not written as ISO 8601 has them. An empty field, or NA, is a missing number.

    Args:
        source: A file, or "NAME:SPLIT"; "[BEGIN:END]" after it takes a part of the rows, as in
            "time-series:airline[:-60]".

    Raises:
        DataError: With file and line, if a field is no number or times do not rise.
    """
    name = fspath(source)
    part = SLICE.search(name)
    if part and not Path(name).exists():
        name = name[: part.start()]
    rows = list(_open(name))
    names = list(rows[0].fields)
    timed = _number(rows[0].fields[names[0]]) is None and len(names) > 1
    columns = names[1:] if timed else names
    values = np.array([[_value(row, column) for column in columns] for row in rows], np.float64)
    times = None
    if timed:
        times = tuple(str(row.fields[names[0]]) for row in rows)
        _check_times(times, rows)
    series = Series(values, tuple(columns), times)
    if part is None:
        return series
    begin, end = (int(bound) if bound else None for bound in part.groups())
    found = series.rows(begin, end)
    if not len(found):
        raise DataError(f"must hold rows {part[0]}, got {len(series)} rows", name)
    return found


def _open(name: str) -> Records[Row]:
    if not Path(name).exists() and name.partition(":")[0] in dataset_names():
        return read_input(name, "text")
    return read_rows(name, format="csv" if name == "-" else None)


def _number(value: object) -> float | None:
    """A number, NaN for a missing one, None for something else."""
    if is_missing(value) or (isinstance(value, str) and value.strip().lower() in MISSING):
        return float("nan")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _value(row: Row, column: str) -> float:
    found = _number(row.fields.get(column))
    if found is None or np.isinf(found):
        raise DataError(
            f"column {column!r} must hold numbers, got {shown(row.fields[column])}",
            row.path,
            row.line,
        )
    return found


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(f"{time}-01" if MONTH.fullmatch(time) else time.strip())
    except ValueError:
        return None


def _check_times(times: tuple[str, ...], rows: list[Row]) -> None:
    """Dates must rise; uneven ones are told of. Other names of times are not looked at."""
    found = [_moment(time) for time in times]
    moments = [moment for moment in found if moment is not None]
    of_a_zone = {moment.utcoffset() is not None for moment in moments}
    if len(moments) < len(times) or len(of_a_zone) > 1:
        _tell_of_unreadable(times, found)
        return
    months = all(MONTH.fullmatch(time) for time in times)
    steps = []
    for place, (before, after) in enumerate(pairwise(moments), 1):
        step = (after - before).total_seconds()
        if step <= 0:
            raise DataError(
                f"times must rise, got {times[place]!r} after {times[place - 1]!r}",
                rows[place].path,
                rows[place].line,
            )
        apart = 12 * (after.year - before.year) + after.month - before.month
        steps.append(apart if months else step)
    if len(set(steps)) > 1:
        usual = Counter(steps).most_common(1)[0][0]
        odd = [place for place, step in enumerate(steps) if step != usual]
        length = f"{usual} month(s)" if months else _length(usual)
        warnings.warn(
            f"{len(odd)} of {len(steps)} steps are not of {length} (the first from "
            f"{times[odd[0]]} to {times[odd[0] + 1]}); rows are taken as evenly spaced: fill in "
            "missing rows with NaN and set gaps='interpolate', or leave it so",
            GapWarning,
            stacklevel=3,
        )


def _length(seconds: float) -> str:
    """A time in the largest unit that measures it, as "3 hour(s)"."""
    for unit, size in SECONDS.items():
        if seconds % size == 0:
            return f"{seconds / size:g} {unit}(s)"
    return f"{seconds:g} second(s)"


def _tell_of_unreadable(times: tuple[str, ...], found: list[datetime | None]) -> None:
    """Warn of times that look like dates, and whose order cannot be told."""
    unread = [time for time, moment in zip(times, found, strict=True) if moment is None]
    looks_so = [time for time in unread or times if LIKE_A_DATE.search(time)]
    if not looks_so:
        return
    reason = "not dates as in 2020-01-31 or 2020-01-31T12:00" if unread else "partly of a zone"
    warnings.warn(
        f"times such as {looks_so[0]!r} are {reason}, so that they rise was not checked; rows are "
        "taken as evenly spaced in the order they have",
        GapWarning,
        stacklevel=4,
    )
