"""The gated causal convolution against a visible loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.convolution import GatedConvolution

B, T, D, H, K = 3, 6, 4, 5, 3


@pytest.fixture(params=[False, True], ids=["plain", "normed"])
def layer(request) -> GatedConvolution:
    torch.manual_seed(0)
    return GatedConvolution(D, H, K, weight_norm=request.param).double()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(B, T, D, dtype=torch.float64)


def test_it_is_equation_1_of_its_paper(layer, x):
    weight, bias = layer.conv.weight.detach().numpy(), layer.conv.bias.detach().numpy()
    found = layer(x).outputs
    for b in range(B):
        for t in range(T):
            total = bias.copy()
            for k in range(K):
                if t - K + 1 + k >= 0:
                    total += weight[:, :, k] @ x[b, t - K + 1 + k].numpy()
            expected = total[:H] / (1 + np.exp(-total[H:]))
            np.testing.assert_allclose(found[b, t].detach(), expected, atol=1e-12)


def test_pieces_and_padding_change_nothing(layer, x):
    whole, past = layer(x), None
    assert_close(whole.past, x[:, -2:])
    found = []
    for piece in x.split([1, 2, 3], dim=1):
        outputs, past = layer(piece, None, past)
        found.append(outputs)
    assert_close(torch.cat(found, dim=1), whole.outputs)
    lengths = [6, 0, 1]
    padded = layer(x, torch.tensor(lengths), x.flip(1)[:, :2])
    for b, n in enumerate(lengths):
        before = torch.cat([x.flip(1)[b, :2], x[b, :n]])
        assert_close(padded.past[b], before[-2:])


def test_weight_norm_begins_with_the_same_weights_and_learns_lengths_apart():
    torch.manual_seed(3)
    plain = GatedConvolution(D, H, K)
    torch.manual_seed(3)
    normed = GatedConvolution(D, H, K, weight_norm=True)
    assert_close(normed.conv.weight, plain.conv.weight)
    length, direction = normed.conv.parametrizations.weight.parameters()
    assert_close(length.flatten(), plain.conv.weight.flatten(1).norm(dim=1))
    with torch.no_grad():
        direction.mul_(7)
    assert_close(normed.conv.weight, plain.conv.weight)


def test_gradients_match_finite_differences(layer, x):
    assert torch.autograd.gradcheck(lambda x: layer(x[:1])[0], x.requires_grad_())
    layer(x).outputs.sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in layer.parameters())


def test_impossible_layers_and_inputs_are_refused():
    with pytest.raises(ConfigError, match=r"positive, got \(4, 5, 0\)"):
        GatedConvolution(4, 5, 0)
    with pytest.raises(ShapeError, match=r"\(batch, steps, 4\), got shape \(1, 2, 3\)"):
        GatedConvolution(4, 5, 2)(torch.zeros(1, 2, 3))


def test_it_equals_torchs_convolution_of_a_padded_input(x):
    layer = GatedConvolution(D, H, 1).double()
    theirs = nn.Conv1d(D, 2 * H, 1).double()
    layer.conv.load_state_dict(theirs.state_dict())
    assert_close(layer(x).outputs, nn.functional.glu(theirs(x.mT), dim=1).mT)
