"""Rows from their last real item to the first."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def reverse_rows(
    x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
) -> Float[Tensor, "B T D"]:
    """The items of each row from the last real one to the first; padding stays where it is.

    >>> reverse_rows(torch.tensor([[[1.0], [2.0], [0.0]]]), torch.tensor([2])).flatten().tolist()
    [2.0, 1.0, 0.0]
    """
    if lengths is None:
        return x.flip(1)
    steps = torch.arange(x.shape[1], device=x.device)
    places = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # (B, T)
    return x.gather(1, places[..., None].expand_as(x))
