"""Optimizers and averages of weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.training.config import Averaging, OptimizerConfig


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return the optimizer for the weights of a model that are to be trained."""
    weights: Any = [weight for weight in model.parameters() if weight.requires_grad]
    rate, decay = config.rate, config.weight_decay
    if decay and not config.decay_biases:
        weights = [
            {"params": [weight for weight in weights if weight.ndim > 1]},
            {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
        ]
    match config.name:
        case "sgd":
            return torch.optim.SGD(weights, lr=rate, weight_decay=decay)
        case "momentum":
            return torch.optim.SGD(weights, lr=rate, momentum=config.momentum, weight_decay=decay)
        case "adagrad":
            return torch.optim.Adagrad(weights, lr=rate, weight_decay=decay)
        case "adadelta":
            return torch.optim.Adadelta(weights, lr=rate, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(weights, lr=rate, betas=config.betas, weight_decay=decay)
        case "adamw":
            return torch.optim.AdamW(weights, lr=rate, betas=config.betas, weight_decay=decay)
        case "lbfgs":
            return torch.optim.LBFGS(
                weights,
                lr=rate,
                max_iter=config.iterations,
                tolerance_grad=1e-10,
                tolerance_change=1e-14,
                history_size=20,
                line_search_fn="strong_wolfe",
            )


class WeightAverage:
    r"""An average of the weights over the updates, used for evaluation and kept at the end.

    "ema": $\bar w \leftarrow d \bar w + (1 - d) w$. "uniform": the mean of the weights after every
    update since it began (Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by
    Averaging"). "triggered": the same since the metric first was no better than it had been more
    than n evaluations before; until then the weights as they are (NT-ASGD: Merity et al. 2018,
    "Regularizing and Optimizing LSTM Language Models", section 3, algorithm 1).

    Args:
        model: Whose weights.
        kind: "none", "ema", "uniform" or "triggered".
        decay: d of "ema".
        patience: n of "triggered".
    """

    def __init__(self, model: nn.Module, kind: Averaging, decay: float, patience: int = 5) -> None:
        self.model, self.kind, self.decay, self.patience = model, kind, decay, patience
        self.updates = 0
        self.mean: dict[str, Tensor] = {}
        self.seen: list[float] = []
        self.triggered = False

    def observe(self, value: float) -> None:
        """Take in what an evaluation found, less being better; it may trigger the averaging."""
        if self.kind != "triggered" or self.triggered:
            return
        earlier = self.seen[: max(0, len(self.seen) - self.patience)]
        self.triggered = bool(earlier) and value > min(earlier)
        self.seen.append(value)

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are after an update."""
        if self.kind == "none" or (self.kind == "triggered" and not self.triggered):
            return
        self.updates += 1
        for name, weight in self.model.named_parameters():
            if name not in self.mean:
                self.mean[name] = weight.detach().clone()
                continue
            share = 1 - self.decay if self.kind == "ema" else 1 / self.updates
            self.mean[name].lerp_(weight, share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the averaged weights in place for the time of the block."""
        if not self.mean:
            yield
            return
        own = {name: weight.detach().clone() for name, weight in self.model.named_parameters()}
        self._copy(self.mean)
        try:
            yield
        finally:
            self._copy(own)

    def keep(self) -> None:
        """Put the averaged weights in place for good."""
        self._copy(self.mean)

    @torch.no_grad()
    def _copy(self, weights: dict[str, Tensor]) -> None:
        for name, weight in self.model.named_parameters():
            weight.copy_(weights[name])
