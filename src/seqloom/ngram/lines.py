"""Lines as they come, in blocks, and what a model says of each and of its words."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from os import fspath
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import in_threads
from seqloom.errors import DataError
from seqloom.files import Source, open_bytes
from seqloom.ngram.model import NgramModel
from seqloom.ngram.scoring import sum_sentences

BLOCK = 4 << 20  # bytes read at a time
STRETCH = 1 << 17  # bytes a thread takes at a time
LONGEST = 1 << 26  # bytes of a line


class LineScores(NamedTuple):
    """What a model says of some lines; logarithms are natural.

    Args:
        totals: By line, the log-probability of its words and its end.
        counts: By line, how many words these are, the end among them.
        unknown: By line, how many of them the model does not know.
        unknown_totals: By line, the log-probability of these.
        ids: The words' numbers, for each line that of `<s>`, of its words, of `</s>`. Here and
            below, `<s>` and `</s>` that stand in the text itself are left out.
        values: The words' log-probabilities.
        orders: The lengths of the n-grams that gave them; 0 for `<s>`.
    """

    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    unknown: NDArray[np.int64]
    unknown_totals: NDArray[np.float64]
    ids: NDArray[np.uint32]
    values: NDArray[np.float64]
    orders: NDArray[np.uint8]


def score_stretch(model: NgramModel, text: bytes) -> LineScores:
    """Score whole lines; takes one core and leaves Python free for the others."""
    ids, values, orders = model._score_block(text)
    size = text.count(b"\n")
    totals, unknown_totals = np.empty(size), np.empty(size)
    counts, unknown = np.empty(size, np.int64), np.empty(size, np.int64)
    sum_sentences(ids, values, totals, counts, unknown, unknown_totals)
    return LineScores(totals, counts, unknown, unknown_totals, ids, values, orders)


def score_lines(model: NgramModel, block: bytes) -> LineScores:
    """Score whole lines on every core."""
    done = in_threads(lambda text: score_stretch(model, text), stretches(block))
    return LineScores(*map(np.concatenate, zip(*done, strict=True)))


def stretches(block: bytes) -> Iterator[bytes]:
    """Whole lines in pieces for threads to take, small enough to stay in the cache."""
    at = 0
    while at < len(block):
        end = block.find(b"\n", min(at + STRETCH, len(block)) - 1) + 1 or len(block)
        yield block[at:end]
        at = end


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
