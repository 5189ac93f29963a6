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
from test_attention_models import CASES as ATTENTION_CASES
from test_elmo import CASES as ELMO_CASES
from torch import nn
from torch.testing import assert_close

from contracts import COUNTED_CONTRACTS, LM_CONTRACTS, CountedCase, LMCase, V, Weights, log_probs
from seqloom import LanguageModel
from seqloom.architectures import architectures
from seqloom.data.batches import Batch, Padded
from seqloom.errors import BackendError, ConfigError
from seqloom.models.nnlm import NNLM, NNLMConfig
from seqloom.models.recurrent_lm import RecurrentLM, RecurrentLMConfig, state_type
from seqloom.ngram import config, estimation
from seqloom.ngram.config import NgramConfig
from seqloom.nn.cells import CELLS
from seqloom.tasks.language_objective import window_loss

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
            y += weights["output.weight"][:, : config.hidden_size] @ hidden
        if config.direct:
            y += weights["output.weight"][:, config.hidden_size :] @ x
        rows.append(y)
    return np.stack(rows)


def bengio_features(weights: Weights, ids: list[int], config: NNLMConfig) -> Array:
    """What an output layer other than the full softmax reads: tanh(d + H x)."""
    words, rows = [0] * (config.order - 1) + ids, []
    for t in range(len(ids)):
        window = words[t + 1 : t + config.order]
        x = np.concatenate([weights["embedding.weight"][word] for word in window])
        hidden = np.tanh(weights["hidden.bias"] + weights["hidden.weight"] @ x)
        rows.append(output_scores(weights, hidden, config))
    return np.stack(rows)


def elman(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    return np.tanh(sum(products(w, x, h))), c


def lstm(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Gates in the order i f g o."""
    i, f, g, o = np.split(sum(products(w, x, h)), 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def peephole(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Gers et al. (2002): the gates see the cell state, the output gate the new one."""
    i, f, g, o = np.split(sum(products(w, x, h)), 4)
    i, f = sigmoid(i + w["vector_i"] * c), sigmoid(f + w["vector_f"] * c)
    c = f * c + i * np.tanh(g)
    return sigmoid(o + w["vector_o"] * c) * np.tanh(c), c


def gru(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Gates in the order r z n; the reset gate after the product, as torch has it."""
    (r, z, n), (ur, uz, un) = (np.split(each, 3) for each in products(w, x, h))
    r, z = sigmoid(r + ur), sigmoid(z + uz)
    return (1 - z) * np.tanh(n + r * un) + z * h, c


def gru_before(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Cho et al. (2014), equations 5 to 8: the reset gate before the product."""
    (r, z, n), (ur, uz, _) = (np.split(each, 3) for each in products(w, x, h))
    r, z = sigmoid(r + ur), sigmoid(z + uz)
    un = np.split(w["weight_hh"], 3)[2] @ (r * h) + np.split(w["bias_hh"], 3)[2]
    return (1 - z) * np.tanh(n + un) + z * h, c


def products(w: Weights, x: Array, h: Array) -> tuple[Array, Array]:
    return w["weight_ih"] @ x + w["bias_ih"], w["weight_hh"] @ h + w["bias_hh"]


STEPS = {
    "rnn": elman,
    "lstm": lstm,
    "gru": gru,
    "gru-before": gru_before,
    "peephole-lstm": peephole,
}


def recurrent(weights: Weights, ids: list[int], config: RecurrentLMConfig) -> Array:
    """A cell from word to word, layer upon layer; the last may be of another width."""
    layers = [("rnn.", f"_l{k}") for k in range(config.num_layers - bool(config.last_size))]
    if config.last_size:
        layers.append(("last.", "_l0"))
    own = [
        {
            name.removeprefix(before).removesuffix(after): weight
            for name, weight in weights.items()
            if name.startswith(before) and name.endswith(after)
        }
        for before, after in layers
    ]
    # The state that is multiplied is as wide as weight_hh has columns, a projected one narrower.
    h = [np.zeros(each["weight_hh"].shape[1]) for each in own]
    c = [np.zeros(config.last_size or config.hidden_size) for _ in own]
    c[:-1] = [np.zeros(config.hidden_size) for _ in own[:-1]]
    rows = []
    for word in ids:
        x = weights["embedding.weight"][word]
        for k, each in enumerate(own):
            h[k], c[k] = STEPS[config.cell](each, x, h[k], c[k])
            if "weight_hr" in each:
                h[k] = each["weight_hr"] @ h[k]
            x = h[k]
        rows.append(output_scores(weights, x, config))
    return np.stack(rows)


def output_scores(weights: Weights, x: Array, config: Any) -> Array:
    """Scores that are log-probabilities up to a constant, words ranked by their ids."""
    if config.softmax == "adaptive":
        head = log_softmax(weights["output.head.weight"] @ x)
        (cut,) = config.cutoffs
        inside = weights["output.tail.0.1.weight"] @ weights["output.tail.0.0.weight"] @ x
        return np.concatenate([head[:cut], head[cut] + log_softmax(inside)])
    if config.softmax == "hierarchical":
        node = weights["output.weight"] @ x + weights["output.bias"]
        return tree_log_probs(node)
    out = (
        weights["embedding.weight"] if getattr(config, "tied", False) else weights["output.weight"]
    )
    return out @ x + weights["output.bias"]


def log_softmax(scores: Array) -> Array:
    return scores - np.log(np.exp(scores).sum())


def tree_log_probs(node: Array) -> Array:
    """Of 11 words that count alike: Huffman's queue by hand, inner nodes in letters.

    a = (0 1), b = (2 3), c = (4 5), d = (6 7), e = (8 9), f = (10 a), g = (b c), h = (d e),
    i = (f g), j = (h i); level by level from the root: j, h i, d e f g, a b c.
    """
    j, h, i, d, e, f, g, a, b, c = np.log(1 / (1 + np.exp(-node)))
    nj, nh, ni, nd, ne, nf, ng, na, nb, nc = np.log(1 / (1 + np.exp(node)))
    return np.array(
        [
            nj + i + nf + a,
            nj + i + nf + na,
            nj + ni + g + b,
            nj + ni + g + nb,
            nj + ni + ng + c,
            nj + ni + ng + nc,
            j + h + d,
            j + h + nd,
            j + nh + e,
            j + nh + ne,
            nj + i + f,
        ]
    )


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
    LMCase("nnlm", bengio, {"order": 4, "embed_size": 2, "hidden_size": 3, "unknown": "average"}),
    LMCase("nnlm", bengio_features, {"order": 3, "embed_size": 2, "softmax": "hierarchical"}),
    LMCase("nnlm", bengio_features, {"hidden_size": 4, "softmax": "adaptive", "cutoffs": [2]}),
    LMCase("rnn", recurrent, {"hidden_size": 4, "num_layers": 1}),
    LMCase("gru", recurrent, {"hidden_size": 3, "softmax": "adaptive", "cutoffs": [5]}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "softmax": "hierarchical"}),
    LMCase("rnn", recurrent, {"hidden_size": 4, "softmax": "sampled", "samples": 3}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "softmax": "nce", "tied": True, "samples": 3}),
    LMCase("rnn", recurrent, {"hidden_size": 3, "embed_size": 2, "num_layers": 2}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "num_layers": 2}),
    LMCase("lstm", recurrent, {"hidden_size": 3, "num_layers": 1, "tied": True}),
    LMCase("gru", recurrent, {"hidden_size": 3, "num_layers": 2}),
    LMCase("peephole", recurrent, {"hidden_size": 3, "embed_size": 2, "num_layers": 2}),
    LMCase("lstm", recurrent, {"hidden_size": 5, "projection_size": 3}),
    LMCase("lstm", recurrent, {"hidden_size": 4, "embed_size": 2, "last_size": 2, "tied": True}),
    LMCase("gru", recurrent, {"hidden_size": 3, "last_size": 5, "num_layers": 3}),
    LMCase(
        "lstm",
        recurrent,
        {"hidden_size": 4, "projection_size": 2, "embed_size": 2, "tied": True, "num_layers": 1},
    ),
    LMCase("recurrent", recurrent, {"cell": "gru-before", "hidden_size": 3, "num_layers": 1}),
    LMCase("recurrent", recurrent, {"cell": "lstm", "hidden_size": 3, "backend": "reference"}),
]


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("contract", LM_CONTRACTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case, contract, tmp_path):
    contract(case, tmp_path)


def test_every_language_model_of_the_table_has_a_case():
    cases = {False: [*CASES, *ATTENTION_CASES, *ELMO_CASES], True: COUNTED}
    for entry in architectures("lm"):
        if entry.reads == "text":  # those of trees: tests/grammar
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
    assert_close(output.features, y)
    h, c = state if cell == "lstm" else (state, None)
    assert_close(output.state.h, h.transpose(0, 1))
    if c is not None:
        assert_close(output.state.c, c.transpose(0, 1))
    assert output.state._fields == (("h",) if c is None else ("h", "c"))


def test_weights_of_torchs_layers_load():
    """What was saved while the model stood on torch's own layers has the same names."""
    parts = {"embedding": nn.Embedding(V, 3), "rnn": nn.LSTM(3, 4, 2, batch_first=True)}
    old = nn.ModuleDict({**parts, "output": nn.Linear(4, V)}).double()
    model = RecurrentLM(RecurrentLMConfig(vocab_size=V, embed_size=3, hidden_size=4)).double()
    assert list(model.state_dict()) == list(old.state_dict())
    model.load_state_dict(old.state_dict())
    ids = torch.randint(V, (3, 5))
    y, _ = old["rnn"](old["embedding"](ids))
    assert_close(log_probs(model, ids), old["output"](y).log_softmax(dim=-1))


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_carries_all_its_states(cell):
    config = RecurrentLMConfig(vocab_size=V, cell=cell, hidden_size=3, num_layers=2)
    model = RecurrentLM(config).eval()
    output = model(torch.randint(V, (4, 5)), torch.tensor([5, 1, 0, 3]))
    assert output.state._fields == CELLS[cell].states
    assert {tuple(part.shape) for part in output.state} == {(4, 2, 3)}
    assert not any(part[2].any() for part in output.state)  # a row of length 0


def test_a_state_may_have_a_name_that_python_keeps_for_itself():
    assert state_type(("h", "_p", "class"))(1, 2, 3)._asdict() == {"h": 1, "_1": 2, "_2": 3}


RANDOM = (
    "dropout",
    "input_dropout",
    "output_dropout",
    "word_dropout",
    "state_dropout",
    "weight_dropout",
    "zoneout",
)


@pytest.mark.parametrize("option", RANDOM)
def test_what_is_drawn_at_random_is_drawn_in_training_only(option):
    config = RecurrentLMConfig(vocab_size=V, hidden_size=6, **{option: 0.5})
    model, ids = RecurrentLM(config), torch.randint(V, (2, 6))
    assert not torch.equal(model(ids).features, model(ids).features)
    model.eval()
    assert torch.equal(model(ids).features, model(ids).features)


def test_variational_dropout_drops_the_same_units_at_every_step():
    x = torch.ones(2, 9, 50)
    for variational in (False, True):
        config = RecurrentLMConfig(vocab_size=V, dropout=0.5, variational=variational)
        dropped = RecurrentLM(config)._dropped(x)
        assert set(dropped.unique().tolist()) == {0.0, 2.0}
        assert torch.equal(dropped, dropped[:, :1].expand_as(x)) == variational
        assert not torch.equal(dropped[0], dropped[1])


def test_a_dropped_word_is_dropped_wherever_it_occurs():
    torch.manual_seed(0)
    model = RecurrentLM(RecurrentLMConfig(vocab_size=V, hidden_size=6, word_dropout=0.4))
    ids = torch.randint(V, (4, 60))
    ratio = model._embedded(ids) / model.embedding(ids)
    dropped = set()
    for word in range(V):
        (share,) = set(ratio[ids == word].flatten().round(decimals=4).tolist())
        assert share in (0.0, pytest.approx(1 / 0.6, abs=1e-4))
        dropped |= {word} if share == 0 else set()
    assert 0 < len(dropped) < V
    means = [model._embedded(ids).sum() for _ in range(2000)]
    assert torch.stack(means).mean().item() == pytest.approx(
        model.embedding(ids).sum().item(), abs=0.5
    )


def test_dropout_before_and_after_the_layers_have_their_own_shares():
    torch.manual_seed(0)
    config = RecurrentLMConfig(
        vocab_size=V, hidden_size=400, input_dropout=0.0, output_dropout=0.7, dropout=0.2
    )
    output = RecurrentLM(config)(torch.randint(V, (4, 30)))
    kept = output.features != 0
    assert kept.float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert_close(output.features[kept], output.activations[kept] / 0.3)
    only = RecurrentLMConfig(vocab_size=V, hidden_size=6, input_dropout=0.5, output_dropout=0.0)
    model, ids = RecurrentLM(only), torch.randint(V, (2, 5))
    output = model(ids)
    assert torch.equal(output.features, output.activations)
    assert not torch.equal(output.features, model(ids).features)


def test_regularization_of_activations_by_hand():
    torch.manual_seed(0)
    config = RecurrentLMConfig(
        vocab_size=V, hidden_size=6, output_dropout=0.4, activation_reg=2.0, temporal_reg=3.0
    )
    model = RecurrentLM(config).double()
    ids, lengths = torch.randint(V, (3, 6)), torch.tensor([6, 3, 0])
    batch = Batch(np.arange(3), {"ids": Padded(ids, lengths)}, {})
    torch.manual_seed(5)
    found = window_loss(model, batch, None)
    torch.manual_seed(5)
    output = model(ids[:, :-1], torch.tensor([5, 2, 0]))
    real = [(0, t) for t in range(5)] + [(1, t) for t in range(2)]
    features = np.array([output.features[place].detach().numpy() for place in real])
    h = output.activations.detach().numpy()
    changes = [h[0, t + 1] - h[0, t] for t in range(4)] + [h[1, 1] - h[1, 0]]
    penalty = 2.0 * np.mean(features**2) + 3.0 * np.mean(np.array(changes) ** 2)
    targets = torch.stack([ids[b, t + 1] for b, t in real])
    cross_entropy = nn.functional.cross_entropy(
        torch.from_numpy(features) @ model.output.weight.T + model.output.bias,
        targets,
        reduction="sum",
    )
    assert found.items == 7
    assert found.total.item() == pytest.approx(cross_entropy.item() + 7 * penalty, rel=1e-5)
    plain = window_loss(model.eval(), batch, None)  # no part of an evaluation
    scores = log_probs(model, ids[:, :-1])
    expected = -sum(scores[place][word] for place, word in zip(real, targets, strict=True))
    assert_close(plain.total, expected)


def test_states_are_clipped():
    config = RecurrentLMConfig(vocab_size=V, hidden_size=6, clip=0.01, init_range=1.0)
    state = RecurrentLM(config)(torch.randint(V, (3, 5))).state
    assert [part.abs().max().item() for part in state] == pytest.approx([0.01, 0.01])


def test_a_state_of_another_precision_goes_on():
    """As autocast leaves it."""
    model, ids = (
        RecurrentLM(RecurrentLMConfig(vocab_size=V, hidden_size=6)),
        torch.zeros(2, 3).int(),
    )
    state = model(ids).state
    half = type(state)(*(part.bfloat16() for part in state))
    after = model(ids, None, half).features
    assert_close(after, model(ids, None, state).features, atol=1e-3, rtol=0)


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
    ({"smoothing": "add-delta", "delta": 0.0}, "delta must be greater than 0 and .*, got 0.0"),
    ({"smoothing": "good-turing", "cutoff": 0}, "cutoff must be at least 1 and .*, got 0"),
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
    (NNLMConfig, {"unknown": "mean"}, "unknown 'mean'.*known: average, word"),
    (NNLMConfig, {"softmax": "hierarchic"}, "softmax 'hierarchic'; did you mean 'hierarchical'"),
    (NNLMConfig, {"softmax": "sampled", "samples": 0}, "samples must be at least 1, got 0"),
    (RecurrentLMConfig, {"last_size": -1}, "last_size must not be negative.*got -1"),
    (RecurrentLMConfig, {"last_size": 3, "num_layers": 1}, "two layers, got 3 and num_layers=1"),
    (RecurrentLMConfig, {"last_size": 3, "projection_size": 4}, "got 3 and 4; set one of them"),
    (RecurrentLMConfig, {"projection_size": 200}, "projection_size below hidden_size.*200"),
    (RecurrentLMConfig, {"cell": "gru", "projection_size": 2}, "cannot be projected, got GRU"),
    (RecurrentLMConfig, {"input_dropout": 1.0}, r"input_dropout must lie in \[0, 1\), got 1.0"),
    (RecurrentLMConfig, {"output_dropout": -0.5}, "output_dropout must lie in .*got -0.5"),
    (RecurrentLMConfig, {"word_dropout": 2.0}, "word_dropout must lie in .*got 2.0"),
    (RecurrentLMConfig, {"activation_reg": -1.0}, "activation_reg must not be negative, got -1.0"),
    (RecurrentLMConfig, {"temporal_reg": -2.0}, "temporal_reg must not be negative, got -2.0"),
    (RecurrentLMConfig, {"window_spread": -3.0}, "window_spread must not be negative, got -3.0"),
    (RecurrentLMConfig, {"cutoffs": (3, 2)}, r"cutoffs must be positive and .*got \[3, 2\]"),
    (RecurrentLMConfig, {"div_value": 0.0}, "div_value must be positive, got 0.0"),
    (RecurrentLMConfig, {"proposal": "zipf"}, "proposal 'zipf'.*known: log-uniform, unigram"),
    (
        RecurrentLMConfig,
        {"tied": True, "softmax": "adaptive"},
        "tied weights need softmax 'full', 'sampled' or 'nce', got 'adaptive'; set tied=false",
    ),
    (RecurrentLMConfig, {"hidden_size": 0}, r"positive.*got \(11, 0, 2\)"),
    (RecurrentLMConfig, {"num_layers": 0}, r"got \(11, 200, 0\)"),
    (RecurrentLMConfig, {"embed_size": -3}, "embed_size not negative.*-3"),
    (RecurrentLMConfig, {"dropout": -0.1}, "got -0.1"),
    (RecurrentLMConfig, {"init_range": 0.0}, "init_range must be positive, got 0.0"),
    (RecurrentLMConfig, {"state_dropout": 1.0}, r"state_dropout must lie in \[0, 1\), got 1.0"),
    (RecurrentLMConfig, {"weight_dropout": -1.0}, r"weight_dropout must lie in .*got -1.0"),
    (RecurrentLMConfig, {"zoneout": 2.0}, r"zoneout must lie in \[0, 1\), got 2.0"),
    (RecurrentLMConfig, {"clip": 0.0}, "clip must be above 0, got 0.0"),
    (RecurrentLMConfig, {"cell": "ltsm"}, r"cell 'ltsm'; did you mean 'lstm'.*register_cell\('lts"),
    (RecurrentLMConfig, {"cell": CELLS["gru"]}, "cell must be a name, got .*GRU.*register_cell"),
    (
        RecurrentLMConfig,
        {"tied": True, "embed_size": 3, "hidden_size": 4},
        "as wide as the output of the last layer, got 3 and 4; set last_size=3 or embed_size=4",
    ),
]


@pytest.mark.parametrize(("config", "values", "message"), BAD, ids=lambda v: str(v)[:40])
def test_impossible_settings_are_refused(config, values, message):
    with pytest.raises(ConfigError, match=message):
        config(vocab_size=V, **values)


def test_an_unknown_backend_is_refused_with_the_settings():
    with pytest.raises(BackendError, match=r"backend 'cuda'.*known: auto"):
        RecurrentLMConfig(vocab_size=V, backend="cuda")


def test_settings_draw_nothing_at_random():
    before = torch.get_rng_state()
    RecurrentLMConfig(vocab_size=V)
    assert torch.equal(torch.get_rng_state(), before)


def bengio_unknown(weights: Weights, ids: list[int], config: NNLMConfig, unknown: int) -> Array:
    """The log-probabilities after each id, unknown words in the context replaced one by one."""
    known, cut = weights["embedding.weight"], config.hidden_size

    def scores(vectors: list[Array]) -> Array:
        x = np.concatenate(vectors[len(vectors) - config.order + 1 :])
        hidden = np.tanh(weights["hidden.bias"] + weights["hidden.weight"] @ x)
        output = weights["output.weight"]
        return log_softmax(weights["output.bias"] + output[:, :cut] @ hidden + output[:, cut:] @ x)

    vectors, rows = [known[0]] * (config.order - 1), []
    for word in ids:
        vector = known[word]
        if word == unknown:
            p = np.exp(scores(vectors))
            p[unknown] = 0
            vector = sum(p[i] * known[i] for i in range(len(known))) / p.sum()
        vectors.append(vector)
        rows.append(scores(vectors))
    return np.stack(rows)


AVERAGE = {"order": 3, "embed_size": 4, "hidden_size": 5, "direct": True, "unknown": "average"}


def test_an_unknown_word_is_the_mean_of_what_was_expected():
    unknown = 7
    torch.manual_seed(0)
    model = NNLM(NNLMConfig(vocab_size=V, **AVERAGE)).double().eval()
    nn.init.normal_(model.embedding.weight)
    model.set_unknown(unknown)
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    ids = torch.tensor(
        [[3, 7, 7, 2, 7, 1, 1, 1], [7, 1, 2, 3, 4, 5, 7, 7], [1, 2, 3, 4, 5, 6, 8, 9]]
    )
    found = log_probs(model, ids)
    for row, line in zip(ids.tolist(), found, strict=True):
        assert_close(line, torch.from_numpy(bengio_unknown(weights, row, model.config, unknown)))
    # Step by step, the vectors go along with the state; so do they where rows are shorter.
    state = model.initial_state(3)
    for t in range(8):
        output = model(ids[:, t : t + 1], None, state)
        state = output.state
        assert_close(model.output.log_probs(output.features[:, 0]), found[:, t])
    short = model(ids[:, :5], torch.tensor([2, 5, 0])).state
    after = model(ids[:2, 5:6].fill_(4), None, type(short)(*(part[:2] for part in short)))
    for row, read in enumerate(([3, 7, 4], [7, 1, 2, 3, 4, 4])):
        expected = bengio_unknown(weights, read, model.config, unknown)[-1]
        own = model.output.log_probs(after.features[row : row + 1, 0])[0]
        assert_close(own, torch.from_numpy(expected))


def test_in_training_an_unknown_word_is_a_word():
    torch.manual_seed(0)
    model = NNLM(NNLMConfig(vocab_size=V, **AVERAGE))
    plain = NNLM(NNLMConfig(vocab_size=V, **{**AVERAGE, "unknown": "word"}))
    model.set_unknown(7)
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k != "unknown"})
    ids = torch.tensor([[3, 7, 7, 2]])
    assert_close(model(ids).features, plain(ids).features)
    model.eval()
    plain.eval()
    assert not torch.equal(model(ids).features, plain(ids).features)


def test_a_fitted_model_averages_for_unknown_words():
    texts = ["the cat sat", "a dog sat on the mat", "the dog ran"] * 3
    training = {"epochs": 2, "batch": {"batch_size": 2}, "device": "cpu"}
    model = LanguageModel("nnlm", window=4, training=training, **AVERAGE).fit(texts)
    weights = {
        name: weight.detach().double().numpy() for name, weight in model.model_.named_parameters()
    }
    vocabulary = model.vocabulary_
    words = ["the", "zebra", "sat", "</s>"]
    read = [vocabulary[word] for word in ["</s>", *words[:-1]]]
    lines = bengio_unknown(weights, read, model.model_.config, vocabulary["<unk>"])
    expected = [line[vocabulary[word]] for line, word in zip(lines, words, strict=True)]
    assert model.score("the zebra sat").log_probs == pytest.approx(expected, rel=1e-5)


def test_an_nnlm_sees_no_further_than_its_order():
    model = NNLM(NNLMConfig(vocab_size=V, order=3)).eval()
    a, b = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[9, 8, 3, 4]])
    assert torch.equal(model(a).features[:, -1], model(b).features[:, -1])
    assert not torch.equal(model(a).features[:, 2], model(b).features[:, 2])
