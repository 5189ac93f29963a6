"""A weighted mean of layers, with weights that are learned."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError
from seqloom.nn.masking import lengths_to_mask

EPSILON = 1e-12


class ScalarMix(nn.Module):
    r"""Layers of a network as one, as a task needs them.

    $$y_t = \gamma \sum_{l=0}^{L-1} s_l\, N(h_{t,l}), \quad s = \mathrm{softmax}(w)$$

    N is a layer normalization over all real words and coordinates of a row, if it is wanted, else
    nothing; so padding and other rows never change a result.

    Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL, equation 1 and
    section 3.2.
    Differs from the paper: statistics are those of a row, theirs those of a batch.
    Parameters: w = weights, all 0 at first; gamma = scale, 1 at first.

    Args:
        num_layers: Layers L.
        layer_norm: Whether layers are normalized before they are mixed.
        dropout: Share of the coordinates of the mix dropped.

    Examples:
        >>> mix = ScalarMix(3)
        >>> mix(torch.ones(1, 3, 2, 4))[0, 0].tolist()
        [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, num_layers: int, *, layer_norm: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        if num_layers < 1:
            raise ConfigError(f"num_layers must be positive, got {num_layers}")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {dropout}")
        self.layer_norm, self.dropout = layer_norm, dropout
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(
        self, layers: Float[Tensor, "B L T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """The mix; 0 on padding.

        Args:
            layers: The layers.
            lengths: How many words of each row are real; all if not given.
        """
        if layers.ndim != 4 or layers.shape[1] != len(self.weights):
            raise ShapeError(
                f"layers must be (B, {len(self.weights)}, T, D), got {tuple(layers.shape)}"
            )
        real = None
        if lengths is not None:
            real = lengths_to_mask(lengths, layers.shape[2])[:, None, :, None]  # (B, 1, T, 1)
            layers = layers.masked_fill(~real, 0.0)
        if self.layer_norm:
            layers = _normalized(layers, real)
        shares = torch.softmax(self.weights, dim=0)
        mixed = self.scale * torch.einsum("l,bltd->btd", shares.to(layers.dtype), layers)
        return functional.dropout(mixed, self.dropout, self.training)

    @torch.no_grad()
    def shares(self) -> list[float]:
        """How much each layer counts; they sum to 1."""
        found: list[float] = torch.softmax(self.weights.double(), dim=0).tolist()
        return found


def _normalized(layers: Tensor, real: Tensor | None) -> Tensor:
    """Each layer of each row with mean 0 and variance 1 over its real words."""
    ones = torch.ones_like(layers[..., :1]) if real is None else real.to(layers.dtype)
    count = ones.expand(-1, layers.shape[1], -1, -1).sum(dim=(2, 3), keepdim=True)
    count = (count * layers.shape[3]).clamp(min=1)
    mean = layers.sum(dim=(2, 3), keepdim=True) / count
    centred = (layers - mean) * ones
    variance = centred.square().sum(dim=(2, 3), keepdim=True) / count
    return centred / (variance + EPSILON).sqrt()
