"""Words that a trained network knows by their vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from seqloom import Tagger
from seqloom.errors import ConfigError
from seqloom.tasks.unseen_words import extend_words
from seqloom.text import Vocabulary
from seqloom.text.vectors import WordVectors


@dataclass(frozen=True)
class Config:
    vocab_size: int


class Network(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.input = nn.Module()
        self.input.embedding = nn.Embedding(size, 2)
        self.config = Config(size)


@pytest.mark.parametrize(("most", "added"), [(True, ["b", "c", "d"]), (2, ["b", "c"]), (0, [])])
def test_the_first_words_of_the_file_are_added(most, added):
    vectors = WordVectors(["a", "b", "c", "d"], np.arange(8, dtype=np.float32).reshape(4, 2))
    words = Vocabulary(["a", "z"])
    model = Network(len(words))
    before = model.input.embedding.weight.detach().clone()
    found = extend_words(model, words, vectors, most)
    assert [word for word in found.words if word not in words] == added
    assert model.config.vocab_size == len(found) == len(words) + len(added)
    table = model.input.embedding.weight.detach()
    assert torch.equal(table[: len(words)], before)
    for word in added:
        assert table[found[word]].tolist() == vectors.select([word])[0][0].tolist()


def test_a_negative_number_is_refused_before_anything_is_read():
    with pytest.raises(ConfigError, match="unseen_vectors must be true, false or a number of"):
        Tagger("blstm", unseen_vectors=-1).fit("nowhere.conll")
    with pytest.raises(ConfigError, match=r"a number of words, got 2\.5"):
        Tagger("blstm", unseen_vectors=2.5).fit("nowhere.conll")
