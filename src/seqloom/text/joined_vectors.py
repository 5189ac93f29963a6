"""Two tables of word vectors as one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError
from seqloom.text.vectors import WordVectors

Matrix = NDArray[np.float32]


def join_vectors(first: WordVectors, second: WordVectors, *, pairs: int = 20_000) -> WordVectors:
    r"""Return the vectors of both tables side by side, for every word of either.

    $$v_w = [a_w; \sigma b_w], \quad a_w \approx \sigma b_w B, \; \sigma b_w \approx a_w A
    \text{ where it is missing}$$

    $\sigma$ makes the numbers of both tables spread alike. A and B are the least squares over words
    that both tables have.

    Paper: Yin and Schütze (2016), "Learning Word Meta-Embeddings", ACL, where it is called CONC;
    they also fill in what one table lacks.
    Differs from the paper: the spread of all numbers is made equal, not the length of each vector;
    what is filled in is linear in the other vector.

    Args:
        first: A table.
        second: Another one.
        pairs: Words from which A and B are learned: those that come first in `first`.

    Returns:
        The words of `first` in their order, then those that `second` alone has.

    Raises:
        ConfigError: If the tables have no word in common.

    Examples:
        >>> a = WordVectors(["up", "down"], np.array([[1], [-1]], np.float32))
        >>> b = WordVectors(["down", "left"], np.array([[-2], [2]], np.float32))
        >>> join_vectors(a, b).matrix.tolist()
        [[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]]
    """
    if pairs < 1:
        raise ConfigError(f"pairs must be at least 1, got {pairs}")
    common = [word for word in first.words if word in second][:pairs]
    if not common:
        raise ConfigError(
            f"tables that are joined must have words in common, got none of {len(first):,} words "
            f"and {len(second):,}"
        )
    a, b = _numbers(first), _numbers(second)
    spread = float(b.std())
    b *= float(a.std()) / spread if spread else 1.0
    words = [*first.words, *(word for word in second.words if word not in first)]
    in_first = a[[first.index[word] for word in common]]
    in_second = b[[second.index[word] for word in common]]
    found = np.empty((len(words), first.size + second.size), np.float32)
    _fill(found[:, : first.size], words, (first, a), (second, b), _map(in_second, in_first))
    _fill(found[:, first.size :], words, (second, b), (first, a), _map(in_first, in_second))
    return WordVectors(words, found)


def _numbers(vectors: WordVectors) -> Matrix:
    return np.array(vectors.matrix, dtype=np.float32)


def _map(given: Matrix, wanted: Matrix) -> Matrix:
    """The matrix that takes some vectors nearest to others."""
    found: Matrix = np.linalg.lstsq(given, wanted, rcond=None)[0]
    return found


def _fill(
    found: Matrix,
    words: list[str],
    own: tuple[WordVectors, Matrix],
    other: tuple[WordVectors, Matrix],
    by: Matrix,
) -> None:
    """Write a table's vectors, and what the other one's say where it has none."""
    has = np.array([word in own[0] for word in words])
    found[has] = own[1][[own[0].index[word] for word in words if word in own[0]]]
    found[~has] = other[1][[other[0].index[word] for word in words if word not in own[0]]] @ by
