"""Files as streams of bytes: plain, gzip, xz and zstandard alike, told by their first bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from seqloom.errors import BackendError, DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Source = str | PathLike[str]

METRICS_FILE = "metrics.jsonl"
"""What a run of training leaves a line in for each report."""

ZSTD_FEED = 1 << 10  # compressed bytes decoded at once: bounds what a hostile frame can unfold to

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class _ZstdReader(io.RawIOBase):
    """Frames decoded a little at a time; unlike the library's own reader it notices a cut."""

    def __init__(self, raw: IO[bytes]) -> None:
        try:
            import zstandard
        except ModuleNotFoundError:
            raise BackendError("a .zst file needs zstandard; pip install zstandard") from None
        self._zstandard: Any = zstandard
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
            try:
                out.append(self._frame.decompress(chunk))
            except self._zstandard.ZstdError as error:
                raise EOFError(str(error)) from None
            self._frame_open = not self._frame.eof
            if self._frame_open:
                break
            chunk = self._frame.unused_data
            self._frame = self._zstandard.ZstdDecompressor().decompressobj()
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


class _StandardInput(io.FileIO):
    """A pipe may give its first bytes one by one, but what tells a compression is read whole."""

    def __init__(self) -> None:
        super().__init__(sys.stdin.fileno(), "rb", closefd=False)
        self._begun = False

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        view = memoryview(buffer).cast("B")
        size = more = super().readinto(view)
        while size and more and not self._begun and _begins_magic(bytes(view[:size])):
            more = super().readinto(view[size:])
            size += more or 0
        self._begun = True
        return size


def _begins_magic(head: bytes) -> bool:
    return any(magic.startswith(head) and magic != head for magic in (_GZIP, _XZ, _ZSTD))


def _open_raw(name: str) -> IO[bytes]:
    if name == "-":
        return io.BufferedReader(_StandardInput())
    return Path(name).open("rb")


@contextmanager
def open_bytes(path: Source) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressing as its first bytes say; "-" is standard input.

    Raises:
        DataError: If there is no such file, it is a directory, may not be read, or its compressed
            data turns out damaged while it is read.
    """
    name = fspath(path)
    try:
        with _open_raw(name) as raw, _decompressed(raw) as stream:
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


@contextmanager
def written_beside(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends well.

    So a kill at any moment leaves the old file or the new one. What is half written lies in a
    folder of its own, with the temporary files a library may make there, and the next attempt
    clears it. The file gets the permissions a plain new file has.

    Args:
        path: Where the file is to be.
        flush: Wait until the disk has it, so that a power cut keeps it too. Large files that carry
            checksums and can be made again do without.
    """
    if path.exists() and not path.is_file():
        raise DataError("is not a plain file, so none can take its place; name another", path)
    folder = path.with_name(f".{path.name}.partial")
    beside = folder / path.name
    _remove(folder)
    try:
        folder.mkdir()
        beside.touch()
        mode = beside.stat().st_mode
        yield beside
        beside.chmod(mode)
        if flush:
            with beside.open("rb") as stream:
                os.fsync(stream.fileno())
        beside.replace(path)
        if flush:
            _sync_folder(path.parent)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    if folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """Where what can be had again is kept: `$SEQLOOM_CACHE`, else the user's cache folder."""
    given = os.environ.get("SEQLOOM_CACHE")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "seqloom"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/seqloom"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"
