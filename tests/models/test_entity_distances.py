"""Distances to two marked entities, against a loop, in front of any classifier of sequences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.cnn_classifier import CNNClassifier, CNNClassifierConfig
from seqloom.models.entity_distances import EntityDistances, entity_distances
from seqloom.models.entity_states import EntityStates
from seqloom.models.recurrent_classifier import AttBLSTMConfig, RecurrentClassifier

MARKERS = (2, 3, 4, 5)
V, C = 12, 3


def sentences(seed: int) -> list[list[int]]:
    """Sentences of different lengths with both entities, either one first."""
    chance = np.random.default_rng(seed)
    rows = []
    for _ in range(6):
        parts = [chance.integers(6, V, size=n).tolist() for n in (*chance.integers(0, 4, 3), 1, 2)]
        pairs = [(2, 3), (4, 5)] if chance.random() < 0.5 else [(4, 5), (2, 3)]
        (a, b), (c, d) = pairs
        rows.append([*parts[0], a, *parts[3], b, *parts[1], c, *parts[4], d, *parts[2]])
    return rows


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    return (
        torch.tensor([row + [0] * (longest - len(row)) for row in rows]),
        torch.tensor([len(row) for row in rows]),
    )


def by_loop(row: list[int], opening: int, closing: int) -> list[int]:
    start, end = row.index(opening), row.index(closing)
    found = []
    for t in range(len(row)):
        if t < start:
            found.append(t - start)
        elif t > end:
            found.append(t - end)
        else:
            found.append(0)
    return found


def build(kind: str = "att-blstm", **changes):
    torch.manual_seed(0)
    shared = {"vocab_size": V, "input_size": 0, "output_size": C, "embed_size": 4}
    settings = {"position_size": 3, "max_distance": 2, "markers": MARKERS} | changes
    if kind == "cnn":
        config = CNNClassifierConfig(**shared, widths=(2, 3), num_maps=4)
        return EntityDistances(CNNClassifier, config, **settings).double().eval()
    config = AttBLSTMConfig(**shared, hidden_size=5)
    return EntityDistances(RecurrentClassifier, config, **settings).double().eval()


@pytest.mark.parametrize("seed", range(3))
def test_distances_match_a_loop(seed):
    rows = sentences(seed)
    ids, _ = padded(rows)
    for opening, closing in ((2, 3), (4, 5)):
        found = entity_distances(ids, opening, closing)
        for row, line in zip(rows, found.tolist(), strict=True):
            assert line[: len(row)] == by_loop(row, opening, closing)


def test_vectors_are_word_and_distances_side_by_side():
    model, rows = build(), sentences(0)
    ids, lengths = padded(rows)
    vectors = model.vectors(ids, lengths)
    words = model.input.embedding.weight
    for b, row in enumerate(rows):
        first, second = by_loop(row, 2, 3), by_loop(row, 4, 5)
        for t, word in enumerate(row):
            near = [max(-2, min(2, d[t])) + 2 for d in (first, second)]
            expected = torch.cat(
                [words[word], model.first.weight[near[0]], model.second.weight[near[1]]]
            )
            assert_close(vectors[b, t], expected)
        assert not vectors[b, len(row) :].any()
    inner = model.encoder(vectors, lengths)
    assert_close(model(ids, lengths).scores, inner.scores)


@pytest.mark.parametrize("kind", ["att-blstm", "cnn"])
def test_padding_never_changes_a_result(kind):
    model, rows = build(kind), sentences(1)
    ids, lengths = padded(rows)
    whole = model(ids, lengths)
    for b, row in enumerate(rows):
        alone = model(torch.tensor([row]))
        assert_close(whole.scores[b], alone.scores[0])
        if alone.attention is not None:
            assert_close(whole.attention[b, : len(row)], alone.attention[0])


@pytest.mark.parametrize("kind", ["att-blstm", "cnn"])
def test_every_parameter_gets_a_gradient(kind):
    model = build(kind)
    model(*padded(sentences(2))).scores.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


@pytest.mark.parametrize("kind", ["att-blstm", "cnn"])
def test_states_at_the_ends_of_entities_are_read_too(kind):
    inner, rows = build(kind), sentences(3)
    model = EntityStates(inner, (3, 5)).double().eval()
    whole, plain = model(*padded(rows)), inner(*padded(rows))
    for b, row in enumerate(rows):
        ends = [plain.states[b, row.index(marker)] for marker in (3, 5)]
        more = model.output.weight @ torch.cat(ends).tanh()
        assert_close(whole.scores[b], plain.scores[b] + more)
        assert_close(whole.scores[b], model(torch.tensor([row])).scores[0])
    whole.scores.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


def test_without_a_vector_a_word_there_are_no_states_to_read():
    class Without(CNNClassifier):
        def forward(self, x, lengths=None):
            return super().forward(x, lengths)._replace(states=None)

    config = CNNClassifierConfig(vocab_size=V, input_size=0, output_size=C)
    with pytest.raises(ConfigError, match="need a model with a vector a word, got Without"):
        EntityStates(Without(config), (3, 5))(*padded(sentences(0)))


def test_word_dropout_acts_once():
    """With every coordinate dropped but the positions, only they are left."""
    config = AttBLSTMConfig(
        vocab_size=V,
        input_size=0,
        output_size=C,
        embed_size=4,
        hidden_size=5,
        embedding_dropout=0.5,
    )
    settings = {"position_size": 3, "max_distance": 2, "markers": MARKERS}
    model = EntityDistances(RecurrentClassifier, config, **settings).train()
    assert model.encoder.config.embedding_dropout == model.encoder.config.word_dropout == 0
    vectors = model.vectors(*padded(sentences(0))[:1])
    share = float((vectors[..., :4] == 0).double().mean())
    assert 0.3 < share < 0.7
    assert (vectors[..., 4:] != 0).all()


def test_a_row_without_its_markers_is_refused():
    with pytest.raises(ShapeError, match="must hold marker 5 once"):
        build()(torch.tensor([[2, 7, 3, 4, 8]]))
    with pytest.raises(ShapeError, match="must hold marker 2 once"):
        build()(torch.tensor([[2, 2, 7, 3, 4, 8, 5]]))


def test_wrong_sizes_are_refused():
    with pytest.raises(ConfigError, match="got 0 and 2"):
        build(position_size=0)
