"""Highway layers: each unit is transformed, or carried on as it is."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError

CARRY_BIAS = -2.0  # a new layer mostly carries (Srivastava et al., section 2.2)


class Highway(nn.Module):
    r"""Layers that mix what they make of their input with the input itself.

    $$t = \sigma(W_T x + b_T), \quad y = t \odot \max(0, W_H x + b_H) + (1 - t) \odot x$$

    Paper: Srivastava, Greff and Schmidhuber (2015), "Highway Networks", arXiv:1505.00387,
    equation 3; Kim et al. (2016), "Character-Aware Neural Language Models", AAAI, section 3.3, for
    the rectifier.
    Parameters: of each layer, W_H above W_T in weight (2D, D), b_H above b_T in bias.

    Args:
        size: Width D of the inputs and of the outputs.
        num_layers: Layers stacked.

    Examples:
        >>> Highway(6, num_layers=2)(torch.zeros(3, 5, 6)).shape
        torch.Size([3, 5, 6])
    """

    def __init__(self, size: int, *, num_layers: int = 2) -> None:
        super().__init__()
        if min(size, num_layers) < 1:
            raise ConfigError(f"size and num_layers must be positive, got {size} and {num_layers}")
        self.size = size
        self.layers = nn.ModuleList(nn.Linear(size, 2 * size) for _ in range(num_layers))
        with torch.no_grad():
            for layer in self.layers:
                layer.bias[size:].fill_(CARRY_BIAS)  # type: ignore[index]

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """The outputs of the last layer."""
        if x.shape[-1] != self.size:
            raise ShapeError(f"x must end in size={self.size}, got shape {tuple(x.shape)}")
        for layer in self.layers:
            made, gate = layer(x).chunk(2, dim=-1)  # (..., D) each
            x = torch.lerp(x, torch.relu(made).to(x.dtype), torch.sigmoid(gate).to(x.dtype))
        return x
