"""Convolutions over time that never look ahead."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm as normalize_weight

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.past import keep_last


class ConvolutionOutput(NamedTuple):
    """What a causal convolution gives: its outputs, and the inputs the next ones need."""

    outputs: Float[Tensor, "B T H"]
    past: Float[Tensor, "B P D"]


class GatedConvolution(nn.Module):
    r"""A causal convolution whose output is gated by another one.

    $$h_t = \Big(\sum_{k=0}^{K-1} W_k x_{t-K+1+k} + b\Big) \odot
    \sigma\Big(\sum_{k=0}^{K-1} V_k x_{t-K+1+k} + c\Big)$$

    Paper: Dauphin et al. (2017), "Language Modeling with Gated Convolutional Networks", ICML,
    equation 1; Salimans and Kingma (2016), "Weight Normalization", NeurIPS, for `weight_norm`.
    Parameters: W and V stacked in conv.weight (2H, D, K), b and c in conv.bias; with `weight_norm`
    the weight is $g \, v / |v|$, a g each output, with both under conv.parametrizations.

    Args:
        input_size: Width D of the inputs.
        output_size: Width H of the outputs.
        kernel_size: Inputs K that an output sees, the last being its own.
        weight_norm: Whether length and direction of the weights are learned apart.
    """

    def __init__(
        self, input_size: int, output_size: int, kernel_size: int, *, weight_norm: bool = False
    ) -> None:
        super().__init__()
        sizes = (input_size, output_size, kernel_size)
        if min(sizes) < 1:
            raise ConfigError(
                f"input_size, output_size and kernel_size must be positive, got {sizes}"
            )
        self.input_size, self.output_size, self.kernel_size = sizes
        self.conv = nn.Conv1d(input_size, 2 * output_size, kernel_size)
        if weight_norm:
            normalize_weight(self.conv)

    def initial_past(self, batch_size: int) -> Float[Tensor, "B P D"]:
        """Zeros: what lies before the beginning."""
        shape = (batch_size, self.kernel_size - 1, self.input_size)
        return self.conv.weight.new_zeros(shape)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        lengths: Int[Tensor, " B"] | None = None,
        past: Float[Tensor, "B P D"] | None = None,
    ) -> ConvolutionOutput:
        """Run over sequences; in pieces, each with the `past` of the one before, as in one go.

        Args:
            x: The inputs.
            lengths: How many steps of each row are real; all if not given.
            past: The last K - 1 inputs before these; zeros if not given.
        """
        B, T, _ = x.shape
        if x.shape[-1] != self.input_size:
            raise ShapeError(
                f"x must be (batch, steps, {self.input_size}), got shape {tuple(x.shape)}"
            )
        past = self.initial_past(B) if past is None else past
        whole = torch.cat([past.to(x.dtype), x], dim=1)  # (B, P + T, D)
        outputs = functional.glu(self.conv(whole.mT), dim=1).mT  # (B, T, H)
        return ConvolutionOutput(outputs, keep_last(whole, T, lengths))
