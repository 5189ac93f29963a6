"""Writing ARPA files: rows turned to text by two threads ahead of the one that writes."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, cores, inner, prefetch
from seqloom.errors import BackendError, ConfigError, DataError
from seqloom.files import written_beside
from seqloom.ngram.eights import highest_bit, load8, split_digits, store8
from seqloom.ngram.levels import Level, Ngrams, Rows
from seqloom.ngram.words import is_blank
from seqloom.ngram.workspace import Workspace

NEVER = -99.0  # what ARPA files have for the logarithm of 0
LARGEST = 99.0  # a back-off weight above it is no back-off weight
SLACK = 1e-6  # how far above 0 rounding may lift a log-probability

_ROWS, _BYTES = 1 << 16, 16 << 20  # how much of a level becomes text at once, at most
_NUMBER = 11  # the longest number: -12.3456789
_ROOM = 8  # bytes behind others, see eights.py
_AHEAD = 16  # rows between asking for memory and using it
_U = np.uint64
_DECIMALS = _U(10**7)  # float32 holds no more of what lies between -10 and -1
_ZEROS = _U(0x3030303030303030)


@inner
def _put_number(value, out, at):  # type: ignore[no-untyped-def]
    """Write a number above -100 and below 100 with up to seven decimals; returns where it ends.

    Eight bytes behind its end may be overwritten.
    """
    scaled = _U(np.rint(abs(max(value, NEVER)) * 1e7))
    if value < 0 and scaled != 0:
        out[at] = 45
        at += 1
    whole, fraction = scaled // _DECIMALS, scaled % _DECIMALS
    if whole >= 10:
        out[at] = 48 + whole // _U(10)
        at += 1
    out[at] = 48 + whole % _U(10)
    at += 1
    if fraction != 0:
        digits = split_digits(fraction * _U(10))
        out[at] = 46
        store8(out, at + 1, digits | _ZEROS)
        at += 2 + np.int64(highest_bit(digits) >> _U(3))
    return at


@compiled
def _step_down(rows, context, word, words):  # type: ignore[no-untyped-def]
    """Give the last word of each row, and its context in place of the row.

    Returns False if a row is out of range, which no sound model has.
    """
    size, total = len(context), len(rows)
    for i in range(total):
        if i + _AHEAD < total:
            prefetch(context, rows[i + _AHEAD])
            prefetch(word, rows[i + _AHEAD])
        row = rows[i]
        if row >= size:
            return False
        words[i] = word[row]
        rows[i] = context[row]
    return True


@compiled
def _format(words, prob, backoff, pool, offsets, out):  # type: ignore[no-untyped-def]
    """Write one line a row; returns how many bytes and the first row that cannot be written.

    `words` has a row a place in the n-gram. `backoff` is empty where no weights are to be written.
    Both `pool` and `out` have eight bytes of room at their ends.
    """
    at = 0
    for i in range(len(prob)):
        if not prob[i] <= SLACK or (len(backoff) and not backoff[i] <= LARGEST):
            return at, i
        at = _put_number(min(prob[i], 0.0), out, at)
        for k in range(len(words)):
            if words[k, i] >= len(offsets) - 1:
                return at, i
            out[at] = 32 if k else 9
            at += 1
            start, size = offsets[words[k, i]], offsets[words[k, i] + 1] - offsets[words[k, i]]
            for j in range(0, size, 8):
                store8(out, at + j, load8(pool, start + j))
            at += size
        if len(backoff):
            out[at] = 9
            at = _put_number(backoff[i], out, at + 1)
        out[at] = 10
        at += 1
    return at, -1


@compiled
def _first_unwritable(pool, offsets):  # type: ignore[no-untyped-def]
    """The first word that is empty or holds a blank, or -1."""
    for number in range(len(offsets) - 1):
        if offsets[number] == offsets[number + 1]:
            return number
        for at in range(offsets[number], offsets[number + 1]):
            if is_blank(pool[at]):
                return number
    return -1


def write_arpa(
    ngrams: Ngrams, path: str | PathLike[str] | IO[bytes], *, place: Workspace | None = None
) -> None:
    """Write a model as an ARPA file, as KenLM's lmplz does.

    Numbers have seven decimals; a probability of 0 has the logarithm -99. Every n-gram below the
    highest order has a back-off weight. A file appears under its name when it is complete.

    Args:
        ngrams: The model.
        path: A file, compressed if its name ends in .gz, .xz or .zst; "-" is standard output. Or a
            stream for bytes, which is left open.
        place: Where the model's columns lie, if they may lie in temporary files.

    Raises:
        ConfigError: If the model is one of stupid back-off, which ARPA cannot express.
        DataError: If the file cannot be written or the model holds what no model can.
    """
    if ngrams.missing_backoff != 0:
        raise ConfigError(
            "an ARPA file can hold only models whose missing contexts have the back-off weight 0, "
            f"got {ngrams.missing_backoff:g} (stupid back-off); save the model in its own format"
        )
    wrong = _first_unwritable(ngrams.words.pool, ngrams.words.offsets)
    if wrong >= 0:
        raise DataError(
            "the words of an ARPA file must be non-empty and without blanks, "
            f"got {ngrams.words[int(wrong)]!r}; join its parts by another character"
        )
    with _opened(path) as stream:
        counts = "".join(f"ngram {k}={size}\n" for k, size in enumerate(ngrams.sizes, 1))
        stream.write(f"\\data\\\n{counts}".encode())
        formatter = _Formatter(ngrams)
        for order in range(1, ngrams.order + 1):
            stream.write(f"\n\\{order}-grams:\n".encode())
            for lines in formatter.level(order):
                stream.write(cast(Any, lines))
                if place:
                    place.breathe()
        stream.write(b"\n\\end\\\n")


class _Formatter:
    """Turns rows into lines, by as many threads as there are cores, ahead of who asks for them."""

    def __init__(self, ngrams: Ngrams) -> None:
        self.ngrams = ngrams
        self.offsets = ngrams.words.offsets
        self.longest = int(np.diff(self.offsets).max())
        self.pool = np.concatenate([ngrams.words.pool, np.zeros(_ROOM, np.uint8)])

    def level(self, order: int) -> Iterator[NDArray[np.uint8]]:
        """The lines of a level in order; each piece is void when the next is asked for."""
        size = len(self.ngrams.levels[order - 1])
        width = 2 * _NUMBER + 3 + order * (self.longest + 1)
        step = max(1, min(_ROWS, _BYTES // width))
        # Used again and again, as fresh memory costs more than the formatting.
        spaces = [_Space(order, step, width) for _ in range(min(cores() + 1, -(-size // step)))]
        coming: deque[tuple[_Space, Future[NDArray[np.uint8]]]] = deque()
        with ThreadPoolExecutor(cores()) as threads:
            for start in range(0, size, step):
                if not spaces:
                    space, lines = coming.popleft()
                    yield lines.result()
                    spaces.append(space)
                space = spaces.pop()
                end = min(start + step, size)
                coming.append((space, threads.submit(self._lines, space, order, start, end)))
            for _, lines in coming:
                yield lines.result()

    def _lines(self, space: _Space, order: int, start: int, end: int) -> NDArray[np.uint8]:
        ngrams, level, size = self.ngrams, self.ngrams.levels[order - 1], end - start
        words, rows = space.words[:, :size], space.rows[:size]
        rows[:] = np.arange(start, end, dtype=np.uint32)
        for k in range(order - 1, 0, -1):
            below = ngrams.levels[k]
            if not _step_down(rows, below.context, below.word, words[k]):
                raise _broken(ngrams, level, start)
        words[0] = rows  # row i of order 1 is word i
        backoff = level.backoff[start:end] if order < ngrams.order else level.prob[:0]
        assert len(backoff) in {size, 0}
        used, wrong = _format(
            words, level.prob[start:end], backoff, self.pool, self.offsets, space.out
        )
        if wrong >= 0:
            raise _broken(ngrams, level, start + wrong, words[:, wrong])
        return space.out[:used]


class _Space:
    """What formatting some rows of an order needs, for lines of a given width at most."""

    def __init__(self, order: int, rows: int, width: int) -> None:
        self.words = np.empty((order, rows), np.uint32)
        self.rows = np.empty(rows, np.uint32)
        self.out = np.empty(rows * width + _ROOM, np.uint8)


def _broken(ngrams: Ngrams, level: Level, row: int, words: Rows | None = None) -> DataError:
    if words is None or words.max() >= len(ngrams.words):
        return DataError(f"the model is broken: an n-gram near row {row} names one that is missing")
    text = " ".join(ngrams.words[int(number)] for number in words)
    weight = f" and {level.backoff[row]}" if len(level.backoff) else ""
    return DataError(
        f"log-probabilities must be at most 0 and back-off weights at most {LARGEST:g}, "
        f"got {level.prob[row]}{weight} for {text!r}; the model is broken, estimate it anew"
    )


@contextmanager
def _opened(path: str | PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """A stream to write to; what fails on a file is a DataError."""
    if not isinstance(path, str | PathLike):
        with _buffered(path) as stream:
            yield stream
        return
    name = fspath(path)
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    place = Path(name)
    try:
        if place.exists() and not place.is_file():  # a pipe or a device: nothing to put beside it
            with place.open("wb") as raw, _compressed(raw, place.suffix) as stream:
                yield stream
            return
        with (
            # Unflushed: a file that a power cut spoils has no \end\, and can be made again.
            written_beside(place, flush=False) as beside,
            beside.open("wb") as raw,
            _compressed(raw, place.suffix) as stream,
        ):
            yield stream
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", name) from None


@contextmanager
def _buffered(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """A stream whose `write` takes all it is given, which a raw one does not promise."""
    if not isinstance(stream, io.RawIOBase):
        yield stream
        return
    buffered = io.BufferedWriter(stream)
    try:
        yield buffered
    finally:
        buffered.detach()


@contextmanager
def _compressed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:  # the same bytes every time
            yield cast(IO[bytes], stream)
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as stream:
            yield cast(IO[bytes], stream)
    elif suffix == ".zst":
        try:
            import zstandard
        except ModuleNotFoundError:
            raise BackendError("a .zst file needs zstandard; pip install zstandard") from None
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield stream
    else:
        yield raw
