"""What a causal layer keeps of the past, so that a text read in pieces reads as a whole."""

from __future__ import annotations

import torch
from jaxtyping import Int, Shaped
from torch import Tensor


def keep_last(
    items: Shaped[Tensor, "B S *D"], steps: int, lengths: Int[Tensor, " B"] | None
) -> Shaped[Tensor, "B P *D"]:
    """Return what lies before the end of each row, as many items as lay before its new ones.

    Args:
        items: The P items kept so far, then `steps` new ones.
        steps: How many are new.
        lengths: How many of the new ones are real; all if not given. A row of 0 keeps its items.
    """
    size = items.shape[1] - steps
    if lengths is None:
        return items[:, steps:]
    places = lengths[:, None] + torch.arange(size, device=items.device)  # (B, P)
    places = places.reshape(places.shape + (1,) * (items.ndim - 2))
    return items.gather(1, places.expand(-1, -1, *items.shape[2:]))
