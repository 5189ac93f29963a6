"""Settings of the training loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from seqloom.data.bucketing import BatchConfig
from seqloom.errors import ConfigError

OptimizerName = Literal["sgd", "momentum", "adagrad", "adadelta", "adam", "adamw", "lbfgs"]
ScheduleName = Literal["constant", "step", "cosine", "plateau", "noam"]
Averaging = Literal["none", "ema", "uniform", "triggered"]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """What moves the weights.

    Args:
        name: "sgd", "momentum" (0.9 unless `momentum` says otherwise), "adagrad", "adadelta",
            "adam", "adamw" (decay apart from the gradient), or "lbfgs" (for small convex problems
            given as one batch; it runs to convergence in one step).
        rate: The learning rate, before the schedule.
        momentum: Of "momentum".
        betas: Of "adam" and "adamw".
        weight_decay: Times a weight, added to its gradient; for "adamw" taken from the weight.
        decay_biases: Whether it goes for biases too, and for all other weights of one axis.
        iterations: Steps "lbfgs" makes in one update at most.
    """

    name: OptimizerName = "adam"
    rate: float = 1e-3
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    decay_biases: bool = True
    iterations: int = 2000

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ConfigError(f"optimizer.iterations must be at least 1, got {self.iterations}")
        if not 0 < self.rate < math.inf:
            raise ConfigError(f"optimizer.rate must be positive, got {self.rate}")
        if self.weight_decay < 0:
            raise ConfigError(
                f"optimizer.weight_decay must not be negative, got {self.weight_decay}"
            )
        if self.name == "lbfgs" and self.weight_decay:
            raise ConfigError(
                f"optimizer 'lbfgs' takes no weight_decay, got {self.weight_decay}; put the "
                "penalty into the loss"
            )
        if not 0 <= self.momentum < 1 or not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(
                "optimizer.momentum and betas must lie in [0, 1), got "
                f"{self.momentum} and {self.betas}"
            )


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    r"""How the learning rate changes; every schedule may begin with a linear warm-up.

    Args:
        name: "constant"; "step" (times `factor` every `every` epochs, after `after` of them);
            "cosine" (down to `floor` times the rate at the end); "plateau" (times `factor` when the
            metric has not improved for `patience` evaluations); "noam", that is
            $\min(t^{-1/2}, t w^{-3/2}) / w^{-1/2}$, which peaks at the rate after `warmup` = w
            steps (Vaswani et al. 2017, section 5.3, scaled so that the peak is 1).
        warmup: Steps over which the rate rises from 0.
        factor: Of "step" and "plateau".
        every: Epochs between two steps of "step".
        after: Epochs before the first of them; 0 takes `every`.
        patience: Evaluations without improvement before "plateau" acts.
        floor: The least share of the rate.
    """

    name: ScheduleName = "constant"
    warmup: int = 0
    factor: float = 0.5
    every: int = 1
    after: int = 0
    patience: int = 0
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.warmup < 0 or self.every < 1 or self.after < 0 or self.patience < 0:
            raise ConfigError(
                "schedule.warmup, after and patience must not be negative and every at least 1, "
                f"got {self.warmup}, {self.after}, {self.patience} and {self.every}"
            )
        if not 0 < self.factor <= 1 or not 0 <= self.floor <= 1:
            raise ConfigError(
                "schedule.factor must lie in (0, 1] and floor in [0, 1], "
                f"got {self.factor} and {self.floor}"
            )
        if self.name == "noam" and self.warmup < 1:
            raise ConfigError("schedule 'noam' needs warmup steps, got warmup=0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything the loop needs to know besides the model and its objective.

    Args:
        epochs: Passes over the training data.
        max_steps: Stop after so many updates, if given.
        max_seconds: Stop after so many seconds of training, resumed runs added up, with a last
            evaluation; if given. Schedules know nothing of it.
        batch: How batches are cut.
        optimizer: What moves the weights.
        schedule: How its rate changes.
        clip_norm: Scale gradients so that their norm is at most this.
        clip_value: Clip each gradient to [-value, value].
        accumulate: Batches whose gradients are added before an update.
        precision: "fp32", or "tf32" (on a card), "bf16" or "fp16" for the products; weights stay in
            fp32.
        averaging: Evaluate and keep averaged weights: "ema" (decay `average_decay`), "uniform"
            (the mean since epoch `average_from`: averaged SGD, Polyak and Juditsky 1992) or
            "triggered" (the mean since an evaluation was no better than the best of those more
            than `average_patience` before it: NT-ASGD, Merity et al. 2018).
        average_decay: Of "ema".
        average_from: Of "uniform", in epochs.
        average_patience: Of "triggered", in evaluations.
        evaluate_every: Updates between two evaluations; by default once an epoch.
        metric: Which metric decides; by default the objective's own. Of losses, errors and
            perplexities less is better, of all others more.
        patience: Stop after so many evaluations without improvement, if given.
        save_every: Updates between two checkpoints besides those at evaluations, if given.
        log_every: Updates between two lines of `metrics.jsonl`.
        seed: Of everything random.
        device: "auto", "cpu", "cuda", "cuda:1", ...
        tensorboard: Whether to write TensorBoard files too.
    """

    epochs: int = 10
    max_steps: int | None = None
    max_seconds: float | None = None
    batch: BatchConfig = field(default_factory=BatchConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    clip_norm: float | None = None
    clip_value: float | None = None
    accumulate: int = 1
    precision: Precision = "fp32"
    averaging: Averaging = "none"
    average_decay: float = 0.999
    average_from: int = 0
    average_patience: int = 5
    evaluate_every: int | None = None
    metric: str | None = None
    patience: int | None = None
    save_every: int | None = None
    log_every: int = 50
    seed: int = 0
    device: str = "auto"
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "accumulate", "log_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name} must be at least 1, got {getattr(self, name)}")
        for name in ("max_steps", "evaluate_every", "patience", "save_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"training.{name} must be at least 1, got {value}")
        for name in ("clip_norm", "clip_value", "max_seconds"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"training.{name} must be positive, got {value}")
        if not 0 < self.average_decay < 1:
            raise ConfigError(
                f"training.average_decay must lie in (0, 1), got {self.average_decay}"
            )
        if self.average_patience < 0:
            raise ConfigError(
                f"training.average_patience must not be negative, got {self.average_patience}"
            )
        if self.seed < 0:
            raise ConfigError(f"training.seed must not be negative, got {self.seed}")
        if self.optimizer.name == "lbfgs":
            for name in ("accumulate", "clip_norm", "clip_value", "precision"):
                value = getattr(self, name)
                if value not in (1, None, "fp32"):
                    raise ConfigError(
                        "optimizer 'lbfgs' takes one whole batch a step and its gradient as it "
                        f"is, got training.{name}={value!r}"
                    )

    @property
    def needs_validation(self) -> bool:
        """Whether a setting acts on what evaluations find."""
        return (
            self.patience is not None
            or self.schedule.name == "plateau"
            or self.averaging == "triggered"
        )
