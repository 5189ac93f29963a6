"""A tiny problem for the loop: a line through points, in batches of uneven size, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.training import LossOutput, TrainConfig, TrainResult, train
from seqloom.training.report import Silent

SIZES = (4, 1, 3, 2)  # rows of the batches of an epoch
WIDTH = 3


class CrashError(Exception):
    """What a run dies of in these tests."""


def line(seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, 1), nn.Dropout(dropout)).double()


class Points:
    """Squared error of a line; `memory` is carried from batch to batch and moves the targets.

    Args:
        sizes: Rows of each batch.
        crash_at: The number of the loss (from 1) that raises instead.
        bad_at: The number of the loss that is not finite.
        scores: What evaluations find, one after another; by default the error on other points.
        carries: Whether there is a memory.
    """

    metric = "error"
    higher_is_better = False

    def __init__(
        self,
        sizes: tuple[int, ...] = SIZES,
        *,
        crash_at: int | None = None,
        bad_at: int | None = None,
        scores: list[float] | None = None,
        validates: bool = True,
        carries: bool = False,
    ) -> None:
        rng = np.random.default_rng(0)
        self.sizes, self.edges = sizes, np.cumsum([0, *sizes])
        self.x = rng.normal(size=(sum(sizes), WIDTH))
        self.y = self.x @ [[1.0], [-2.0], [0.5]] + 0.1 * rng.normal(size=(sum(sizes), 1))
        self.crash_at, self.bad_at = crash_at, bad_at
        self.scores, self.validates, self.carries = scores, validates, carries
        self.losses = self.evaluations = 0
        self.memory: Tensor | None = None
        self.seen: list[Tensor] = []  # the first weight whenever an evaluation looked

    def num_batches(self, epoch: int) -> int:
        return len(self.sizes)

    def batches(self, epoch: int, start: int, *, rank: int, world_size: int) -> Iterator[Batch]:
        order = np.random.default_rng(epoch).permutation(len(self.sizes))
        for i in order[start:]:
            index = np.arange(self.edges[i], self.edges[i + 1])[rank::world_size]
            yield Batch(index, {}, {"x": self.x[index], "y": self.y[index]})

    def loss(self, model: nn.Module, batch: Batch) -> LossOutput:
        self.losses += 1
        if self.losses == self.crash_at:
            raise CrashError
        x, y = batch.values["x"], batch.values["y"]
        if self.memory is not None:
            y = y + 0.1 * self.memory
        predicted = model(x)
        if self.carries:
            self.memory = predicted.detach().sum()[None] / max(len(x), 1)
        total = (predicted - y).square().sum()
        if self.losses == self.bad_at:
            total = total * torch.nan
        return LossOutput(total, len(x))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert not model.training
        self.seen.append(next(model.parameters()).detach().clone())
        if not self.validates:
            return {}
        self.evaluations += 1
        if self.scores is not None:
            return {"error": self.scores[self.evaluations - 1]}
        x = torch.linspace(-1, 1, 5 * WIDTH, dtype=torch.float64).view(5, WIDTH)
        return {"error": float((model(x).sum(1) - x @ x.new_tensor([1, -2, 0.5])).square().mean())}

    def carry(self) -> Mapping[str, Tensor]:
        return {} if self.memory is None else {"memory": self.memory}

    def restore(self, carried: Mapping[str, Tensor]) -> None:
        self.memory = carried.get("memory")


def run(
    config: TrainConfig,
    objective: Points | None = None,
    out: Path | None = None,
    *,
    model: nn.Module | None = None,
    **options: Any,
) -> tuple[nn.Module, TrainResult]:
    model = line() if model is None else model
    result = train(model, objective or Points(), config, out, display=Silent(), **options)
    return model, result


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
