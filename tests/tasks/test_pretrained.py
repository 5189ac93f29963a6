"""Vectors from elsewhere: the table for a vocabulary, tuned or frozen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.errors import ConfigError, DataError, ShapeError
from seqloom.nn.held import hold_rows, release_rows
from seqloom.tasks.pretrained import embedding_matrix, open_vectors, put_vectors
from seqloom.text import Vocabulary, WordVectors, write_vectors

WORDS = ["red", "green", "blue", "cyan"]
ROWS = np.random.default_rng(1).normal(2.0, 3.0, (4, 3)).astype(np.float32)
SOURCE = WordVectors(WORDS, ROWS)
VOCABULARY = Vocabulary(["Red", "blue", "sand", "cyan"])  # after four specials


def test_each_word_gets_its_row():
    matrix, found = embedding_matrix(VOCABULARY, SOURCE)
    assert found.tolist() == [False] * 4 + [True, True, False, True]
    np.testing.assert_array_equal(matrix[[4, 5, 7]], ROWS[[0, 2, 3]])
    assert not matrix[0].any(), "padding is zero"
    assert matrix.dtype == np.float32


def test_case_counts_if_asked():
    assert embedding_matrix(VOCABULARY, SOURCE, lowercase=False).found.sum() == 2


def test_missing_words_are_drawn_like_those_found():
    words = [f"w{i}" for i in range(20_000)]
    matrix, found = embedding_matrix(["red", "blue", "cyan", *words], SOURCE, seed=5)
    own = ROWS[[0, 2, 3]].astype(np.float64)
    drawn = matrix[~found]
    assert len(drawn) == len(words)
    error = 4 * own.std(axis=0) / np.sqrt(len(words))  # four standard errors of a mean
    assert (abs(drawn.mean(axis=0) - own.mean(axis=0)) < error).all()
    np.testing.assert_allclose(drawn.std(axis=0), own.std(axis=0), rtol=0.03)


def test_the_seed_decides():
    one, two, other = (embedding_matrix(VOCABULARY, SOURCE, seed=s).matrix for s in (3, 3, 4))
    np.testing.assert_array_equal(one, two)
    assert (one[6] != other[6]).all()
    np.testing.assert_array_equal(one[4], other[4])


def test_buckets_of_unknown_words_have_rows():
    vocabulary = Vocabulary(["red"], out_of_vocabulary="hash", buckets=3)
    matrix, found = embedding_matrix(vocabulary, SOURCE)
    assert matrix.shape == (len(vocabulary), 3) and found.sum() == 1
    assert matrix[5:].any(axis=1).all()


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.txt", "v.npz", "store"])
def test_any_file_of_vectors(tmp_path, name):
    write_vectors(SOURCE, tmp_path / name)
    matrix, found = embedding_matrix(VOCABULARY, tmp_path / name, 3)
    np.testing.assert_array_equal(matrix[found], ROWS[[0, 2, 3]])


def test_what_cannot_be_used(tmp_path):
    with pytest.raises(ConfigError, match=r"as wide as the model's, 5, got 3"):
        embedding_matrix(VOCABULARY, SOURCE, 5)
    with pytest.raises(DataError, match=r"some of the 1 words, got none of them \(rot\)"):
        embedding_matrix(["rot"], SOURCE)
    with pytest.raises(DataError, match=r"no such file of word vectors"):
        open_vectors(tmp_path / "nothing.vec")
    with pytest.raises(DataError, match=r"did you mean 'glove-6b-100d-subset'"):
        open_vectors("glove-100d-subset")
    with pytest.raises(ConfigError, match=r"has task 'vectors', got '"):
        open_vectors("ptb")
    with pytest.raises(ConfigError, match=r"an Embedder or WordVectors, got 7"):
        open_vectors(7)
    with pytest.raises(ConfigError, match=r"must be \(8, 3\), got \(8, 2\)"):
        put_vectors(nn.Embedding(8, 2), embedding_matrix(VOCABULARY, SOURCE))


OPTIMIZERS = {
    "momentum and decay": lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9, weight_decay=0.1),
    "adamw": lambda w: torch.optim.AdamW(w, lr=0.1, weight_decay=0.5),
}


def train(embedding: nn.Embedding, make) -> None:
    optimizer = make(embedding.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        embedding(torch.arange(8)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_frozen_rows_stay_and_the_others_learn(make):
    given = embedding_matrix(VOCABULARY, SOURCE)
    frozen, free = nn.Embedding(8, 3), nn.Embedding(8, 3)
    put_vectors(frozen, given, frozen=True)
    put_vectors(free, given)
    train(frozen, make)
    train(free, make)
    after, found = frozen.weight.detach().numpy(), given.found
    np.testing.assert_array_equal(after[found], given.matrix[found])
    expected = free.weight.detach().numpy()  # the other rows learn as if none were held
    np.testing.assert_allclose(after[~found], expected[~found], rtol=1e-6)
    assert (expected[found] != given.matrix[found]).all()


def test_a_released_table_is_plain_and_the_same():
    table = nn.Embedding(8, 3)
    put_vectors(table, embedding_matrix(VOCABULARY, SOURCE), frozen=True)
    train(table, OPTIMIZERS["adamw"])
    values = table.weight.detach().clone()
    release_rows(table)
    release_rows(table)  # nothing more to do
    assert list(table.state_dict()) == ["weight"] and isinstance(table.weight, nn.Parameter)
    torch.testing.assert_close(table.weight.detach(), values, rtol=0, atol=0)
    table(torch.tensor([4])).sum().backward()
    assert table.weight.grad[4].tolist() == [1, 1, 1]


def test_holding_is_checked():
    table = nn.Embedding(3, 2)
    with pytest.raises(ShapeError, match=r"\(3,\), got \(2,\)"):
        hold_rows(table, torch.tensor([True, False]))
    hold_rows(table, torch.tensor([True, False, False]))
    with pytest.raises(ConfigError, match="held already"):
        hold_rows(table, torch.tensor([True, False, False]))
