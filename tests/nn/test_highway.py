import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.highway import Highway


def test_is_the_equation_of_the_paper() -> None:
    torch.manual_seed(0)
    layers = Highway(4, num_layers=2).double()
    x = torch.randn(3, 5, 4, dtype=torch.float64)
    expected = x.numpy()
    for layer in layers.layers:
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        made = np.maximum(expected @ weight[:4].T + bias[:4], 0)
        gate = 1 / (1 + np.exp(-(expected @ weight[4:].T + bias[4:])))
        expected = gate * made + (1 - gate) * expected
    assert_close(layers(x).detach().numpy(), expected)


def test_a_new_layer_mostly_carries() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, 8)
    assert (Highway(8, num_layers=1)(x) - x).abs().mean() < 0.3 * x.abs().mean()


def test_gradients_match_finite_differences() -> None:
    torch.manual_seed(1)
    layers = Highway(3).double()
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layers, x)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="got 0 and 2"):
        Highway(0)
    with pytest.raises(ShapeError, match=r"size=3, got shape \(2, 4\)"):
        Highway(3)(torch.zeros(2, 4))
