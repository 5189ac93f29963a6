"""Files as streams of decoded lines: plain, gzip, xz and zstandard alike, with limits.

A line ends at "\\n" (a "\\r" before it goes too) and nowhere else, so texts that hold U+2028 or
U+0085 stay whole. Bytes must be UTF-8; a byte-order mark at the start is dropped.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from seqloom.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

from seqloom.data.problems import Problems

Source = str | PathLike[str]

MAX_LINE_BYTES = 16 << 20  # a longer line is taken for a file of another kind
MAX_FILE_BYTES = 2 << 30  # for formats that must be held whole (JSON)
ZSTD_FEED = 1 << 10  # compressed bytes decoded at once: bounds what a hostile frame can unfold to

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile)


class _ZstdReader(io.RawIOBase):
    """Frames decoded a little at a time; unlike the library's own reader it notices a cut."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._pending = raw, b""
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._frame_open = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._pending:
            chunk = self._raw.read(ZSTD_FEED)
            if not chunk:
                if self._frame_open:
                    raise EOFError("the last zstandard frame is cut off")
                return 0
            self._pending = self._decode(chunk)
        n = min(len(view), len(self._pending))
        view[:n] = self._pending[:n]
        self._pending = self._pending[n:]
        return n

    def _decode(self, chunk: bytes) -> bytes:
        out = []
        while chunk:
            out.append(self._frame.decompress(chunk))
            self._frame_open = not self._frame.eof
            if self._frame_open:
                break
            chunk = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        return b"".join(out)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    """Look at the first bytes, not at the name: a wrongly named file is still read right."""
    head = cast(io.BufferedReader, raw).peek(6)[:6]
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if head.startswith(_XZ):
        return cast(IO[bytes], lzma.LZMAFile(raw))
    if head.startswith(_ZSTD):
        return cast(IO[bytes], io.BufferedReader(_ZstdReader(raw), 1 << 17))
    return raw


@contextmanager
def open_bytes(path: Source) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressing as its first bytes say; "-" is standard input.

    Raises:
        DataError: If there is no such file, it is a directory, may not be read, or its compressed
            data turns out damaged while it is read.
    """
    name = fspath(path)
    try:
        raw = open(sys.stdin.fileno(), "rb", closefd=False) if name == "-" else Path(name).open("rb")
        with raw, _decompressed(raw) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError("no such file; check the path", name) from None
    except IsADirectoryError:
        raise DataError("this is a directory; name a file in it", name) from None
    except PermissionError:
        raise DataError("may not be read; check its permissions", name) from None
    except _DAMAGE as error:
        raise DataError(f"the compressed data is damaged or cut off ({error})", name) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", name) from None


def read_lines(
    path: Source, problems: Problems | None = None, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end) for each line of a text file.

    Raises:
        DataError: If the file cannot be read, or (unless `problems` skips) a line is not UTF-8,
            holds a NUL byte or is longer than `max_line_bytes`.
    """
    problems = problems or Problems()
    number = 0
    try:
        with open_bytes(path) as stream:
            while True:
                line = stream.readline(max_line_bytes + 1)
                if not line:
                    return
                number += 1
                if number == 1:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise DataError("is UTF-16 text; convert it to UTF-8 first", path)
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if len(line) > max_line_bytes and not line.endswith(b"\n"):
                    _skip_line(stream)
                    problems.report(
                        f"the line is longer than {max_line_bytes:,} bytes; is this a text file, "
                        "and does it break lines with \\n?",
                        path,
                        number,
                    )
                    continue
                text = _decode_line(line, path, number, problems)
                if text is not None:
                    yield number, text
    except DataError as error:
        if error.line is None and number and error.path == fspath(path):
            raise DataError(error.message, path, number + 1) from None
        raise


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


def _skip_line(stream: IO[bytes]) -> None:
    while (piece := stream.readline(1 << 20)) and not piece.endswith(b"\n"):
        pass


def read_whole(path: Source, *, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return a whole text file, for formats that cannot be streamed.

    Raises:
        DataError: As `read_lines`, or if the (decompressed) file is larger than `max_bytes`.
    """
    with open_bytes(path) as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise DataError(f"is larger than {max_bytes:,} bytes once decompressed", path)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not UTF-8: byte 0x{data[error.start]:02x}; convert it first (iconv -t UTF-8)",
            path,
            line,
        ) from None
