"""The product formula equals autograd, and stays below its bound."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.functional import jacobian

from seqloom.errors import ConfigError
from seqloom.explain.products import state_products
from seqloom.nn.recurrent import Recurrent

B, T, D, H = 2, 9, 3, 4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_it_equals_autograd():
    layer = Recurrent("rnn", D, H).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    found = state_products(layer, x)
    for k in range(1, T + 1):
        for b in range(B):
            row = x[b : b + 1]
            begin = layer.initial_states(1) if k == T else layer(row[:, : T - k]).states
            rest = row[:, T - k :]

            def last(h, rest=rest):
                return layer(rest, None, [h[None, None]]).outputs[0, -1]

            expected = jacobian(last, begin[0].detach()[0, 0])
            torch.testing.assert_close(found.matrices[k - 1, b], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scale", [0.5, 4.0], ids=["vanishing", "exploding"])
def test_the_bound_holds(scale):
    layer = Recurrent("rnn", D, H).double()
    with torch.no_grad():
        layer.weight_hh_l0.mul_(scale)
    found = state_products(layer, torch.randn(B, 50, D, dtype=torch.float64))
    largest = torch.linalg.svdvals(found.matrices)[..., 0]
    torch.testing.assert_close(found.largest, largest)
    assert (largest <= found.bound[:, None] * (1 + 1e-12)).all()


def test_one_unit_by_hand():
    """At h = 0 the slope is 1: k steps of weight 0.5 leave 0.5 to the k, the bound as well."""
    layer = Recurrent("rnn", 1, 1, bias=False).double()
    with torch.no_grad():
        layer.weight_hh_l0.fill_(0.5)
    found = state_products(layer, torch.zeros(1, 6, 1, dtype=torch.float64))
    expected = torch.tensor([0.5**k for k in range(1, 7)], dtype=torch.float64)
    torch.testing.assert_close(found.matrices.flatten(), expected)
    torch.testing.assert_close(found.bound, expected)


def test_other_layers_are_refused():
    x = torch.zeros(1, 2, D)
    with pytest.raises(ConfigError, match="got LSTM"):
        state_products(Recurrent("lstm", D, H), x)
    for options in ({"num_layers": 2}, {"bidirectional": True}, {"clip": 1.0}, {"zoneout": 0.1}):
        with pytest.raises(ConfigError, match=f"with {next(iter(options))}"):
            state_products(Recurrent("rnn", D, H, **options), x)
