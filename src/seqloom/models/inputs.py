"""What every language model asks of its input."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from seqloom.errors import ShapeError


def check_lm_input(ids: Tensor, lengths: Tensor | None, state: Any) -> None:
    """Refuse ids that are no batch of sequences, and lengths or a state of other rows.

    Raises:
        ShapeError: Naming what must hold and the shape that came.
    """
    shape = tuple(ids.shape)
    if len(shape) != 2 or shape[1] < 1:
        raise ShapeError(f"ids must have shape (B, T) with T at least 1, got {shape}")
    if lengths is not None and tuple(lengths.shape) != shape[:1]:
        raise ShapeError(
            f"lengths must have shape {shape[:1]} for ids of shape {shape}, "
            f"got {tuple(lengths.shape)}"
        )
    for part in state or ():
        if part.shape[0] != shape[0]:
            raise ShapeError(
                f"the state must have {shape[0]} rows for ids of shape {shape}, "
                f"got {part.shape[0]}; start from initial_state({shape[0]})"
            )
