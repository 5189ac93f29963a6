"""Lines as they come, in blocks."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from os import fspath
from typing import IO

from seqloom.errors import DataError
from seqloom.files import Source, open_bytes

BLOCK = 4 << 20  # bytes read at a time
LONGEST = 1 << 26  # bytes of a line


def line_blocks(source: Source) -> Iterator[bytes]:
    """A file, or standard input for "-", in blocks of whole lines; the last may lack its end.

    What comes slowly is passed on as it comes: a block is what is there, up to `BLOCK` bytes.

    Raises:
        DataError: If it cannot be read, or a line is longer than `LONGEST`.
    """
    name = fspath(source)
    pending: list[bytes] = []
    size = 0
    with open_bytes(source) as stream:
        while piece := _next_piece(stream, wait=name != "-"):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*pending, piece[:cut]])
                pending, size = [], 0
            pending.append(piece[cut:])
            size += len(piece) - cut
            if size > LONGEST:
                raise DataError(
                    f"a line must have at most {LONGEST >> 20} MB, got a longer one; "
                    "is this a text file?",
                    name,
                )
    if rest := b"".join(pending):
        yield rest


def _next_piece(stream: IO[bytes], *, wait: bool) -> bytes:
    """Up to a block of bytes; if not to wait, what is there already, but at least one byte."""
    if wait:
        return stream.read(BLOCK)
    pieces: list[bytes] = []
    size = 0
    while size < BLOCK:
        piece: bytes = stream.read1(BLOCK - size)  # type: ignore[attr-defined]
        pieces.append(piece)
        size += len(piece)
        if not piece or not _is_ready():
            break
    return b"".join(pieces)


def _is_ready() -> bool:
    """Whether standard input has more to read at once."""
    try:
        return bool(select.select([sys.stdin.fileno()], [], [], 0)[0])
    except (OSError, ValueError):
        return False
