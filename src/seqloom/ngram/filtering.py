"""Lines sorted out by how well a model predicts them, as a stream, in order, on every core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, in_threads
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.batch import stretches
from seqloom.ngram.model import NgramModel
from seqloom.ngram.words import BOM

TextOf = Callable[[bytes], bytes]


class Kept(NamedTuple):
    """What is left of some lines.

    Args:
        data: The lines kept, as they were.
        numbers: Which lines of the whole stream these are, from 1 on.
        perplexities: Theirs.
        lines: How many lines there were.
    """

    data: bytes
    numbers: NDArray[np.int64]
    perplexities: NDArray[np.float64]
    lines: int


def filter_lines(
    model: NgramModel,
    blocks: Iterable[bytes],
    *,
    below: float | None = None,
    above: float | None = None,
    invert: bool = False,
    text_of: TextOf | None = None,
    name: str | None = None,
) -> Iterator[Kept]:
    """Keep the lines whose perplexity, the line's end included, lies between two bounds.

    Lines without a word have no perplexity and are never kept.

    Args:
        model: Says what is likely.
        blocks: Whole lines, as `line_blocks` reads them; only the last may lack its end.
        below: Keep lines of a lower perplexity than this.
        above: Keep lines of a higher perplexity than this.
        invert: Keep the other lines instead.
        text_of: What of a line (without its end) is scored, such as the field of a record; the
            line as it is if not given. Several threads call it.
        name: What the stream is called in errors.

    Returns:
        For each block, its lines that are kept.

    Raises:
        ConfigError: If no bound is given, or no perplexity lies between them.
        DataError: If `text_of` raises it; the line is added.
    """
    low, high = _bounds(above, below)

    def one(job: tuple[int, bytes]) -> Kept:
        first, lines = job
        ended = lines if lines.endswith(b"\n") else lines + b"\n"
        said = ended.removeprefix(BOM) if first == 1 else ended
        scores = model.score_lines(_texts(said, text_of, first, name) if text_of else said)
        with np.errstate(over="ignore"):  # what a model finds impossible
            perplexities = np.exp(-scores.totals / scores.counts)
        inside = (perplexities > low) & (np.isinf(high) | (perplexities < high))
        kept = (inside != invert) & (scores.counts > 1)
        raw = np.frombuffer(ended, np.uint8)
        out = np.empty(len(raw), np.uint8)
        size = _copy_lines(raw, kept, out)
        if len(ended) > len(lines) and kept[-1]:
            size -= 1  # the end that was added
        return Kept(
            out[:size].tobytes(), first + np.flatnonzero(kept), perplexities[kept], len(kept)
        )

    return _in_order(one, blocks)


def _in_order(one: Callable[[tuple[int, bytes]], Kept], blocks: Iterable[bytes]) -> Iterator[Kept]:
    """Do the work on each block, its lines numbered, in pieces on every core."""
    first = 1
    for block in blocks:
        jobs = []
        for start, end, lines in stretches(block):
            jobs.append((first, block[start:end]))
            first += lines
        data, numbers, perplexities, lines_each = zip(*in_threads(one, jobs), strict=True)
        yield Kept(
            b"".join(data), np.concatenate(numbers), np.concatenate(perplexities), sum(lines_each)
        )


def _bounds(above: float | None, below: float | None) -> tuple[float, float]:
    if above is None and below is None:
        raise ConfigError("a filter must have a bound, got none; give `below` or `above`")
    low, high = 0.0 if above is None else above, math.inf if below is None else below
    if not 0 <= low < high or not high > 1:
        raise ConfigError(
            "the bounds must leave room for perplexities, which are at least 1, "
            f"got above {low:g} and below {high:g}"
        )
    return low, high


def _texts(lines: bytes, text_of: TextOf, first: int, name: str | None) -> bytes:
    """What is scored of each line, a line each."""
    texts = []
    for number, line in enumerate(lines[:-1].split(b"\n"), first):
        try:
            texts.append(text_of(line).replace(b"\n", b" ") if line.strip() else b"")
        except DataError as error:
            raise DataError(error.message, name, number) from None
    return b"\n".join(texts) + b"\n"


@compiled
def _copy_lines(text, kept, out):  # type: ignore[no-untyped-def]
    """Copy the lines that are wanted; returns how many bytes they have."""
    line, size = 0, 0
    for byte in text:
        if kept[line]:
            out[size] = byte
            size += 1
        if byte == 10:
            line += 1
    return size
