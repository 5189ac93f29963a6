"""What the loop needs of a task: batches, a summed loss with its count, an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from seqloom.data.batches import Batch

ERRORS = ("loss", "perplexity", "error", "mae", "mase", "width")
"""Parts of the names of metrics of which less is better."""


class LossOutput(NamedTuple):
    """A loss summed over items, and how many they are; so uneven batches average right.

    `pace` times the learning rate is the rate of the update; of several batches added up, their
    mean.
    """

    total: Tensor
    items: int | float
    pace: float = 1.0


class Objective(Protocol):
    """One task's side of training; built by an estimator, called by the loop."""

    metric: str
    """The name of the metric that decides which weights are best."""

    higher_is_better: bool
    """Whether more of it is better; of other metrics their names say it (`is_more_better`)."""

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        ...

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on; a process gets its share of each."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> LossOutput:
        """The loss of a batch of tensors on the model's device."""
        ...

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics on the validation data; empty if there is none."""
        ...

    def carry(self) -> Mapping[str, Tensor]:
        """What is carried from batch to batch (the state of a language model), for a checkpoint."""
        ...

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Go on with what a checkpoint carried."""
        ...


def is_more_better(objective: Objective, metric: str) -> bool:
    """Whether more of a metric is better: of its own an objective knows, of others by the name.

    Examples:
        >>> class Perplexity:
        ...     metric, higher_is_better = "perplexity", False
        >>> [is_more_better(Perplexity(), name) for name in ("accuracy", "error_rate")]
        [True, False]
    """
    if metric == objective.metric:
        return objective.higher_is_better
    return not any(part in metric for part in ERRORS)
