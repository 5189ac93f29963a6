"""Neighbours, senses and probes of words in context on vectors whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqloom.errors import ConfigError, ShapeError
from seqloom.explain.context import (
    cosines,
    draw_layer_shares,
    layer_shares,
    linear_probe,
    nearest_in_context,
    sense_accuracy,
)
from seqloom.figures import save
from seqloom.models.tagger import RecurrentTagger, RecurrentTaggerConfig
from seqloom.nn.context import ContextOptions


def test_neighbours_are_those_of_greatest_cosine():
    vectors = np.array([[1, 0], [2, 0.1], [0, 1], [0, 0], [1, 1]])
    found = nearest_in_context(vectors, 0, k=2)
    assert [place for place, _ in found] == [1, 4]
    assert found[1][1] == pytest.approx(2**-0.5)
    oracle = torch.nn.functional.cosine_similarity(
        torch.from_numpy(vectors)[:, None], torch.from_numpy(vectors)[None], dim=-1
    )
    np.testing.assert_allclose(cosines(vectors), oracle.numpy(), atol=1e-7)


def test_senses_by_hand():
    vectors = [[1, 0], [1, 0.1], [0, 1], [0.1, 1], [0.2, 1]]
    assert sense_accuracy(vectors, list("aabbb")) == 1.0
    assert sense_accuracy(vectors, list("ababb")) == pytest.approx(2 / 5)
    # Vectors that are all the same know nothing: a sees 1 a and 2 b, b sees 2 a and 1 b.
    assert sense_accuracy(np.ones((4, 2)), list("aabb")) == pytest.approx(1 / 3)
    with pytest.raises(ShapeError, match="got 1 for 2"):
        sense_accuracy(np.ones((2, 2)), ["a"])


def test_a_probe_finds_what_is_linear_and_nothing_else():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(400, 3)), rng.normal(size=(200, 3))

    def linear(rows):
        return ["up" if row[0] > 0 else "down" for row in rows]

    def crossed(rows):
        return ["up" if row[0] * row[1] > 0 else "down" for row in rows]

    assert linear_probe(x, linear(x), z, linear(z)).accuracy > 0.95
    found = linear_probe(x, crossed(x), z, crossed(z))
    assert abs(found.accuracy - 0.5) < 0.12
    usual = max("up", "down", key=crossed(x).count)
    assert found.majority == pytest.approx(crossed(z).count(usual) / 200)
    with pytest.raises(ConfigError, match="l2 must be positive, got 0"):
        linear_probe(x, linear(x), z, linear(z), l2=0)


def test_the_probe_is_ridge_regression():
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(30, 4)), list("ab" * 15)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    ones = np.concatenate([standard, np.ones((30, 1))], axis=1)
    y = np.array([[label == "a", label == "b"] for label in labels], float)
    penalty = np.diag([2.0] * 4 + [0.0])
    weights = np.linalg.inv(ones.T @ ones + penalty) @ ones.T @ y
    expected = float(((ones @ weights).argmax(axis=1) == y.argmax(axis=1)).mean())
    assert linear_probe(x, labels, x, labels, l2=2.0).accuracy == pytest.approx(expected)


def test_shares_of_layers_are_read_and_drawn(tmp_path):
    sizes = {"vocab_size": 5, "input_size": 0, "output_size": 2, "feature_sizes": ()}
    context = ContextOptions(size=4, num_layers=3)
    config = RecurrentTaggerConfig(**sizes, char_vocab_size=0, hidden_size=4, context=context)
    model = RecurrentTagger(config)
    with torch.no_grad():
        model.input.context.mixes["input"].weights.copy_(torch.tensor([0.0, 0.0, 2.0]).log1p())
    found = layer_shares(model)
    assert found == {"input": pytest.approx([0.2, 0.2, 0.6])}
    assert save(draw_layer_shares(found, title="shares"), tmp_path / "s.png").stat().st_size > 5000
    plain = RecurrentTagger(RecurrentTaggerConfig(**sizes, char_vocab_size=0, hidden_size=4))
    with pytest.raises(ConfigError, match="where contextual= was given"):
        layer_shares(plain)
