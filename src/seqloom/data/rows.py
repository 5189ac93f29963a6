"""Tables as streams of rows: CSV, TSV, JSON lines, Parquet, and data frames held in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, Protocol

from seqloom.data.delimited import read_quoted, read_unquoted
from seqloom.data.json_values import parse_json
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.sources import read_lines
from seqloom.errors import BackendError, ConfigError, DataError, nearest, one_of
from seqloom.files import Source, open_bytes

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
COMPRESSED = (".gz", ".xz", ".zst", ".zstd")
FRAME = "data frame"  # what a data frame is called in messages
PARQUET_BATCH = 1024  # rows decoded at once
NAMED_COLUMNS = 20  # how many columns a message lists


class DataFrame(Protocol):
    """What we need of a pandas or polars data frame (and `itertuples` or `iter_rows`)."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of a record by name, and where it stands: in a file, or a row of a frame.

    `line` counts from 1; in Parquet and data frames it is the number of the row.
    """

    fields: Mapping[str, object]
    path: str
    line: int


def read_rows(
    source: Source | DataFrame,
    *,
    format: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    on_error: OnError = "raise",
) -> Records[Row]:
    """Read a table: CSV, TSV, JSON lines or Parquet, or a pandas or polars data frame.

    Args:
        source: A file, compressed or not, or a data frame.
        format: "csv", "tsv", "jsonl" or "parquet"; by default what the file's name says.
        header: True if the first record of a CSV or TSV file names the columns; else their names.
        quoted: Whether quotes enclose fields; by default they do in CSV and not in TSV.
        on_error: "raise" at the first malformed row, or "skip" and count.

    Examples:
        >>> for row in read_rows("reviews.csv.gz"):  # doctest: +SKIP
        ...     print(row.line, row.fields["text"])
    """
    table = open_table(source, format=format, header=header, quoted=quoted)
    return Records(table.rows, table.path, on_error)


@dataclass(frozen=True, slots=True)
class Table:
    """Where rows come from and how they are written down."""

    source: Any
    path: str
    format: str
    names: tuple[str, ...] | None
    quoted: bool

    def rows(self, problems: Problems, needed: Sequence[str] = ()) -> Iterator[Row]:
        """Start one pass; if the columns are known beforehand, the `needed` ones must be there."""
        if self.format == FRAME:
            return _frame_rows(self.source, needed)
        if self.format == "parquet":
            return _parquet_rows(self.path, needed)
        if self.format == "jsonl":
            return _json_rows(self.path, problems)
        return _delimited_rows(self, needed, problems)


def open_table(
    source: Source | DataFrame,
    *,
    format: str | None,
    header: bool | Sequence[str],
    quoted: bool | None,
) -> Table:
    """Check the settings of a table; its rows are read later, and as often as one likes.

    Raises:
        ConfigError: If a setting is unknown or does not fit the format.
        DataError: If the format is not given and the file's name does not tell it.
    """
    if isinstance(source, str | PathLike):
        path = fspath(source)
        kind = _guess_format(path) if format is None else format
        if kind not in FORMATS:
            raise ConfigError(one_of("format", kind, FORMATS))
    elif hasattr(source, "columns"):
        path, kind = FRAME, FRAME
    else:
        raise ConfigError(f"source must be a path or a data frame, got {type(source).__name__}")
    if kind not in ("csv", "tsv") and (header is not True or quoted is not None):
        raise ConfigError(f"header and quoted are for csv and tsv, got them with format {kind!r}")
    names = _given_names(header)
    return Table(source, path, kind, names, kind == "csv" if quoted is None else quoted)


def missing_column(name: str, known: Iterable[object]) -> str:
    """Return the message for a column that is not there: those that are, and the nearest."""
    names = [str(column) for column in known]
    more = ", ..." if len(names) > NAMED_COLUMNS else ""
    listed = ", ".join(map(repr, names[:NAMED_COLUMNS])) + more
    return f"must have a column {name!r}, got {listed or 'none'}{nearest(name, names)}"


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for it (NA, NaT)."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _guess_format(path: str) -> str:
    name = PurePath(path.lower())
    if name.suffix in COMPRESSED:
        name = name.with_suffix("")
    for kind, suffixes in FORMATS.items():
        if name.suffix in suffixes:
            return kind
    raise DataError(f"its name does not tell the format; give format= {', '.join(FORMATS)}", path)


def _given_names(header: bool | Sequence[str]) -> tuple[str, ...] | None:
    if header is True:
        return None
    if header is False or isinstance(header, str):
        raise ConfigError(f"header must be True or the names of the columns, got {header!r}")
    names = tuple(header)
    if not names or not all(names) or len(set(names)) < len(names):
        raise ConfigError(f"header must hold distinct names, none of them empty, got {header!r}")
    return names


def _check_columns(
    names: Sequence[str], needed: Sequence[str], path: str, line: int | None = None
) -> None:
    for at, name in enumerate(names):
        if not name:
            raise DataError(
                f"every column must have a name, got '' for column {at + 1} of {len(names)} "
                "(pandas writes its index so; use index=False)",
                path,
                line,
            )
        if name in names[:at]:
            raise DataError(f"columns must have distinct names, got {name!r} twice", path, line)
    for name in needed:
        if name not in names:
            raise DataError(missing_column(name, names), path, line)


def _delimited_rows(table: Table, needed: Sequence[str], problems: Problems) -> Iterator[Row]:
    read = read_quoted if table.quoted else read_unquoted
    records = read(table.path, "," if table.format == "csv" else "\t", problems)
    names, origin = table.names, "`header`"
    if names is None:
        line, fields = next(records, (0, []))
        if not line:
            return
        if problems.count:  # what was skipped may have been the header
            raise problems.first[0]
        names, origin = tuple(fields), "the header"
        _check_columns(names, needed, table.path, line)
    else:
        _check_columns(names, needed, table.path)
    for line, fields in records:
        if len(fields) == len(names):
            yield Row(dict(zip(names, fields, strict=True)), table.path, line)
        else:
            problems.report(
                f"must have {len(names)} fields as {origin} has, got {len(fields)}: "
                f"{shown(fields)}",
                table.path,
                line,
            )


def _json_rows(path: str, problems: Problems) -> Iterator[Row]:
    for line, text in read_lines(path, problems):
        if not text.strip():
            continue
        try:
            fields = parse_json(text, path, line)
            if not isinstance(fields, dict):
                raise DataError(f"must be a JSON object, got {shown(fields)}", path, line)
        except DataError as problem:
            problems.add(problem)
        else:
            yield Row(fields, path, line)


def _parquet_rows(path: str, needed: Sequence[str]) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise BackendError(
            f"{path}: Parquet needs pyarrow; pip install 'seqloom[tables]'"
        ) from None
    damage = (pyarrow.ArrowException, OSError, EOFError)
    with open_bytes(path) as stream:
        if not stream.seekable():
            raise DataError("Parquet must be a plain file, got a pipe or a .zst file", path)
        try:
            file = pyarrow.parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            batches = file.iter_batches(batch_size=PARQUET_BATCH)
        except damage as error:
            raise DataError(f"is not a whole Parquet file ({_first_line(error)})", path) from None
        _check_columns(names, needed, path)
        line = 0
        while True:
            try:
                batch = next(batches, None)
                values = [] if batch is None else [column.to_pylist() for column in batch.columns]
            except (*damage, UnicodeDecodeError) as error:
                raise DataError(f"is damaged ({_first_line(error)})", path, line + 1) from None
            if batch is None:
                return
            for fields in zip(*values, strict=True):
                line += 1
                yield Row(dict(zip(names, fields, strict=True)), path, line)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _frame_rows(frame: Any, needed: Sequence[str]) -> Iterator[Row]:
    names = [str(name) for name in frame.columns]
    _check_columns(names, needed, FRAME)
    if hasattr(frame, "itertuples"):
        records = frame.itertuples(index=False, name=None)
    elif hasattr(frame, "iter_rows"):
        records = frame.iter_rows()
    else:
        raise ConfigError(
            f"a data frame must have itertuples (pandas) or iter_rows (polars), "
            f"got {type(frame).__name__}; collect a lazy one first"
        )
    for line, fields in enumerate(records, 1):
        values = (None if is_missing(value) else value for value in fields)
        yield Row(dict(zip(names, values, strict=True)), FRAME, line)
