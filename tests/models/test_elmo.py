"""ELMo against its equations, written out in numpy, and what its directions see of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from contracts import (
    LM_CONTRACTS,
    LMCase,
    V,
    Weights,
    every_parameter_gets_a_gradient,
    gradients_match_finite_differences,
    some_ids,
    weights_of,
)
from seqloom.errors import ConfigError, ShapeError
from seqloom.models.elmo import Elmo, ElmoConfig, ElmoState
from seqloom.nn.reversal import reverse_rows
from seqloom.nn.word_encoder import WordEncoder
from seqloom.text.spellings import BEGIN, END, spell_words

Array = NDArray[np.float64]
SMALL = {
    "char_size": 3,
    "filters": ((1, 2), (2, 3), (3, 2)),
    "projection_size": 3,
    "hidden_size": 5,
    "max_characters": 6,
    "clip": 0.4,
}


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def word_vector(weights: Weights, symbols: list[int], filters: Any, prefix: str = "") -> Array:
    """Convolutions over the symbols, their greatest values, a highway layer, a projection."""
    table = weights[f"{prefix}characters.embedding.weight"]
    found = []
    for k, (width, _) in enumerate(filters):
        weight = weights[f"{prefix}characters.filters.{k}.weight"]
        bias = weights[f"{prefix}characters.filters.{k}.bias"]
        values = []
        for i in range(len(symbols)):
            parts = []
            for j in range(i - (width - 1) // 2, i + width // 2 + 1):
                inside = 0 <= j < len(symbols)
                parts.append(table[symbols[j]] if inside else np.zeros(table.shape[1]))
            values.append(weight @ np.concatenate(parts) + bias)
        found.append(np.max(values, axis=0))
    h = np.maximum(np.concatenate(found), 0)
    both = weights[f"{prefix}highway.layers.0.weight"] @ h
    both = both + weights[f"{prefix}highway.layers.0.bias"]
    made, gate = np.maximum(both[: len(h)], 0), sigmoid(both[len(h) :])
    h = gate * made + (1 - gate) * h
    return weights[f"{prefix}projection.weight"] @ h + weights[f"{prefix}projection.bias"]


def lstm(w: Weights, rows: list[Array], clip: float) -> list[Array]:
    """Gates in the order i f g o; after a step, cell and projected state are clipped."""
    h, c = np.zeros(w["weight_hr_l0"].shape[0]), np.zeros(w["weight_hr_l0"].shape[1])
    found = []
    for x in rows:
        gates = w["weight_ih_l0"] @ x + w["bias_ih_l0"] + w["weight_hh_l0"] @ h + w["bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = np.clip(w["weight_hr_l0"] @ (sigmoid(o) * np.tanh(c)), -clip, clip)
        c = np.clip(c, -clip, clip)
        found.append(h)
    return found


def layers_of(
    weights: Weights, rows: list[Array], direction: str, config: Any
) -> list[list[Array]]:
    """The outputs of each layer of one direction, in the order in which it reads."""
    found = []
    for k in range(config.num_layers):
        prefix = f"encoder.{direction}.{k}."
        own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
        out = lstm(own, rows, config.clip)
        rows = [y + x for y, x in zip(out, rows, strict=True)] if k else out
        found.append(rows)
    return found


def spelled_ids(ids: list[int]) -> list[list[int]]:
    """Until words are set, the id 7 is spelled "7"."""
    return [[BEGIN, *(1 + ord(digit) for digit in str(i)), END] for i in ids]


def elmo(weights: Weights, ids: list[int], config: Any) -> Array:
    rows = [word_vector(weights, s, config.filters, "encoder.words.") for s in spelled_ids(ids)]
    top = layers_of(weights, rows, "ahead", config)[-1]
    return np.stack([weights["output.weight"] @ h + weights["output.bias"] for h in top])


CASES = [LMCase("elmo", elmo, SMALL)]
ONE_WAY = (every_parameter_gets_a_gradient, gradients_match_finite_differences)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(
    "contract", [c for c in LM_CONTRACTS if c not in ONE_WAY], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("case", CASES, ids=["elmo"])
def test_contract(case, contract, tmp_path):
    contract(case, tmp_path)


@pytest.fixture
def model() -> Elmo:
    torch.manual_seed(0)
    return Elmo(ElmoConfig(vocab_size=V, **SMALL)).double().eval()


def test_all_layers_of_both_directions_match_the_equations(model):
    ids, lengths = some_ids(3, 5), torch.tensor([5, 2, 4])
    weights, words = weights_of(model), torch.arange(V)
    layers, _ = model.encoder(model.spellings[words], ids, lengths)
    assert layers.shape == (3, 3, 5, 6)
    for b, n in enumerate(lengths.tolist()):
        row = ids[b, :n].tolist()
        e = [
            word_vector(weights, s, model.config.filters, "encoder.words.")
            for s in spelled_ids(row)
        ]
        ahead = layers_of(weights, e, "ahead", model.config)
        back = layers_of(weights, e[::-1], "back", model.config)
        for t in range(n):
            expected = [np.concatenate([e[t], e[t]])]
            expected += [
                np.concatenate([a[t], z[n - 1 - t]]) for a, z in zip(ahead, back, strict=True)
            ]
            assert_close(layers[b, :, t], torch.from_numpy(np.stack(expected)))
        assert not layers[b, :, n:].any()


def test_the_directions_never_see_each_other(model):
    words = model.spellings
    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])
    size = model.config.projection_size
    whole, _ = model.encoder(words, ids)
    for changed in range(6):
        other = ids.clone()
        other[0, changed] = 9
        found, _ = model.encoder(words, other)
        same = (found == whole).all(dim=1)[0]  # (T, D): every layer, bit for bit
        ahead, back = same[:, :size].all(dim=1).tolist(), same[:, size:].all(dim=1).tolist()
        assert ahead == [t < changed for t in range(6)]
        assert back == [t > changed for t in range(6)]


def test_predictions_of_each_direction_know_only_what_it_has_read(model):
    ids, turned = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1]])
    later, earlier = torch.tensor([[1, 2, 3, 9]]), torch.tensor([[4, 3, 2, 9]])
    ahead, back = model.read([ids, turned], None, (None, None))
    a, b = model.read([later, earlier], None, (None, None))
    assert torch.equal(ahead.features[:, :3], a.features[:, :3])
    assert torch.equal(back.features[:, :3], b.features[:, :3])
    assert not torch.equal(ahead.features[:, 3], a.features[:, 3])
    assert torch.equal(back.features, model.read_back(turned).features)
    assert torch.equal(ahead.features, model(ids).features)


def test_pieces_of_a_text_equal_the_whole(model):
    ids = some_ids(2, 7)
    whole, ends = model.encoder(model.spellings, ids)
    right, (_, state) = model.encoder(model.spellings, ids[:, 4:])
    left, (ahead, _) = model.encoder(model.spellings, ids[:, :4], None, (None, state))
    right, (after, _) = model.encoder(model.spellings, ids[:, 4:], None, (ahead, None))
    assert_close(torch.cat([left, right], dim=2), whole)
    for part, expected in zip(after, ends[0], strict=True):
        assert_close(part, expected)


def test_every_parameter_gets_a_gradient(model):
    ids = torch.arange(V).repeat(2, 2)
    outputs = model.train().read([ids, ids.flip(1)], None, (None, None))
    sum(model.output.loss(o.features.flatten(0, 1), ids.flatten()) for o in outputs).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


def test_gradients_match_finite_differences():
    torch.manual_seed(1)
    words = WordEncoder(8, 2, [(2, 3)], 2).double()
    spellings = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0], [6, 7, 1, 2]])
    names = [name for name, _ in words.named_parameters()]

    def run(*weights: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(words, given, (spellings,))

    assert torch.autograd.gradcheck(run, tuple(words.parameters()))


def test_padding_of_a_spelling_changes_nothing():
    torch.manual_seed(0)
    words = WordEncoder(261, 4, [(1, 3), (4, 5)], 6).double()
    texts = ["a", "book", "苹果", "🙂", "", "x" * 500]
    together = words(torch.from_numpy(spell_words(texts, 40)))
    for text, vector in zip(texts, together, strict=True):
        alone = torch.from_numpy(spell_words([text], 60 if len(text) < 60 else 40))
        assert_close(words(alone)[0], vector)
    assert torch.isfinite(together).all()


def test_states_stay_within_their_bound(model):
    with torch.no_grad():
        for weight in model.encoder.ahead[0].parameters():
            weight.mul_(50)
        state = model(some_ids(2, 9)).state
    assert float(state.c.abs().max()) == pytest.approx(0.4)
    assert float(state.h.abs().max()) <= 0.4


def test_rows_are_reversed_within_their_lengths():
    x = torch.arange(12.0).view(2, 3, 2)
    found = reverse_rows(x, torch.tensor([3, 2]))
    assert found[0].tolist() == [[4, 5], [2, 3], [0, 1]]
    assert found[1].tolist() == [[8, 9], [6, 7], [10, 11]]
    assert torch.equal(reverse_rows(x, None), x.flip(1))


def test_bad_settings_name_the_value():
    with pytest.raises(ConfigError, match=r"state_reset in \[0, 1\].* 1.5"):
        ElmoConfig(vocab_size=V, state_reset=1.5)
    with pytest.raises(ConfigError, match=r"max_characters at least 4.* 3"):
        ElmoConfig(vocab_size=V, max_characters=3)
    with pytest.raises(ConfigError, match=r"highway_layers not negative.*-1"):
        ElmoConfig(vocab_size=V, highway_layers=-1)
    with pytest.raises(ConfigError, match=r"projection_size below hidden_size.* 9"):
        ElmoConfig(vocab_size=V, projection_size=9, hidden_size=8)
    with pytest.raises(ShapeError, match=r"spellings must be \(11, 6\), got \(2, 3\)"):
        Elmo(ElmoConfig(vocab_size=V, **SMALL)).set_spellings(torch.zeros(2, 3))


def test_a_state_is_that_of_one_direction(model):
    assert model.initial_state(2)._fields == ElmoState._fields
    assert [tuple(part.shape) for part in model.initial_state(2)] == [(2, 2, 3), (2, 2, 5)]
