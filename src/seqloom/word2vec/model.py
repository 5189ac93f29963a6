"""Word vectors and how they are learned: pieces of text, taken in turn by several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import cores
from seqloom.errors import DataError, ShapeError, TrainingError
from seqloom.word2vec.config import Word2VecConfig
from seqloom.word2vec.reference import random_bits
from seqloom.word2vec.tables import (
    WHOLE,
    Paths,
    alias_table,
    draw_chances,
    huffman_paths,
    keep_chances,
)
from seqloom.word2vec.updates import ALIGNED, train_piece

PIECE = 10_000  # tokens between two looks at the learning rate; a longer sentence is cut there
COUNTED = 1 << 22  # tokens counted at once

Rows = NDArray[np.float32]


class Progress(NamedTuple):
    """How far training has come.

    Args:
        epoch: Which reading of the text this is, from 1.
        share: How much of all of them is done, 0 to 1.
        rate: The learning rate.
    """

    epoch: int
    share: float
    rate: float


class Word2Vec:
    """Vectors of words as they stand near others, and as they are predicted.

    Papers: Mikolov, Chen, Corrado and Dean (2013), "Efficient Estimation of Word Representations
    in Vector Space", section 3, for the two models; Mikolov et al. (2013), "Distributed
    Representations of Words and Phrases and their Compositionality", sections 2.1 to 2.3, for the
    losses and for leaving frequent words out. The equations are in `seqloom.word2vec.updates`.

    Args:
        config: The settings.
        vectors: A vector a word (V, D).
        output: A vector a word as it is predicted, or an inner node of Huffman's tree.
    """

    def __init__(self, config: Word2VecConfig, vectors: Rows, output: Rows) -> None:
        nodes = len(vectors) - 1 if config.is_hierarchical else len(vectors)
        for name, found, rows in (("vectors", vectors, len(vectors)), ("output", output, nodes)):
            if found.shape != (rows, config.vector_size):
                raise ShapeError(f"{name} must be {(rows, config.vector_size)}, got {found.shape}")
        self.config, self.vectors, self.output = config, vectors, output

    @classmethod
    def fit(
        cls,
        config: Word2VecConfig,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        rows: NDArray[np.int32],
        counts: NDArray[np.int64],
        tell: Callable[[Progress], None] | None = None,
    ) -> Word2Vec:
        """Learn from a text of numbers; it may be mapped from a file.

        Args:
            config: The settings.
            ids: The text.
            offsets: Where its sentences begin, and where the last one ends.
            rows: By id, the word's place by falling count, -1 for what is left out.
            counts: How often the word of each row occurs, falling.
            tell: Told how far it is, after each piece.

        Raises:
            DataError: If there is nothing to learn from.
            TrainingError: After an epoch, if the vectors are no numbers any more.
        """
        if len(counts) < 2:
            raise DataError(
                f"word vectors need at least 2 words that occur often enough, got {len(counts)}; "
                "give more text or lower vocabulary.min_count"
            )
        vectors, output = first_vectors(config, len(counts))
        work = _Work(config, ids, offsets, rows, counts, vectors, output)
        if not work.run(tell):
            raise DataError(
                "word vectors need sentences of at least 2 known words, got none in "
                f"{len(offsets) - 1:,} sentences of {len(ids):,} tokens; give longer ones, or "
                "sample=0 to leave no frequent word out"
            )
        size = config.vector_size
        return cls(config, vectors[:, :size].copy(), output[:, :size].copy())

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each table."""
        return {"vectors": self.vectors.shape, "output": self.output.shape}


def first_vectors(config: Word2VecConfig, words: int) -> tuple[Rows, Rows]:
    """The tables before training: uniform in (-1, 1) / D, and zero for what is predicted.

    Rows are as wide as the next multiple of `ALIGNED`, zero beyond the vector's size.
    """
    size = config.vector_size
    width = -(-size // ALIGNED) * ALIGNED
    vectors = _aligned(words, width)
    chance = np.random.default_rng(config.seed)
    for start in range(0, words, PIECE):
        drawn = chance.random((min(PIECE, words - start), size), np.float32)
        vectors[start : start + PIECE, :size] = (2 * drawn - 1) / np.float32(size)
    return vectors, _aligned(words - config.is_hierarchical, width)


def _aligned(rows: int, width: int) -> Rows:
    """Zeros that begin at a line of the cache."""
    room = np.zeros(rows * width + ALIGNED, np.float32)
    first = -room.ctypes.data % (4 * ALIGNED) // 4
    return room[first : first + rows * width].reshape(rows, width)


def count_ids(ids: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """How often each id occurs in a text that may be mapped."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(ids), COUNTED):
        counts += np.bincount(ids[start : start + COUNTED], minlength=size)
    return counts


class _Work:
    """Text and tables as every thread sees them."""

    def __init__(
        self,
        config: Word2VecConfig,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        rows: NDArray[np.int32],
        counts: NDArray[np.int64],
        vectors: Rows,
        output: Rows,
    ) -> None:
        self.config, self.ids, self.offsets, self.rows = config, ids, offsets, rows
        self.vectors, self.output = vectors, output
        self.keep = (keep_chances(counts, config.sample) * WHOLE).astype(np.uint64)
        if config.is_hierarchical:
            self.table, self.paths = np.zeros(0, np.uint32), huffman_paths(counts)
        else:
            self.table = alias_table(draw_chances(counts, config.exponent))
            self.paths = Paths.none()
        longest = int(np.diff(self.paths.starts).max(initial=0))
        self.targets = longest if config.is_hierarchical else config.negatives + 1
        self.pieces = -(-len(ids) // PIECE)

    def run(self, tell: Callable[[Progress], None] | None) -> int:
        """Train on all pieces, epoch by epoch; return how many updates there were."""
        threads = min(self.config.threads or cores(), self.pieces)
        updates, ahead = 0, deque[Future[int]]()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for step, piece in self._steps():
                    ahead.append(pool.submit(self._train, step, piece))
                    if len(ahead) > 2 * threads:  # few wait, however long the text is
                        updates += self._await(ahead, step + 1, tell)
                while ahead:
                    updates += self._await(ahead, step + 1, tell)
            finally:
                pool.shutdown(cancel_futures=True)  # if it was interrupted
        return updates

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Each step with the piece it trains on."""
        for epoch in range(self.config.epochs):
            order = piece_order(self.config.seed, epoch, self.pieces)
            yield from enumerate(order.tolist(), epoch * self.pieces)

    def _await(
        self,
        ahead: deque[Future[int]],
        begun: int,
        tell: Callable[[Progress], None] | None,
    ) -> int:
        """Wait for the first of those that were begun; return its updates."""
        done = begun - len(ahead)
        updates = ahead.popleft().result()
        if tell is not None:
            tell(self._progress(done))
        if (done + 1) % self.pieces == 0:
            self._check_finite(done)
        return updates

    def _check_finite(self, step: int) -> None:
        for start in range(0, len(self.vectors), PIECE):
            part = self.vectors[start : start + PIECE]
            if not np.isfinite(part).all():
                raise TrainingError(
                    "word vectors must stay finite, got "
                    f"{part[~np.isfinite(part)][0]} after epoch {step // self.pieces + 1} "
                    f"(learning rate {self.config.first_rate:g} at first); lower rate"
                )

    def _progress(self, step: int) -> Progress:
        share = (step + 1) / (self.config.epochs * self.pieces)
        return Progress(step // self.pieces + 1, share, self.rate(step))

    def rate(self, step: int) -> float:
        """The learning rate falls in a straight line, piece by piece."""
        first, last = self.config.first_rate, self.config.end_rate
        return first - (first - last) * step / (self.config.epochs * self.pieces)

    def bounds(self, piece: int) -> NDArray[np.int64]:
        """Where the sentences of a piece begin, and where the last one ends."""
        begin, end = piece * PIECE, min((piece + 1) * PIECE, len(self.ids))
        first, last = np.searchsorted(self.offsets, (begin, end), side="right")
        inside = self.offsets[first : last + 1]
        inside = inside[(inside > begin) & (inside < end)]
        return np.concatenate([[begin], inside, [end]])

    def _train(self, step: int, piece: int) -> int:
        config = self.config
        bounds = self.bounds(piece)
        ids = np.asarray(self.ids[bounds[0] : bounds[-1]])
        width = self.vectors.shape[1]
        updates: int = train_piece(
            ids,
            bounds - bounds[0],
            self.rows,
            self.keep,
            self.vectors,
            self.output,
            self.table,
            *self.paths,
            np.empty(len(ids), np.int32),
            np.empty(2 * config.window, np.int32),
            np.empty(self.targets, np.int32),
            np.empty(self.targets, np.float32),
            np.empty(self.targets, np.float32),
            np.empty((1, width), np.float32),
            np.empty(width, np.float32),
            config.window,
            config.negatives,
            config.is_cbow,
            config.mean_gradient,
            np.float32(self.rate(step)),
            np.uint64(piece_state(config.seed, step)),
        )
        return updates


def piece_order(seed: int, epoch: int, pieces: int) -> NDArray[np.int64]:
    """The order in which an epoch takes the pieces of the text, another in every epoch.

    Neighbours in a text are alike. Read from first to last, what comes last would always meet the
    lowest rate of an epoch, and threads side by side would move the same words.
    """
    return np.random.default_rng((seed, epoch)).permutation(pieces)


def piece_state(seed: int, step: int) -> int:
    """Where the random numbers of a step begin: they depend on the seed and the step alone."""
    return (next(random_bits(seed)) + next(random_bits(step + (1 << 63)))) % (1 << 64)
