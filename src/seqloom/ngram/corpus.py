"""Text as word numbers, from files, globs, standard input or Python strings, on every core.

Two blocks at a time are tokenized against the words known so far; what is new in each is numbered
afterwards, in the order of the text, so the numbers are those of one pass.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import cores, in_threads
from seqloom.errors import ConfigError, DataError, one_of
from seqloom.files import open_bytes
from seqloom.ngram.words import (
    BOM,
    COUNT,
    DONE,
    FRESH_BYTES,
    FRESH_WORDS,
    IDS_FULL,
    IN_LINE,
    LINES,
    REFUSE,
    SEEN,
    SKIP,
    SPECIALS,
    SYMBOL,
    UNK,
    Words,
    add_words,
    encoded,
    fill_table,
    settle,
    table_size,
    tokenize,
)
from seqloom.ngram.workspace import BLOCK, Workspace

Symbols = Literal["count", "skip", "error"]
_MODES = {"count": COUNT, "skip": SKIP, "error": REFUSE}
TextSource = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass
class Corpus:
    """A text as word numbers.

    Args:
        ids: Every line between the numbers of `<s>` and `</s>`.
        words: The vocabulary.
        lines: How many lines there are.
        seen: How often `<unk>`, `<s>` and `</s>` stood in the text itself.
    """

    ids: NDArray[np.uint32]
    words: Words
    lines: int
    seen: tuple[int, int, int]


def read_blocks(source: TextSource, size: int = BLOCK) -> Iterator[bytes]:
    """A text in blocks of bytes that end between two words.

    Args:
        source: A path, a glob pattern, "-" for standard input, or an iterable of sentences;
            `Path` objects in an iterable are files.
        size: About how many bytes a block has.
    """
    if isinstance(source, str | os.PathLike):
        for path in _expand(os.fspath(source)):
            yield from _file_blocks(path, size)
        return
    pending: list[str] = []
    held = 0
    for item in source:
        if isinstance(item, os.PathLike):
            yield from _sentence_block(pending)
            pending, held = [], 0
            yield from _file_blocks(os.fspath(item), size)
            continue
        pending.append(item.replace("\n", " ") if "\n" in item else item)
        held += len(item)
        if held >= size:
            yield from _sentence_block(pending)
            pending, held = [], 0
    yield from _sentence_block(pending)


def _sentence_block(sentences: list[str]) -> Iterator[bytes]:
    if sentences:
        yield encoded("\n".join(sentences) + "\n")


def _expand(path: str) -> list[str]:
    if path == "-" or Path(path).exists() or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 (a pattern may be absolute)
    if not found:
        raise DataError("no file matches this pattern; check it", path)
    return found


def _file_blocks(path: str, size: int) -> Iterator[bytes]:
    """The blocks of a file, its last line ended."""
    with open_bytes(path) as stream:
        rest, last = stream.read(len(BOM)).removeprefix(BOM), b"\n"
        last = rest[-1:] or last
        while piece := stream.read(size):
            last = piece[-1:]
            cut = max(piece.rfind(b"\n"), piece.rfind(b" "), piece.rfind(b"\t")) + 1
            if cut:
                yield rest + piece[:cut]
                rest = piece[cut:]
            else:
                rest += piece
        if last != b"\n":
            rest += b"\n"
        if rest:
            yield rest


class Tokenizer:
    """Numbers the words of a text, block by block.

    Args:
        words: The vocabulary to begin with.
        grows: Whether new words join it; else they are `<unk>`.
        symbols: What `<unk>`, `<s>` and `</s>` in the text mean. "count": `<unk>` counts as the
            unknown word, the marks are skipped; "skip": all three are skipped; "error": refused.
    """

    def __init__(self, words: Words, *, grows: bool, symbols: Symbols = "count") -> None:
        if symbols not in _MODES:
            raise ConfigError(one_of("symbols", symbols, _MODES))
        self._table, self._pool, self._offsets = words.table, words.pool, words.offsets
        self._words = len(words)
        self._grows, self._mode = grows, _MODES[symbols]
        self._in_line = False
        self.lines = 0
        self.seen = np.zeros(3, np.int64)

    @property
    def words(self) -> Words:
        """The vocabulary as it is now."""
        end = self._offsets[self._words]
        return Words(self._pool[:end], self._offsets[: self._words + 1], self._table)

    def blocks(self, blocks: Iterable[bytes]) -> Iterator[NDArray[np.uint32]]:
        """The ids of each block; the text must end its last line."""
        turn: list[bytes] = []
        for block in blocks:
            turn.append(block)
            if len(turn) == cores():
                yield from self._turn(turn)
                turn = []
        yield from self._turn(turn)

    def _turn(self, blocks: list[bytes]) -> Iterator[NDArray[np.uint32]]:
        """Tokenize blocks side by side, then number what is new in each, in order."""
        in_line = []
        for block in blocks:
            in_line.append(self._in_line)
            if block:
                self._in_line = not block.endswith(b"\n")
        done = in_threads(lambda job: self._one(*job), zip(blocks, in_line, strict=True))
        for ids, state, fresh in done:
            self.lines += int(state[LINES])
            self.seen += state[SEEN : SEEN + 3]
            if state[FRESH_WORDS]:
                settle(ids, self._adopt(state, *fresh))
            yield ids

    def _one(
        self, block: bytes, in_line: bool
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], Any]:
        text = np.frombuffer(block, np.uint8)
        ids = np.empty(len(text) // 3 + 1024, np.uint32)
        grows = self._grows
        table = np.zeros(1 << 12 if grows else 2, np.uint64)
        pool = np.empty(len(text) if grows else 0, np.uint8)
        offsets = np.zeros(len(text) // 2 + 2 if grows else 1, np.int64)
        state = np.zeros(SEEN + 3, np.int64)
        state[IN_LINE] = in_line
        at = n = 0
        while True:
            stopped, at, n = tokenize(
                text, at, ids, n, self._table, self._pool, self._offsets,
                table, pool, offsets, state, grows, self._mode,
            )  # fmt: skip
            if stopped == DONE:
                return ids[:n], state, (pool, offsets)
            if stopped == SYMBOL:
                self._refuse(state)
            if stopped == IDS_FULL:
                ids = np.concatenate([ids, np.empty(len(ids), np.uint32)])
            else:
                table = np.zeros(4 * len(table), np.uint64)
                fill_table(table, pool, offsets, state[FRESH_WORDS])

    def _refuse(self, state: NDArray[np.int64]) -> None:
        word = SPECIALS[int(np.argmax(state[SEEN : SEEN + 3]))]
        raise DataError(
            f"the text must not hold {word!r}, got it in line {self.lines + int(state[LINES]) + 1}"
            " or after; use symbols='count' or symbols='skip'"
        )

    def _adopt(self, state: NDArray[np.int64], pool: Any, offsets: Any) -> NDArray[np.uint32]:
        """Take fresh words into the vocabulary; returns their numbers."""
        count, size = int(state[FRESH_WORDS]), int(state[FRESH_BYTES])
        words, used = self._words, int(self._offsets[self._words])
        if words + count >= 1 << 31:
            raise DataError("a vocabulary holds 2^31 words at most; this text has more")
        self._pool = _with_room(self._pool, used + size)
        self._offsets = _with_room(self._offsets, words + count + 1)
        if table_size(words + count) > len(self._table):
            self._table = np.zeros(max(2 * len(self._table), table_size(words + count)), np.uint64)
            fill_table(self._table, self._pool, self._offsets, words)
        numbers = np.empty(count, np.uint32)
        self._words = add_words(
            count, pool, offsets, self._table, words, self._pool, self._offsets, numbers
        )
        return numbers


def _with_room(column: NDArray[Any], size: int) -> NDArray[Any]:
    if len(column) >= size:
        return column
    grown = np.empty(max(len(column) + len(column) // 2, size), column.dtype)
    grown[: len(column)] = column
    return grown


def read_corpus(
    source: TextSource,
    place: Workspace,
    *,
    words: Words | None = None,
    min_count: int = 1,
    symbols: Symbols = "count",
) -> Corpus:
    """Read a text into word numbers.

    Args:
        source: What `read_blocks` takes.
        place: Where the numbers are kept.
        words: A given vocabulary, to which nothing is added; other words count as `<unk>`.
        min_count: Words that occur less often count as `<unk>`.
        symbols: What special words in the text mean, as in `Tokenizer`.

    Raises:
        DataError: If there is no text, a file cannot be read, or it holds what `symbols` refuses.
    """
    tokenizer = Tokenizer(words or Words.of([]), grows=words is None, symbols=symbols)
    ids = place.gather(tokenizer.blocks(read_blocks(source, place.block)))
    if not len(ids):
        raise DataError("there is no text to count; give at least one line")
    if len(ids) >= 1 << 32:
        raise DataError("a text of 2^32 words or more is not supported; split it")
    unk, bos, eos = map(int, tokenizer.seen)
    corpus = Corpus(ids, tokenizer.words, tokenizer.lines, (unk, bos, eos))
    return _without_rare(corpus, min_count, place) if min_count > 1 else corpus


def _without_rare(corpus: Corpus, min_count: int, place: Workspace) -> Corpus:
    count = np.zeros(len(corpus.words), np.int64)
    for start, end in place.chunks(len(corpus.ids)):
        count += np.bincount(corpus.ids[start:end], minlength=len(count))
    keep = count >= min_count
    keep[: len(SPECIALS)] = True
    numbers = np.where(keep, np.cumsum(keep) - 1, UNK).astype(np.uint32)
    for start, end in place.chunks(len(corpus.ids)):
        corpus.ids[start:end] = numbers[corpus.ids[start:end]]
    return Corpus(corpus.ids, corpus.words.only(keep), corpus.lines, corpus.seen)
