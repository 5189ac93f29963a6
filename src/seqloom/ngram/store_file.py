"""The file a model lies in: a header in JSON, then its arrays, memory-mapped and checked.

Layout: eight bytes of magic, the header's length and checksum, the header, then each array at a
multiple of 64 bytes. The header names every array with its type, shape, place and the checksums
of its pieces, so a file that was cut or altered is noticed when it is opened.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, in_threads
from seqloom.errors import DataError
from seqloom.files import Source
from seqloom.ngram.words import mix

MAGIC = b"SEQLOOMN"
VERSION = 2
KINDS = frozenset({"<u8", "<u4", "<u2", "|u1", "<i8", "<f8", "<f4"})
_HEAD = struct.Struct("<8sIIQ")  # magic, version, the header's length, its checksum
_LONGEST_HEADER = 1 << 24
_ALIGN = 128
_PIECE = 1 << 25  # bytes a checksum covers when a whole array is written at once
_U = np.uint64
_47 = _U(47)


@compiled
def _fold(blocks, tail):  # type: ignore[no-untyped-def]
    """A checksum of 64 bits, four lanes side by side so that it runs as fast as memory."""
    a, b, c, d = _U(1), _U(2), _U(3), _U(4)
    prime = _U(0x9E3779B97F4A7C15)
    n = len(blocks) // 4 * 4
    for i in range(0, n, 4):
        a = (a ^ blocks[i]) * prime
        b = (b ^ blocks[i + 1]) * prime
        c = (c ^ blocks[i + 2]) * prime
        d = (d ^ blocks[i + 3]) * prime
        a ^= a >> _47
        b ^= b >> _47
        c ^= c >> _47
        d ^= d >> _47
    for i in range(n, len(blocks)):
        a = (a ^ blocks[i]) * prime
        a ^= a >> _47
    for byte in tail:
        b = (b ^ _U(byte)) * prime
        b ^= b >> _47
    return mix(a + mix(b + mix(c + mix(d + _U(len(blocks) * 8 + len(tail))))))


def checksum(data: NDArray[np.uint8]) -> int:
    """The checksum of bytes; every single changed bit changes it."""
    whole = len(data) // 8 * 8
    return int(_fold(data[:whole].view(np.uint64), data[whole:]))


class StoreWriter:
    """Writes a store array by array, each in one or several pieces, the header last.

    Args:
        file: Opened for writing.
        about: What the header says besides the arrays; must be JSON.
        shapes: The type and shape of each array, in the order they lie in the file.
    """

    def __init__(
        self,
        file: IO[bytes],
        about: Mapping[str, Any],
        shapes: Mapping[str, tuple[Any, tuple[int, ...]]],
    ) -> None:
        self._file, self._about = file, dict(about)
        self._arrays: dict[str, dict[str, Any]] = {}
        place = 0
        for name, (kind, shape) in shapes.items():
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            self._arrays[name] = {
                "type": np.dtype(kind).str, "shape": list(shape), "at": place, "pieces": [],
            }  # fmt: skip
            place += -(-size // _ALIGN) * _ALIGN
        self._start = _ALIGN * -(-(_HEAD.size + self._header_room()) // _ALIGN)
        os.ftruncate(file.fileno(), self._start + place)

    def _header_room(self) -> int:
        pieces = sum(
            1 + int(np.prod(array["shape"])) * 8 // _PIECE for array in self._arrays.values()
        )
        return len(json.dumps({"about": self._about, "arrays": self._arrays})) + 80 * pieces + 8192

    def write(self, name: str, values: NDArray[Any], start: int = 0) -> None:
        """Write an array, or a piece of it that begins at row `start`."""
        array = self._arrays[name]
        row = int(np.prod(array["shape"][1:])) * values.itemsize
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        descriptor = self._file.fileno()

        def one(at: int) -> list[int]:
            piece = data[at : at + _PIECE]
            where = start * row + at
            _write_all(descriptor, piece, self._start + array["at"] + where)
            return [where, len(piece), checksum(piece)]

        array["pieces"] += in_threads(one, range(0, len(data), _PIECE))

    def finish(self) -> None:
        """Write the header, after which the file is a store."""
        header = json.dumps(
            {"about": self._about, "arrays": self._arrays}, separators=(",", ":")
        ).encode()
        header = header.ljust(self._start - _HEAD.size)
        body = checksum(np.frombuffer(header, np.uint8))
        os.pwrite(self._file.fileno(), _HEAD.pack(MAGIC, VERSION, len(header), body) + header, 0)


def _write_all(descriptor: int, data: NDArray[np.uint8], at: int) -> None:
    view = data.data
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def is_store(path: Source) -> bool:
    """Whether a file begins as a store does."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def open_store(path: Source, *, verify: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a store's header says, and its arrays, memory-mapped.

    Args:
        path: The file.
        verify: Compare the checksums of all arrays, which reads the file once. Without it a file
            that was altered since it was written gives wrong numbers.

    Raises:
        DataError: If the file is not a store, of another version, cut, or altered.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD.size)
            if head[: len(MAGIC)] != MAGIC or len(head) < _HEAD.size:
                raise DataError("this is not a Seqloom n-gram store (the first bytes differ)", name)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise DataError("no such file; check the path", name) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", name) from None
    _, version, length, expected = _HEAD.unpack(head)
    if version != VERSION:
        raise DataError(
            f"the store has format {version}, this Seqloom reads {VERSION}; build it again", name
        )
    start = _HEAD.size + length
    if length > _LONGEST_HEADER or start > size:
        raise DataError("the store is cut off in its header; build it again", name)
    raw = mapped[_HEAD.size : start]
    if checksum(np.frombuffer(raw, np.uint8)) != expected:
        raise DataError("the store's header was altered; build it again", name)
    header = json.loads(raw)
    data = np.frombuffer(mapped, np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    pieces: list[tuple[str, NDArray[np.uint8], int]] = []
    end = start
    for key, array in header["arrays"].items():
        kind = np.dtype(array["type"] if array["type"] in KINDS else "V1")
        count = int(np.prod(array["shape"]))
        at = start + array["at"]
        if at + count * kind.itemsize > size:
            raise DataError("the store is cut off; build it again", name)
        end = max(end, at + -(-count * kind.itemsize // _ALIGN) * _ALIGN)
        arrays[key] = np.frombuffer(mapped, kind, count, at).reshape(array["shape"])
        pieces += [(key, data[at + s : at + s + n], c) for s, n, c in array["pieces"]]
    if size > end:
        raise DataError(
            f"the store was altered (it has {size - end:,} bytes after its end); build it again",
            name,
        )
    if verify:
        _verify(pieces, name)
    return header["about"], arrays


def _verify(pieces: list[tuple[str, NDArray[np.uint8], int]], name: str) -> None:
    def one(piece: tuple[str, NDArray[np.uint8], int]) -> bool:
        return checksum(piece[1]) == piece[2]

    for (key, _, _), good in zip(pieces, in_threads(one, pieces), strict=True):
        if not good:
            raise DataError(f"the store was altered (in {key!r}); build it again", name)
