"""What classifiers and regressors are trained for: a loss of scores and targets, with a penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.data.bucketing import BatchConfig, Bucketing
from seqloom.data.features import Features
from seqloom.nn.bag import Bag

EVALUATION_ROWS = 4096

Loss = Callable[[Tensor, Tensor], Tensor]
"""Scores (B, C) and targets to the summed loss."""


class Examples(NamedTuple):
    """Features, and what is to be predicted from them: classes (N,) or numbers (N, C)."""

    features: Features
    targets: NDArray[Any]


@dataclass(frozen=True)
class Goal:
    """What decides how good scores are.

    Args:
        loss: The summed loss of scores.
        penalty: What the weights of the whole training cost, if anything.
        metrics: Further metrics of scores and targets.
    """

    loss: Loss
    penalty: Callable[[Tensor], Tensor] | None
    metrics: Callable[[NDArray[Any], NDArray[Any]], dict[str, float]]

    def measure(self, model: nn.Module, examples: Examples) -> dict[str, float]:
        """Return mean loss and metrics of a model on examples."""
        scores, targets = all_scores(model, examples.features), examples.targets
        total = self.loss(torch.from_numpy(scores), torch.from_numpy(targets))
        return {"loss": float(total) / len(targets), **self.metrics(scores, targets)}


def model_input(batch: Batch) -> Tensor | Bag:
    """Return the features of a batch of tensors as models take them."""
    values = batch.values
    if "x" in values:
        x: Tensor = values["x"]
        return x
    return Bag(values["ids"], values["weights"], values["starts"])


@torch.no_grad()
def all_scores(model: nn.Module, features: Features) -> NDArray[np.float64]:
    """Return the scores of all examples, (N, C), some thousand at a time."""
    device = next(model.parameters()).device
    found = []
    for begin in range(0, len(features), EVALUATION_ROWS):
        index = np.arange(begin, min(begin + EVALUATION_ROWS, len(features)))
        batch = Batch(index, {}, features.arrays(index)).tensors(device)
        found.append(model(model_input(batch)).scores.double().cpu().numpy())
    return np.concatenate(found)


class SupervisedObjective:
    """Features in, the loss of the scores out, plus a penalty on the weights.

    The penalty belongs to the sum of all losses, so a batch carries its share of it.

    Args:
        train: The training examples.
        valid: The validation examples, if there are any.
        goal: What is minimized and what is measured.
        batches: How batches are cut; None makes one of all examples.
        before_epoch: What is done before each epoch but the first.
    """

    metric = "loss"
    higher_is_better = False

    def __init__(
        self,
        train: Examples,
        valid: Examples | None,
        goal: Goal,
        batches: BatchConfig | None,
        before_epoch: Callable[[], None] | None = None,
    ) -> None:
        self.train, self.valid, self.goal = train, valid, goal
        self.before_epoch = before_epoch
        size = len(train.features)
        whole = BatchConfig(batch_size=size, shuffle=False)
        self.plan = Bucketing(_OneItemEach(size), batches or whole)

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return self.plan.num_batches(epoch)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        """The batches from number `start` on; bags lie in them end to end, without padding."""
        if epoch and not start and self.before_epoch is not None:
            self.before_epoch()
        for whole in self.plan.indices(epoch, start):
            index = whole[rank::world_size]
            arrays = self.train.features.arrays(index)
            yield Batch(index, {}, {**arrays, "target": self.train.targets[index]})

    def loss(self, model: nn.Module, batch: Batch) -> Any:
        """The loss of a batch, with its share of the penalty."""
        from seqloom.training import LossOutput

        total = self.goal.loss(model(model_input(batch)).scores, batch.values["target"])
        if self.goal.penalty is not None:
            share = len(batch) / len(self.train.features)
            weight: Any = model.original_weight()  # type: ignore[operator]
            total = total + share * self.goal.penalty(weight)
        return LossOutput(total, len(batch))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Mean loss and metrics of the validation examples."""
        return {} if self.valid is None else self.goal.measure(model, self.valid)

    def carry(self) -> Mapping[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        """Nothing was carried."""


class _OneItemEach:
    """Examples without padding are all of one length to the bucketing."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        return np.ones((len(np.asarray(index)), 1), np.int64)
