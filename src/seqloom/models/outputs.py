"""What models return, by job, so that tasks never ask which architecture they hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor


class LMOutput(NamedTuple):
    """Of a language model: scores of the next word at every step, and the state to go on from."""

    logits: Float[Tensor, "B T V"]
    state: Any  # a NamedTuple of tensors whose first axis is the batch


class ScoreOutput(NamedTuple):
    """Of a classifier or a regressor: one score a class, or one number a target."""

    scores: Float[Tensor, "B C"]
