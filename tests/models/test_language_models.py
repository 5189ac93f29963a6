"""The language models against their equations, written out in numpy, and the contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from contracts import LM_CONTRACTS, LMCase, V, Weights
from seqloom.architectures import architectures
from seqloom.errors import ConfigError
from seqloom.models.nnlm import NNLM, NNLMConfig
from seqloom.models.recurrent_lm import RecurrentLM, RecurrentLMConfig

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def bengio(weights: Weights, ids: list[int], config: NNLMConfig) -> Array:
    """Equation 1 of Bengio et al. (2003): y = b + W x + U tanh(d + H x)."""
    context = config.order - 1
    words = [0] * context + ids
    rows = []
    for t in range(len(ids)):
        window = words[t + 1 : t + 1 + context]  # the words before the one that is scored
        x = np.concatenate([weights["embedding.weight"][word] for word in window])
        y = weights["output.bias"].copy()
        if config.hidden_size:
            hidden = np.tanh(weights["hidden.bias"] + weights["hidden.weight"] @ x)
            y += weights["output.weight"] @ hidden
            if config.direct:
                y += weights["direct.weight"] @ x
        else:
            y += weights["output.weight"] @ x
        rows.append(y)
    return np.stack(rows)


def recurrent(weights: Weights, ids: list[int], config: RecurrentLMConfig) -> Array:
    """Elman's network, or the LSTM with gates in the order i f g o, layer upon layer."""
    size = config.hidden_size
    h, c = np.zeros((2, config.num_layers, size))
    rows = []
    for word in ids:
        x = weights["embedding.weight"][word]
        for k in range(config.num_layers):
            a = weights[f"rnn.weight_ih_l{k}"] @ x + weights[f"rnn.bias_ih_l{k}"]
            a = a + weights[f"rnn.weight_hh_l{k}"] @ h[k] + weights[f"rnn.bias_hh_l{k}"]
            if config.cell == "rnn":
                h[k] = np.tanh(a)
            else:
                i, f, g, o = (a[n * size : (n + 1) * size] for n in range(4))
                c[k] = sigmoid(f) * c[k] + sigmoid(i) * np.tanh(g)
                h[k] = sigmoid(o) * np.tanh(c[k])
            x = h[k]
        out = weights["embedding.weight"] if config.tied else weights["output.weight"]
        rows.append(out @ x + weights["output.bias"])
    return np.stack(rows)


CASES = [
    LMCase("nnlm", bengio, {"order": 4, "embed_size": 3, "hidden_size": 5}),
    LMCase("nnlm", bengio, {"order": 3, "embed_size": 3, "hidden_size": 4, "direct": True}),
    LMCase("nnlm", bengio, {"order": 3, "embed_size": 3, "hidden_size": 0, "direct": True}),
    LMCase("nnlm", bengio, {"order": 2, "embed_size": 2, "hidden_size": 3}),
    LMCase("rnn", recurrent, {"hidden_size": 4, "num_layers": 1}),
    LMCase("rnn", recurrent, {"hidden_size": 3, "embed_size": 2, "num_layers": 2}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "num_layers": 2}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "num_layers": 1, "tied": True}),
]


@pytest.mark.parametrize("contract", LM_CONTRACTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case, contract, tmp_path):
    contract(case, tmp_path)


def test_every_language_model_of_the_table_has_a_case():
    assert {entry.name for entry in architectures("lm")} == {case.arch for case in CASES}


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_torch_layers_with_the_same_weights_agree(cell):
    config = RecurrentLMConfig(vocab_size=V, cell=cell, embed_size=3, hidden_size=4)
    model = RecurrentLM(config).double().eval()
    oracle = {"rnn": nn.RNN, "lstm": nn.LSTM}[cell](3, 4, 2, batch_first=True).double()
    oracle.load_state_dict(model.rnn.state_dict())
    ids = torch.randint(V, (3, 5))
    y, state = oracle(model.embedding(ids))
    output = model(ids)
    assert_close(output.logits, model.output(y))
    h, c = state if cell == "lstm" else (state, None)
    assert_close(output.state.h, h.transpose(0, 1))
    if c is not None:
        assert_close(output.state.c, c.transpose(0, 1))
    else:
        assert output.state.c.shape == (3, 2, 0)


def test_weights_begin_in_their_range():
    model = RecurrentLM(RecurrentLMConfig(vocab_size=50, hidden_size=20, init_range=0.03))
    for name, weight in model.named_parameters():
        assert 0.02 < weight.abs().max() <= 0.03, name


def test_tied_weights_are_one_tensor():
    model = RecurrentLM(RecurrentLMConfig(vocab_size=V, hidden_size=4, tied=True))
    assert model.output.weight is model.embedding.weight


BAD: list[tuple[type, dict[str, Any], str]] = [
    (NNLMConfig, {"order": 1}, "order must be at least 2, got 1"),
    (NNLMConfig, {"embed_size": 0}, "got 11, 0 and 200"),
    (NNLMConfig, {"hidden_size": -1}, "hidden_size not negative, got 11, 100 and -1"),
    (NNLMConfig, {"hidden_size": 0}, "hidden_size 0 leaves nothing.*direct=true"),
    (NNLMConfig, {"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
    (RecurrentLMConfig, {"hidden_size": 0}, r"positive.*got \(11, 0, 2\)"),
    (RecurrentLMConfig, {"num_layers": 0}, r"got \(11, 200, 0\)"),
    (RecurrentLMConfig, {"embed_size": -3}, "embed_size not negative.*-3"),
    (RecurrentLMConfig, {"dropout": -0.1}, "got -0.1"),
    (RecurrentLMConfig, {"init_range": 0.0}, "init_range must be positive, got 0.0"),
    (
        RecurrentLMConfig,
        {"tied": True, "embed_size": 3, "hidden_size": 4},
        "tied weights need embed_size == hidden_size, got 3 and 4",
    ),
]


@pytest.mark.parametrize(("config", "values", "message"), BAD, ids=lambda v: str(v)[:40])
def test_impossible_settings_are_refused(config, values, message):
    with pytest.raises(ConfigError, match=message):
        config(vocab_size=V, **values)


def test_an_nnlm_sees_no_further_than_its_order():
    model = NNLM(NNLMConfig(vocab_size=V, order=3)).eval()
    a, b = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[9, 8, 3, 4]])
    assert torch.equal(model(a).logits[:, -1], model(b).logits[:, -1])
    assert not torch.equal(model(a).logits[:, 2], model(b).logits[:, 2])
