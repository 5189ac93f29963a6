"""Word-vector files as streams of blocks: GloVe text, word2vec text and binary.

A block is some words and their rows, a few megabytes at a time, so that a file of any size can be
converted without being held. NumPy archives and our own stores are in `vector_store.py`.
"""

from __future__ import annotations

import io
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError
from seqloom.files import Source, open_bytes

Rows = NDArray[np.floating[Any]]
Block = tuple[list[str], Rows]

FORMATS = ("glove", "word2vec", "word2vec-binary", "npz", "seqloom")
BLOCK_BYTES = 8 << 20  # text or binary rows parsed at once
MAX_ROW_BYTES = 16 << 20  # a longer line is taken for a file of another kind
MAX_WORD_BYTES = 1 << 16
MAX_SIZE = 1 << 20  # numbers in a vector; a header that says more is refused
_NUMBERS = b"0123456789+-.eE \n"  # all that a block of plain numbers is made of
_BOM = b"\xef\xbb\xbf"


def read_blocks(path: Source, format: str, only: Collection[str] | None = None) -> Iterator[Block]:
    """Yield the words and rows of a text or binary file; rows of words outside `only` are skipped.

    At least one block comes, if only an empty one: its second axis tells the size of the vectors.

    Raises:
        DataError: If the file is damaged, with its line (text) or row (binary) and the value.
    """
    wanted = None if only is None else {word.encode("utf-8", "surrogatepass") for word in only}
    with open_bytes(path) as stream:
        room = _plain_size(stream)
        buffered = _peekable(stream)
        if format == "word2vec-binary":
            yield from _binary_blocks(buffered, path, wanted, room)
        else:
            yield from _text_blocks(buffered, path, wanted, room, header=format == "word2vec")


def detect_format(path: Source) -> str:
    """Tell the format of a file from its first bytes.

    Raises:
        DataError: If the file cannot be read, or it is an archive inside a compressed file.
    """
    with open_bytes(path) as stream:
        head = _peekable(stream).peek(1 << 16)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            if _plain_size(stream) is None:
                raise DataError("is a compressed .npz; decompress it first", path)
            return "npz"
    first, _, rest = head.removeprefix(_BOM).partition(b"\n")
    fields = first.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return "glove"
    numbers = rest.partition(b" ")[2][: 4 * min(int(fields[1]), 1 << 14)]
    return "word2vec" if _is_text(numbers) else "word2vec-binary"


def _is_text(data: bytes) -> bool:
    """Tell numbers written out from float32 bytes, whose signs and exponents are no UTF-8 text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.end < len(data) or error.reason != "unexpected end of data":
            return False
        text = data[: error.start].decode()
    return all(char.isprintable() or char in "\t\r\n" for char in text)


def _peekable(stream: IO[bytes]) -> io.BufferedReader:
    if isinstance(stream, io.BufferedReader):
        return stream
    return io.BufferedReader(cast(io.RawIOBase, stream), 1 << 17)


def _plain_size(stream: IO[bytes]) -> int | None:
    """Return the bytes of an uncompressed file, None where they cannot be known beforehand."""
    if not isinstance(getattr(stream, "raw", None), io.FileIO):
        return None
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read_header(line: bytes, path: Source) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 20 for field in fields):
        shown = line[:60].decode(errors="replace")
        raise DataError(
            f"a word2vec file must begin with its numbers of words and of dimensions, got "
            f"{shown!r}; pass format='glove' if it has no such line",
            path,
            1,
        )
    count, size = int(fields[0]), int(fields[1])
    if count < 1 or not 1 <= size <= MAX_SIZE:
        raise DataError(
            f"the header must give at least 1 word of 1 to {MAX_SIZE:,} dimensions, got "
            f"{count} words of {size}",
            path,
            1,
        )
    return count, size


def _check_room(count: int, size: int, row_bytes: int, room: int | None, path: Source) -> None:
    """Refuse a header that promises more than the file can hold, before reading on."""
    if room is not None and count * row_bytes - 1 > room:
        raise DataError(
            f"the header says {count} words of {size} dimensions, got a file of {room:,} bytes, "
            f"which holds at most {room // row_bytes:,}; the file is cut off or the header wrong",
            path,
            1,
        )


def _line_blocks(stream: IO[bytes], path: Source) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines) for each few megabytes of whole lines."""
    carry, number = b"", 1
    while chunk := stream.read(BLOCK_BYTES):
        if number == 1 and not carry:
            chunk = chunk.removeprefix(_BOM)
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            lines = (carry + head).split(b"\n")
            carry = tail
            yield number, lines
            number += len(lines)
        else:
            carry += chunk
        if len(carry) > MAX_ROW_BYTES:
            raise DataError(
                f"the line is longer than {MAX_ROW_BYTES:,} bytes; is this a file of vectors?",
                path,
                number,
            )
    if carry:
        yield number, [carry]


def _text_blocks(
    stream: IO[bytes], path: Source, wanted: set[bytes] | None, room: int | None, *, header: bool
) -> Iterator[Block]:
    count, size, seen = None, 0, 0
    blank: int | None = None
    for first, lines in _line_blocks(stream, path):
        number = first
        if header and count is None:
            count, size = _read_header(lines.pop(0), path)
            _check_room(count, size, 2 * size + 2, room, path)
            number += 1
        size = size or _glove_size(lines, path)
        while lines and not lines[-1].strip():
            lines.pop()
            blank = blank or number + len(lines)
        if not lines:
            continue
        if blank is not None and blank < number:
            raise DataError("a row must hold a word and its vector, got an empty line", path, blank)
        blank = None if blank is None or blank < number + len(lines) else blank
        if count is not None and seen + len(lines) > count:
            raise DataError(
                f"the header says {count} words, got one more; correct the header",
                path,
                number + count - seen,
            )
        seen += len(lines)
        yield _parse_rows(lines, number, size, path, wanted)
    if not size:
        raise DataError("is empty; a row must hold a word and its vector", path, 1)
    if count is not None and seen < count:
        raise DataError(
            f"the header says {count} words, got {seen}; the file is cut off or the header wrong",
            path,
            seen + 1,
        )


def _glove_size(lines: Sequence[bytes], path: Source) -> int:
    """Return the size most of the first rows have: one odd row must not decide for the rest."""
    sizes = Counter(len(line.split()) - 1 for line in lines[:100] if line.strip())
    size = sizes.most_common(1)[0][0] if sizes else 0
    if sizes and not 1 <= size <= MAX_SIZE:
        shown = lines[0][:60].decode(errors="replace")
        raise DataError(
            f"a row must hold a word, a space and the numbers of its vector, got {shown!r}", path, 1
        )
    return size


def _parse_rows(
    lines: Sequence[bytes], number: int, size: int, path: Source, wanted: set[bytes] | None
) -> Block:
    words: list[bytes] = []
    numbers: list[bytes] = []
    places: list[int] = []
    for row, line in enumerate(lines, number):
        word, _, rest = line.rstrip().partition(b" ")
        if not word or not rest or rest.count(b" ") != size - 1:
            word, rest = _split_odd_row(line, size, path, row)
        if wanted is None or word in wanted:
            words.append(word)
            numbers.append(rest)
            places.append(row)
    matrix = _parse_numbers(numbers, places, size, path)
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        _refuse_number(numbers[row].split()[column], path, places[row])
    return _decode_words(words, path, places), matrix


def _split_odd_row(line: bytes, size: int, path: Source, row: int) -> tuple[bytes, bytes]:
    """Split from the right, for words that hold spaces (as in GloVe 840B) and for tabs."""
    fields = line.rsplit(None, size)
    if not fields:
        raise DataError("a row must hold a word and its vector, got an empty line", path, row)
    if len(fields) <= size:
        raise DataError(
            f"the row must hold a word and {size} numbers, got {len(fields) - 1} "
            f"numbers after {fields[0][:40].decode(errors='replace')!r}",
            path,
            row,
        )
    pieces = fields[0].split()
    if len(pieces) > 1 and is_number(pieces[-1]):
        extra = 1
        while extra < len(pieces) - 1 and is_number(pieces[-1 - extra]):
            extra += 1
        raise DataError(
            f"the row must hold a word and {size} numbers, got {size + extra} "
            f"numbers after {pieces[0][:40].decode(errors='replace')!r}",
            path,
            row,
        )
    return fields[0], b" ".join(fields[1:])


def is_number(field: bytes) -> bool:
    """Tell whether a field reads as a number, NaN and infinity among them."""
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def _parse_numbers(numbers: list[bytes], places: list[int], size: int, path: Source) -> Rows:
    if not numbers:
        return np.empty((0, size), dtype=np.float32)
    joined = b"\n".join(numbers)
    if not joined.translate(None, _NUMBERS):
        try:  # the quickest parser in NumPy: about 0.1 microseconds a number
            matrix = np.loadtxt(
                joined.decode("ascii").split("\n"),
                dtype=np.float32,
                delimiter=" ",
                comments=None,
                ndmin=2,
            )
        except ValueError:
            matrix = np.empty((0, 0), dtype=np.float32)
        if matrix.shape == (len(numbers), size):
            return matrix
    rows = []
    for text, row in zip(numbers, places, strict=True):
        fields = text.split()
        for field in fields:
            if not is_number(field):
                _refuse_number(field, path, row)
        rows.append([float(field) for field in fields])
    with np.errstate(over="ignore"):
        return np.array(rows, dtype=np.float32).reshape(len(numbers), size)


def _refuse_number(field: bytes, path: Source, row: int) -> NoReturn:
    raise DataError(
        f"a vector must hold finite float32 numbers, got {field[:40].decode(errors='replace')!r}",
        path,
        row,
    )


def _decode_words(words: list[bytes], path: Source, places: Sequence[int]) -> list[str]:
    try:
        return b"\n".join(words).decode().split("\n") if words else []
    except UnicodeDecodeError:
        pass
    for word, row in zip(words, places, strict=True):
        try:
            word.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"the word is not UTF-8: byte 0x{word[error.start]:02x} in {word[:40]!r}; convert "
                "the file first (iconv -t UTF-8)",
                path,
                row,
            ) from None
    raise AssertionError("a join of UTF-8 words is UTF-8")


def _binary_blocks(
    stream: IO[bytes], path: Source, wanted: set[bytes] | None, room: int | None
) -> Iterator[Block]:
    count, size = _read_header(stream.readline(MAX_WORD_BYTES), path)
    _check_room(count, size, 4 * size + 2, room, path)
    buffer, row, ended = b"", 0, False
    while row < count:
        chunk = stream.read(BLOCK_BYTES)
        ended = not chunk
        buffer += chunk
        words: list[bytes] = []
        rows: list[bytes] = []
        places: list[int] = []
        start = 0
        while row < count:
            space = buffer.find(b" ", start)
            end = space + 1 + 4 * size
            if space < 0 or end > len(buffer):
                break
            row += 1
            word = buffer[start:space].lstrip(b"\n")  # some writers end each row with one
            if not word or len(word) > MAX_WORD_BYTES:
                raise DataError(
                    f"row {row}: a word must have 1 to {MAX_WORD_BYTES:,} bytes, got {len(word)}; "
                    "is the size in the header right?",
                    path,
                )
            if wanted is None or word in wanted:
                words.append(word)
                rows.append(buffer[space + 1 : end])
                places.append(row)
            start = end
        buffer = buffer[start:]
        yield _binary_block(words, rows, places, size, path)
        if row < count and (ended or len(buffer) > MAX_WORD_BYTES + 4 * size + BLOCK_BYTES):
            raise DataError(
                f"row {row + 1} of {count} must hold a word, a space and {4 * size} bytes, got "
                f"{len(buffer)} bytes; the file is cut off or the header wrong",
                path,
            )
    left = (buffer + stream.read(64)).strip(b"\r\n")
    if left:
        raise DataError(
            f"the header says {count} words, got more: {left[:20]!r} follows; correct the header",
            path,
        )


def _binary_block(
    words: list[bytes], rows: list[bytes], places: list[int], size: int, path: Source
) -> Block:
    matrix = np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), size)
    matrix = matrix.astype(np.float32, copy=False)
    refuse_non_finite(matrix, places, path)
    try:
        return _decode_words(words, path, places), matrix
    except DataError as error:
        raise DataError(f"row {error.line}: {error.message}", path) from None


def refuse_non_finite(matrix: Rows, places: Sequence[int], path: Source) -> None:
    """Raise DataError for the first NaN or infinity, with its row from `places`."""
    finite = np.isfinite(matrix)
    if finite.all():
        return
    row, column = (int(i) for i in np.argwhere(~finite)[0])
    raise DataError(
        f"row {places[row]}: a vector must hold finite numbers, got {matrix[row, column]} "
        f"in column {column + 1}",
        path,
    )
