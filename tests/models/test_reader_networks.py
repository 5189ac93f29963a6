"""BiDAF and R-Net against visible loops; what every reader owes its users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from seqloom.architectures import find_architecture, load_config_class, load_model_class
from seqloom.errors import ConfigError, ShapeError
from seqloom.models.bidaf import AttentionFlow
from seqloom.models.reader_parts import ReaderInput, SpanOutput, best_spans
from seqloom.models.rnet import RNetConfig
from seqloom.nn.matching import GatedMatch, RecurrentMatch, SpanPointer

V, C = 9, 7
PASSAGES, QUESTIONS = [6, 3, 1, 4], [3, 1, 4, 2]
SMALL = {
    "embed_size": 3,
    "char_embed_size": 2,
    "char_size": 2,
    "char_widths": (2,),
    "hidden_size": 3,
    "dropout": 0.0,
}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("bidaf", {}),
    ("bidaf", {"to_question": False, "characters": "none", "num_highways": 0}),
    ("rnet-notes", {"num_layers": 2, "exact_match": True}),
    ("rnet-parallel", {"num_layers": 2, "join_layers": True}),
    ("rnet-paper", {}),
    ("rnet", {"self_matching": False, "gated": False, "attention": "scaled-dot"}),
    ("rnet", {"num_layers": 2, "join_layers": True, "output": "pointer"}),
]
IDS = [
    "bidaf",
    "bidaf-bare",
    "rnet-notes",
    "rnet-parallel",
    "rnet-paper",
    "rnet-bare",
    "rnet-joined",
]


def reader(arch: str, options: dict[str, Any], seed: int = 0, **more: Any) -> nn.Module:
    entry = find_architecture("answer", arch)
    values = {**SMALL, **options, **more, **entry.preset, "vocab_size": V, "char_vocab_size": C}
    torch.manual_seed(seed)
    model: nn.Module = load_model_class(entry)(load_config_class(entry)(**values))
    return model.double().eval()


def some_input(seed: int = 1) -> ReaderInput:
    draw = torch.Generator().manual_seed(seed)
    many = 8
    return ReaderInput(
        torch.randint(many, (4, max(PASSAGES)), generator=draw),
        torch.tensor(PASSAGES),
        torch.randint(many, (4, max(QUESTIONS)), generator=draw),
        torch.tensor(QUESTIONS),
        torch.randint(V, (many,), generator=draw),
        torch.randint(1, C, (many, 5), generator=draw),
        torch.tensor([5, 1, 2, 3, 4, 5, 1, 2]),
        torch.tensor([0, 1, 2, 3, 4, 0, 1, 5]),
    )


def alone(x: ReaderInput, b: int) -> ReaderInput:
    n, m = int(x.passage_lengths[b]), int(x.question_lengths[b])
    return x._replace(
        passage=x.passage[b : b + 1, :n],
        passage_lengths=x.passage_lengths[b : b + 1],
        question=x.question[b : b + 1, :m],
        question_lengths=x.question_lengths[b : b + 1],
    )


@pytest.mark.parametrize(("arch", "options"), CASES, ids=IDS)
def test_padding_and_batch_never_change_a_result(arch: str, options: dict[str, Any]) -> None:
    model, x = reader(arch, options), some_input()
    whole: SpanOutput = model(x)
    for b, (n, m) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        own: SpanOutput = model(alone(x, b))
        assert_close(whole.start[b, :n], own.start[0])
        assert_close(whole.end[b, :n], own.end[0])
        assert_close(whole.attention[b, :n, :m], own.attention[0])
        assert torch.isneginf(whole.start[b, n:]).all() and torch.isneginf(whole.end[b, n:]).all()
        assert not whole.attention[b, :, m:].any()
    rubbish = x._replace(passage=x.passage.clone(), question=x.question.clone())
    for b, (n, m) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        rubbish.passage[b, n:] = 7
        rubbish.question[b, m:] = 6
    assert_close(model(rubbish).start, whole.start)


@pytest.mark.parametrize(("arch", "options"), CASES, ids=IDS)
def test_every_parameter_gets_a_gradient_and_seeds_decide(
    arch: str, options: dict[str, Any]
) -> None:
    model, x = reader(arch, options).train(), some_input()
    output = model(x)
    real = torch.isfinite(output.start)
    total = (output.start[real].square().sum() + output.end[real].pow(3).sum()) * 10
    total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name
    again, other = reader(arch, options), reader(arch, options, seed=1)
    assert torch.equal(again(x).start, reader(arch, options)(x).start)
    assert not torch.equal(again(x).start, other(x).start)
    dropping = reader(arch, options, dropout=0.5)
    assert torch.equal(dropping(x).end, dropping(x).end)
    assert not torch.equal(dropping.train()(x).end, dropping(x).end)


@pytest.mark.parametrize(("arch", "options"), CASES, ids=IDS)
def test_variational_dropout_drops_coordinates_of_a_whole_text(
    arch: str, options: dict[str, Any]
) -> None:
    x = some_input()
    model = reader(arch, options, dropout=0.5, variational=True).train()
    assert isinstance(model.input, nn.Module)
    passage, _ = model.input(x)
    width = model.config.word_size  # type: ignore[union-attr]
    gone = passage[:, :, :width] == 0
    assert gone.any() and torch.equal(gone, gone[:, :1].expand_as(gone))
    assert torch.equal(model.eval()(x).end, reader(arch, options)(x).end)


@pytest.mark.parametrize(("arch", "options"), [CASES[0], CASES[4]], ids=["bidaf", "rnet-paper"])
def test_gradients_match_finite_differences(arch: str, options: dict[str, Any]) -> None:
    tiny = {
        "hidden_size": 2,
        "embed_size": 2,
        "char_size": 1,
        "char_embed_size": 1,
        "backend": "reference",
    }
    model = reader(arch, {**options, **tiny})
    x = some_input()
    x = x._replace(
        passage=x.passage[:2, :3],
        passage_lengths=torch.tensor([3, 2]),
        question=x.question[:2, :2],
        question_lengths=torch.tensor([1, 2]),
    )
    names = [name for name, _ in model.named_parameters()]

    def scores(*weights: Tensor) -> tuple[Tensor, ...]:
        found = torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (x,))
        return found.start[0], found.end[0], found.start[1, :2], found.end[1, :2]

    weights = tuple(weight.detach().requires_grad_() for weight in model.parameters())
    assert torch.autograd.gradcheck(scores, weights, fast_mode=True)


def softmax(values: list[float]) -> np.ndarray:
    powers = np.exp(np.array(values) - max(values))
    return powers / powers.sum()


def test_attention_flows_as_the_paper_says() -> None:
    torch.manual_seed(0)
    layer = AttentionFlow(4).double()
    passage, question = (
        torch.randn(1, 5, 4, dtype=torch.float64),
        torch.randn(1, 3, 4, dtype=torch.float64),
    )
    h, u = passage[0].numpy(), question[0].numpy()
    w = layer.weight.detach().numpy().ravel()
    scores = [[float(w @ np.concatenate([a, b, a * b])) for b in u] for a in h]
    found_in = [softmax(row) @ u for row in scores]
    b = softmax([max(row) for row in scores])
    summary = b @ h
    expected = [
        np.concatenate([x, a, x * a, x * summary]) for x, a in zip(h, found_in, strict=True)
    ]
    true = torch.ones(1, 5, dtype=torch.bool)
    found = layer(passage, question, true, true[:, :3])
    assert_close(found.outputs[0].detach().numpy(), np.stack(expected))
    assert_close(found.to_passage[0].detach().numpy(), b)
    assert_close(found.to_question[0].detach().numpy(), np.stack([softmax(row) for row in scores]))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(cell: nn.GRUCell, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Cho et al. (2014) with torch's order of gates: r, z, n."""
    own = cell.weight_ih.detach().numpy() @ x + cell.bias_ih.detach().numpy()
    past = cell.weight_hh.detach().numpy() @ h + cell.bias_hh.detach().numpy()
    (ri, zi, ni), (rh, zh, nh) = np.split(own, 3), np.split(past, 3)
    r, z = sigmoid(ri + rh), sigmoid(zi + zh)
    return (1 - z) * np.tanh(ni + r * nh) + z * h


def test_bilinear_matching_is_the_equation() -> None:
    torch.manual_seed(0)
    layer = GatedMatch(4, "general", 3, gated=True).double()
    passage, question = (
        torch.randn(1, 5, 4, dtype=torch.float64),
        torch.randn(1, 3, 4, dtype=torch.float64),
    )
    weight = layer.score.key.weight.detach().numpy()
    gate = layer.gate.weight.detach().numpy()
    rows = []
    for h in passage[0].numpy():
        alpha = softmax([float(h @ weight @ k) for k in question[0].numpy()])
        both = np.concatenate([h, alpha @ question[0].numpy()])
        rows.append(sigmoid(gate @ both) * both)
    found = layer(passage, question, torch.ones(1, 3, dtype=torch.bool)).outputs
    assert_close(found[0].detach().numpy(), np.stack(rows))


def test_words_find_their_like_in_the_question_and_not_themselves_in_the_passage() -> None:
    torch.manual_seed(0)
    model = reader("rnet-notes", {"hidden_size": 32})
    words = torch.randn(1, 6, 64, dtype=torch.float64)
    real = torch.ones(1, 6, dtype=torch.bool)
    alike = model.match.double()(words, words, real).weights[0].diagonal()
    apart = model.self_match.double()(words, words, real).weights[0].diagonal()
    assert alike.min() > 0.9 > 0.5 > apart.mean()


def test_recurrent_matching_is_the_equation() -> None:
    torch.manual_seed(0)
    layer = RecurrentMatch(4, 3, gated=True).double()
    passage, question = (
        torch.randn(1, 5, 4, dtype=torch.float64),
        torch.randn(1, 3, 4, dtype=torch.float64),
    )
    weight = {name: w.detach().numpy() for name, w in layer.named_parameters()}
    v, rows = np.zeros(3), []
    for p in passage[0].numpy():
        scores = [
            weight["out.weight"][0]
            @ np.tanh(
                weight["keys.weight"] @ q + weight["items.weight"] @ p + weight["state.weight"] @ v
            )
            for q in question[0].numpy()
        ]
        both = np.concatenate([p, softmax(scores) @ question[0].numpy()])
        v = gru(layer.cell, sigmoid(weight["gate.weight"] @ both) * both, v)
        rows.append(v)
    true = torch.ones(1, 5, dtype=torch.bool)
    found = layer(passage, question, true[:, :3], true).outputs
    assert_close(found[0].detach().numpy(), np.stack(rows))


def test_the_pointer_network_is_the_equation() -> None:
    torch.manual_seed(0)
    layer = SpanPointer(4, 5, 3).double()
    passage, question = (
        torch.randn(1, 6, 4, dtype=torch.float64),
        torch.randn(1, 3, 5, dtype=torch.float64),
    )
    weight = {name: w.detach().numpy() for name, w in layer.named_parameters()}
    p, q = passage[0].numpy(), question[0].numpy()
    inner = [np.tanh(weight["pooling.weight"] @ u + weight["pooling.bias"]) for u in q]
    h = softmax([float(weight["pooled.weight"][0] @ u) for u in inner]) @ q

    def point(state: np.ndarray) -> list[float]:
        wanted = weight["score.query.weight"] @ state
        keys = [weight["score.key.weight"] @ each for each in p]
        return [float(weight["score.out.weight"][0] @ np.tanh(wanted + key)) for key in keys]

    start = point(h)
    end = point(gru(layer.cell, softmax(start) @ p, h))
    true = torch.ones(1, 6, dtype=torch.bool)
    found = layer(passage, question, true, true[:, :3])
    assert_close(found[0][0].detach().numpy(), np.array(start))
    assert_close(found[1][0].detach().numpy(), np.array(end))


def test_equal_words_are_marked_on_both_sides() -> None:
    model, x = reader("bidaf", {"exact_match": True}), some_input()
    passage, question = model.input(x)
    for b, (n, m) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        forms = [x.forms[x.passage[b, :n]].tolist(), x.forms[x.question[b, :m]].tolist()]
        assert passage[b, :n, -1].tolist() == [float(form in forms[1]) for form in forms[0]]
        assert question[b, :m, -1].tolist() == [float(form in forms[0]) for form in forms[1]]
    with pytest.raises(ShapeError, match="got no forms"):
        model(x._replace(forms=None))


@pytest.mark.parametrize("max_words", [1, 3, 50])
def test_the_best_spans_are_those_of_a_search_of_all(max_words: int) -> None:
    draw = torch.Generator().manual_seed(max_words)
    start, end = torch.randn(3, 9, generator=draw), torch.randn(3, 9, generator=draw)
    start[1, 4:], end[1, 4:] = -torch.inf, -torch.inf
    found = best_spans(start, end, max_words, 5)
    for b in range(3):
        spans = [
            (float(start[b, i] + end[b, j]), i, j)
            for i in range(9)
            for j in range(i, min(9, i + max_words))
        ]
        best = sorted(spans, key=lambda span: -span[0])[:5]
        for k, (score, i, j) in enumerate(best):
            assert float(found.scores[b, k]) == score
            if score > -torch.inf:
                assert (int(found.first[b, k]), int(found.last[b, k])) == (i, j)


def test_bad_input_is_refused() -> None:
    model, x = reader("bidaf", {}), some_input()
    with pytest.raises(ShapeError, match=r"passage must be whole numbers.*\(4, 0\)"):
        model(x._replace(passage=x.passage[:, :0]))
    with pytest.raises(ShapeError, match=r"question_lengths must have shape \(4,\), got \(2,\)"):
        model(x._replace(question_lengths=x.question_lengths[:2]))
    with pytest.raises(ShapeError, match="a question for each of 4 passages, got 3"):
        model(x._replace(question=x.question[:3], question_lengths=x.question_lengths[:3]))
    with pytest.raises(ShapeError, match="reads characters, got none"):
        model(x._replace(spellings=None))
    with pytest.raises(ConfigError, match="'aditive'; did you mean 'additive'"):
        RNetConfig(vocab_size=3, char_vocab_size=0, attention="aditive")
    with pytest.raises(ConfigError, match="has attention='additive', got 'general'"):
        RNetConfig(vocab_size=3, char_vocab_size=0, matching="recurrent")
    with pytest.raises(ConfigError, match="must be true, got neither"):
        reader("bidaf", {"to_question": False, "to_passage": False})
    with pytest.raises(ConfigError, match=r"dropout must lie in \[0, 1\), got 1"):
        RNetConfig(vocab_size=3, char_vocab_size=0, dropout=1)
