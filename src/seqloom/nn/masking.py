"""Lengths to masks and back: the one converter each way."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def lengths_to_mask(lengths: Int[Tensor, " B"], steps: int) -> Bool[Tensor, "B T"]:
    """True where there is a real item."""
    return torch.arange(steps, device=lengths.device) < lengths[:, None]


def mask_to_lengths(mask: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
    """How many items are real, when they come first."""
    return mask.sum(dim=1)


def are_whole(lengths: Int[Tensor, " B"] | None, steps: int) -> bool:
    """Whether lengths are given and no row is padded.

    While a model is compiled or exported, lengths have no values yet and the answer is no.
    """
    if lengths is None or torch.compiler.is_compiling():
        return False
    return bool((lengths == steps).all())
