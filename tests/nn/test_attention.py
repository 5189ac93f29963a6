"""Attention against torch's layer, torch's block, and numpy with a visible loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.attention import Attention, KeyValues, MultiHeadAttention
from seqloom.nn.decoder_block import DecoderBlock
from seqloom.nn.past import keep_last
from seqloom.nn.positions import rotate
from seqloom.nn.scores import SCORES
from seqloom.nn.transformer import TransformerBlock

B, T, S, D, N = 3, 5, 7, 8, 2
LENGTHS = torch.tensor([7, 1, 4])
Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def disturbed(layer: nn.Module) -> Any:
    """A layer in double precision whose biases are not 0."""
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.4)
    return layer.double()


def softmax(x: Array) -> Array:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


# -- many heads ----------------------------------------------------------------------------------


def pair(bias: bool = True, **sizes: int) -> tuple[nn.MultiheadAttention, MultiHeadAttention]:
    names = {"key_size": "kdim", "value_size": "vdim"}
    theirs = nn.MultiheadAttention(
        D, N, bias=bias, batch_first=True, **{names[k]: v for k, v in sizes.items()}
    )
    theirs = disturbed(theirs)
    ours = MultiHeadAttention(D, N, bias=bias, **sizes).double()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "sizes", [{}, {"key_size": 3, "value_size": 5}, {"value_size": 5}], ids=str
)
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_equals_torch_over_other_keys(sizes, bias, lengths):
    theirs, ours = pair(bias, **sizes)
    query = random(B, T, D)
    key, value = random(B, S, sizes.get("key_size", D)), random(B, S, sizes.get("value_size", D))
    hidden = None if lengths is None else torch.arange(S) >= lengths[:, None]
    expected, weights = theirs(query, key, value, hidden, average_attn_weights=False)
    assert_close(ours(query, key, value, lengths=lengths).outputs, expected)
    found = ours(query, key, value, lengths=lengths, return_weights=True)
    assert_close(found.outputs, expected)
    assert_close(found.weights, weights)


def test_equals_torch_over_itself_and_causal():
    theirs, ours = pair()
    x = random(B, T, D)
    assert_close(ours(x).outputs, theirs(x, x, x)[0])
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    expected, weights = theirs(x, x, x, attn_mask=later, average_attn_weights=False)
    assert_close(ours(x, causal=True).outputs, expected)
    assert_close(ours(x, causal=True, return_weights=True).weights, weights)
    assert_close(ours(x, causal=True, mask=torch.ones(1, T, T).bool()).outputs, expected)
    short = torch.tensor([5, 1, 3])
    for b, n in enumerate(short.tolist()):
        alone = ours(x[b : b + 1, :n], causal=True).outputs[0]
        assert_close(ours(x, causal=True, lengths=short).outputs[b, :n], alone)


def by_hand(layer: MultiHeadAttention, x: Array, seen: Array) -> Array:
    """Section 3.2 of Vaswani et al. (2017), head by head and query by query."""
    steps, size = len(x), D // N
    weight, bias = layer.in_proj_weight.detach().numpy(), layer.in_proj_bias.detach().numpy()
    q, k, v = np.split(x @ weight.T + bias, 3, axis=1)
    heads = np.zeros((steps, D))
    for n in range(N):
        own = slice(n * size, (n + 1) * size)
        for t in range(steps):
            visible = [s for s in range(steps) if seen[t, s]]
            scores = np.array([q[t, own] @ k[s, own] / math.sqrt(size) for s in visible])
            for s, share in zip(visible, softmax(scores), strict=True):
                heads[t, own] += share * v[s, own]
    out = layer.out_proj
    return heads @ out.weight.detach().numpy().T + out.bias.detach().numpy()


def test_a_mask_says_what_is_seen():
    layer = disturbed(MultiHeadAttention(D, N))
    x, mask = random(2, 6, D), torch.rand(2, 6, 6) < 0.5
    mask |= torch.eye(6).bool()
    found = layer(x, mask=mask).outputs
    for b in range(2):
        np.testing.assert_allclose(
            found[b].detach(), by_hand(layer, x[b].numpy(), mask[b].numpy()), atol=1e-10
        )


@pytest.mark.parametrize("weights", [False, True])
def test_a_query_that_sees_nothing_gets_the_bias(weights):
    layer = disturbed(MultiHeadAttention(D, N))
    x, lengths = random(2, 3, D).requires_grad_(), torch.tensor([3, 0])
    found = layer(x, lengths=lengths, return_weights=weights)
    assert_close(found.outputs[1], layer.out_proj.bias.expand(3, D))
    found.outputs.sum().backward()
    assert x.grad.isfinite().all() and not x.grad[1].any()
    if weights:
        assert not found.weights[1].any()
        assert_close(found.weights[0].sum(-1), torch.ones(N, 3).double())


@pytest.mark.parametrize("rotary", [False, True])
def test_step_by_step_equals_the_whole(rotary):
    layer = disturbed(MultiHeadAttention(D, N, rotary=rotary))
    x = random(B, T, D)
    whole, past, steps = layer(x, causal=True), None, []
    for t in range(T):
        output = layer(x[:, t : t + 1], causal=True, past=past)
        past = output.memory
        steps.append(output.outputs)
    assert_close(torch.cat(steps, dim=1), whole.outputs)
    for part, expected in zip(past, whole.memory, strict=True):
        assert_close(part, expected)
    rest = layer(x[:, 2:], causal=True, past=KeyValues(*(p[:, :2] for p in whole.memory)))
    assert_close(rest.outputs, whole.outputs[:, 2:])


def test_lengths_count_the_keys_of_the_call():
    layer = disturbed(MultiHeadAttention(D, N))
    x = random(2, T, D)
    past = layer(x[:, :2]).memory
    found = layer(x[:, 2:], lengths=torch.tensor([3, 1]), past=past).outputs
    alone = layer(x[1:, 2:3], past=KeyValues(*(part[1:] for part in past))).outputs
    assert_close(found[1:, :1], alone)


def test_rotary_weights_are_those_of_turned_queries_and_keys():
    layer = disturbed(MultiHeadAttention(D, N, rotary=True))
    x = random(1, T, D)
    q, k, _ = (x @ layer.in_proj_weight.T + layer.in_proj_bias).chunk(3, dim=-1)
    found = layer(x, return_weights=True).weights[0]
    for n in range(N):
        own = slice(n * 4, (n + 1) * 4)
        places = torch.arange(T) + 12  # any beginning is as good
        scores = rotate(q[0, :, own], places) @ rotate(k[0, :, own], places).mT / 2
        assert_close(found[n], scores.softmax(dim=-1))


def test_a_sequence_that_is_moved_gives_the_same_with_rotary_positions():
    layer = disturbed(MultiHeadAttention(D, N, rotary=True))
    x, before = random(1, T, D), random(1, 4, D)
    window = torch.ones(1, T + 4, T + 4).bool()
    window[:, 4:, :4] = False
    moved = layer(torch.cat([before, x], dim=1), mask=window).outputs[:, 4:]
    assert_close(moved, layer(x).outputs)


def test_gradients_match_finite_differences():
    layer = disturbed(MultiHeadAttention(D, N, rotary=True))
    x, lengths = random(2, 3, D).requires_grad_(), torch.tensor([3, 1])
    assert torch.autograd.gradcheck(lambda x: layer(x, lengths=lengths, causal=True).outputs, x)


def test_dropout_acts_in_training_only():
    layer, x = MultiHeadAttention(D, N, dropout=0.5).double(), random(2, T, D)
    for options in ({"causal": True}, {"return_weights": True}, {"lengths": torch.tensor([5, 2])}):
        layer.train()
        assert not torch.equal(layer(x, **options).outputs, layer(x, **options).outputs)
        layer.eval()
        assert torch.equal(layer(x, **options).outputs, layer(x, **options).outputs)


BAD_SIZES = [
    ({"input_size": 8, "num_heads": 3}, "multiple of num_heads.*got 8 and 3"),
    ({"input_size": 0, "num_heads": 1}, "got 0 and 1"),
    ({"input_size": 8, "num_heads": 2, "key_size": -1}, "keys -1"),
    ({"input_size": 8, "num_heads": 2, "dropout": 1.0}, r"\[0, 1\), got 1.0"),
]


@pytest.mark.parametrize(("values", "message"), BAD_SIZES, ids=str)
def test_impossible_heads_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        MultiHeadAttention(**values)


def test_bad_input_is_refused():
    layer = MultiHeadAttention(8, 2)
    x = torch.zeros(2, 3, 8)
    with pytest.raises(ShapeError, match=r"query must have shape \(2, steps, 8\), got \(2, 3, 7\)"):
        layer(torch.zeros(2, 3, 7))
    with pytest.raises(ShapeError, match=r"key must have shape \(2, steps, 8\), got \(1, 3, 8\)"):
        layer(x, x[:1])
    with pytest.raises(ShapeError, match="a value a key, got 3 and 2"):
        layer(x, x[:, :2], x)
    with pytest.raises(ShapeError, match="got 2 keys and 3 queries; build with rotary=False"):
        MultiHeadAttention(8, 2, rotary=True)(x, x[:, :2])
    with pytest.raises(ShapeError, match=r"past must hold.*\(2, steps, 8\), got \(1, 3, 8\)"):
        layer(x, past=KeyValues(x[:1], x[:1]))


# -- the block of transformers -------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_a_block_equals_torch_with_its_weights(norm, activation):
    theirs = disturbed(
        nn.TransformerEncoderLayer(
            D, N, 10, 0.0, activation, batch_first=True, norm_first=norm == "pre"
        )
    )
    ours = TransformerBlock(D, N, hidden_size=10, norm=norm, activation=activation).double()
    ours.load_state_dict(theirs.state_dict())
    x, lengths = random(B, T, D), torch.tensor([5, 1, 3])
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    assert_close(ours(x, causal=True).outputs, theirs(x, later))
    expected = theirs(x, src_key_padding_mask=torch.arange(T) >= lengths[:, None])
    found = ours(x, lengths=lengths).outputs
    for b, n in enumerate(lengths.tolist()):
        assert_close(found[b, :n], expected[b, :n])


@pytest.mark.parametrize("kind", [TransformerBlock, DecoderBlock])
def test_units_inside_a_block_are_dropped_on_their_own(kind):
    """With `dropout` 0 what F adds is all that chance decides, once attention drops nothing."""
    block = disturbed(kind(D, N, norm="pre", inner_dropout=0.5))
    x, last = random(B, T, D), block.norm2 if kind is TransformerBlock else block.norm3
    more = () if kind is TransformerBlock else (block.remember(x), torch.ones(B, T).bool())
    attentions = [each for each in block.modules() if isinstance(each, MultiHeadAttention)]
    assert [each.dropout for each in attentions] == [0.5] * len(attentions)
    for each in attentions:
        each.dropout = 0.0
        nn.init.zeros_(each.out_proj.weight)
        nn.init.zeros_(each.out_proj.bias)
    torch.manual_seed(5)
    found = block(x, *more)[0]
    torch.manual_seed(5)
    inner = functional.dropout(functional.gelu(block.linear1(last(x))), 0.5)
    assert_close(found, x + block.linear2(inner))
    assert kind(D, N, dropout=0.3).inner_share == 0.3
    assert kind(D, N, dropout=0.3, inner_dropout=0.0).self_attn.dropout == 0.0


def test_impossible_blocks_are_refused():
    with pytest.raises(ConfigError, match=r"dropout must lie in \[0, 1\), got 1.0"):
        TransformerBlock(8, 2, dropout=1.0, inner_dropout=0.0)
    with pytest.raises(ConfigError, match=r"dropout must lie in \[0, 1\), got -0.1"):
        DecoderBlock(8, 2, inner_dropout=-0.1)
    with pytest.raises(ConfigError, match=r"unknown norm 'after'.*post, pre"):
        TransformerBlock(8, 2, norm="after")
    with pytest.raises(ConfigError, match=r"unknown activation 'tanh'.*gelu, relu"):
        TransformerBlock(8, 2, activation="tanh")
    with pytest.raises(ConfigError, match="not be negative, got -1"):
        TransformerBlock(8, 2, hidden_size=-1)


# -- scores --------------------------------------------------------------------------------------

Q, K, A = 3, 4, 6


def additive(w: dict[str, Array], q: Array, k: Array) -> float:
    """Bahdanau et al. (2015), appendix A.1.2."""
    return (w["out"] @ np.tanh(w["query"] @ q + w["key"] @ k)).item()


def concat(w: dict[str, Array], q: Array, k: Array) -> float:
    """Luong et al. (2015), equation 8, third line."""
    return (w["out"] @ np.tanh(w["both"] @ np.concatenate([q, k]))).item()


def general(w: dict[str, Array], q: Array, k: Array) -> float:
    """Luong et al. (2015), equation 8, second line."""
    return q @ w["key"] @ k


def dot(w: dict[str, Array], q: Array, k: Array) -> float:
    return q @ k


def scaled_dot(w: dict[str, Array], q: Array, k: Array) -> float:
    """Vaswani et al. (2017), equation 1."""
    return q @ k / math.sqrt(len(k))


def cosine(w: dict[str, Array], q: Array, k: Array) -> float:
    """Graves et al. (2014), equations 5 and 6."""
    return w["sharpness"] * (q @ k) / math.sqrt((q @ q) * (k @ k))


ORACLES = {
    "additive": additive,
    "concat": concat,
    "general": general,
    "dot": dot,
    "scaled-dot": scaled_dot,
    "cosine": cosine,
}


def sized(score: str) -> Attention:
    query = K if score in ("dot", "scaled-dot", "cosine") else Q
    return disturbed(Attention(query, K, score=score, hidden_size=A))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_scores_are_those_of_their_papers(score, lengths):
    layer = sized(score)
    query, keys, values = random(B, T, layer.query_size), random(B, S, K), random(B, S, 2)
    found = layer(query, keys, values, lengths=lengths)
    weights = {
        name.removeprefix("score.").removesuffix(".weight"): weight.detach().numpy()
        for name, weight in layer.named_parameters()
    }
    for b in range(B):
        n = S if lengths is None else int(lengths[b])
        for t in range(T):
            scores = [
                ORACLES[score](weights, query[b, t].numpy(), keys[b, s].numpy()) for s in range(n)
            ]
            shares = softmax(np.array(scores))
            np.testing.assert_allclose(found.weights[b, t, :n].detach(), shares, atol=1e-12)
            assert not found.weights[b, t, n:].any()
            expected = sum(shares[s] * values[b, s].numpy() for s in range(n))
            np.testing.assert_allclose(found.outputs[b, t].detach(), expected, atol=1e-12)
    again = layer(query, keys, values, lengths=lengths, prepared=layer.prepare(keys))
    assert torch.equal(again.outputs, found.outputs)


@pytest.mark.parametrize("score", SCORES)
def test_every_weight_of_a_score_gets_its_gradient(score):
    layer = sized(score)
    query, keys = random(2, 2, layer.query_size).requires_grad_(), random(2, 3, K).requires_grad_()
    lengths = torch.tensor([3, 0])
    given = (query, keys, *(weight.detach().requires_grad_() for weight in layer.parameters()))
    names = [name for name, _ in layer.named_parameters()]

    def run(query: Tensor, keys: Tensor, *weights: Tensor) -> Tensor:
        own = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, own, (query, keys), {"lengths": lengths}).outputs

    assert torch.autograd.gradcheck(run, given)
    assert not layer(query, keys, lengths=lengths).outputs[1].any()  # a row without keys


def test_impossible_scores_are_refused():
    with pytest.raises(ConfigError, match="unknown score 'adaptive'; did you mean 'additive'"):
        Attention(3, 4, score="adaptive")
    for score in ("dot", "scaled-dot", "cosine"):
        with pytest.raises(ConfigError, match="one width, got 3 and 4; use score='general'"):
            Attention(3, 4, score=score)
    with pytest.raises(ConfigError, match="got 0, 4 and 0"):
        Attention(0, 4)
    with pytest.raises(ShapeError, match=r"end in 3 and 4, got shapes \(1, 1, 4\) and \(1, 2, 4\)"):
        Attention(3, 4)(torch.zeros(1, 1, 4), torch.zeros(1, 2, 4))


# -- what is kept --------------------------------------------------------------------------------


def test_the_last_items_of_each_row_are_kept():
    items = torch.arange(10).repeat(3, 1)[:, :, None] * torch.ones(2)  # 6 kept, 4 new
    assert keep_last(items, 4, None)[0, :, 0].tolist() == [4, 5, 6, 7, 8, 9]
    kept = keep_last(items, 4, torch.tensor([4, 0, 1]))
    assert kept.shape == (3, 6, 2)
    assert kept[:, :, 1].tolist() == [[*range(4, 10)], [*range(6)], [*range(1, 7)]]
