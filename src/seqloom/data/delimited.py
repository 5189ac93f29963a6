r"""Records of CSV and TSV files, as lists of fields with the line each begins at.

CSV is RFC 4180: a field in quotes may hold delimiters, doubled quotes and line ends (which reach
us as "\n"). TSV as data sets come has no quoting at all: a quote is a character like any other.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from itertools import accumulate
from types import TracebackType

from seqloom.data.problems import Problems, shown
from seqloom.data.sources import (
    LINE_OVERHEAD,
    MAX_LINE_BYTES,
    LinesAgain,
    read_every_line,
    read_lines,
)
from seqloom.files import Source

MAX_RECORD_CHARACTERS = 16 << 20  # a quote that stays open longer is taken for a stray one


def read_unquoted(
    path: Source, delimiter: str, problems: Problems
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) for each line that is not empty; quotes mean nothing."""
    for number, line in read_lines(path, problems):
        if line:
            yield number, line.split(delimiter)


def read_quoted(
    path: Source, delimiter: str, problems: Problems
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line the record begins at, fields) for each record that is not empty.

    When records are skipped, a quote that is never closed costs the line it opens in, not the
    rest of the file.
    """
    lines = _RecordLines(LinesAgain(read_every_line(path, problems)))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_record()
        try:
            with _LONG_FIELDS:
                fields = next(reader)
        except StopIteration:
            return
        except (csv.Error, _EndlessRecordError) as error:
            number, text = lines.taken[0]
            opened = lines.open_quote(delimiter)
            if opened is None:
                problems.report(f"is not well-formed CSV ({error}): {shown(text)}", path, number)
                continue
            number, text = lines.taken[opened]
            problems.report(f"a quote is opened and never closed: {shown(text)}", path, number)
            lines.put_back_after(opened)
            continue
        if fields and not lines.lost_one:
            yield lines.taken[0][0], fields


class _EndlessRecordError(Exception):
    """A record grew beyond `MAX_RECORD_CHARACTERS`."""


class _RecordLines:
    """Hands lines to the csv module and remembers those of the record at hand."""

    def __init__(self, lines: LinesAgain) -> None:
        self._lines = lines
        self.begin_record()

    def begin_record(self) -> None:
        self.taken: list[tuple[int, str]] = []
        self.lost_one = False  # whether a line of the record was reported and skipped
        self._size = 0

    def __iter__(self) -> _RecordLines:
        return self

    def __next__(self) -> str:
        if self._size > MAX_RECORD_CHARACTERS:
            raise _EndlessRecordError(f"a record longer than {MAX_RECORD_CHARACTERS:,} characters")
        number, line = next(self._lines)
        if line is None:
            self.lost_one, line = True, ""
        self.taken.append((number, line))
        self._size += len(line) + LINE_OVERHEAD
        return line + "\n"

    def open_quote(self, delimiter: str) -> int | None:
        """Return which of the lines taken opens a quote that is still open at their end."""
        text = "".join(line + "\n" for _, line in self.taken)
        opened = _open_quote(text, delimiter)
        if opened is None:
            return None
        ends = accumulate(len(line) + 1 for _, line in self.taken)
        return next(i for i, end in enumerate(ends) if opened < end)

    def put_back_after(self, index: int) -> None:
        """Read the lines taken after this one anew."""
        self._lines.put_back(self.taken[index + 1 :])


def _open_quote(text: str, delimiter: str) -> int | None:
    """Return where the quote was opened that is open at the end of a record, if one is."""
    at = 0
    while True:
        if text.startswith('"', at):
            opened, at = at, at + 1
            while True:
                quote = text.find('"', at)
                if quote < 0:
                    return opened
                if not text.startswith('""', quote):
                    break
                at = quote + 2
        at = text.find(delimiter, at) + 1
        if not at:
            return None


class _LongFields:
    """Lifts the csv module's limit of 128 KiB a field while one of our readers is at work.

    The limit belongs to the whole process, so it is put back when the last reader (there may be
    several threads) is done with its record.
    """

    def __init__(self) -> None:
        self._lock, self._readers, self._limit = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._readers:
                self._limit = csv.field_size_limit(MAX_RECORD_CHARACTERS + MAX_LINE_BYTES)
            self._readers += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                csv.field_size_limit(self._limit)


_LONG_FIELDS = _LongFields()
