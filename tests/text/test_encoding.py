"""Index, one-hot vector, embedding: one linear map written three ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from seqloom.errors import ShapeError
from seqloom.text import Vocabulary, embed, one_hot

V, D = 5, 3
ids_of_any_shape = arrays.arrays(
    st.sampled_from([np.int32, np.int64, np.uint8]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements=st.integers(0, V - 1),
)


@given(ids_of_any_shape)
def test_one_hot_is_a_row_of_the_identity(ids):
    found = one_hot(ids, V)
    assert found.dtype == np.float32
    assert np.array_equal(found, np.eye(V, dtype=np.float32)[ids])


@given(ids_of_any_shape, st.sampled_from([np.float32, np.float64]))
def test_an_embedding_is_the_product_with_a_one_hot_vector(ids, dtype):
    weight = np.random.default_rng(0).normal(size=(D, V)).astype(dtype)
    found = embed(ids, weight)
    assert found.shape == (*ids.shape, D) and found.dtype == dtype
    assert np.array_equal(found, np.einsum("dv,...v->...d", weight, one_hot(ids, V).astype(dtype)))


def test_words_to_vectors():
    vocabulary = Vocabulary(["a"])
    ids = vocabulary.encode(["a", "new"])
    assert one_hot(ids, len(vocabulary)).tolist() == [[0, 0, 0, 0, 1], [0, 1, 0, 0, 0]]
    assert one_hot(vocabulary.encode([]), 5).shape == (0, 5)


@pytest.mark.parametrize("wrong", [-1, 5, 2**40])
def test_ids_out_of_range_are_refused(wrong):
    for call in (lambda ids: one_hot(ids, V), lambda ids: embed(ids, np.ones((D, V)))):
        with pytest.raises(ShapeError, match=rf"0\.\.4, got {wrong}"):
            call([[0, 1], [2, wrong]])


@pytest.mark.parametrize(("ids", "dtype"), [([0.0], "float64"), ([True], "bool"), (["a"], "<U1")])
def test_ids_that_are_no_whole_numbers_are_refused(ids, dtype):
    for call in (lambda ids: one_hot(ids, V), lambda ids: embed(ids, np.ones((D, V)))):
        with pytest.raises(ShapeError, match=f"whole numbers, got an array of {dtype}"):
            call(ids)


def test_a_weight_that_is_no_matrix_is_refused():
    with pytest.raises(ShapeError, match=r"\(D, V\), got \(5,\)"):
        embed([0], np.ones(5))
