"""Sentences with two marked entities and the relation between them (SemEval-2010 Task 8)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from numbers import Integral
from os import fspath
from typing import NamedTuple

from seqloom.data.blocks import Block, read_blocks
from seqloom.data.examples import Relation
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.rows import DataFrame, open_table
from seqloom.data.sources import read_lines
from seqloom.errors import DataError, InputError
from seqloom.files import Source

COMMENT = "Comment"
SEMEVAL_RELATIONS = (
    "Cause-Effect",
    "Component-Whole",
    "Content-Container",
    "Entity-Destination",
    "Entity-Origin",
    "Instrument-Agency",
    "Member-Collection",
    "Message-Topic",
    "Product-Producer",
)
SEMEVAL_LABELS = (
    *(f"{name}({way})" for name in SEMEVAL_RELATIONS for way in ("e1,e2", "e2,e1")),
    "Other",
)
MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
_SENTENCE = re.compile(r"[ \t]*([0-9]+)\t(.*)")
_MARKER = re.compile(r"<(/?)e([12])>")


class Marked(NamedTuple):
    """A text without markers, and the spans of its two entities as (start, end)."""

    text: str
    first: tuple[int, int]
    second: tuple[int, int]


def read_relations(path: Source, *, on_error: OnError = "raise") -> Records[Relation]:
    """Read a file of SemEval-2010 Task 8.

    A record is three lines (the last may be absent) and a blank one:

        1<TAB>"The <e1>child</e1> was wrapped into the <e2>cradle</e2>."
        Other
        Comment: any text

    The markers are taken out; `first` and `second` are the spans of e1 and e2 in the text without
    them, as (start, end).

    Args:
        path: The file, compressed or not.
        on_error: "raise" at the first malformed record, or "skip" and count.

    Examples:
        >>> relation = next(iter(read_relations("TRAIN_FILE.TXT")))  # doctest: +SKIP
        >>> relation.label, relation.text[slice(*relation.first)]  # doctest: +SKIP
        ('Component-Whole(e2,e1)', 'configuration')
    """

    def read(problems: Problems) -> Iterator[Relation]:
        for block in read_blocks(path, problems):
            try:
                relation = _relation(path, block)
            except DataError as problem:
                problems.add(problem)
            else:
                yield relation

    return Records(read, fspath(path), on_error)


def read_marked(
    source: Source | DataFrame,
    *,
    text: str = "text",
    label: str = "label",
    format: str | None = None,
    on_error: OnError = "raise",
) -> Records[Relation]:
    """Read relations from a table (see `read_rows` for the formats): marked texts and labels.

    Args:
        source: A file, compressed or not, or a data frame.
        text: The column of the text, with the markers <e1> </e1> <e2> </e2> in it.
        label: The column of the relation.
        format: As for `read_rows`.
        on_error: "raise" at the first malformed row, or "skip" and count.

    Examples:
        >>> relations = read_marked("contracts.csv", text="clause")  # doctest: +SKIP
    """
    table = open_table(source, format=format, header=True, quoted=None)

    def read(problems: Problems) -> Iterator[Relation]:
        for row in table.rows(problems, (text, label)):
            marked, name = row.fields.get(text), row.fields.get(label)
            if not isinstance(marked, str) or not isinstance(name, str) or not name.strip():
                problems.report(
                    f"{text!r} and {label!r} must be texts, got {shown(marked)} and {shown(name)}",
                    row.path,
                    row.line,
                )
                continue
            try:
                yield Relation(*parse_marked(marked), name.strip())
            except InputError as problem:
                problems.report(problem.message, row.path, row.line)

    return Records(read, table.path, on_error)


def read_unlabeled(
    path: Source, *, column: str | None = None, on_error: OnError = "raise"
) -> Records[Marked]:
    """Read sentences with two marked entities; labels that stand beside them are passed over.

    Args:
        path: The file, compressed or not.
        column: The column of the text, if it is a table (see `read_rows` for the formats); else
            each line is a sentence, and blank lines are left out.
        on_error: "raise" at the first malformed sentence, or "skip" and count.
    """

    def texts(problems: Problems) -> Iterator[tuple[int, object]]:
        if column is None:
            return ((number, line) for number, line in read_lines(path, problems) if line.strip())
        table = open_table(path, format=None, header=True, quoted=None)
        rows = table.rows(problems, (column,))
        return ((row.line, row.fields.get(column)) for row in rows)

    def read(problems: Problems) -> Iterator[Marked]:
        for number, text in texts(problems):
            if not isinstance(text, str):
                problems.report(f"{column!r} must be a text, got {shown(text)}", path, number)
                continue
            try:
                yield parse_marked(text)
            except InputError as problem:
                problems.report(problem.message, path, number)

    return Records(read, fspath(path), on_error)


def is_numbered(path: Source) -> bool:
    """Whether the first line of a file that is not blank has a number and a tab before its text."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return _SENTENCE.match(first) is not None


def _relation(path: Source, block: Block) -> Relation:
    number, line = block[0]
    match = _SENTENCE.fullmatch(line.rstrip())
    if match is None:
        raise DataError(f"must be a number, a tab and a sentence, got {shown(line)}", path, number)
    label = block[1][1].strip() if len(block) > 1 else ""
    if not label or label.startswith(COMMENT) or _SENTENCE.match(label):
        raise DataError(
            f"a sentence must be followed by its label, got {shown(label)} after {match[1]}",
            path,
            number + 1,
        )
    for place, (extra, text) in enumerate(block[2:]):
        if place or not text.lstrip().startswith(COMMENT):
            raise DataError(
                f"a label must be followed by a comment at most and a blank line, "
                f"got {shown(text)}",
                path,
                extra,
            )
    sentence = match[2]
    if len(sentence) > 1 and sentence[0] == sentence[-1] == '"':
        sentence = sentence[1:-1]
    try:
        return Relation(*parse_marked(sentence), label, match[1])
    except InputError as problem:
        raise DataError(problem.message, path, number) from None


def parse_marked(sentence: str) -> Marked:
    """Take the markers of two entities out of a sentence.

    Args:
        sentence: A text with each of <e1> </e1> <e2> </e2> once, one entity behind the other.

    Raises:
        InputError: If a marker is missing, doubled or out of order (entities that overlap or lie in
            each other), or an entity is empty.

    Examples:
        >>> parse_marked("The <e1>child</e1> in the <e2>cradle</e2>.")
        Marked(text='The child in the cradle.', first=(4, 9), second=(17, 23))
    """
    markers = list(_MARKER.finditer(sentence))
    if len(markers) != 4 or len({marker[0] for marker in markers}) != 4:
        found = " ".join(marker[0] for marker in markers) or "none"
        raise InputError(
            f"must have each of <e1> </e1> <e2> </e2> once, got {found} in {shown(sentence)}"
        )
    for opening, closing in (markers[:2], markers[2:]):
        if opening[1] or not closing[1] or opening[2] != closing[2]:
            order = " ".join(marker[0] for marker in markers)
            raise InputError(
                f"one entity must end before the other begins, got {order} in {shown(sentence)}"
            )
        if not sentence[opening.end() : closing.start()].strip():
            raise InputError(
                f"an entity must not be empty, got {opening[0]}{closing[0]} in {shown(sentence)}"
            )
    pieces: list[str] = []
    spans: dict[str, list[int]] = {"1": [], "2": []}
    end = length = 0
    for marker in markers:
        pieces.append(sentence[end : marker.start()])
        end = marker.end()
        length += len(pieces[-1])
        spans[marker[2]].append(length)
    text = "".join([*pieces, sentence[end:]])
    (first, first_end), (second, second_end) = spans["1"], spans["2"]
    return Marked(text, (first, first_end), (second, second_end))


def mark(text: str, first: tuple[int, int], second: tuple[int, int]) -> str:
    """Put the markers of two entities into a text: the way back from `parse_marked`.

    Examples:
        >>> mark("The child in the cradle.", (4, 9), (17, 23))
        'The <e1>child</e1> in the <e2>cradle</e2>.'
    """
    check_spans(text, first, second)
    (early, e), (late, f) = sorted([(first, "1"), (second, "2")])
    return (
        f"{text[: early[0]]}<e{e}>{text[slice(*early)]}</e{e}>{text[early[1] : late[0]]}"
        f"<e{f}>{text[slice(*late)]}</e{f}>{text[late[1] :]}"
    )


def check_spans(text: str, first: tuple[int, int], second: tuple[int, int]) -> None:
    """Refuse entities that are empty, overlap, or lie outside of the text.

    Raises:
        InputError: With the span that is wrong.
    """
    for span in (first, second):
        if not _is_span(span):
            raise InputError(
                f"an entity must be (start, end), two whole numbers, got {span!r} in {shown(text)}"
            )
        start, end = span
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"an entity must be a span within 0..{len(text)}, got ({start}, {end}) in "
                f"{shown(text)}"
            )
        if not text[start:end].strip():
            raise InputError(f"an entity must not be empty, got ({start}, {end}) in {shown(text)}")
    if first[0] < second[1] and second[0] < first[1]:
        raise InputError(
            f"one entity must end before the other begins, got {tuple(first)} and {tuple(second)} "
            f"in {shown(text)}"
        )


def _is_span(span: object) -> bool:
    return (
        isinstance(span, tuple | list)
        and len(span) == 2
        and all(isinstance(end, Integral) and not isinstance(end, bool) for end in span)
    )


def read_answers(path: Source, labels: Container[str] = SEMEVAL_LABELS) -> dict[str, str]:
    """Read a file of answers to SemEval-2010 Task 8: lines of an example's number, a tab, a label.

    Args:
        path: The file, compressed or not.
        labels: What a label may be.

    Returns:
        The label of each number, in the order of the file.

    Raises:
        DataError: With the line of an answer that is malformed, doubled, or of an unknown label.
    """
    found: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        name, tab, label = line.rstrip().partition("\t")
        if not tab or not name.isdecimal():
            raise DataError(f"must be a number, a tab and a label, got {shown(line)}", path, number)
        if label not in labels:
            raise DataError(f"unknown label {shown(label)} of example {name}", path, number)
        if name in found:
            raise DataError(f"example {name} must be answered once, got two answers", path, number)
        found[name] = label
    if not found:
        raise DataError("no answer was found; give a file that holds at least one", path)
    return found
