"""Pooling by hand, on ragged rows."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.pooling import POOLINGS, Pooling

NAN = math.nan
# Two rows of 3 and 2 vectors; what lies on padding must not matter, whatever it is.
X = torch.tensor(
    [[[1.0, -2.0], [3.0, 0.0], [2.0, 5.0]], [[-4.0, 1.0], [-6.0, -1.0], [NAN, 99.0]]],
    dtype=torch.float64,
)
LENGTHS = torch.tensor([3, 2])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("last", [[2.0, 5.0], [-6.0, -1.0]]),
        ("mean", [[2.0, 1.0], [-5.0, 0.0]]),
        ("max", [[3.0, 5.0], [-4.0, 1.0]]),
        ("sum", [[6.0, 3.0], [-10.0, 0.0]]),
    ],
)
def test_pooled_by_hand(kind, expected):
    found = Pooling(kind, 2)(X, LENGTHS)
    assert_close(found.outputs, torch.tensor(expected, dtype=torch.float64))
    assert found.weights is None


def test_attention_by_hand():
    pooling = Pooling("attention", 2).double()
    with torch.no_grad():
        pooling.weight.copy_(torch.tensor([0.5, -1.0]))
    with torch.no_grad():
        found = pooling(X, LENGTHS)
    for row, n in enumerate([3, 2]):
        vectors = X[row, :n].tolist()
        powers = [math.exp(0.5 * math.tanh(a) - math.tanh(b)) for a, b in vectors]
        shares = [power / sum(powers) for power in powers]
        for t in range(3):
            assert float(found.weights[row, t]) == pytest.approx(shares[t] if t < n else 0.0)
        for d in range(2):
            total = sum(share * vector[d] for share, vector in zip(shares, vectors, strict=True))
            assert float(found.outputs[row, d]) == pytest.approx(total)
    assert_close(found.weights.sum(dim=1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("kind", POOLINGS)
@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 2, 1]], ids=["full", "ragged"])
def test_padding_never_changes_a_result(kind, lengths):
    torch.manual_seed(0)
    pooling, x = Pooling(kind, 4).double(), torch.randn(3, 5, 4, dtype=torch.float64)
    whole = pooling(x, torch.tensor(lengths))
    for b, n in enumerate(lengths):
        alone = pooling(x[b : b + 1, :n])
        assert_close(whole.outputs[b], alone.outputs[0])
        if kind == "attention":
            assert_close(whole.weights[b, :n], alone.weights[0])
            assert not whole.weights[b, n:].any()


@pytest.mark.parametrize("kind", POOLINGS)
def test_gradients_match_finite_differences_and_stay_off_padding(kind):
    torch.manual_seed(0)
    pooling, lengths = Pooling(kind, 3).double(), torch.tensor([4, 2])
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pooling(x, lengths).outputs, x)
    pooling(x, lengths).outputs.sum().backward()
    assert not x.grad[1, 2:].any() and x.grad[1, :2].any()
    for weight in pooling.parameters():
        assert weight.grad.any()


def test_only_attention_has_weights():
    assert [kind for kind in POOLINGS if list(Pooling(kind, 3).parameters())] == ["attention"]


def test_bad_input_is_refused():
    with pytest.raises(ConfigError, match="pooling 'avg'"):
        Pooling("avg", 3)
    with pytest.raises(ConfigError, match="input_size must be positive, got 0"):
        Pooling("max", 0)
    with pytest.raises(ShapeError, match=r"\(batch, steps, 3\).*got shape \(1, 2, 9\)"):
        Pooling("max", 3)(torch.zeros(1, 2, 9))
    with pytest.raises(ShapeError, match=r"at least one step, got shape \(1, 0, 3\)"):
        Pooling("max", 3)(torch.zeros(1, 0, 3))
