"""Word vectors: look up, compare, and read or write the files people exchange them in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import fspath
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ConfigError, DataError, ShapeError, one_of
from seqloom.files import Source, cache_folder
from seqloom.text import vector_store, vector_writers
from seqloom.text.vector_files import FORMATS, Block, Rows, detect_format, read_blocks

LARGE_BYTES = 512 << 20  # a larger file is converted once and mapped, not held in memory
_BLOCK_ROWS = 1 << 14
_SUFFIXES = {
    "": "seqloom",
    ".npz": "npz",
    ".bin": "word2vec-binary",
    ".vec": "word2vec",
    ".txt": "glove",
}


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with a vector each.

    Args:
        words: The words, without repetition.
        matrix: Their vectors (V, D), float32 or float16, kept read-only; may be mapped from a file.
        duplicates: Rows left out on reading, because an earlier row had the same word.

    Raises:
        ShapeError: If `matrix` is not (len(words), D).
        ConfigError: If a word is repeated or `matrix` is of another type.

    Examples:
        >>> vectors = WordVectors(["up", "down"], np.array([[0, 2], [0, -1]], np.float32))
        >>> vectors.similarity("up", "down")
        -1.0
    """

    words: Sequence[str]
    matrix: Rows
    duplicates: int = 0
    index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        index = {word: row for row, word in enumerate(self.words)}
        if self.matrix.ndim != 2 or self.matrix.shape[0] != len(self.words):
            raise ShapeError(
                f"matrix must be (V, D) with V = {len(self.words)} words, got {self.matrix.shape}"
            )
        if self.matrix.dtype not in (np.float32, np.float16):
            raise ConfigError(f"matrix must be float32 or float16, got {self.matrix.dtype}")
        if len(index) < len(self.words):
            twice = next(word for row, word in enumerate(self.words) if index[word] != row)
            raise ConfigError(f"each word must occur once, got {twice!r} again; drop the repeats")
        matrix = self.matrix.view()
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "index", index)

    @staticmethod
    def open(folder: Source) -> WordVectors:
        """Map a store written by `write_vectors(..., format="seqloom")`; only the words are read.

        Raises:
            DataError: If the folder is no store, incomplete or altered.
        """
        return WordVectors(*vector_store.open_store(folder))

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words x {self.size}, {self.matrix.dtype})"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    @property
    def size(self) -> int:
        """Numbers in a vector, D."""
        return int(self.matrix.shape[1])

    def vector(self, word: str) -> NDArray[np.float32]:
        """Return the vector of `word` (D,).

        Raises:
            DataError: If the word has none.
        """
        row = self.index.get(word)
        if row is None:
            lower = word.lower()
            hint = (
                f"; {lower!r} has one" if lower in self.index else "; test with `word in vectors`"
            )
            raise DataError(f"there must be a vector for the word, got {word!r}{hint}")
        return np.asarray(self.matrix[row], dtype=np.float32)

    def similarity(self, a: str, b: str) -> float:
        r"""Return the cosine of two words.

        $$\cos(a, b) = \frac{a \cdot b}{\lVert a \rVert \lVert b \rVert}$$
        """
        return float(np.clip(self._unit(a) @ self._unit(b), -1, 1))

    def nearest(self, word: str | ArrayLike, k: int = 10) -> list[tuple[str, float]]:
        """Return the k words of greatest cosine with a word (itself left out) or with a vector.

        Ties keep the order of the words; words with a zero vector are never returned.

        Raises:
            DataError: If the word has no vector.
            ShapeError: If a vector is not (D,).
            ConfigError: If k < 1, or the vector is zero or not finite and so has no direction.
        """
        leave_out = [self.index[word]] if isinstance(word, str) and word in self else []
        return self._ranked(self._unit(word), k, leave_out)

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
        r"""Return the k words d that best complete "a is to b as c is to d" (3CosAdd).

        $$d^* = \mathrm{argmax}_{d \notin \{a, b, c\}} \cos(d, b - a + c)$$

        with a, b and c scaled to length 1 first.

        Paper: Mikolov, Yih and Zweig (2013), "Linguistic Regularities in Continuous Space Word
        Representations", section 4; named 3CosAdd by Levy and Goldberg (2014), "Linguistic
        Regularities in Sparse and Explicit Word Representations", equation 1.

        Raises:
            DataError: If one of the words has no vector.
            ConfigError: If k < 1, or b - a + c is zero.
        """
        query = self._unit(b) - self._unit(a) + self._unit(c)
        return self._ranked(self._unit(query), k, [self.index[word] for word in (a, b, c)])

    def select(
        self, words: Iterable[str], *, lowercase: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return rows (N, D) for a vocabulary, zero where there is none, and which were found (N,).

        Args:
            words: The vocabulary, in the order of the rows wanted.
            lowercase: Look for a word in lower case where it is not found as it is.
        """
        rows = np.array(
            [
                self.index.get(word, self.index.get(word.lower(), -1) if lowercase else -1)
                for word in words
            ],
            dtype=np.int64,
        )
        found = rows >= 0
        table = np.zeros((len(rows), self.size), dtype=np.float32)
        table[found] = self.matrix[rows[found]]
        return table, found

    def restrict(self, words: Collection[str]) -> WordVectors:
        """Return the vectors of those of `words` that are here, in the order they have here."""
        wanted = words if isinstance(words, (set, frozenset, dict)) else set(words)
        kept = [word for word in self.words if word in wanted]
        rows = [self.index[word] for word in kept]
        return WordVectors(kept, self.matrix[rows], self.duplicates)

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        norms = np.empty(len(self), dtype=np.float32)
        for start in range(0, len(self), _BLOCK_ROWS):
            rows = np.asarray(self.matrix[start : start + _BLOCK_ROWS], dtype=np.float32)
            norms[start : start + _BLOCK_ROWS] = np.linalg.norm(rows, axis=1)
        return norms

    def _unit(self, word: str | ArrayLike) -> NDArray[np.float32]:
        vector = self.vector(word) if isinstance(word, str) else np.asarray(word, dtype=np.float32)
        if vector.shape != (self.size,):
            raise ShapeError(f"a vector must be ({self.size},), got {vector.shape}")
        norm = np.linalg.norm(vector)
        if not norm > 0 or not np.isfinite(norm):
            name = repr(word) if isinstance(word, str) else "the vector given"
            raise ConfigError(f"a cosine needs a finite vector that is not zero, got {name}")
        return cast(NDArray[np.float32], vector / norm)

    def _ranked(
        self, query: NDArray[np.float32], k: int, leave_out: list[int]
    ) -> list[tuple[str, float]]:
        if k < 1:
            raise ConfigError(f"k must be at least 1, got {k}")
        scores = np.empty(len(self), dtype=np.float32)
        for start in range(0, len(self), _BLOCK_ROWS):
            rows = np.asarray(self.matrix[start : start + _BLOCK_ROWS], dtype=np.float32)
            scores[start : start + _BLOCK_ROWS] = rows @ query
        usable = self._norms > 0
        usable[leave_out] = False
        scores = np.where(usable, scores / np.where(usable, self._norms, 1), -np.inf)
        k = min(k, int(usable.sum()))
        if k == 0:
            return []
        least = np.partition(scores, -k)[-k]
        near = np.flatnonzero(scores >= least)
        order = near[np.argsort(-scores[near], kind="stable")][:k]
        return [(self.words[i], float(np.clip(scores[i], -1, 1))) for i in order]


def read_vectors(
    path: Source,
    *,
    format: str = "auto",
    only: Collection[str] | None = None,
    cache: Source | None = "auto",
) -> WordVectors:
    """Read word vectors from a file, plain or compressed, or from a store.

    A file of more than 512 MB is converted once into a store in the cache and mapped from there;
    if it changes, it is converted again. Where a word is repeated, its first row counts.

    Args:
        path: The file, or the folder of a store.
        format: "glove" (text without a header), "word2vec" (text with one; also fastText .vec),
            "word2vec-binary", "npz" (arrays `words` and `vectors`, float64 read as float32),
            "seqloom" (a store), or "auto" to tell by the content.
        only: Keep these words alone; the numbers of other rows are not even looked at.
        cache: The folder for stores of large files. "auto" is $SEQLOOM_CACHE or the user's cache
            folder; None reads into memory whatever the size.

    Raises:
        DataError: If the file is missing or malformed, with its line or row and the value.
        ConfigError: If the format is unknown.
    """
    if format != "auto" and format not in FORMATS:
        raise ConfigError(one_of("format", format, (*FORMATS, "auto")))
    if format == "seqloom" or (format == "auto" and Path(path).is_dir()):
        vectors = WordVectors.open(path)
        return vectors if only is None else vectors.restrict(only)
    format = _known_format(path, format)
    if cache is not None and Path(path).is_file() and Path(path).stat().st_size > LARGE_BYTES:
        source = vector_store.describe_source(path, format)
        folder = cache_folder() / "vectors" if fspath(cache) == "auto" else cache
        place = vector_store.cached_place(folder, source)
        ready = vector_store.holds_source(place, source)
        if not ready and only is None:
            vector_store.write_store(place, _blocks(path, format, None), source=source)
            ready = True
        if ready:
            vectors = WordVectors.open(place)
            return vectors if only is None else vectors.restrict(only)
    return _gather(_blocks(path, format, only), path)


def _known_format(path: Source, format: str) -> str:
    if fspath(path) != "-":
        return detect_format(path) if format == "auto" else format
    if format in ("auto", "npz"):
        raise ConfigError(
            f"standard input must be of a format named beforehand and no archive, got {format!r}"
        )
    return format


def _blocks(path: Source, format: str, only: Collection[str] | None) -> Iterator[Block]:
    only = only if only is None or isinstance(only, (set, frozenset, dict)) else set(only)
    if format != "npz":
        yield from read_blocks(path, format, only)
        return
    for words, matrix in vector_store.archive_blocks(path):
        if only is None:
            yield words, matrix
        else:
            rows = [row for row, word in enumerate(words) if word in only]
            yield [words[row] for row in rows], matrix[rows]


def _gather(blocks: Iterator[Block], path: Source) -> WordVectors:
    index: dict[str, int] = {}
    given = 0

    def counted() -> Iterator[Block]:
        nonlocal given
        for words, matrix in blocks:
            given += len(words)
            yield words, matrix

    try:
        parts = list(vector_store.without_duplicates(counted(), index))
        matrix = np.concatenate(parts)
    except MemoryError:
        raise DataError("does not fit in memory; pass a cache folder or `only`", path) from None
    return WordVectors(list(index), matrix, given - len(index))


def write_vectors(vectors: WordVectors, path: Source, *, format: str = "auto") -> None:
    """Write word vectors; text keeps every float32 exactly, in the fewest digits that do.

    Args:
        vectors: What to write.
        path: The file (or folder, for a store). A name that ends in .gz, .xz or .zst is compressed.
        format: As for `read_vectors`; "auto" goes by the name: .txt is glove, .vec word2vec,
            .bin word2vec-binary, .npz npz, and no suffix a store.

    Raises:
        ConfigError: If the format is unknown or a word cannot be written in it.
        DataError: If the file cannot be written.
    """
    place = Path(path)
    packed = place.suffix if place.suffix in (".gz", ".xz", ".zst") else ""
    if format == "auto":
        suffix = Path(place.name.removesuffix(packed)).suffix
        if suffix not in _SUFFIXES:
            raise ConfigError(
                f"the name must end in one of {', '.join(filter(None, _SUFFIXES))}, got "
                f"{place.name!r}; or pass format="
            )
        format = _SUFFIXES[suffix]
    if format not in FORMATS:
        raise ConfigError(one_of("format", format, (*FORMATS, "auto")))
    if packed and format in ("npz", "seqloom"):
        raise ConfigError(f"format {format!r} cannot be compressed, got {place.name!r}")
    if not len(vectors):
        raise ConfigError("there must be at least one word to write, got 0")
    if format == "seqloom":
        blocks = vector_writers.slices(vectors.words, vectors.matrix)
        vector_store.write_store(place, blocks, duplicates=vectors.duplicates)
        return
    vector_writers.write_file(vectors.words, vectors.matrix, place, format, packed)
