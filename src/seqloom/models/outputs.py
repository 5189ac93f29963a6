"""What models return, by job, so that tasks never ask which architecture they hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor


class LMOutput(NamedTuple):
    """Of a language model: what its output layer reads at every step, and the state to go on from.

    A language model has an output layer under the name `output` (`seqloom.nn.softmax`), which makes
    a loss or log-probabilities of features; `forward` does not call it, so that whoever needs the
    probability of one word a step does not pay for those of all.

    Args:
        features: By row and step; on padding they mean nothing.
        state: What to hand in to go on after the last word of each row.
        activations: The outputs of the last layer before dropout, if the model has a use for their
            regularization.
    """

    features: Float[Tensor, "B T D"]
    state: Any  # a NamedTuple of tensors whose first axis is the batch
    activations: Float[Tensor, "B T H"] | None = None


class ScoreOutput(NamedTuple):
    """Of a classifier or a regressor: one score a class, or one number a target."""

    scores: Float[Tensor, "B C"]
