"""Zip and tar archives from elsewhere, opened without trusting them.

A member is a plain file under a relative path, or it is refused: no "..", no absolute path, no
drive letter, no link, no device. What comes out is counted while it comes out (headers may lie),
and an archive with too many members, too many bytes, or too many bytes for its size is refused.
Tar archives may be plain or packed with gzip, bzip2, xz or zstandard; the first bytes decide.
"""

from __future__ import annotations

import bz2
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from seqloom.errors import DataError
from seqloom.files import Source, open_bytes

CHUNK = 1 << 16
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much an archive may hold.

    Attributes:
        members: Files and folders, counted.
        bytes: Bytes of all members together, unpacked.
        ratio: Unpacked bytes for each byte of the archive, once more than `free_bytes` came out.
        free_bytes: What a small archive may unpack to whatever its ratio.
    """

    members: int = 100_000
    bytes: int = 4 << 30
    ratio: int = 200
    free_bytes: int = 16 << 20


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Counted:
    """Bytes on their way out of an archive: counts them, and stops a bomb."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self._archive, self._limits = archive, limits
        self._packed = max(archive.stat().st_size, 1)
        self.total = 0
        self.last_nonzero = 0  # position behind the last byte that is not 0
        self._stream: _Readable | None = None

    def over(self, stream: _Readable) -> _Counted:
        """Read from another stream, and count on."""
        self._stream = stream
        return self

    def read(self, size: int = CHUNK, /) -> bytes:
        assert self._stream is not None
        data = self._stream.read(min(size, CHUNK))
        if stripped := data.rstrip(b"\0"):
            self.last_nonzero = self.total + len(stripped)
        self.total += len(data)
        limits = self._limits
        if self.total > limits.bytes:
            raise DataError(f"unpacks to more than {limits.bytes:,} bytes; refused", self._archive)
        if self.total > max(limits.free_bytes, limits.ratio * self._packed):
            raise DataError(
                f"unpacks to more than {limits.ratio} times its size; refused as a bomb",
                self._archive,
            )
        return data


class Member:
    """One file of an archive, readable until the next one is asked for.

    Attributes:
        name: Its relative path, with "/" between the parts.
    """

    def __init__(self, name: str, stream: _Readable, archive: Path) -> None:
        self.name = name
        self._stream, self._archive = stream, archive

    def chunks(self) -> Iterator[bytes]:
        """Yield the content piece by piece."""
        with _damage_named(self._archive):
            while data := self._stream.read(CHUNK):
                yield data

    def read(self) -> bytes:
        """Return the whole content."""
        return b"".join(self.chunks())


def iter_members(archive: Source, limits: Limits | None = None) -> Iterator[Member]:
    """Yield the files of an archive one after the other, nothing written to disk.

    Raises:
        DataError: If the archive is damaged, encrypted, holds anything but plain files under
            relative paths, or goes over the limits.
    """
    path, limits = Path(archive), limits or Limits()
    with _damage_named(path):
        if not path.is_file():
            raise DataError("no such archive; check the path", path)
        with path.open("rb") as raw:
            head = raw.read(4)
        members = _zip_members if head.startswith(_ZIP_STARTS) else _tar_members
        for count, member in enumerate(members(path, limits), start=1):
            if count > limits.members:
                raise DataError(f"holds more than {limits.members:,} members; refused", path)
            if member is not None:
                yield member


def extract(archive: Source, folder: Source, limits: Limits | None = None) -> list[Path]:
    """Unpack an archive into a new folder: all of it, or nothing.

    Args:
        archive: A zip file, or a tar file however compressed.
        folder: The folder to make; it must not exist yet.
        limits: How much the archive may hold.

    Returns:
        The files, in the order of the archive.

    Raises:
        DataError: As `iter_members`, or if the folder exists or a file cannot be written.
    """
    path, target = Path(archive), Path(folder)
    if target.exists():
        raise DataError("already exists; remove it or choose another folder", target)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        inside = work / "content"
        inside.mkdir()
        names = []
        for member in iter_members(path, limits):
            _write(member, inside / member.name, path)
            names.append(member.name)
        try:
            inside.rename(target)
        except OSError as error:
            raise DataError(f"cannot be made ({error.strerror})", target) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return [target / name for name in names]


def _write(member: Member, place: Path, archive: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as out:
            for data in member.chunks():
                out.write(data)
    except FileExistsError:
        raise DataError(f"holds {member.name!r} twice; refused", archive) from None
    except OSError as error:
        raise DataError(
            f"{member.name!r} cannot be written ({error.strerror or error})", archive
        ) from None


@contextmanager
def _damage_named(archive: Path) -> Iterator[None]:
    """Turn what the standard library raises on bad archives into one clear line."""
    try:
        yield
    except DataError:
        raise
    except _DAMAGE as error:
        raise DataError(f"is not an archive, or is damaged ({error})", archive) from None


def _checked_name(name: str, archive: Path) -> str:
    """Return the path without "." parts, or refuse it."""
    parts = PurePosixPath(name).parts
    wrong = (
        not parts
        or name.startswith("/")
        or ".." in parts
        or "\\" in name
        or "\0" in name
        or _DRIVE.match(name)
    )
    if wrong:
        raise DataError(
            f"holds {name!r}; refused: a member must lie below the folder it is unpacked to",
            archive,
        )
    return "/".join(parts)


def _zip_members(path: Path, limits: Limits) -> Iterator[Member | None]:
    counted = _Counted(path, limits)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise DataError(f"{info.filename!r} is a link or a device; refused", path)
            if info.is_dir():
                yield None
                continue
            name = _checked_name(info.filename, path)
            if info.flag_bits & 1:
                raise DataError(f"{name!r} is encrypted; unpack it by hand", path)
            try:
                stream = archive.open(info)
            except NotImplementedError as error:
                raise DataError(f"{name!r} cannot be unpacked ({error})", path) from None
            with stream:
                yield Member(name, counted.over(stream), path)


def _tar_members(path: Path, limits: Limits) -> Iterator[Member | None]:
    counted = _Counted(path, limits)
    with _tar_stream(path) as stream:
        counted.over(stream)
        with tarfile.open(fileobj=counted, mode="r|") as archive:  # type: ignore[call-overload]
            for info in archive:
                if info.isdir():
                    yield None
                    continue
                name = _checked_name(info.name, path)
                content = archive.extractfile(info) if info.isreg() else None
                if content is None or info.issparse():
                    raise DataError(f"{name!r} is a link or a device; refused", path)
                yield Member(name, content, path)
            end = archive.offset
        while counted.read(CHUNK):
            pass
    # Python's reader takes a damaged header for the end; the true end is blocks of zeros.
    if counted.total < end + tarfile.BLOCKSIZE or counted.last_nonzero > end:
        raise DataError("is damaged or cut off (its end mark is missing)", path)


@contextmanager
def _tar_stream(path: Path) -> Iterator[IO[bytes]]:
    with open_bytes(path) as stream:
        if stream.peek(3)[:3] == b"BZh":  # type: ignore[attr-defined]
            with bz2.BZ2File(stream) as unpacked:
                yield unpacked
        else:
            yield stream
