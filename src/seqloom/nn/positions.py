"""Where a word stands: sinusoids, learned vectors, rotations.

Attention by itself sees a set. Sinusoids and learned vectors are added to word vectors; a rotation
turns queries and keys, so that their product knows how far apart they are.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError

BASE = 10000.0  # of the wavelengths, in both papers


def rates(size: int, like: Tensor) -> Float[Tensor, " pairs"]:
    r"""The rates $10000^{-2i / D}$, one a pair of coordinates."""
    exact = torch.arange(0, size - 1, 2, device=like.device, dtype=torch.float64)
    return (BASE ** (-exact / size)).to(like.dtype)


def sinusoids(positions: Int[Tensor, "*B T"], size: int) -> Float[Tensor, "*B T D"]:
    r"""A vector a position that needs no training, in float64.

    $$PE(p, 2i) = \sin(p / 10000^{2i / D}), \quad PE(p, 2i + 1) = \cos(p / 10000^{2i / D})$$

    The vector of p + k is a fixed linear map of that of p, whatever p is.

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS, section 3.5.

    Args:
        positions: They count from 0.
        size: Width D of a vector; even.
    """
    if size < 2 or size % 2:
        raise ConfigError(f"size must be even and at least 2, got {size}")
    angles = positions.double()[..., None] * rates(size, positions.double())
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    r"""A vector a position, learned like those of words.

    $$PE(p) = W_{p \bmod P}$$

    Paper: Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", ICML, section 3.1;
    Devlin et al. (2019) for transformers.
    Differs from the papers: the table is a ring, so a stream has no end. Within any P positions the
    vectors differ.

    Args:
        num_positions: Vectors P of the table.
        size: Width D of a vector.
    """

    def __init__(self, num_positions: int, size: int) -> None:
        super().__init__()
        if num_positions < 1 or size < 1:
            raise ConfigError(
                f"num_positions and size must be positive, got {num_positions} and {size}"
            )
        self.num_positions, self.size = num_positions, size
        self.weight = nn.Parameter(torch.empty(num_positions, size))
        nn.init.normal_(self.weight, std=size**-0.5)

    def forward(self, positions: Int[Tensor, "*B T"]) -> Float[Tensor, "*B T D"]:
        """The vectors of `positions`, which count from 0."""
        return nn.functional.embedding(positions % self.num_positions, self.weight)


def rotate(
    x: Float[Tensor, "*B T K"], positions: Int[Tensor, "*P T"] | Float[Tensor, "*P T"]
) -> Float[Tensor, "*B T K"]:
    r"""Turn each pair of coordinates by an angle that grows with the position.

    $$(x_{2i}, x_{2i+1}) \mapsto (x_{2i} \cos a - x_{2i+1} \sin a, \;
    x_{2i} \sin a + x_{2i+1} \cos a), \quad a = p \, 10000^{-2i / K}$$

    The product of a query turned by p and a key turned by q depends on p - q alone.

    Paper: Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    arXiv:2104.09864, equation 34.

    Args:
        x: Queries or keys of heads of size K; of an odd one the last coordinate stays as it is.
        positions: Where each stands; broadcast against the axes of `x` before the last.
    """
    wide = torch.promote_types(x.dtype, torch.float32)  # a large angle needs its digits
    angles = positions.to(wide)[..., None] * rates(x.shape[-1], x.to(wide))
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)  # (*P, T, pairs)
    paired = 2 * cos.shape[-1]
    even, odd = x[..., 0:paired:2], x[..., 1:paired:2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
    return turned if paired == x.shape[-1] else torch.cat([turned, x[..., paired:]], dim=-1)
