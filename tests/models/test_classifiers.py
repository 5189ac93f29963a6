"""Classifiers of sequences against their equations in numpy, and what every one of them owes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from gradients import assert_gradients_match
from seqloom import Classifier
from seqloom.architectures import find_architecture, load_config_class, load_model_class
from seqloom.errors import ConfigError, ShapeError
from seqloom.tasks.classifier_training import identity_distance

V, D, C = 11, 3, 4
LENGTHS = [6, 1, 3, 4]

# -- the equations, with visible loops -------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def embedded(w, row, config):
    return w["input.embedding.weight"][row] if config.vocab_size else np.asarray(row)


def scores(w, x, config):
    for i in range(len(config.hidden_sizes)):
        x = np.maximum(linear(w, f"head.hidden.{i}", x), 0)
    return linear(w, "head.output", x)


def pooled(rows, kind, weight=None):
    if kind == "last":
        return rows[-1], None
    if kind == "attention":
        shares = softmax(np.array([np.tanh(row) @ weight for row in rows]))
        return sum(share * row for share, row in zip(shares, rows, strict=True)), shares
    reduce = {"mean": np.mean, "max": np.max, "sum": np.sum}[kind]
    return reduce(rows, axis=0), None


def recur(w, xs, cell, suffix):
    """States of one direction of a layer, in the order the cell ran."""
    size = w[f"rnn.weight_hh_{suffix}"].shape[1]
    h, c, found = np.zeros(size), np.zeros(size), []
    for x in xs:
        a = w[f"rnn.weight_ih_{suffix}"] @ x + w[f"rnn.bias_ih_{suffix}"]
        u = w[f"rnn.weight_hh_{suffix}"] @ h + w[f"rnn.bias_hh_{suffix}"]
        if cell == "rnn":
            h = np.tanh(a + u)
        elif cell == "gru":
            (ar, az, an), (ur, uz, un) = np.split(a, 3), np.split(u, 3)
            z = sigmoid(az + uz)
            h = (1 - z) * np.tanh(an + sigmoid(ar + ur) * un) + z * h
        else:
            i, f, g, o = np.split(a + u, 4)
            peep = {k: np.zeros(size) for k in "ifo"}
            if cell.startswith("peephole"):
                peep = {k: w[f"rnn.vector_{k}_{suffix}"] for k in "ifo"}
            old = c
            c = sigmoid(f + peep["f"] * old) * old + sigmoid(i + peep["i"] * old) * np.tanh(g)
            seen = old if cell == "peephole-lstm-old" else c
            h = sigmoid(o + peep["o"] * seen) * np.tanh(c)
        found.append(h)
    return found


def merged(forward, backward, merge):
    if merge == "concat":
        return np.concatenate([forward, backward], axis=-1)
    return {
        "sum": forward + backward,
        "mean": (forward + backward) / 2,
        "product": forward * backward,
        "weighted": 0.5 * forward + 0.5 * backward,  # as they begin
    }[merge]


def both_ways(w, xs, config, merge):
    for layer in range(config.num_layers):
        forward = recur(w, xs, config.cell, f"l{layer}")
        backward = recur(w, xs[::-1], config.cell, f"l{layer}_reverse")[::-1]
        ends = merged(forward[-1], backward[0], merge)
        xs = [merged(f, b, merge) for f, b in zip(forward, backward, strict=True)]
    return np.array(xs), ends


def recurrent(w, row, config):
    xs = embedded(w, row, config)
    if not config.bidirectional:
        states = np.array(recur(w, xs, config.cell, "l0"))
        ends = states[-1]
    else:
        states, ends = both_ways(w, xs, config, config.merge)
    r, shares = pooled(states, config.pooling, w.get("pooling.weight"))
    r = ends if config.pooling == "last" else r
    r = np.tanh(r) if config.squash else r
    return scores(w, r, config), shares


def cnn(w, row, config):
    xs, f = embedded(w, row, config), np.tanh if config.activation == "tanh" else None
    n, parts, shares = len(xs), [], np.zeros(len(xs))
    for k, width in enumerate(config.widths):
        weight, bias = w[f"convolutions.{k}.weight"], w[f"convolutions.{k}.bias"]
        maps = []
        for t in range(n + width - 1):  # the window ends at word t
            total = bias.copy()
            for j in range(width):
                place = t - width + 1 + j
                if 0 <= place < n:
                    total = total + weight[:, :, j] @ xs[place]
            maps.append(np.maximum(total, 0) if f is None else f(total))
        z, alpha = pooled(np.array(maps), config.pooling, w.get(f"poolings.{k}.weight"))
        parts.append(z)
        for t in range(len(maps) if alpha is not None else 0):
            inside = [p for p in range(t - width + 1, t + 1) if 0 <= p < n]
            for p in inside:
                shares[p] += alpha[t] / len(inside) / len(config.widths)
    found = scores(w, np.concatenate(parts), config)
    return found, shares if config.pooling == "attention" else None


def heads(w_in, b_in, x, count, beta=1.0):
    """Attention matrices (N, T, T) and what they average, side by side (T, D)."""
    width = x.shape[1]
    q, k, v = (x @ w_in[i * width : (i + 1) * width].T + b_in[i * width : (i + 1) * width]
               for i in range(3))  # fmt: skip
    size, matrices, found = width // count, [], []
    for n in range(count):
        part = slice(n * size, (n + 1) * size)
        a = softmax(beta * q[:, part] @ k[:, part].T / math.sqrt(size))
        matrices.append(a)
        found.append(a @ v[:, part])
    return np.array(matrices), np.concatenate(found, axis=1)


def joint(w, row, config):
    states, _ = both_ways(w, embedded(w, row, config), config, "concat")
    matrix, attended = heads(
        w["attend.weight"], w["attend.bias"], states, config.num_heads, config.sharpness
    )
    out = np.tanh(linear(w, "projection", np.concatenate([states, attended], axis=1)))
    r, shares = pooled(out, config.pooling, w.get("pooling.weight"))
    return scores(w, r, config), matrix.mean(axis=(0, 1)) if shares is None else shares


def layer_norm(w, name, x):
    centered = x - x.mean(axis=1, keepdims=True)
    scaled = centered / np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + 1e-5)
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def transformer(w, row, config):
    x, width = embedded(w, row, config), config.hidden_size
    if config.vocab_size:
        x = x * math.sqrt(config.embed_size)
    if "projection.weight" in w:
        x = linear(w, "projection", x)
    if config.positions == "sinusoidal":
        for t in range(len(x)):
            for i in range(0, width, 2):
                angle = t / 10000 ** (i / width)
                x[t, i : i + 2] += [math.sin(angle), math.cos(angle)]
    for i in range(config.num_layers):
        at = f"blocks.{i}"

        def attend(x, at=at):
            w_in, b_in = w[f"{at}.self_attn.in_proj_weight"], w[f"{at}.self_attn.in_proj_bias"]
            return linear(w, f"{at}.self_attn.out_proj", heads(w_in, b_in, x, config.num_heads)[1])

        def inner(x, at=at):
            return linear(w, f"{at}.linear2", np.maximum(linear(w, f"{at}.linear1", x), 0))

        if config.norm == "pre":
            x = x + attend(layer_norm(w, f"{at}.norm1", x))
            x = x + inner(layer_norm(w, f"{at}.norm2", x))
        else:
            x = layer_norm(w, f"{at}.norm1", x + attend(x))
            x = layer_norm(w, f"{at}.norm2", x + inner(x))
    if config.norm == "pre":
        x = layer_norm(w, "norm", x)
    r, shares = pooled(x, config.pooling, w.get("pooling.weight"))
    return scores(w, r, config), shares


# -- the cases -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    arch: str
    oracle: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    vectors: bool = False

    def __str__(self):
        parts = [self.arch, *(f"{k}={v}" for k, v in self.options.items())]
        return "-".join([*parts, "vectors"] if self.vectors else parts)

    def model(self, seed=0, **changes):
        entry = find_architecture("classify", self.arch)
        sizes = {"vocab_size": 0 if self.vectors else V, "input_size": D if self.vectors else 0}
        values = {"embed_size": 5, **SMALL[self.arch], **self.options, **sizes, "output_size": C}
        torch.manual_seed(seed)
        config = load_config_class(entry)(**{**values, **changes})
        model: nn.Module = load_model_class(entry)(config)
        return model.double().eval()

    def rows(self, count, steps, seed=1):
        generator = torch.Generator().manual_seed(seed)
        if self.vectors:
            return torch.randn(count, steps, D, dtype=torch.float64, generator=generator)
        return torch.randint(V, (count, steps), generator=generator)


RECURRENT = {"hidden_size": 4, "backend": "reference"}
SMALL = {
    "cnn": {"widths": (2, 3), "num_maps": 4},
    "brnn": {**RECURRENT, "hidden_sizes": (5,)},
    "blstm": {**RECURRENT, "hidden_sizes": (5,)},
    "att-blstm": RECURRENT,
    "joint-attention": {**RECURRENT, "num_heads": 2},
    "transformer": {"hidden_size": 4, "num_heads": 2, "activation": "relu"},
}
POOLS = ("last", "mean", "max", "sum", "attention")
CASES = [
    *(Case("cnn", cnn, {"pooling": kind}) for kind in POOLS),
    Case("cnn", cnn, {"activation": "tanh", "hidden_sizes": (3,)}, vectors=True),
    Case("cnn", cnn, {"widths": (1, 9)}),
    *(Case("brnn", recurrent, {"pooling": kind}) for kind in POOLS),
    *(Case("brnn", recurrent, {"merge": m, "pooling": "last"}) for m in ("mean", "weighted")),
    Case("brnn", recurrent, {"cell": "gru", "merge": "product"}),
    Case("brnn", recurrent, {"bidirectional": False, "pooling": "last"}),
    Case("blstm", recurrent),
    Case("blstm", recurrent, {"num_layers": 2, "pooling": "last"}, vectors=True),
    Case("att-blstm", recurrent),
    Case("att-blstm", recurrent, {"cell": "peephole-lstm"}, vectors=True),
    *(Case("joint-attention", joint, {"pooling": kind}) for kind in POOLS),
    Case("joint-attention", joint, {"cell": "peephole-lstm-old", "sharpness": 3.0}),
    Case("joint-attention", joint, {"projection_size": 3, "num_layers": 2}, vectors=True),
    *(Case("transformer", transformer, {"pooling": kind}) for kind in POOLS),
    Case("transformer", transformer, {"norm": "post", "positions": "none"}),
    Case("transformer", transformer, {"embed_size": 4}),
    Case("transformer", transformer, {}, vectors=True),
]
EVERY = pytest.mark.parametrize("case", CASES, ids=str)


def weights_of(model):
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


@EVERY
def test_matches_its_equation(case):
    model, rows = case.model(), case.rows(3, 7)
    output, weights = model(rows), weights_of(model)
    for b, row in enumerate(rows.numpy()):
        expected, shares = case.oracle(weights, row, model.config)
        assert_close(output.scores[b], torch.from_numpy(expected))
        assert (output.attention is None) == (shares is None)
        if shares is not None:
            assert_close(output.attention[b], torch.from_numpy(shares))


@EVERY
def test_padding_never_changes_a_result(case):
    model, rows = case.model(), case.rows(len(LENGTHS), max(LENGTHS))
    for b, n in enumerate(LENGTHS):
        rows[b, n:] = math.nan if case.vectors else V - 1  # what lies there must not matter
    whole = model(rows, torch.tensor(LENGTHS))
    for b, n in enumerate(LENGTHS):
        alone = model(rows[b : b + 1, :n])
        assert_close(whole.scores[b], alone.scores[0])
        if whole.attention is not None:
            assert_close(whole.attention[b, :n], alone.attention[0])
            assert not whole.attention[b, n:].any()
            assert float(whole.attention[b].detach().sum()) == pytest.approx(1)
        if whole.matrix is not None:
            assert_close(whole.matrix[b, :, :n, :n], alone.matrix[0])
            assert not whole.matrix[b, :, n:].any() and not whole.matrix[b, :, :, n:].any()


@EVERY
def test_a_batch_of_one_and_a_sequence_of_one(case):
    model, rows = case.model(), case.rows(1, 1)
    output = model(rows)
    assert output.scores.shape == (1, C)
    assert_close(output.scores, model(rows, torch.tensor([1])).scores)
    expected, _ = case.oracle(weights_of(model), rows[0].numpy(), model.config)
    assert_close(output.scores[0], torch.from_numpy(expected))


@EVERY
def test_every_parameter_gets_a_gradient(case):
    model = case.model().train()
    rows = torch.arange(V).repeat(2, 1) if not case.vectors else case.rows(2, 7)
    torch.manual_seed(0)
    for _ in range(8):  # dropout may hide one of so few units once
        model(rows).scores.square().sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize("arch", list(SMALL))
def test_gradients_match_finite_differences(arch):
    case = Case(arch, recurrent, {"pooling": "attention"})
    model = case.model(activation="tanh") if arch == "cnn" else case.model()
    rows, lengths = case.rows(2, 3), torch.tensor([3, 2])
    assert_gradients_match(lambda *_: [model(rows, lengths).scores], list(model.parameters()))


@pytest.mark.parametrize("arch", list(SMALL))
def test_same_seed_same_result_and_chance_in_training_only(arch):
    for name in ("dropout", "word_dropout", "embedding_dropout"):
        others = dict.fromkeys(("dropout", "word_dropout", "embedding_dropout"), 0.0)
        more = {"layer_dropout": 0.0} if "blstm" in arch or arch == "brnn" else {}
        more = {"block_dropout": 0.0} if arch == "transformer" else more
        case = Case(arch, recurrent)
        model, rows = case.model(3, **others, **more), case.rows(4, 6)
        again, other = case.model(3, **others, **more), case.model(4, **others, **more)
        assert torch.equal(model(rows).scores, again(rows).scores)
        assert not torch.equal(model(rows).scores, other(rows).scores)
        assert torch.equal(model.train()(rows).scores, model(rows).scores)
        chancy = case.model(3, **{**others, name: 0.5}, **more)
        assert torch.equal(chancy(rows).scores, model(rows).scores)  # not in evaluation
        chancy.train()
        assert not torch.equal(chancy(rows).scores, chancy(rows).scores), name


def test_a_dropped_word_is_the_unknown_word():
    case = Case("cnn", cnn)
    model = case.model(dropout=0.0, word_dropout=0.999999).train()
    rows = case.rows(2, 5)
    assert_close(model(rows).scores, model.eval()(torch.ones_like(rows)).scores)
    model = Case("cnn", cnn, vectors=True).model(dropout=0.0, word_dropout=0.999999).train()
    vectors = torch.randn(2, 5, D, dtype=torch.float64)
    assert_close(model(vectors).scores, model.eval()(torch.zeros_like(vectors)).scores)


def test_weights_of_a_class_are_shortened_to_their_greatest_length():
    model = Case("cnn", cnn).model(max_norm=0.5)
    before = model.head.output.weight.detach().clone()
    with torch.no_grad():
        before[0] *= 0.4 / before[0].norm()  # short enough
        before[1] *= 3.0 / before[1].norm()
        model.head.output.weight.copy_(before)
    model.head.constrain()
    after = model.head.output.weight.detach()
    assert_close(after[0], before[0])
    assert_close(after[1], before[1] * 0.5 / 3.0, rtol=1e-6, atol=1e-7)


def test_distance_from_the_identity_is_the_sum_of_absolute_differences():
    model = Case("joint-attention", joint).model()
    rows = Case("joint-attention", joint).rows(4, 6)
    matrix = model(rows, torch.tensor(LENGTHS)).matrix
    found = identity_distance(matrix, torch.tensor(LENGTHS))
    for b, n in enumerate(LENGTHS):
        a = matrix[b, :, :n, :n].detach().numpy()
        expected = np.abs(a - np.eye(n)).sum(axis=2).mean()
        assert float(found[b].detach()) == pytest.approx(expected)
    assert_close(identity_distance(matrix[:1]), found[:1])


def test_sharper_attention_is_nearer_to_one_word():
    case = Case("joint-attention", joint)
    rows = case.rows(1, 6)
    soft, sharp = case.model(sharpness=0.01)(rows).matrix, case.model(sharpness=1e5)(rows).matrix
    assert_close(soft, torch.full_like(soft, 1 / 6), atol=0.01, rtol=0)
    assert sharp.max(dim=-1).values.mean() > 0.9


@pytest.mark.parametrize("arch", list(SMALL))
def test_bad_input_and_settings_are_refused(arch):
    case = Case(arch, recurrent)
    model, ids = case.model(), case.rows(2, 3)
    with pytest.raises(ShapeError, match=r"of shape \(B, T\).*of shape \(3,\)"):
        model(ids[0])
    with pytest.raises(ShapeError, match=r"T at least 1, got torch.int64 of shape \(2, 0\)"):
        model(ids[:, :0])
    with pytest.raises(ShapeError, match=r"lengths must have shape \(2,\).*got \(3,\)"):
        model(ids, torch.tensor([1, 2, 3]))
    reader = Case(arch, recurrent, vectors=True).model()
    with pytest.raises(ShapeError, match=rf"\(B, T, {D}\).*got \(1, 2, 9\)"):
        reader(torch.zeros(1, 2, 9, dtype=torch.float64))
    for options, message in [
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"word_dropout": -0.1}, r"word_dropout must lie in \[0, 1\), got -0.1"),
        ({"pooling": "avg"}, "pooling 'avg'"),
        ({"embed_size": 0}, "embed_size and hidden_sizes must be positive, got 4, 0"),
        ({"hidden_sizes": (0,)}, r"must be positive, got 4, 5 and \(0,\)"),
        ({"l2": -1.0}, "l2 must be a number not below 0, got -1.0"),
        ({"max_norm": 0.0}, "max_norm must be positive, got 0.0"),
        ({"input_size": 3}, "the other 0, got 11 and 3"),
    ]:
        with pytest.raises(ConfigError, match=message):
            case.model(**options)


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        ("cnn", {"widths": ()}, r"at least one.* got \(\) and 4"),
        ("cnn", {"activation": "sin"}, "activation 'sin'"),
        ("brnn", {"cell": "elman"}, "cell 'elman'"),
        ("brnn", {"merge": "add"}, "merge 'add'"),
        ("blstm", {"layer_dropout": 1.0}, r"layer_dropout must lie in \[0, 1\), got 1.0"),
        ("joint-attention", {"num_heads": 3}, "multiple of num_heads.* got 4, 3"),
        ("joint-attention", {"sharpness": 0.0}, "sharpness must be positive, got 0.0"),
        ("joint-attention", {"identity_weight": -1.0}, "must not be negative, got -1.0"),
        ("transformer", {"hidden_size": 5, "num_heads": 1}, "even hidden_size, got 5"),
        ("transformer", {"positions": "learned"}, "positions 'learned'"),
        ("transformer", {"num_heads": 3}, "multiple of num_heads"),
    ],
)
def test_settings_of_one_architecture_are_refused(arch, options, message):
    with pytest.raises(ConfigError, match=message):
        Case(arch, recurrent).model(**options)


@pytest.mark.parametrize("arch", list(SMALL))
def test_saving_and_loading_changes_nothing(arch, tmp_path):
    texts = ["a good film", "bad", "so good a plot it is", "a bad film"] * 4
    options = {k: v for k, v in SMALL[arch].items() if k != "backend"}
    loop = {"epochs": 2, "batch": {"batch_size": 4}, "device": "cpu"}
    model = Classifier(arch, embed_size=5, training=loop, **options)
    model.fit(texts, ["+", "-", "+", "-"] * 4)
    place = model.save(tmp_path / "model")
    loaded = Classifier.load(place)
    assert loaded.predict_proba(texts).tolist() == model.predict_proba(texts).tolist()
    assert loaded.evaluate(texts, ["+", "-"] * 8) == model.evaluate(texts, ["+", "-"] * 8)
    assert loaded.get_params()["embed_size"] == 5
    again = loaded.save(tmp_path / "again")
    for name in ("weights.safetensors", "vocabulary.json", "seqloom.json", "README.md"):
        assert (again / name).read_bytes() == (place / name).read_bytes()
