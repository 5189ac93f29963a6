"""Examples made of the fields of a table's rows: labeled texts and pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from seqloom.data.examples import LabeledText, Text, TextPair
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.rows import DataFrame, Row, is_missing, missing_column, open_table
from seqloom.errors import ConfigError, DataError
from seqloom.files import Source

Example = TypeVar("Example")


def read_texts(
    source: Source | DataFrame,
    *,
    text: str = "text",
    format: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    on_error: OnError = "raise",
) -> Records[Text]:
    """Read texts from one column of a table (see `read_rows` for the formats).

    Args:
        source: A file, compressed or not, or a data frame.
        text: The column of the text; a list of strings is joined with blanks.
        format: As for `read_rows`.
        header: As for `read_rows`.
        quoted: As for `read_rows`.
        on_error: "raise" at the first row without a text, or "skip" and count.
    """
    table = open_table(source, format=format, header=header, quoted=quoted)
    rows = _examples(lambda problems: table.rows(problems, (text,)), lambda r: Text(_text(r, text)))
    return Records(rows, table.path, on_error)


def read_labeled(
    source: Source | DataFrame,
    *,
    text: str = "text",
    label: str = "label",
    separator: str | None = None,
    format: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    on_error: OnError = "raise",
) -> Records[LabeledText]:
    """Read texts with their classes from a table (see `read_rows` for the formats).

    Labels become strings without blanks around them (a whole number held as a float, as pandas
    does beside missing values, is written as the integer it is). An empty list, or with a separator
    an empty field, is no label at all, as an example of several labels may have.

    Args:
        source: A file, compressed or not, or a data frame.
        text: The column of the text; a list of strings is joined with blanks.
        label: The column of the label, or of a list of labels.
        separator: What stands between several labels in one field, such as "|".
        format: As for `read_rows`.
        header: As for `read_rows`.
        quoted: As for `read_rows`.
        on_error: "raise" at the first row without a text or a label, or "skip" and count.

    Examples:
        >>> reviews = read_labeled("reviews.tsv", text="text_a")  # doctest: +SKIP
        >>> next(iter(reviews)).label  # doctest: +SKIP
        '1'
    """
    if separator == "":
        raise ConfigError("separator must not be empty; leave it out for one label a field")

    def example(row: Row) -> LabeledText:
        return LabeledText(_text(row, text), _labels(row, label, separator))

    table = open_table(source, format=format, header=header, quoted=quoted)
    read = _examples(lambda problems: table.rows(problems, (text, label)), example)
    return Records(read, table.path, on_error)


def read_pairs(
    source: Source | DataFrame,
    *,
    source_field: str = "source",
    target_field: str = "target",
    format: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    on_error: OnError = "raise",
) -> Records[TextPair]:
    """Read pairs of texts from a table (see `read_rows` for the formats).

    Args:
        source: A file, compressed or not, or a data frame.
        source_field: The column to read from; a list of strings is joined with blanks.
        target_field: The column of what it becomes; likewise.
        format: As for `read_rows`.
        header: As for `read_rows`.
        quoted: As for `read_rows`.
        on_error: "raise" at the first row that lacks a side, or "skip" and count.

    Examples:
        >>> names = ("source", "target", "attribution")
        >>> pairs = read_pairs("cmn.txt", format="tsv", header=names)  # doctest: +SKIP
    """

    def example(row: Row) -> TextPair:
        return TextPair(_text(row, source_field), _text(row, target_field))

    table = open_table(source, format=format, header=header, quoted=quoted)
    read = _examples(lambda problems: table.rows(problems, (source_field, target_field)), example)
    return Records(read, table.path, on_error)


def read_numbers(
    source: Source | DataFrame, *, target: str = "target", format: str | None = None
) -> tuple[list[list[float]], list[float]]:
    """Read a table of numbers: every column but the target is a feature.

    Args:
        source: A file, compressed or not, or a data frame.
        target: The column to be predicted; "" if there is none.
        format: As for `read_rows`.

    Returns:
        The features, a row each, and the targets.
    """
    table = open_table(source, format=format, header=True, quoted=None)
    needed = (target,) if target else ()
    features, targets = [], []
    for row in Records(lambda problems: table.rows(problems, needed), table.path):
        features.append([_number(row, name) for name in row.fields if name != target])
        if target:
            targets.append(_number(row, target))
    return features, targets


def _number(row: Row, name: str) -> float:
    try:
        return float(_value(row, name))
    except (TypeError, ValueError):
        shown_value = shown(row.fields[name])
        raise DataError(
            f"column {name!r} must hold numbers, got {shown_value}", row.path, row.line
        ) from None


def _examples(
    rows: Callable[[Problems], Iterator[Row]], example: Callable[[Row], Example]
) -> Callable[[Problems], Iterator[Example]]:
    """Return a pass that makes an example of each row and reports those it cannot be made of."""

    def read(problems: Problems) -> Iterator[Example]:
        for row in rows(problems):
            try:
                made = example(row)
            except DataError as problem:
                problems.add(problem)
            else:
                yield made

    return read


def _value(row: Row, name: str) -> Any:
    try:
        value: Any = row.fields[name]
    except KeyError:
        raise DataError(missing_column(name, row.fields), row.path, row.line) from None
    return value.tolist() if hasattr(value, "tolist") else value  # numpy's to Python's own


def _text(row: Row, name: str) -> str:
    value = _value(row, name)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name!r} must be a text, got {shown(value)}", row.path, row.line)
    return value


def _labels(row: Row, name: str, separator: str | None) -> tuple[str, ...]:
    value = _value(row, name)
    if isinstance(value, str) and separator is not None:
        value = [part for part in value.split(separator) if part.strip()]
    parts = value if isinstance(value, list | tuple) else [value]
    labels = [_label(part) for part in parts]
    if not all(labels):
        raise DataError(f"{name!r} must be a label, got {shown(value)}", row.path, row.line)
    return tuple(dict.fromkeys(labels))


def _label(value: object) -> str:
    """Return a label as text, or "" for what is none."""
    if is_missing(value) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
