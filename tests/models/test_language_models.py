"""The language models against their equations, written out in numpy, and the contracts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from contracts import COUNTED_CONTRACTS, LM_CONTRACTS, CountedCase, LMCase, V, Weights
from seqloom.architectures import architectures
from seqloom.errors import ConfigError
from seqloom.models.nnlm import NNLM, NNLMConfig
from seqloom.models.recurrent_lm import RecurrentLM, RecurrentLMConfig
from seqloom.ngram import config, estimation
from seqloom.ngram.config import NgramConfig

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


def count_after(train: list[list[str]], history: list[str]) -> Counter[str]:
    """How often each word follows a history in the sentences."""
    found: Counter[str] = Counter()
    for sentence in train:
        words = ["<s>", *sentence, "</s>"]
        for t in range(max(1, len(history)), len(words)):
            if words[t - len(history) : t] == history:
                found[words[t]] += 1
    return found


def predicted(train: list[list[str]]) -> int:
    """The number of words a counted model predicts: those of the text, the unknown and the end."""
    return len({word for sentence in train for word in sentence}) + 2


def witten_bell(train: list[list[str]], sentence: list[str], order: int) -> list[float]:
    """Equation 17 of Chen and Goodman (1998), down to the uniform distribution."""

    def chance(word: str, history: list[str]) -> float:
        after = count_after(train, history)
        below = chance(word, history[1:]) if history else 1 / predicted(train)
        if not after:
            return below
        return (after[word] + len(after) * below) / (after.total() + len(after))

    words = ["<s>", *sentence, "</s>"]
    return [chance(words[t], words[max(0, t - order + 1) : t]) for t in range(1, len(words))]


def add_one(train: list[list[str]], sentence: list[str], order: int) -> list[float]:
    """Laplace's rule of succession after the last order - 1 words."""
    words = ["<s>", *sentence, "</s>"]
    found = []
    for t in range(1, len(words)):
        after = count_after(train, words[max(0, t - order + 1) : t])
        found.append((after[words[t]] + 1) / (after.total() + predicted(train)))
    return found


COUNTED = [
    CountedCase("ngram", {"order": 1, "smoothing": "add-one"}, add_one),
    CountedCase("ngram", {"order": 3, "smoothing": "add-one"}, add_one),
    CountedCase("ngram", {"order": 2, "smoothing": "witten-bell"}, witten_bell),
    CountedCase("ngram", {"order": 4, "smoothing": "witten-bell"}, witten_bell),
    CountedCase("ngram", {"order": 3}),
    CountedCase("ngram", {"order": 5, "smoothing": "kneser-ney", "prune": (0, 1)}),
]


@pytest.mark.parametrize("contract", COUNTED_CONTRACTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("case", COUNTED, ids=str)
def test_counted_contract(case, contract, tmp_path):
    contract(case, tmp_path)


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
    cases = {False: CASES, True: COUNTED}
    for entry in architectures("lm"):
        assert entry.name in {case.arch for case in cases[entry.is_counted]}


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


BAD_COUNTED: list[tuple[dict[str, Any], str]] = [
    ({"order": 0}, "order must lie between 1 and 8, got 0"),
    ({"order": 9}, "order must lie between 1 and 8, got 9"),
    ({"smoothing": "kneser-nay"}, "'kneser-nay'; did you mean 'kneser-ney'"),
    ({"delta": 0.5}, "unknown option of modified-kneser-ney 'delta'"),
    ({"smoothing": "add-delta", "delta": 0.0}, "delta must be greater than 0, got 0.0"),
    ({"smoothing": "good-turing", "cutoff": 0}, "cutoff must be at least 1, got 0"),
    ({"smoothing": "stupid-backoff", "backoff": 2.0}, r"backoff must lie in \(0, 1\], got 2.0"),
    (
        {"order": 3, "smoothing": "jelinek-mercer", "weights": (0.5,)},
        r"weights must be as many as the order, 3, got \[0.5\]",
    ),
    ({"order": 2, "prune": (0, 0, 1)}, r"prune must hold up to 2 counts.*got \[0, 0, 1\]"),
    ({"prune": (0, 2, 1)}, r"do not decrease, got \[0, 2, 1\]"),
    ({"prune": (0, -1)}, r"do not decrease, got \[0, -1\]"),
    ({"prune": (1,)}, r"prune must begin with 0, got \[1\].*min_count of the vocabulary"),
    ({"memory": "much"}, "memory must be a size such as 800M or 2G, got 'much'"),
    ({"memory": "5M"}, "memory must be at least 384M, got '5M'"),
]


@pytest.mark.parametrize(("values", "message"), BAD_COUNTED, ids=lambda v: str(v)[:40])
def test_impossible_settings_of_counted_models_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        NgramConfig(**values)


def test_the_settings_of_counted_models_are_light_and_in_step():
    code = "import sys, seqloom.ngram.config; print({'torch', 'numba'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
    assert config.HIGHEST_ORDER == estimation.HIGHEST_ORDER


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
