"""Encoder-decoders against their equations, written out in numpy or in torch's own layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_language_models import STEPS, log_softmax, sigmoid
from test_seq2seq_models import SOURCES, TARGETS, V, build, inputs, recurrent, run
from torch import nn
from torch.testing import assert_close

# -- recurrent: numpy and visible loops ------------------------------------------------------------


def own(weights: dict[str, Any], before: str, after: str = "_l0") -> dict[str, Any]:
    return {
        name.removeprefix(before).removesuffix(after): weight
        for name, weight in weights.items()
        if name.startswith(before) and name.endswith(after)
    }


def encoded(w: dict[str, Any], config: Any, ids: list[int]) -> tuple[Any, Any]:
    """Both directions side by side, and the context; one layer."""
    x = [w["encoder.input.embedding.weight"][i] for i in ids]
    if config.encoder == "dense":
        states = np.array(
            [np.tanh(w["encoder.dense.weight"] @ v + w["encoder.dense.bias"]) for v in x]
        )
        last = states[-1]
    else:
        lines, ends = [], []
        for suffix in ("_l0", "_l0_reverse"):
            cell = own(w, "encoder.rnn.", suffix)
            h = np.zeros(cell["weight_hh"].shape[1])
            c, line = h, []
            for v in x if suffix == "_l0" else x[::-1]:
                h, c = STEPS[config.cell](cell, v, h, c)
                line.append(h)
            lines.append(line if suffix == "_l0" else line[::-1])
            ends.append(h)
        states, last = np.concatenate(lines, axis=1), np.concatenate(ends)
    chosen = {"last": last, "mean": states.mean(axis=0), "max": states.max(axis=0)}
    return states, chosen[config.context]


def attended(w: dict[str, Any], config: Any, query: Any, states: Any, seen: Any) -> Any:
    scores = []
    for place, key in enumerate(states):
        if config.attention == "general":
            scores.append(query @ (w["decoder.attention.single.score.key.weight"] @ key))
        elif config.attention == "dot":
            scores.append(query @ key)
        else:
            inner = w["decoder.attention.single.score.query.weight"] @ query
            inner = inner + w["decoder.attention.single.score.key.weight"] @ key
            if "decoder.attention.cover" in w:
                inner = inner + w["decoder.attention.cover"] * seen[place]
            scores.append(w["decoder.attention.single.score.out.weight"][0] @ np.tanh(inner))
    return np.exp(log_softmax(np.array(scores)))


def by_hand(model: Any, source: list[int], target: list[int], copies: list[int] | None) -> Any:
    """The log-probability of every word after each of `target`."""
    w = {name: weight.detach().numpy() for name, weight in model.state_dict().items()}
    config, kinds = model.config, 2 if model.config.cell == "lstm" else 1
    states, context = encoded(w, config, source)
    size, cell = config.hidden_size, own(w, "decoder.rnn.")
    h, c = np.zeros(size), np.zeros(size)
    if config.context_to != "input":
        first = np.tanh(w["decoder.bridge.weight"] @ context + w["decoder.bridge.bias"])
        h = first[:size]
        c = first[size:] if kinds == 2 else c
    above = first[size:] if config.input_feeding == "upward" else None  # of a cell of one state
    fed, seen, rows = np.zeros(size), np.zeros(len(source)), []
    for word in target:
        x = e = w["decoder.embedding.weight"][word if word < V else 1]
        if config.context_to != "state":
            x = np.concatenate([x, context])
        weights = None
        if config.input_feeding == "output":
            x = np.concatenate([x, fed])
        elif config.input_feeding == "context":
            weights = attended(w, config, h, states, seen)
            x = np.concatenate([x, weights @ states])
        h, c = STEPS[config.cell](cell, x, h, c)
        features = h
        if config.attention != "none":
            weights = attended(w, config, h, states, seen) if weights is None else weights
            read = weights @ states
            if above is not None:
                upper = np.concatenate([h, read])
                above, _ = STEPS[config.cell](own(w, "decoder.upper."), upper, above, c)
                features = np.tanh(w["decoder.combine.weight"] @ np.concatenate([read, above]))
                rows.append(
                    log_softmax(w["output.softmax.weight"] @ features + w["output.softmax.bias"])
                )
                continue
            features = fed = np.tanh(w["decoder.combine.weight"] @ np.concatenate([read, h]))
        logs = log_softmax(w["output.softmax.weight"] @ features + w["output.softmax.bias"])
        if copies is not None:
            mixed = np.concatenate([read, h, e])
            write = sigmoid(w["switch.weight"][0] @ mixed + w["switch.bias"][0])
            both = np.zeros(V + 2)
            both[:V] = write * np.exp(logs)
            for place, id_ in enumerate(copies):
                both[id_] += (1 - write) * weights[place]
            with np.errstate(divide="ignore"):
                logs = np.log(both)
            seen = seen + weights
        rows.append(logs)
    return np.stack(rows)


BY_HAND = [
    "none", "general, last output fed", "additive, context fed", "dense", "pointer", "coverage",
    "additive, read by the layer above",
]  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_recurrent_models_match_loops(name):
    model, targets = build(name), TARGETS
    _, _, copies = inputs(name)
    if copies is not None:
        targets = [[*row[:3], V, 2] for row in TARGETS]  # a word of the source alone was written
    output, memory = run(name, model, torch.tensor(targets))
    logs = model.output.log_probs(output, memory)
    for row, source in enumerate(SOURCES):
        copied = None if copies is None else copies[row, : len(source)].tolist()
        expected = by_hand(model, source, targets[row], copied)
        np.testing.assert_allclose(logs[row].detach().numpy(), expected, rtol=1e-9)


def test_an_lstm_begins_with_both_of_its_states():
    kind, config = recurrent(cell="lstm")
    torch.manual_seed(0)
    model = kind(config).double().eval()
    output, memory = run("additive", model, torch.tensor(TARGETS))
    for row, source in enumerate(SOURCES):
        expected = by_hand(model, source, TARGETS[row], None)
        found = model.output.log_probs(output, memory)[row].detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_attending_twice_costs_what_the_paper_says():
    model, targets = build("coverage", coverage_weight=0.5), torch.tensor(TARGETS)
    output, memory = run("coverage", model, targets)
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()
    total = -model.output.target_log_probs(output, memory, targets)[real].sum().item()
    attention = output.attention.detach().numpy()
    for row, steps in enumerate(real.sum(dim=1).tolist()):
        seen = np.zeros(attention.shape[2])
        for t in range(steps):
            total += 0.5 * np.minimum(attention[row, t], seen).sum()
            seen += attention[row, t]
    assert model.output.loss(output, memory, targets, real).item() == pytest.approx(total)


def test_softened_targets_cost_what_the_paper_says():
    model, targets = build("none"), torch.tensor(TARGETS)
    output, memory = run("none", model, targets)
    logs = model.output.log_probs(output, memory)
    own_logs = logs.gather(2, targets[..., None])[..., 0]
    softened = -(0.9 * own_logs + 0.1 * logs.mean(dim=-1))
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()
    expected = softened[real].sum()
    assert_close(model.output.loss(output, memory, targets, real, 0.1), expected)
    wanted = targets.masked_fill(~real, -100).flatten()  # as on a card, where none is left out
    assert_close(model.output.wanted_loss(output.features.flatten(0, 1), wanted, 0.1), expected)


def test_gradients_of_coverage_match_finite_differences():
    model = build("coverage", hidden_size=2, embed_size=2)
    source, lengths, copies = inputs("coverage")
    real, targets = torch.ones(2, 3, dtype=torch.bool), torch.tensor(TARGETS)[[0, 2], :3]
    names = [name for name, _ in model.named_parameters()]

    def loss(*weights):
        with torch.nn.utils.stateless._reparametrize_module(
            model, dict(zip(names, weights, strict=True))
        ):
            memory = model.encode(source[[0, 2]], lengths[[0, 2]], copies[[0, 2]])
            output = model.decode(targets, memory, model.begin(memory))
            return model.output.loss(output, memory, targets, real)

    weights = tuple(weight.detach().requires_grad_() for weight in model.parameters())
    assert torch.autograd.gradcheck(loss, weights)


# -- transformer: torch's own layers ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["transformer", "post"])
def test_the_transformer_matches_torch(name):
    model = build(name)
    config, pre = model.config, model.config.norm == "pre"
    sizes = {"d_model": 8, "nhead": 2, "dim_feedforward": 10, "dropout": 0.0, "norm_first": pre}
    sizes["batch_first"] = True
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**sizes), 2, nn.LayerNorm(8) if pre else None,
        enable_nested_tensor=False,
    ).double()  # fmt: skip
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(**sizes), len(model.decoder), nn.LayerNorm(8) if pre else None
    ).double()
    encoder.layers.load_state_dict(model.encoder.state_dict())
    decoder.layers.load_state_dict(model.decoder.state_dict())
    if pre:
        encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    source, lengths, _ = inputs(name)
    ids = torch.tensor(TARGETS)

    def placed(table, words):
        places = torch.zeros(words.shape[1], 8, dtype=torch.float64)
        for p in range(words.shape[1]):
            for i in range(4):
                angle = p / 10000 ** (2 * i / 8)
                places[p, 2 * i], places[p, 2 * i + 1] = np.sin(angle), np.cos(angle)
        if config.positions == "learned":
            places = model.positions.weight[: words.shape[1]]
        return table.weight[words] * np.sqrt(8) + places

    padding = torch.arange(source.shape[1]) >= lengths[:, None]
    with torch.no_grad():
        memory = encoder(placed(model.input.embedding, source), src_key_padding_mask=padding)
        causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
        expected = decoder(
            placed(model.embedding, ids), memory, tgt_mask=causal, memory_key_padding_mask=padding
        )
    assert_close(run(name, model, ids)[0].features.detach(), expected)


# -- captions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["caption", "caption, first"])
def test_captions_match_loops(name):
    model = build(name)
    model.standardize(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 1.0, 2.0]))
    w = {key: weight.detach().numpy() for key, weight in model.state_dict().items()}
    vectors, _, _ = inputs(name)
    output, memory = run(name, model, torch.tensor(TARGETS))
    logs = model.output.log_probs(output, memory).detach().numpy()
    for row, vector in enumerate(vectors[:, 0].numpy()):
        h, cell = np.zeros(4), own(w, "rnn.")
        given = w["input.weight"] @ ((vector - [1, 2, 3]) * [0.5, 1, 2])
        for t, word in enumerate(TARGETS[row]):
            x = given if t == 0 else np.zeros(3)
            if name == "caption":
                x = x + w["embedding.weight"][word]
            h, _ = STEPS["rnn"](cell, x, h, h)
            scores = w["output.softmax.weight"] @ h + w["output.softmax.bias"]
            np.testing.assert_allclose(logs[row, t], log_softmax(scores), rtol=1e-9)
