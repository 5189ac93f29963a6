"""The lines of an ARPA file: its header, its sections, and the n-grams as word numbers.

What tools write differs, and all of this is read: text before the header, blanks or tabs in any
number, CRLF, blank lines anywhere or nowhere, `<UNK>` for `<unk>`, n-grams without a back-off
weight (which is 0), `-inf` or `-99` for the logarithm of 0.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError
from seqloom.ngram.arpa_parse import (
    BAD_BACKOFF,
    BAD_PROB,
    FEW,
    LONG,
    MAX_LINE,
    MAX_ORDER,
    MORE,
    NO_BACKOFF,
    NO_PROB,
    SECTION,
    UNKNOWN,
    WAITING,
    parse_lines,
)
from seqloom.ngram.arpa_write import LARGEST
from seqloom.ngram.levels import Reals, Rows
from seqloom.ngram.words import SPECIALS, UNK, Words

_BLOCK = 4 << 20  # bytes read at once; a line is never longer
_ROOM = 8  # bytes behind them, see eights.py
_BLANKS = b" \t\r"
_COUNT = re.compile(rb"ngram[ \t]+(\d{1,3})[ \t]*=[ \t]*(\d{1,18})")
_FOREIGN = {
    b"qARPA": "an IRSTLM file with quantized numbers; write plain ARPA with compile-lm --text=yes",
    b"iARPA": "IRSTLM's own iARPA format; write plain ARPA with compile-lm --text=yes",
    b"blmt": "an IRSTLM binary file; write plain ARPA with compile-lm --text=yes",
    b"Qblmt": "an IRSTLM binary file; write plain ARPA with compile-lm --text=yes",
    b"mmap lm http://kheafield.com/code": "a KenLM binary file; give the ARPA file it is made of",
}


@dataclass
class Batch:
    """Some n-grams of one order, in the order of the file; void once two more have been asked for.

    Args:
        words: Their word numbers, a row a place in the n-gram.
        prob: Their log-probabilities.
        backoff: Their back-off weights.
        lines: The lines they stand in.
    """

    words: Rows
    prob: Reals
    backoff: Reals
    lines: NDArray[np.int64]


@dataclass
class Unigrams:
    """The vocabulary with, by word, log-probability and back-off weight.

    Args:
        words: The vocabulary.
        prob: By word.
        backoff: By word.
        added: The special words that the file does not have, with a probability of 0.
    """

    words: Words
    prob: Reals
    backoff: Reals
    added: list[str]


class ArpaLines:
    """Reads an ARPA file from front to back: `header`, then `unigrams`, then `batches`.

    Args:
        stream: The file's bytes.
        name: What it is called in errors.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name, self.line = name, 1  # the line that begins at self._at
        self.counts: list[int] = []
        self._capitals = False
        self._stream = stream
        self._buffer = bytearray(_BLOCK + _ROOM)
        self._text: NDArray[np.uint8] = np.frombuffer(self._buffer, np.uint8)
        self._at = self._end = self._filled = 0  # of the buffer; lines are whole up to _end
        self._spans = np.empty((WAITING, MAX_ORDER + 1, 3), np.uint64)
        self._columns: deque[tuple[NDArray[Any], ...]] = deque()

    def header(self) -> None:
        """Read up to the first section; `counts` then has how many n-grams each order announces."""
        while (line := self._next_line()) != b"\\data\\":
            if line is None:
                raise self._error("an ARPA file must have a line \\data\\, got none")
        while (line := self._next_line()) is not None and not line.startswith(b"\\"):
            found = _COUNT.fullmatch(line)
            if found and int(found[1]) == len(self.counts) + 1:
                self.counts.append(int(found[2]))
            elif line:
                wanted = f"ngram {len(self.counts) + 1}=COUNT"
                raise self._error(f"the header must go on with {wanted}, got {_shown(line)}")
        if not self.counts or not self.counts[0]:
            raise self._error("the header must announce 1-grams, got none; the file is damaged")
        if len(self.counts) > MAX_ORDER:
            raise self._error(f"the order must be at most {MAX_ORDER}, got {len(self.counts)}")
        self._expect(1, line)

    def unigrams(self) -> Unigrams:
        """Read the first section."""
        none = Words.of([])
        lengths, spelled, batches = [], [], []
        for batch, bytes_ in self._section(1, none):
            lengths.append(batch.words[0].copy())
            spelled.append(bytes_.copy())
            batches.append(deepcopy(batch))
        ends = np.concatenate([[0], *lengths]).cumsum(dtype=np.int64)
        pool = np.concatenate([none.pool[:0], *spelled])
        prob = np.concatenate([np.empty(0), *(batch.prob for batch in batches)])
        backoff = np.concatenate([np.empty(0), *(batch.backoff for batch in batches)])
        lines = np.concatenate([np.empty(0, np.int64), *(batch.lines for batch in batches)])
        return self._vocabulary(pool, ends, prob, backoff, lines)

    def batches(self, words: Words) -> Iterator[Batch]:
        """Read the other sections, to the end of the file."""
        known, capitals = words, len(words)
        if self._capitals:  # <UNK> is read as one more word, which then becomes <unk>
            spelling = np.frombuffer(b"<UNK>", np.uint8)
            offsets = np.append(words.offsets, words.offsets[-1] + len(spelling))
            known = Words(np.concatenate([words.pool, spelling]), offsets)
        for order in range(2, len(self.counts) + 1):
            for batch, _ in self._section(order, known):
                if self._capitals:
                    batch.words[batch.words == capitals] = UNK
                yield batch
        while (line := self._next_line()) is not None:
            if line:
                raise self._error(f"nothing may follow \\end\\, got {_shown(line)}; remove it")

    def _section(self, order: int, words: Words) -> Iterator[tuple[Batch, NDArray[np.uint8]]]:
        """The n-grams of an order; then the next section's heading has been read."""
        read, stopped = 0, MORE
        while stopped != SECTION:
            if self._at == self._end and not self._read():
                raise self._error(
                    f"the file must end with \\end\\, got its end after {read} of the "
                    f"{self.counts[order - 1]} {order}-grams; it is cut off",
                    self.line - 1,
                )
            stopped, batch, spelled = self._parse(order, words)
            read += len(batch.prob)
            if stopped > SECTION:
                self._refuse(stopped, order, words)
            yield batch, spelled
        if read != self.counts[order - 1]:
            raise self._error(
                f"the header announces {self.counts[order - 1]} {order}-grams, got {read}; "
                "the file is damaged or was changed by hand",
                self.line,
            )
        self._expect(order + 1, self._next_line())

    def _parse(self, order: int, words: Words) -> tuple[int, Batch, NDArray[np.uint8]]:
        numbers, prob, backoff, lines, spelled = self._next_columns(order)
        stopped, self._at, self.line, n = parse_lines(
            self._text, self._at, self._end, self.line, order, numbers, prob, backoff, lines,
            spelled, self._spans, words.table, words.pool, words.offsets,
        )  # fmt: skip
        batch = Batch(numbers[:, :n], prob[:n], backoff[:n], lines[:n])
        return stopped, batch, spelled[: numbers[0, :n].sum() if order == 1 else 0]

    def _next_columns(self, order: int) -> tuple[NDArray[Any], ...]:
        """Columns for a batch: two sets take turns, as fresh memory costs more than the parsing."""
        if not self._columns or len(self._columns[0][0]) != order:
            most = _BLOCK // (2 * order + 2) + 1  # the shortest line: 0 and, by word, two bytes
            kinds = (np.float64, np.float64, np.int64)
            self._columns = deque(
                (
                    np.empty((order, most), np.uint32),
                    *(np.empty(most, kind) for kind in kinds),
                    np.empty(_BLOCK if order == 1 else 0, np.uint8),
                )
                for _ in range(2)
            )
        self._columns.rotate()
        return self._columns[0]

    def _vocabulary(
        self,
        pool: NDArray[np.uint8],
        ends: NDArray[np.int64],
        prob: Reals,
        backoff: Reals,
        lines: NDArray[np.int64],
    ) -> Unigrams:
        """Put the special words first, whether the file has them or not."""
        specials = [self._find(word, pool, ends, lines) for word in SPECIALS]
        capital = self._find("<UNK>", pool, ends, lines)
        self._capitals = specials[UNK] < 0 <= capital
        if self._capitals:
            specials[UNK] = capital
        others = np.ones(len(prob), np.bool_)
        others[[row for row in specials if row >= 0]] = False
        lengths = np.diff(ends)
        sizes = np.concatenate([[len(word) for word in SPECIALS], lengths[others]])
        offsets = np.concatenate([[0], sizes]).cumsum(dtype=np.int64)
        first = np.frombuffer("".join(SPECIALS).encode(), np.uint8)
        try:
            words = Words(np.concatenate([first, pool[np.repeat(others, lengths)]]), offsets)
        except DataError:
            raise self._twice(pool, ends, lines) from None
        known = [row >= 0 for row in specials]
        rows = np.concatenate([specials, np.flatnonzero(others)])
        prob, backoff = prob[rows], backoff[rows]
        prob[:3][np.invert(known)], backoff[:3][np.invert(known)] = -np.inf, 0.0
        added = [word for word, row in zip(SPECIALS, specials, strict=True) if row < 0]
        return Unigrams(words, prob, backoff, added)

    def _find(
        self, word: str, pool: NDArray[np.uint8], ends: NDArray[np.int64], lines: NDArray[np.int64]
    ) -> int:
        """The row of a word; -1 if there is none."""
        spelling = np.frombuffer(word.encode(), np.uint8)
        rows = np.flatnonzero(np.diff(ends) == len(spelling))
        for i, letter in enumerate(spelling):
            rows = rows[pool[ends[rows] + i] == letter]
        if len(rows) > 1:
            raise self._twice(pool, ends, lines)
        return int(rows[0]) if len(rows) else -1

    def _twice(
        self, pool: NDArray[np.uint8], ends: NDArray[np.int64], lines: NDArray[np.int64]
    ) -> DataError:
        seen: dict[bytes, int] = {}
        data = pool.tobytes()
        for row, line in enumerate(lines.tolist()):
            word = data[ends[row] : ends[row + 1]]
            if word in seen:
                where = f"got {_shown(word)} here and in line {seen[word]}; remove one"
                return self._error(f"each word may stand once among the 1-grams, {where}", line)
            seen[word] = line
        raise AssertionError("no word stands twice")

    def _expect(self, order: int, line: bytes | None) -> None:
        """Refuse what is not the heading of this order's section, or the end after the last."""
        wanted = f"\\{order}-grams:" if order <= len(self.counts) else "\\end\\"
        if line is None:
            raise self._error(
                f"the file must go on with {wanted}, got its end; it is cut off", self.line - 1
            )
        if line != wanted.encode():
            raise self._error(f"here must stand {wanted}, got {_shown(line)}")

    def _refuse(self, why: int, order: int, words: Words) -> NoReturn:
        """Say what is wrong with the line that begins at `_at`."""
        line = bytes(self._buffer[self._at : self._buffer.index(b"\n", self._at)])
        fields = re.split(rb"[ \t\r]+", line.strip(_BLANKS))
        given = [field for field in fields[1 : order + 1] if not words.numbers(field).any()]
        unknown = [field for field in given if field not in (b"<unk>", b"<UNK>")]
        message = {
            NO_PROB: f"a line must begin with a log-probability, got {_shown(fields[0])}",
            BAD_PROB: f"a log-probability must be at most 0, got {_shown(fields[0])}",
            FEW: f"a {order}-gram must have {order} words, got {len(fields) - 1}: {_shown(line)}",
            UNKNOWN: "every word must be among the 1-grams, "
            f"got {_shown(unknown[0] if unknown else line)} in {_shown(line)}",
            NO_BACKOFF: f"a {order}-gram must have {order} words and perhaps a back-off weight, "
            f"got {_shown(b' '.join(fields[1:]))}",
            BAD_BACKOFF: f"a back-off weight must be at most {LARGEST:g}, got {_shown(fields[-1])}",
            LONG: f"a line may have {MAX_LINE} bytes, got {len(line)}",
        }[why]
        raise self._error(message, self.line)

    def _next_line(self) -> bytes | None:
        """The next line without blanks around it; None at the end of the file."""
        if self._at == self._end and not self._read():
            return None
        end = self._buffer.index(b"\n", self._at)
        if end - self._at >= MAX_LINE:
            raise self._error(f"a line may have {MAX_LINE} bytes, got {end - self._at}", self.line)
        line = bytes(self._buffer[self._at : end]).strip(_BLANKS)
        if self.line == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # the mark some editors put first
        self._at = end + 1
        self.line += 1
        return line

    def _read(self) -> bool:
        """Fill the buffer behind what is left of it, a part of a line; False at the end."""
        left = self._filled - self._end
        self._buffer[:left] = self._buffer[self._end : self._filled]
        self._filled = left
        view = memoryview(self._buffer)
        # One byte is kept for a line's end that the file does not have.
        while more := self._stream.readinto(view[self._filled : _BLOCK - 1]):  # type: ignore[attr-defined]
            self._filled += more
        if 0 < self._filled < _BLOCK - 1 and self._buffer[self._filled - 1] != 10:
            self._buffer[self._filled] = 10
            self._filled += 1
        if self.line == 1:
            for start, kind in _FOREIGN.items():
                if self._buffer.startswith(start, 0, self._filled):
                    raise self._error(f"must be an ARPA file, got {kind}", 1)
        zero = self._buffer.find(b"\0", 0, self._filled)
        if zero >= 0:
            line = self.line + self._buffer.count(b"\n", 0, zero)
            raise self._error(
                "an ARPA file is text, got a byte 0; it is another file or damaged", line
            )
        self._at, self._end = 0, self._buffer.rfind(b"\n", 0, self._filled) + 1
        if self._filled - self._end >= MAX_LINE:
            line = self.line + self._buffer.count(b"\n", 0, self._end)
            raise self._error(f"a line may have {MAX_LINE} bytes, got one that is longer", line)
        return self._end > 0

    def _error(self, message: str, line: int | None = None) -> DataError:
        """An error in a line, the one read last if none is given."""
        return DataError(message, self.name, max(self.line - 1 if line is None else line, 1))


def _shown(text: bytes) -> str:
    """Text for a message, not more than fits."""
    return repr(text[:60].decode("utf-8", "backslashreplace")) + ("..." if len(text) > 60 else "")
