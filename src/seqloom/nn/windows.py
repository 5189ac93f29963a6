"""The vectors around each step, side by side: what a convolution multiplies."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def windows(x: Float[Tensor, "B T D"], width: int) -> Float[Tensor, "B T W"]:
    r"""$[x_{t-l}; \ldots; x_{t+r}]$ with $l = \lfloor (w-1)/2 \rfloor$, $r = \lfloor w/2 \rfloor$.

    Vectors before the first and after the last are 0.

    Args:
        x: The vectors; those on padding must be 0.
        width: How many of them w, the window being w times as wide as they.

    Examples:
        >>> windows(torch.tensor([[[1.0], [2.0], [3.0]]]), 3).tolist()
        [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 0.0]]]
    """
    if width == 1:
        return x
    T = x.shape[1]
    padded = functional.pad(x, (0, 0, (width - 1) // 2, width // 2))
    return torch.cat([padded[:, k : k + T] for k in range(width)], dim=-1)
