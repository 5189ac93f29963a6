r"""Text files as streams of decoded lines, with limits.

A line ends at "\n" (a "\r" before it goes too) and nowhere else, so texts that hold U+2028 or
U+0085 stay whole. Bytes must be UTF-8; a byte-order mark at the start is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from os import fspath
from typing import IO

from seqloom.data.problems import Problems
from seqloom.errors import DataError
from seqloom.files import Source, open_bytes

MAX_LINE_BYTES = 16 << 20  # a longer line is taken for a file of another kind
LINE_OVERHEAD = 64  # what an empty line takes in memory, so that many short lines count too
MAX_FILE_BYTES = 2 << 30  # for formats that must be held whole (JSON)

NumberedLine = tuple[int, str | None]  # None in place of a line that was reported and skipped


def read_lines(
    path: Source, problems: Problems | None = None, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end) for each line of a text file.

    Raises:
        DataError: If the file cannot be read, or (unless `problems` skips) a line is not UTF-8,
            holds a NUL byte or is longer than `max_line_bytes`.
    """
    for number, line in read_every_line(path, problems, max_line_bytes=max_line_bytes):
        if line is not None:
            yield number, line


def read_every_line(
    path: Source, problems: Problems | None = None, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[NumberedLine]:
    """As `read_lines`, but with None in place of a line that was reported and skipped.

    A format whose records span lines needs to know: a sentence that lost a line is no sentence.
    """
    problems = problems or Problems()
    number = 0
    try:
        with open_bytes(path) as stream:
            while line := stream.readline(max_line_bytes + 1):
                number += 1
                if number == 1:
                    line = _without_mark(line, path)
                if len(line) > max_line_bytes and not line.endswith(b"\n"):
                    problems.report(
                        f"the line is longer than {max_line_bytes:,} bytes; is this a text file, "
                        "and does it break lines with \\n?",
                        path,
                        number,
                    )
                    _skip_line(stream, path, number)
                    yield number, None
                else:
                    yield number, _decode_line(line, path, number, problems)
    except DataError as error:
        if error.line is None and number and error.path == fspath(path):
            raise DataError(error.message, path, number + 1) from None
        raise


class LinesAgain:
    """Lines that can be put back and read again, for a reader that took too many."""

    def __init__(self, lines: Iterator[NumberedLine]) -> None:
        self._lines, self._again = lines, deque[NumberedLine]()

    def __iter__(self) -> LinesAgain:
        return self

    def __next__(self) -> NumberedLine:
        return self._again.popleft() if self._again else next(self._lines)

    def put_back(self, lines: Sequence[NumberedLine]) -> None:
        """Read these lines, in this order, before all others."""
        self._again.extendleft(reversed(lines))


def _without_mark(start: bytes, path: Source) -> bytes:
    """Drop a UTF-8 byte-order mark; refuse the one of UTF-16."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("is UTF-16 text; convert it first (iconv -f UTF-16 -t UTF-8)", path, 1)
    return start.removeprefix(b"\xef\xbb\xbf")


def _decode_line(line: bytes, path: Source, number: int, problems: Problems) -> str | None:
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if b"\0" in line:
        problems.report("holds a NUL byte; is this a text file?", path, number)
        return None
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        problems.report(
            f"is not UTF-8: byte 0x{byte:02x} at column {error.start + 1}; convert it first "
            "(iconv -t UTF-8)",
            path,
            number,
        )
        return None


def _skip_line(stream: IO[bytes], path: Source, number: int) -> None:
    read = 0
    while (piece := stream.readline(1 << 20)) and not piece.endswith(b"\n"):
        read += len(piece)
        if read > MAX_FILE_BYTES:
            raise DataError(f"the line is longer than {MAX_FILE_BYTES:,} bytes", path, number)


def read_whole(path: Source, *, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return a whole text file, for formats that cannot be streamed.

    Raises:
        DataError: As `read_lines`, or if the (decompressed) file is larger than `max_bytes`.
    """
    with open_bytes(path) as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise DataError(f"is larger than {max_bytes:,} bytes once decompressed", path)
    data = _without_mark(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not UTF-8: byte 0x{data[error.start]:02x}; convert it first (iconv -t UTF-8)",
            path,
            line,
        ) from None
