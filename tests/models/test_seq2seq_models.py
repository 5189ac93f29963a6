"""What every encoder-decoder owes its users: padding, steps, gradients, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from seqloom.decoding import reorder
from seqloom.errors import ConfigError, ShapeError
from seqloom.models.captioner import CaptionerConfig, CaptionNetwork
from seqloom.models.pointer_generator import PointerConfig, PointerGenerator
from seqloom.models.seq2seq import Seq2Seq, Seq2SeqConfig
from seqloom.models.transformer_seq2seq import TransformerSeq2Seq, TransformerSeq2SeqConfig
from seqloom.nn.recurrent import Recurrent, RecurrentOutput

V, S = 9, 7  # words of the target and of the source
SOURCES = [[2, 5, 3, 6], [4], [1, 2, 2]]
TARGETS = [[3, 5, 8, 1, 2], [3, 3, 4, 2, 7], [3, 0, 6, 6, 1]]
DATA = {"vocab_size": V, "source_vocab_size": S, "input_size": 0, "shared": False}
SMALL = {"cell": "rnn", "embed_size": 3, "hidden_size": 4}
POINTER = {**DATA, "source_vocab_size": V, "shared": True, **SMALL}
TRANSFORMER = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "feedforward_size": 10}


def recurrent(**options: Any) -> tuple[Any, Any]:
    return Seq2Seq, Seq2SeqConfig(**{**DATA, **SMALL, **options})


CASES = {
    "none": recurrent(attention="none"),
    "additive": recurrent(cell="lstm", num_layers=2),
    "general, last output fed": recurrent(attention="general", input_feeding="output"),
    "additive, context fed": recurrent(cell="gru", input_feeding="context", context_to="both"),
    "additive, read by the layer above": recurrent(
        cell="gru", input_feeding="upward", num_layers=2, encoder_layers=1
    ),
    "general, read by two layers above": recurrent(
        cell="lstm", attention="general", input_feeding="upward", num_layers=3, context_to="input"
    ),
    "heads": recurrent(attention="multi-head", num_heads=2, context="mean", context_to="input"),
    "dense": recurrent(encoder="dense", attention="dot", context="max"),
    "shared": recurrent(source_vocab_size=V, shared=True, tied=True, embed_size=4),
    "pointer": (PointerGenerator, PointerConfig(**POINTER)),
    "coverage": (PointerGenerator, PointerConfig(**POINTER, coverage=True)),
    "transformer": (TransformerSeq2Seq, TransformerSeq2SeqConfig(**DATA, **TRANSFORMER)),
    "post": (
        TransformerSeq2Seq,
        TransformerSeq2SeqConfig(
            **DATA, **TRANSFORMER, norm="post", positions="learned", tied=False, decoder_layers=1
        ),
    ),
    "caption": (CaptionNetwork, CaptionerConfig(vocab_size=V, input_size=3, **SMALL)),
    "caption, first": (
        CaptionNetwork,
        CaptionerConfig(vocab_size=V, input_size=3, **SMALL, feeding="first"),
    ),
}


def build(name: str, seed: int = 0, **changes: Any) -> Any:
    kind, config = CASES[name]
    torch.manual_seed(seed)
    model = kind(type(config)(**{**vars(config), **changes}))
    return model.double().eval()


def inputs(name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Padded sources, their lengths, and for pointers the ids of their words."""
    if name.startswith("caption"):
        vectors = torch.randn(3, 1, 3, generator=torch.Generator().manual_seed(5)).double()
        return vectors, torch.ones(3, dtype=torch.long), None
    lengths = torch.tensor([len(each) for each in SOURCES])
    padded = nn.utils.rnn.pad_sequence([torch.tensor(s) for s in SOURCES], batch_first=True)
    if name not in ("pointer", "coverage"):
        return padded, lengths, None
    copies = padded.clone()
    copies[0, 1], copies[0, 3], copies[2, 0] = V, V + 1, V  # words of these sources alone
    return padded, lengths, copies


def run(name: str, model: Any, ids: torch.Tensor, rows: Any = slice(None)) -> Any:
    source, lengths, copies = inputs(name)
    memory = model.encode(source[rows], lengths[rows], None if copies is None else copies[rows])
    return model.decode(ids, memory, model.begin(memory), return_attention=True), memory


@pytest.mark.parametrize("name", CASES)
def test_words_are_a_distribution_that_targets_agree_with(name):
    model, targets = build(name), torch.tensor(TARGETS)
    output, memory = run(name, model, targets)
    logs = model.output.log_probs(output, memory)
    assert_close(logs.exp().sum(dim=-1), torch.ones(3, 5, dtype=torch.float64))
    own = logs.gather(2, targets[..., None])[..., 0]
    assert_close(model.output.target_log_probs(output, memory, targets), own)
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]).bool()
    loss = model.output.loss(output._replace(covered=None), memory, targets, real)
    assert_close(loss, -own[real].sum())


@pytest.mark.parametrize("name", CASES)
def test_padding_and_company_change_nothing(name):
    model, targets = build(name), torch.tensor(TARGETS)
    together, _ = run(name, model, targets)
    for row, source in enumerate(SOURCES):
        inside, lengths, copies = inputs(name)
        n = 1 if name.startswith("caption") else len(source)
        memory = model.encode(
            inside[row : row + 1, :n],
            lengths[row : row + 1],
            None if copies is None else copies[row : row + 1, :n],
        )
        alone = model.decode(
            targets[row : row + 1, :3], memory, model.begin(memory), return_attention=True
        )
        assert_close(together.features[row, :3], alone.features[0])
        if alone.attention is not None:
            assert_close(together.attention[row, :3, :n], alone.attention[0])
            assert not together.attention[row, :, n:].any()
            assert_close(alone.attention.sum(dim=-1), torch.ones(1, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", CASES)
def test_whole_equals_step_by_step_in_any_order_of_rows(name):
    model, targets = build(name), torch.tensor(TARGETS)
    whole, memory = run(name, model, targets)
    state, rows = model.begin(memory), [0, 1, 2]
    for t in range(targets.shape[1]):
        order = [[1, 0, 2], [2, 2, 0], [0, 1, 2]][t % 3]  # as a beam moves them
        rows = [rows[i] for i in order]
        state, memory = reorder(state, order), reorder(memory, order)
        # The rows that stay must have read the same words.
        output = model.decode(targets[rows, t : t + 1], memory, state, return_attention=True)
        state = output.state
        assert_close(output.features[:, 0], whole.features[rows, t])
        if whole.attention is not None:
            assert_close(output.attention[:, 0], whole.attention[rows, t])


@pytest.mark.parametrize("name", ["transformer", "post"])
def test_texts_of_one_source_share_its_memory(name):
    model, ids = build(name), torch.tensor(TARGETS * 2)  # two texts a source
    source, lengths, _ = inputs(name)
    memory = model.encode(source, lengths)
    many = reorder(memory, [0, 0, 1, 1, 2, 2])
    begun = model.begin(many)
    expected = model.decode(ids, many, begun, return_attention=True)
    found = model.decode(ids, memory, begun, return_attention=True)
    assert_close(found.features, expected.features)
    assert_close(found.attention, expected.attention)
    with pytest.raises(ShapeError, match=r"\(a multiple of 3, T\).*got \(4, 5\)"):
        model.decode(ids[:4], memory, begun)


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_gets_a_gradient(name):
    model, targets = build(name).train(), torch.tensor(TARGETS)
    output, memory = run(name, model, targets)
    model.output.loss(output, memory, targets, torch.ones(3, 5, dtype=torch.bool)).backward()
    for parameter, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, parameter


@pytest.mark.parametrize("name", ["additive", "coverage", "transformer"])
def test_dropout_acts_in_training_only_and_seeds_decide(name):
    model, ids = build(name, dropout=0.5), torch.tensor(TARGETS)
    first, again = run(name, model, ids)[0].features, run(name, model, ids)[0].features
    assert torch.equal(first, again)
    assert not torch.equal(run(name, model.train(), ids)[0].features, first)
    same = [run(name, build(name, 3), ids)[0].features for _ in range(2)]
    assert torch.equal(*same)


# -- vectors, and what is refused ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["additive", "transformer"])
def test_vectors_are_scaled_and_projected(name):
    model = build(name, source_vocab_size=0, input_size=2)
    model_input = model.input if name == "transformer" else model.encoder.input
    model_input.standardize(torch.tensor([1.0, -1.0]), torch.tensor([2.0, 3.0]))
    x = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(1)).double()
    found = model_input(x, torch.tensor([4, 1, 3]))
    projection = model_input.projection
    shifted = (x - torch.tensor([1.0, -1.0])) * torch.tensor([2.0, 3.0])
    assert_close(found, shifted @ projection.weight.T + projection.bias)
    memory = model.encode(x, torch.tensor([4, 1, 3]))
    assert model.decode(torch.tensor(TARGETS), memory, model.begin(memory)).features.shape[1] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "aditive"}, "unknown attention 'aditive'; did you mean 'additive'"),
        ({"attention": "none", "input_feeding": "output"}, "'output' with attention='none'"),
        ({"input_feeding": "upward"}, "the first, got num_layers=1; set it to 2"),
        ({"context": "first"}, "unknown context 'first'"),
        ({"context_to": "nowhere"}, "unknown context_to 'nowhere'"),
        ({"hidden_size": 5}, "must be even, got 5; set encoder_size"),
        ({"attention": "dot", "encoder_size": 3}, "got 4 and 6; use score='general'"),
        ({"tied": True}, "embed_size=3 and hidden_size=4"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"shared": True}, "must be of one size, got 7 and 9"),
        ({"input_size": 3}, "either source_vocab_size or input_size, got 9, 7 and 3"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        recurrent(**options)


def test_bad_settings_of_pointers_and_transformers_are_refused():
    with pytest.raises(ConfigError, match="points by one attention, got 'multi-head'"):
        PointerConfig(**POINTER, attention="multi-head")
    with pytest.raises(ConfigError, match="coverage needs attention='additive', got 'general'"):
        PointerConfig(**POINTER, attention="general", coverage=True)
    with pytest.raises(ConfigError, match=r"multiple of num_heads.*got 8 and 3"):
        TransformerSeq2SeqConfig(**{**DATA, **TRANSFORMER, "num_heads": 3})
    model = build("pointer")
    with pytest.raises(ConfigError, match=r"label smoothing.*got 0\.1 with a pointer"):
        output, memory = run("pointer", model, torch.tensor(TARGETS))
        real = torch.ones(3, 5, dtype=torch.bool)
        model.output.loss(output, memory, torch.tensor(TARGETS), real, 0.1)


@pytest.mark.parametrize("name", ["additive", "transformer"])
def test_bad_input_is_refused(name):
    model, (source, lengths, _) = build(name), inputs(name)
    with pytest.raises(ShapeError, match=r"shape \(B, S\).*of shape \(4,\)"):
        model.encode(source[0], lengths)
    with pytest.raises(ShapeError, match=r"lengths must have shape \(3,\).*got \(2,\)"):
        model.encode(source, lengths[:2])
    memory = model.encode(source, lengths)
    with pytest.raises(ShapeError, match=r"3, T\).*got \(2, 5\)"):
        model.decode(torch.tensor(TARGETS[:2]), memory, model.begin(memory))


@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_near_the_whole(name, monkeypatch):
    """On a processor, with recurrent layers that give what autocast asks for, as a card's do."""
    whole = Recurrent.forward

    def halved(self, x, lengths=None, states=None):
        states = None if states is None else [state.float() for state in states]
        outputs, ended = whole(self, x.float(), lengths, states)
        return RecurrentOutput(outputs.half(), tuple(state.half() for state in ended))

    targets, real = torch.tensor(TARGETS), torch.ones(3, 5, dtype=torch.bool)
    model = build(name).float()
    source, lengths, copies = inputs(name)
    source = source.float() if source.is_floating_point() else source

    def loss():
        memory = model.encode(source, lengths, copies)
        output = model.decode(targets, memory, model.begin(memory))
        step = model.decode(targets[:, :1], memory, output.state, return_attention=True)
        assert model.output.log_probs(step, memory).dtype == torch.float32
        return model.output.loss(output, memory, targets, real)

    expected = loss().item()
    monkeypatch.setattr(Recurrent, "forward", halved)
    with torch.autocast("cpu", torch.float16):
        found = loss()
    found.backward()
    assert found.item() == pytest.approx(expected, rel=5e-3)
