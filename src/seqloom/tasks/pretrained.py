"""Vectors learned elsewhere as the table of word vectors of a model."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seqloom.data.datasets import dataset_file, dataset_names, find_dataset
from seqloom.errors import ConfigError, DataError, nearest
from seqloom.tasks.directory import HEADER
from seqloom.tasks.loading import load
from seqloom.text.vectors import WordVectors, read_vectors
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import nn


@runtime_checkable
class HasVectors(Protocol):
    """Whatever has word vectors, such as a fitted `Embedder`."""

    @property
    def vectors(self) -> WordVectors:
        """The words with a vector each."""


VectorSource = str | PathLike[str] | WordVectors | HasVectors
"""A file, a store, a model directory of task "embed", a named data set, or the vectors."""


class EmbeddingMatrix(NamedTuple):
    """A vector for each id of a vocabulary.

    Args:
        matrix: The vectors (V, D).
        found: Which of them come from the source (V,); the others are to be learned.
    """

    matrix: NDArray[np.float32]
    found: NDArray[np.bool_]


def open_vectors(source: VectorSource, only: Sequence[str] | None = None) -> WordVectors:
    """Return the word vectors of a source.

    Args:
        source: A file in any format `seqloom.text.read_vectors` knows, a store, a model directory
            of task "embed", the name of a data set of vectors, an `Embedder`, or `WordVectors`.
        only: The words that are needed; of a file, other rows are not read.

    Raises:
        DataError: If there is no such file, or it is damaged.
        ConfigError: If the source has no word vectors.
    """
    if isinstance(source, WordVectors):
        return source
    if isinstance(source, (str, PathLike)):
        return _read(fspath(source), only)
    if _has_own(source):
        return source.vectors
    raise ConfigError(
        "vectors must be a file, a store, a model directory, an Embedder or WordVectors, "
        f"got {source!r}"
    )


def _has_own(source: Any) -> TypeGuard[HasVectors]:
    """Whether it has word vectors of its own; `vectors` of other tasks is what they begin with."""
    return isinstance(source, HasVectors) and getattr(source, "task", "embed") == "embed"


def _read(name: str, only: Sequence[str] | None) -> WordVectors:
    place = Path(name)
    if (place / HEADER).is_file():
        model = load(place)
        if not _has_own(model):
            raise ConfigError(
                f"a model with word vectors is one of task 'embed', got {model.task!r} in {name}"
            )
        found: WordVectors = model.vectors
        return found
    if not place.exists() and name in dataset_names():
        data = find_dataset(name)
        if data.task != "vectors":
            raise ConfigError(
                f"a data set of word vectors has task 'vectors', got {data.task!r} of {name!r}"
            )
        place = dataset_file(name, data.files[0].name)
    elif not place.exists():
        raise DataError(f"no such file of word vectors{nearest(name, dataset_names())}", name)
    return read_vectors(place, only=only)


def embedding_matrix(
    vocabulary: Vocabulary | Sequence[str],
    source: VectorSource,
    dimension: int | None = None,
    seed: int = 0,
    *,
    lowercase: bool = True,
) -> EmbeddingMatrix:
    r"""Return a vector for each id: the source's, or for words it lacks one drawn like them.

    $$e_i \sim \mathcal{N}(\mu, \operatorname{diag}(\sigma^2))$$

    with the mean $\mu$ and deviation $\sigma$ of each component over the words that were found.
    Which vector a missing word gets depends on the seed and its id alone. Padding is zero.

    Args:
        vocabulary: The words in the order of their ids, buckets of unknown words included.
        source: Where the vectors are; see `open_vectors`.
        dimension: What D must be, if the model says so.
        seed: Of the vectors drawn.
        lowercase: Look for a word in lower case where it is not found as it is.

    Raises:
        ConfigError: If the source's vectors are not of that dimension.
        DataError: If the source has none of the words.

    Examples:
        >>> source = WordVectors(["up", "down"], np.array([[0, 2], [0, -1]], np.float32))
        >>> embedding_matrix(Vocabulary(["up", "left"]), source).found.tolist()
        [False, False, False, False, True, False]
    """
    words = list(vocabulary)
    wanted = [*words, *(word.lower() for word in words)] if lowercase else words
    vectors = open_vectors(source, wanted)
    if dimension is not None and vectors.size != dimension:
        raise ConfigError(
            f"vectors must be as wide as the model's, {dimension}, got {vectors.size}; set the "
            f"model's size of word vectors to {vectors.size}"
        )
    table, found = vectors.select(words, lowercase=lowercase)
    if not found.any():
        raise DataError(
            f"the vectors must hold some of the {len(words):,} words, got none of them "
            f"({', '.join(words[-3:])}); is it a file of another language or casing?"
        )
    more = len(vocabulary) - len(words)
    matrix = np.concatenate([table, np.zeros((more, vectors.size), np.float32)])
    found = np.concatenate([found, np.zeros(more, bool)])
    known = matrix[found].astype(np.float64)
    drawn = np.random.default_rng(seed).standard_normal(matrix.shape)
    drawn = known.mean(axis=0) + known.std(axis=0) * drawn
    matrix[~found] = drawn[~found].astype(np.float32)
    padding = vocabulary.specials.pad if isinstance(vocabulary, Vocabulary) else ""
    if padding and not found[words.index(padding)]:
        matrix[words.index(padding)] = 0
    return EmbeddingMatrix(matrix, found)


def put_vectors(embedding: nn.Embedding, given: EmbeddingMatrix, *, frozen: bool = False) -> None:
    """Put vectors into a model's table before it is trained.

    Args:
        embedding: The table, of as many rows and as wide as the matrix.
        given: What `embedding_matrix` returned.
        frozen: Keep the vectors that were found as they are; those drawn are trained all the same.
            After training, `seqloom.nn.held.release_rows(embedding)` makes a plain table again.

    Raises:
        ConfigError: If the table is of another shape.
    """
    import torch

    from seqloom.nn.held import hold_rows

    shape = tuple(embedding.weight.shape)
    if shape != given.matrix.shape:
        raise ConfigError(
            f"the model's table of word vectors must be {given.matrix.shape}, got {shape}; set its "
            f"size of word vectors to {given.matrix.shape[1]}"
        )
    with torch.no_grad():
        embedding.weight.copy_(torch.from_numpy(given.matrix))
    if frozen:
        hold_rows(embedding, torch.from_numpy(given.found))
