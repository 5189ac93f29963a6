"""Memory with a cap: columns in memory while they fit, in temporary files when they do not.

A temporary file has no name: the system frees it when the process ends, however it ends. Its room
is taken when it is made, so a full disk is an error at that moment and not a crash in the middle.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, DataError

BLOCK = 8 << 20  # bytes of text that one thread takes at a time where there is room
CHUNK = 1 << 20  # rows that it takes
LEAST_CHUNK = 1 << 13  # rows worked on, at least, between two looks at the memory in use
LEAST = 384 << 20  # Python, numba (while it compiles, too) and a vocabulary need most of it
_PAGE = mmap.PAGESIZE


class Workspace:
    """Where an estimation keeps its columns.

    Args:
        memory: The cap in bytes on what the process holds; half of the machine's if not given.
        folder: Where temporary files go, the system's place for them if not given.
    """

    def __init__(self, memory: int | None = None, folder: str | None = None) -> None:
        self.memory = memory or _physical() // 2
        if self.memory < LEAST:
            raise ConfigError(
                f"memory must be at least {LEAST >> 20}M, which Python and a vocabulary need, "
                f"got {self.memory >> 20}M; give more"
            )
        self.folder = folder or tempfile.gettempdir()
        self.spilling = False
        self._files: list[mmap.mmap] = []
        self._floor = 0  # bytes that are held even when nothing of the files is

    def spill_above(self, need: int) -> None:
        """Put further columns into temporary files if so many bytes would not fit."""
        if need <= self.memory - resident():
            return
        free = shutil.disk_usage(self.folder).free
        if free < need:
            raise DataError(
                f"temporary files may need {need >> 20:,} MB, the folder has {free >> 20:,} MB; "
                "name another one or give more memory",
                self.folder,
            )
        self.spilling = True

    def empty(self, size: int, kind: Any) -> NDArray[Any]:
        """A column to be filled: in memory, or in a temporary file once this place spills."""
        kind = np.dtype(kind)
        if self._in_memory(size * kind.itemsize):
            return np.empty(size, kind)
        mapped = _map_file(size * kind.itemsize, self.folder)
        self._files.append(mapped)
        return np.frombuffer(mapped, kind, size)

    def zeros(self, size: int, kind: Any) -> NDArray[Any]:
        """A column of zeros, which is what a fresh temporary file holds."""
        if self._in_memory(size * np.dtype(kind).itemsize):
            return np.zeros(size, kind)
        return self.empty(size, kind)

    def _in_memory(self, size: int) -> bool:
        return not self.spilling or size < _PAGE

    def gather(self, pieces: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """One column of many pieces; a file where it takes a 32nd of the cap."""
        held: list[NDArray[Any]] = []
        with contextlib.ExitStack() as open_files:
            file: IO[bytes] | None = None
            for piece in pieces:
                held.append(piece)
                if sum(p.nbytes for p in held) > self.memory // 32:
                    file = file or open_files.enter_context(self._temporary())
                    self._append(file, held)
                    held = []
            if file is None:
                return np.concatenate(held) if held else np.empty(0, np.uint32)
            self._append(file, held)
            mapped = mmap.mmap(file.fileno(), 0)
        self._files.append(mapped)
        return np.frombuffer(mapped, np.uint32)

    def _temporary(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self.folder, prefix="seqloom-")
        except OSError as error:
            raise _no_room(error, self.folder) from None

    def _append(self, file: IO[bytes], pieces: list[NDArray[Any]]) -> None:
        try:
            for piece in pieces:
                file.write(piece.data)
            file.flush()
        except OSError as error:
            raise _no_room(error, self.folder) from None

    def spare(self) -> int:
        """How many bytes a task may take for its own: a quarter of what the cap still leaves."""
        return max(self.memory - resident(), LEAST // 8) // 4

    @property
    def step(self) -> int:
        """How many rows are worked on between two looks at the memory in use."""
        return max(LEAST_CHUNK, self.memory >> 15) if self.spilling else CHUNK

    @property
    def block(self) -> int:
        """How many bytes of text a thread takes at a time."""
        return max(1 << 20, min(BLOCK, self.memory >> 8))

    def chunks(self, size: int) -> Iterator[tuple[int, int]]:
        """The rows in pieces; between them, what lies in files leaves memory if it must."""
        step = self.step if self.spilling else max(size, 1)
        for start in range(0, size, step):
            yield start, min(start + step, size)
            self.breathe()

    def windows(
        self, column: NDArray[Any], *, changes: bool = False
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """A column that is read or written here and there: in pieces that lie in memory whole.

        Gives where each begins, and the piece; who works on it passes over the rows once a piece
        and takes those that belong to it. What it `changes` goes back into the column.
        """
        if not self.spilling:
            yield 0, column
            return
        step = max(1, (self.memory >> 5) // column.itemsize)
        for start in range(0, len(column), step):
            piece = column[start : start + step].copy()
            self.breathe()
            yield start, piece
            if changes:
                column[start : start + step] = piece

    def in_pieces(self, work: Callable[..., object], start: int, end: int, *columns: Any) -> None:
        """Call work(low, high, *columns) on pieces of the rows, shared among the cores."""
        from seqloom.compiled import in_threads  # loads numba, which settings do not need

        def one(low: int) -> None:
            work(low, min(low + self.step, end), *columns)
            self.breathe()

        in_threads(one, range(start, end, self.step))

    def breathe(self) -> None:
        """Let go of the pages of temporary files if the cap is near; they stay in the files."""
        if not self.spilling or resident() < (self._floor + self.memory) // 2:
            return
        for mapped in self._files:
            mapped.madvise(mmap.MADV_DONTNEED)
        _malloc_trim(0)  # what was freed goes back to the system, where its library can
        self._floor = resident()


_malloc_trim: Callable[[int], object] = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)


def parse_size(text: int | str) -> int:
    """Bytes from a number or from "800M", "2G", "1.5GB"."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ConfigError(f"memory must be a size such as 800M or 2G, got {text!r}")
    return int(float(match[1]) * 1024 ** "_KMGT".index(match[2].upper() or "_"))


def resident() -> int:
    """The bytes of memory this process holds now."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)  # several times as quick as a Path
        try:
            return int(os.read(file, 64).split()[1]) * _PAGE
        finally:
            os.close(file)
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _map_file(size: int, folder: str) -> mmap.mmap:
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="seqloom-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise _no_room(error, folder) from None


def _no_room(error: OSError, folder: str) -> DataError:
    why = "has no room left" if error.errno == errno.ENOSPC else f"fails ({error.strerror})"
    return DataError(
        f"the folder for temporary files {why}; name another one or give more memory", folder
    )
