"""The encodings between a word and a network: index, one-hot vector, linear embedding.

The index is `Vocabulary.encode`. Here is the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ShapeError


def one_hot(ids: ArrayLike, vocab_size: int) -> NDArray[np.float32]:
    r"""Turn ids into vectors that are 1 at the id and 0 elsewhere.

    $$x_j = [j = i], \quad x \in \{0, 1\}^V$$

    Args:
        ids: Word ids of any shape.
        vocab_size: The width V of each vector.

    Returns:
        An array of the shape of `ids` with one more axis of length V. It is dense: a thousand words
        of a vocabulary of 50,000 take 200 MB, which is why networks use `embed` instead.
    """
    index = np.asarray(ids)
    _check_ids(index, vocab_size)
    vectors = np.zeros((*index.shape, vocab_size), np.float32)
    np.put_along_axis(vectors, index[..., None], 1.0, axis=-1)
    return vectors


def embed(ids: ArrayLike, weight: NDArray[np.floating]) -> NDArray[np.floating]:
    r"""Map ids linearly to dense vectors: the product with a one-hot vector, done by looking up.

    $$e = W x, \quad W \in \mathbb{R}^{D \times V}$$

    Args:
        ids: Word ids of any shape.
        weight: W, one row a dimension and one column a word.

    Returns:
        An array of the shape of `ids` with one more axis of length D.
    """
    if weight.ndim != 2:
        raise ShapeError(f"weight must be of shape (D, V), got {weight.shape}")
    index = np.asarray(ids)
    _check_ids(index, weight.shape[1])
    vectors: NDArray[np.floating] = weight.T[index]
    return vectors


def _check_ids(ids: NDArray[np.integer], vocab_size: int) -> None:
    if not np.issubdtype(ids.dtype, np.integer):
        raise ShapeError(f"ids must be whole numbers, got an array of {ids.dtype}")
    if ids.size and not (ids.min() >= 0 and ids.max() < vocab_size):
        wrong = ids[(ids < 0) | (ids >= vocab_size)].reshape(-1)[0]
        raise ShapeError(f"ids must lie in 0..{vocab_size - 1}, got {wrong}")
