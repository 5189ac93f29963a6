"""Fetching a file over HTTP: resumed after a cut, checked, and put in place in one move.

The bytes go to `NAME.part` beside the target. A cut leaves that file, and the next attempt, in
this process or a later one, asks only for the rest. The part is locked while it is written, so two
processes that want the same file do not write into each other: the second waits for the first.
When the content has the promised checksum the part is renamed to the target; otherwise it goes.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from seqloom import __version__
from seqloom.errors import DataError, DownloadError
from seqloom.files import open_bytes

CHUNK = 1 << 16
MAX_BYTES = 1 << 30  # the most a body may hold where no size is declared
MAX_BACKOFF = 30.0  # seconds
ENOUGH_PROGRESS = 1 << 20  # bytes after which a cut no longer counts against the retries
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})

Progress = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and their total, if the server told it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to try.

    Attributes:
        timeout: Seconds without an answer or a byte after which a connection is given up.
        retries: How often an address is tried again after a passing fault.
        backoff: Seconds before the first new try; doubled each time, up to half a minute.
    """

    timeout: float = 30.0
    retries: int = 4
    backoff: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the file must turn out to be; everything is about the content once decompressed.

    Attributes:
        sha256: Its checksum in hexadecimal, or None where it is not known.
        size: Its length in bytes, or None where it is not known.
        max_bytes: The most the server may send.
    """

    sha256: str | None = None
    size: int | None = None
    max_bytes: int = MAX_BYTES


def download(
    addresses: Sequence[str],
    target: Path,
    expected: Expected,
    *,
    hosts: Sequence[str] = (),
    progress: Progress | None = None,
    patience: Patience | None = None,
) -> Path:
    """Fetch a file from the first address that has it.

    Args:
        addresses: http or https addresses, tried in turn.
        target: Where the file goes. A file already there that is as expected is kept.
        expected: Checksum and size.
        hosts: Further hosts a redirect may lead to; to any other host it is refused.
        progress: Told about the bytes as they come.
        patience: Timeouts and retries.

    Returns:
        The target.

    Raises:
        DownloadError: If no address gave the file; the message says what was wrong with each.
    """
    patience = patience or Patience()
    if not addresses:
        raise DownloadError(f"{target.name} has no known address; put it by hand at {target}")
    part = target.with_name(target.name + ".part")
    failures = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked_part(part, lambda: _is_as_expected(target, expected)) as out:
            if out is None:
                return target
            for address in addresses:
                fetch = _Fetch(address, out, expected, hosts=hosts, patience=patience)
                failure = fetch.attempt(part, progress)
                if failure is None:
                    if sys.platform == "win32":
                        out.close()  # an open file cannot be moved there
                    part.replace(target)
                    return target
                failures.append(failure)
    except OSError as error:  # of the disk: those of the network are among the failures
        raise DownloadError(f"{target} cannot be written ({error.strerror or error})") from None
    raise DownloadError(
        f"{target.name} could not be fetched: {'; '.join(failures)}; "
        f"fetch it some other way and put it at {target}"
    )


def content_digest(path: Path, limit: int | None = None) -> tuple[str, int]:
    """Return SHA-256 and length of a file's content, decompressed; stop soon after `limit` bytes.

    Raises:
        DataError: If the file cannot be read or its compressed data is damaged.
    """
    digest, size = hashlib.sha256(), 0
    with open_bytes(path) as stream:
        while data := stream.read(CHUNK):
            digest.update(data)
            size += len(data)
            if limit is not None and size > limit:
                break
    return digest.hexdigest(), size


class _MismatchError(Exception):
    """The bytes came, but they are not the file."""


def _check(part: Path, address: str, expected: Expected) -> None:
    if expected.sha256 is None:
        return
    try:
        sha256, size = content_digest(part, expected.size)
    except DataError as error:
        raise _MismatchError(f"{address} gave a damaged file ({error.message})") from None
    if sha256 != expected.sha256:
        wanted = "" if expected.size is None else f" ({expected.size:,} bytes)"
        raise _MismatchError(
            f"{address} gave another file: expected sha256 {expected.sha256}{wanted}, "
            f"got {sha256} ({size:,} bytes)"
        )


def _is_as_expected(target: Path, expected: Expected) -> bool:
    if not target.is_file():
        return False
    try:
        return expected.sha256 in (None, content_digest(target, expected.size)[0])
    except DataError:
        return False


def _lock(file: IO[bytes]) -> bool:
    """Take the lock of an open file unless another process has it; closing gives it back."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _locked_part(part: Path, is_done: Callable[[], bool]) -> Iterator[IO[bytes] | None]:
    """Open and lock the part, waiting for its turn; None if the target is (or becomes) ready."""
    if is_done():
        yield None
        return
    waited = False
    while True:
        with part.open("ab") as out:
            if not _lock(out):
                waited = True
                time.sleep(0.1)
            elif _is_still(out, part):
                try:
                    yield None if waited and is_done() else out
                finally:
                    if part.exists() and part.stat().st_size == 0:
                        part.unlink()
                return


def _is_still(file: IO[bytes], path: Path) -> bool:
    """Whether the path still leads to the open file, or the one we waited for has moved it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


class _Fetch:
    """One address: requests, resumed until the body is whole."""

    def __init__(
        self,
        address: str,
        out: IO[bytes],
        expected: Expected,
        *,
        hosts: Sequence[str],
        patience: Patience,
    ) -> None:
        self.address, self.out, self.expected = address, out, expected
        self.patience, self.hosts = patience, {urlsplit(address).hostname, *hosts}
        self.opener = urllib.request.build_opener(_Redirects(address, self.hosts))
        self.progress: Progress | None = None
        self.etag: str | None = None

    def have(self) -> int:
        """How many bytes the part holds."""
        return self.out.seek(0, os.SEEK_END)

    def attempt(self, part: Path, progress: Progress | None) -> str | None:
        """Fetch and check; return what went wrong, or None. A wrong file is emptied."""
        self.progress = progress
        try:
            if self.have() > self.expected.max_bytes:
                self.out.truncate(0)
            resumed = self.have() > 0
            self._run()
            try:
                _check(part, self.address, self.expected)
            except _MismatchError:
                self.out.truncate(0)
                if not resumed:
                    raise
                self._run()  # the part may have been of another version of the file: start anew
                _check(part, self.address, self.expected)
        except _MismatchError as error:
            self.out.truncate(0)
            return str(error)
        except DownloadError as error:
            return str(error)
        return None

    def _run(self) -> None:
        """Fetch the whole body, or raise `DownloadError`."""
        if urlsplit(self.address).scheme not in ("http", "https"):
            raise DownloadError(f"{self.address} is refused (it is neither http nor https)")
        failures = 0
        while True:
            before = self.have()
            try:
                if self._request(before):
                    return
                reason = "the connection was cut"
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"HTTP {error.code} {error.reason}"
                if error.code == 416 and before:
                    if error.headers.get("Content-Range") == f"bytes */{before}":
                        return  # the part was whole already
                    self.out.truncate(0)
                elif error.code not in TRANSIENT:
                    dead = "is dead" if error.code in (404, 410) else "does not give the file"
                    raise DownloadError(f"{self.address} {dead} ({reason})") from None
            except (OSError, http.client.HTTPException) as error:
                reason = _reason(error)
                if _is_final(error):
                    raise DownloadError(f"{self.address} cannot be reached ({reason})") from None
            failures = 1 if self.have() - before >= ENOUGH_PROGRESS else failures + 1
            if failures > self.patience.retries:
                raise DownloadError(f"{self.address} failed {failures} times ({reason})")
            time.sleep(min(self.patience.backoff * 2 ** (failures - 1), MAX_BACKOFF))

    def _request(self, start: int) -> bool:
        """Ask for the bytes from `start` on; return whether the body came whole."""
        headers = {"User-Agent": f"seqloom/{__version__}", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if self.etag:
                headers["If-Range"] = self.etag
        request = urllib.request.Request(self.address, headers=headers)
        with self.opener.open(request, timeout=self.patience.timeout) as response:
            tag = response.headers.get("ETag", "")
            self.etag = tag if tag.startswith('"') else None  # a weak tag does not vouch for bytes
            if start and not _continues(response.headers.get("Content-Range"), start):
                start = 0  # the server sends the file from its beginning
                self.out.truncate(0)
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdecimal() else None
            if total is not None:
                self._check_size(total)
            return self._body(response, start, total)

    def _body(self, response: http.client.HTTPResponse, have: int, total: int | None) -> bool:
        while data := response.read(CHUNK):
            have += len(data)
            self._check_size(have)
            self.out.write(data)
            if self.progress is not None:
                self.progress(have, total)
        self.out.flush()
        return total is None or have >= total

    def _check_size(self, size: int) -> None:
        if size > self.expected.max_bytes:
            self.out.truncate(0)
            raise DownloadError(
                f"{self.address} sends more than the {self.expected.max_bytes:,} bytes it may"
            )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to a host we know, and never from https to http."""

    def __init__(self, address: str, hosts: Container[str | None]) -> None:
        self._address, self._hosts = address, hosts

    def redirect_request(  # noqa: PLR0917 (the standard library's signature)
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Refuse what we do not follow; the rest is the standard library's."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise DownloadError(
                f"{self._address} redirects from {old.scheme} to {new.scheme or '?'}; refused"
            )
        if new.hostname not in self._hosts:
            raise DownloadError(
                f"{self._address} redirects to another host ({new.hostname}); refused"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _continues(content_range: str | None, start: int) -> bool:
    """Whether a Content-Range header says that the body goes on at `start`."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", content_range or "")
    return found is not None and int(found[1]) == start


def _cause(error: BaseException) -> BaseException:
    inner = getattr(error, "reason", None)
    return inner if isinstance(inner, BaseException) else error


def _is_final(error: BaseException) -> bool:
    """Whether trying again is of no use: the name does not exist, the certificate is wrong."""
    cause = _cause(error)
    return isinstance(cause, socket.gaierror | ssl.SSLCertVerificationError | ValueError)


def _reason(error: BaseException) -> str:
    cause = _cause(error)
    if isinstance(cause, TimeoutError):
        return "timed out"
    if isinstance(cause, socket.gaierror):
        return "no host of that name was found"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
