"""The transformer, the attentive recurrent and the convolutional language model.

Each against its equations in numpy with visible loops, and through the contracts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from contracts import LM_CONTRACTS, LMCase, V, Weights, some_ids
from seqloom.errors import ConfigError, ShapeError
from seqloom.models.attention_lm import AttentionLM, AttentionLMConfig
from seqloom.models.cnn_lm import CNNLM, CNNLMConfig
from seqloom.models.transformer_lm import TransformerLM, TransformerLMConfig

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def under(weights: Weights, name: str) -> Weights:
    """The weights of one part, by their names inside it."""
    return {k.removeprefix(name): w for k, w in weights.items() if k.startswith(name)}


def scores(weights: Weights, features: Array, config: Any) -> Array:
    out = weights["embedding.weight"] if config.tied else weights["output.weight"]
    return out @ features + weights["output.bias"]


# -- the transformer -----------------------------------------------------------------------------


def normalized(w: Weights, name: str, x: Array) -> Array:
    spread = np.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
    return (x - x.mean()) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]


def turned(x: Array, place: int) -> Array:
    """Su et al. (2021), equation 34."""
    x, size = x.copy(), len(x)
    for i in range(size // 2):
        angle = place / 10000 ** (2 * i / size)
        a, b = x[2 * i], x[2 * i + 1]
        x[2 * i] = a * np.cos(angle) - b * np.sin(angle)
        x[2 * i + 1] = a * np.sin(angle) + b * np.cos(angle)
    return x


def visible(t: int, config: TransformerLMConfig) -> range:
    first = t - config.context_size if config.memory else t - t % config.context_size
    return range(max(0, first), t + 1)


def attended(w: Weights, xs: list[Array], config: TransformerLMConfig) -> list[Array]:
    size, head = config.hidden_size, config.hidden_size // config.num_heads
    q, k, v = (
        [w["in_proj_weight"][i : i + size] @ x + w["in_proj_bias"][i : i + size] for x in xs]
        for i in (0, size, 2 * size)
    )
    found = []
    for t in range(len(xs)):
        together = np.zeros(size)
        for n in range(config.num_heads):
            own = slice(n * head, (n + 1) * head)
            products = []
            for s in visible(t, config):
                query, key = q[t][own], k[s][own]
                if config.positions == "rotary":
                    query, key = turned(query, t), turned(key, s)
                products.append(query @ key / math.sqrt(head))
            for share, s in zip(softmax(np.array(products)), visible(t, config), strict=True):
                together[own] += share * v[s][own]
        found.append(w["out_proj.weight"] @ together + w["out_proj.bias"])
    return found


def forward_part(w: Weights, x: Array, config: TransformerLMConfig) -> Array:
    inner = w["linear1.weight"] @ x + w["linear1.bias"]
    if config.activation == "gelu":
        inner = inner * np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in inner])
    else:
        inner = np.maximum(inner, 0)
    return w["linear2.weight"] @ inner + w["linear2.bias"]


def place_vector(weights: Weights, t: int, config: TransformerLMConfig) -> Array:
    place = t if config.memory else t % config.context_size
    if config.positions == "learned":
        return weights["positions.weight"][place % (config.context_size + 1)]
    vector = np.zeros(config.hidden_size)
    if config.positions == "sinusoidal":
        for i in range(config.hidden_size // 2):
            angle = place / 10000 ** (2 * i / config.hidden_size)
            vector[2 * i], vector[2 * i + 1] = np.sin(angle), np.cos(angle)
    return vector


def transformer(weights: Weights, ids: list[int], config: TransformerLMConfig) -> Array:
    """Vaswani et al. (2017), sections 3.1 to 3.5, word by word; "pre" as Xiong et al. (2020)."""
    xs = [
        weights["embedding.weight"][word] * math.sqrt(config.hidden_size)
        + place_vector(weights, t, config)
        for t, word in enumerate(ids)
    ]
    for i in range(config.num_layers):
        w = under(weights, f"blocks.{i}.")
        attention = under(w, "self_attn.")
        if config.norm == "pre":
            inner = attended(attention, [normalized(w, "norm1", x) for x in xs], config)
            xs = [x + a for x, a in zip(xs, inner, strict=True)]
            xs = [x + forward_part(w, normalized(w, "norm2", x), config) for x in xs]
        else:
            inner = attended(attention, xs, config)
            xs = [normalized(w, "norm1", x + a) for x, a in zip(xs, inner, strict=True)]
            xs = [normalized(w, "norm2", x + forward_part(w, x, config)) for x in xs]
    if config.norm == "pre":
        xs = [normalized(weights, "norm", x) for x in xs]
    return np.stack([scores(weights, x, config) for x in xs])


# -- recurrent attention -------------------------------------------------------------------------


def lstm_outputs(weights: Weights, ids: list[int], config: AttentionLMConfig) -> list[Array]:
    h, c = np.zeros((2, config.num_layers, config.hidden_size))
    found = []
    for word in ids:
        x = weights["embedding.weight"][word]
        for k in range(config.num_layers):
            w = {n.removesuffix(f"_l{k}"): v for n, v in under(weights, "rnn.").items()}
            gates = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h[k] + w["bias_hh"]
            i, f, g, o = np.split(gates, 4)
            c[k] = sigmoid(f) * c[k] + sigmoid(i) * np.tanh(g)
            h[k] = x = sigmoid(o) * np.tanh(c[k])
        found.append(x.copy())
    return found


def compared(w: Weights, query: Array, key: Array, config: AttentionLMConfig) -> float:
    if config.score == "additive":
        return (w["out.weight"] @ np.tanh(w["query.weight"] @ query + w["key.weight"] @ key)).item()
    assert config.score == "scaled-dot"
    return query @ key / math.sqrt(len(key))


def attentive(weights: Weights, ids: list[int], config: AttentionLMConfig) -> Array:
    """Daniluk et al. (2017), equations 1 to 9, with a bias in the last."""
    hs, rows = lstm_outputs(weights, ids, config), []
    parts = {"attention": 1, "key-value": 2, "key-value-predict": 3}[config.form]
    split = [np.split(h, parts) for h in hs]
    keys = [each[0] for each in split]
    values = [each[1] if parts > 1 else each[0] for each in split]
    predicts = [each[-1] for each in split]
    w = under(weights, "attention.score.")
    for t in range(len(ids)):
        past = range(max(0, t - config.context_size), t)
        read = np.zeros_like(values[0])
        if past:
            shares = softmax(np.array([compared(w, keys[t], keys[s], config) for s in past]))
            read = sum(share * values[s] for share, s in zip(shares, past, strict=True))
        both = np.concatenate([predicts[t], read])
        y = np.tanh(weights["combine.weight"] @ both + weights["combine.bias"])
        rows.append(scores(weights, y, config))
    return np.stack(rows)


# -- convolutions --------------------------------------------------------------------------------


def kernel(w: Weights) -> Array:
    """The weight of a convolution, (2H, D, K); normalized as Salimans and Kingma (2016)."""
    if "weight" in w:
        return w["weight"]
    length, v = w["parametrizations.weight.original0"], w["parametrizations.weight.original1"]
    return np.stack([length[o] * v[o] / np.sqrt((v[o] ** 2).sum()) for o in range(len(v))])


def convolutional(weights: Weights, ids: list[int], config: CNNLMConfig) -> Array:
    """Dauphin et al. (2017), equation 1, with a residual around every layer."""
    xs = [weights["embedding.weight"][word] for word in ids]
    if config.embed_size not in (0, config.hidden_size):
        xs = [weights["projection.weight"] @ x + weights["projection.bias"] for x in xs]
    for i in range(config.num_layers):
        w = under(weights, f"layers.{i}.conv.")
        matrix, outputs = kernel(w), []
        for t in range(len(xs)):
            total = w["bias"].copy()
            for k in range(config.kernel_size):
                place = t - config.kernel_size + 1 + k
                if place >= 0:
                    total += matrix[:, :, k] @ xs[place]
            linear, gate = np.split(total, 2)
            outputs.append(xs[t] + linear * sigmoid(gate))
        xs = outputs
    return np.stack([scores(weights, x, config) for x in xs])


SMALL = {"hidden_size": 4, "num_heads": 2, "num_layers": 2, "feedforward_size": 5}
CASES = [
    LMCase("transformer", transformer, {**SMALL, "context_size": 8}),
    LMCase("transformer", transformer, {**SMALL, "context_size": 2}),
    LMCase("transformer", transformer, {**SMALL, "context_size": 1, "activation": "relu"}),
    LMCase("transformer", transformer, {**SMALL, "context_size": 3, "memory": False}),
    LMCase("transformer", transformer, {**SMALL, "context_size": 3, "norm": "post"}),
    LMCase("transformer", transformer, {**SMALL, "context_size": 3, "positions": "learned"}),
    LMCase(
        "transformer",
        transformer,
        {**SMALL, "context_size": 4, "positions": "learned", "memory": False},
    ),
    LMCase("transformer", transformer, {**SMALL, "context_size": 3, "positions": "sinusoidal"}),
    LMCase(
        "transformer",
        transformer,
        {**SMALL, "context_size": 2, "positions": "sinusoidal", "memory": False, "tied": True},
    ),
    LMCase(
        "transformer",
        transformer,
        {"hidden_size": 6, "num_heads": 2, "num_layers": 1, "positions": "none", "tied": True},
    ),
    LMCase(
        "transformer",
        transformer,
        {"hidden_size": 6, "num_heads": 2, "num_layers": 1, "softmax": "sampled", "samples": 3},
    ),
    LMCase("attention", attentive, {"hidden_size": 4, "context_size": 8}),
    LMCase("attention", attentive, {"hidden_size": 4, "context_size": 2, "tied": True}),
    LMCase("attention", attentive, {"hidden_size": 4, "context_size": 3, "form": "key-value"}),
    LMCase(
        "attention",
        attentive,
        {"hidden_size": 6, "embed_size": 3, "context_size": 3, "form": "key-value-predict"},
    ),
    LMCase(
        "attention",
        attentive,
        {"hidden_size": 4, "num_layers": 2, "context_size": 1, "score": "scaled-dot"},
    ),
    LMCase("cnn", convolutional, {"hidden_size": 4, "num_layers": 2, "kernel_size": 3}),
    LMCase("cnn", convolutional, {"hidden_size": 3, "embed_size": 2, "num_layers": 2}),
    LMCase("cnn", convolutional, {"hidden_size": 3, "weight_norm": True, "kernel_size": 2}),
    LMCase("cnn", convolutional, {"hidden_size": 3, "num_layers": 1, "kernel_size": 1}),
    LMCase("cnn", convolutional, {"hidden_size": 3, "num_layers": 1, "tied": True}),
]


@pytest.mark.parametrize("contract", LM_CONTRACTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case, contract, tmp_path):
    contract(case, tmp_path)


# -- windows and memory --------------------------------------------------------------------------


def pieces_of(model: nn.Module, ids: torch.Tensor, sizes: list[int]) -> tuple[torch.Tensor, Any]:
    state, found = None, []
    for piece in ids.split(sizes, dim=1):
        output = model(piece, None, state)
        state = output.state
        found.append(output.features)
    return torch.cat(found, dim=1), state


@pytest.mark.parametrize("sizes", [[30, 30], [1, 59], [7, 20, 33], [59, 1]], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_in_pieces_equals_whole_far_past_the_window(case, sizes):
    model, ids = case.model(), some_ids(2, 60)
    whole = model(ids)
    found, state = pieces_of(model, ids, sizes)
    assert_close(found, whole.features)
    for part, expected in zip(state, whole.state, strict=True):
        assert_close(part, expected)


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("ragged", [True, False])
def test_a_long_text_is_read_in_pieces_without_a_difference(memory, ragged, monkeypatch):
    config = TransformerLMConfig(vocab_size=V, **SMALL, context_size=5, memory=memory)
    model, ids = TransformerLM(config).double().eval(), some_ids(3, 40)
    lengths = torch.tensor([40, 3, 17]) if ragged else None
    whole = model(ids, lengths)
    monkeypatch.setattr("seqloom.models.transformer_lm.PIECE", 4)
    pieces = model(ids, lengths)
    for b, n in enumerate([40, 3, 17] if ragged else [40, 40, 40]):
        assert_close(pieces.features[b, :n], whole.features[b, :n])
    for part, expected in zip(pieces.state, whole.state, strict=True):
        assert_close(part, expected)


def reach(model: nn.Module, t: int, steps: int) -> set[int]:
    """The places whose word has a say in the features at place t."""
    ids = some_ids(1, steps)
    before = model(ids).features[0, t]
    found = set()
    for s in range(steps):
        other = ids.clone()
        other[0, s] = (ids[0, s] + 1) % V
        if not torch.equal(model(other).features[0, t], before):
            found.add(s)
    return found


def test_a_layer_of_a_transformer_sees_its_window_and_no_more():
    options = SMALL | {"num_layers": 1}
    model = TransformerLM(TransformerLMConfig(vocab_size=V, **options, context_size=3)).eval()
    assert reach(model, 8, 12) == {5, 6, 7, 8}
    blocks = TransformerLMConfig(vocab_size=V, **options, context_size=3, memory=False)
    model = TransformerLM(blocks).eval()
    assert reach(model, 8, 12) == {6, 7, 8}
    assert reach(model, 9, 12) == {9}


def test_what_the_others_see():
    options = {"hidden_size": 4, "num_layers": 2, "kernel_size": 3}
    assert reach(CNNLM(CNNLMConfig(vocab_size=V, **options)).eval(), 8, 12) == {4, 5, 6, 7, 8}
    model = AttentionLM(AttentionLMConfig(vocab_size=V, hidden_size=4)).eval()
    assert reach(model, 5, 8) == {0, 1, 2, 3, 4, 5}


def test_rows_that_have_read_different_amounts_go_on_together():
    """A state may hold rows at different places of the window and of the block."""
    for memory in (True, False):
        config = TransformerLMConfig(vocab_size=V, **SMALL, context_size=4, memory=memory)
        model, ids = TransformerLM(config).double().eval(), some_ids(3, 11)
        state = model(ids[:, :7], torch.tensor([7, 2, 0])).state
        assert state.seen.tolist() == [7, 2, 0]
        found = model(ids[:, 7:], None, state).features
        for b, n in enumerate([7, 2, 0]):
            own = torch.cat([ids[b : b + 1, :n], ids[b : b + 1, 7:]], dim=1)
            assert_close(found[b], model(own).features[0, n:])


@pytest.mark.parametrize("arch", ["transformer", "attention", "cnn"])
def test_a_state_of_another_precision_goes_on(arch):
    """As autocast leaves it."""
    case = next(case for case in CASES if case.arch == arch)
    model, ids = case.model().float(), some_ids(2, 5)
    state = model(ids).state
    half = type(state)(*(part.bfloat16() if part.is_floating_point() else part for part in state))
    after = model(ids, None, half)
    assert_close(after.features, model(ids, None, state).features, atol=0.03, rtol=0)


def test_under_autocast_the_state_stays_in_full_precision():
    for case in CASES[:1] + CASES[-4:]:
        model, ids = case.model().float(), some_ids(2, 5)
        with torch.autocast("cpu", torch.bfloat16):
            state = model(ids).state
            state = model(ids, None, state).state
        assert all(part.dtype in (torch.float32, torch.long) for part in state), case


def test_what_is_kept_holds_no_gradient_once_detached_and_training_goes_on():
    config = TransformerLMConfig(vocab_size=V, **SMALL, context_size=4)
    model, ids = TransformerLM(config), some_ids(2, 12)
    first = model(ids[:, :6])
    kept = type(first.state)(*(part.detach() for part in first.state))
    model(ids[:, 6:], None, kept).features.square().sum().backward()
    assert all(w.grad is not None for n, w in model.named_parameters() if "output" not in n)


def test_every_cell_may_attend():
    for cell in ("gru", "peephole-lstm", "rnn"):
        config = AttentionLMConfig(vocab_size=V, hidden_size=4, cell=cell, context_size=3)
        model, ids = AttentionLM(config).double().eval(), some_ids(2, 9)
        assert_close(pieces_of(model, ids, [4, 5])[0], model(ids).features)


def test_tied_weights_are_one_tensor():
    for kind, config in (
        (TransformerLM, TransformerLMConfig),
        (AttentionLM, AttentionLMConfig),
        (CNNLM, CNNLMConfig),
    ):
        model = kind(config(vocab_size=V, hidden_size=4, tied=True))
        assert model.output.weight is model.embedding.weight


BAD: list[tuple[type, dict[str, Any], str]] = [
    (TransformerLMConfig, {"hidden_size": 0}, r"positive, got \(11, 0, 4, 128\)"),
    (TransformerLMConfig, {"context_size": 0}, r"positive, got \(11, 200, 4, 0\)"),
    (TransformerLMConfig, {"num_heads": 3}, "multiple of num_heads.*got 200 and 3"),
    (TransformerLMConfig, {"positions": "rotery"}, "'rotery'; did you mean 'rotary'"),
    (TransformerLMConfig, {"norm": "both"}, r"unknown norm 'both' \(known: post, pre\)"),
    (TransformerLMConfig, {"activation": "silu"}, "unknown activation 'silu'.*gelu, relu"),
    (TransformerLMConfig, {"objective": "mask"}, "'mask'; did you mean 'masked'"),
    (TransformerLMConfig, {"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
    (TransformerLMConfig, {"feedforward_size": -1}, "not be negative, got -1"),
    (
        TransformerLMConfig,
        {"hidden_size": 5, "num_heads": 1, "positions": "sinusoidal"},
        "even hidden_size, got 5",
    ),
    (
        TransformerLMConfig,
        {"tied": True, "softmax": "adaptive"},
        "tied weights need softmax 'full', 'sampled' or 'nce', got 'adaptive'",
    ),
    (AttentionLMConfig, {"context_size": 0}, r"positive.*got \(11, 200, 1, 0\)"),
    (AttentionLMConfig, {"form": "keyvalue"}, "'keyvalue'; did you mean 'key-value'"),
    (AttentionLMConfig, {"form": "key-value", "hidden_size": 5}, "that 2 divides, got 5"),
    (AttentionLMConfig, {"form": "key-value-predict"}, "that 3 divides, got 200"),
    (AttentionLMConfig, {"score": "adaptive"}, "'adaptive'; did you mean 'additive'"),
    (AttentionLMConfig, {"cell": "ltsm"}, "cell 'ltsm'; did you mean 'lstm'"),
    (AttentionLMConfig, {"cell": 3}, "cell must be a name, got 3"),
    (AttentionLMConfig, {"init_range": 0.0}, "init_range must be positive, got 0.0"),
    (AttentionLMConfig, {"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
    (AttentionLMConfig, {"embed_size": 3, "tied": True}, "got 3 and 200"),
    (CNNLMConfig, {"kernel_size": 0}, r"positive.*got \(11, 200, 4, 0\)"),
    (CNNLMConfig, {"embed_size": 3, "tied": True}, "got 3 and 200"),
    (CNNLMConfig, {"dropout": -0.5}, r"dropout must lie in \[0, 1\), got -0.5"),
]


@pytest.mark.parametrize(("config", "values", "message"), BAD, ids=lambda v: str(v)[:40])
def test_impossible_settings_are_refused(config, values, message):
    with pytest.raises(ConfigError, match=message):
        config(vocab_size=V, **values)


# -- both sides ----------------------------------------------------------------------------------


def masked_model(**options: Any) -> TransformerLM:
    torch.manual_seed(0)
    config = TransformerLMConfig(vocab_size=V, objective="masked", **SMALL, **options)
    return TransformerLM(config).double().eval()


@pytest.mark.parametrize("positions", ["rotary", "sinusoidal", "learned"])
def test_a_masked_model_sees_both_sides(positions):
    model = masked_model(positions=positions)
    assert reach(model, 2, 6) == set(range(6))
    assert reach(model, 0, 6) == set(range(6))


def test_a_masked_model_equals_torchs_encoder():
    model = masked_model(positions="none", norm="post", activation="relu")
    layer = nn.TransformerEncoderLayer(4, 2, 5, 0.0, batch_first=True).double()
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    encoder.load_state_dict({f"layers.{k}": v for k, v in under_module(model).items()})
    ids, lengths = some_ids(3, 6), torch.tensor([6, 1, 4])
    ids[0, 2] = ids[2, 0] = model.blank
    table = torch.cat([model.embedding.weight, model.blank_vector[None]])
    expected = encoder(table[ids] * 2, src_key_padding_mask=torch.arange(6) >= lengths[:, None])
    found = model(ids, lengths).features
    for b, n in enumerate(lengths.tolist()):
        assert_close(found[b, :n], expected[b, :n])


def under_module(model: TransformerLM) -> dict[str, torch.Tensor]:
    return dict(model.blocks.state_dict())


def test_padding_never_changes_what_a_masked_model_says():
    model, ids, lengths = masked_model(), some_ids(3, 6), [6, 1, 4]
    ids[:, 0] = model.blank
    found = model(ids, torch.tensor(lengths)).features
    for b, n in enumerate(lengths):
        assert_close(found[b, :n], model(ids[b : b + 1, :n]).features[0])


def test_a_masked_model_reads_no_more_than_its_window():
    model = masked_model(context_size=5)
    model(some_ids(1, 6))
    with pytest.raises(ShapeError, match="at most context_size \\+ 1 = 6 words at once, got 7"):
        model(some_ids(1, 7))
