"""The state of a run: everything a checkpoint must keep, packed and unpacked."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqloom.config import to_dict
from seqloom.errors import ConfigError, DataError
from seqloom.training.checkpoint import (
    Checkpoint,
    pack_optimizer,
    random_state,
    restore_random_state,
    unpack_optimizer,
)
from seqloom.training.config import TrainConfig
from seqloom.training.objective import Objective
from seqloom.training.optimizers import WeightAverage, make_optimizer
from seqloom.training.runtime import Runtime
from seqloom.training.schedules import Progress, Schedule

COUNTERS = ("step", "epoch", "batch", "best", "best_step", "stale", "seconds")


class RunState:
    """What changes while a model trains.

    Attributes:
        step: Updates made.
        epoch: Epochs finished.
        batch: Batches of the present epoch that are done.
        best: The metrics of the best weights so far, reached at update `best_step`.
        stale: Evaluations since then.
        seconds: Wall time of earlier parts of a resumed run.
        running: Loss and items since the last report, on the device so that no update waits.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, runtime: Runtime) -> None:
        self.config, self.runtime = config, runtime
        self.model = model.to(runtime.device)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.schedule = Schedule(config.schedule)
        self.average = WeightAverage(self.model, config.averaging, config.average_decay)
        self.step = self.epoch = self.batch = self.best_step = self.stale = 0
        self.best: dict[str, float] = {}
        self.seconds = 0.0
        self.running = torch.zeros(2, dtype=torch.float64, device=runtime.device)

    def progress(self, batches: int) -> Progress:
        """Where the run stands, in an epoch of so many batches."""
        share = (self.epoch + self.batch / max(1, batches)) / self.config.epochs
        if self.config.max_steps is not None:
            share = max(share, self.step / self.config.max_steps)
        return Progress(self.step, self.epoch, min(1.0, share))

    def pack(self, objective: Objective, **values: Any) -> Checkpoint:
        """Return everything as a checkpoint, with some more plain values."""
        optimizer, settings = pack_optimizer(self.optimizer)
        tensors: dict[str, dict[str, Tensor]] = {
            "model": self.model.state_dict(),
            "optimizer": optimizer,
            "average": self.average.mean,
            "carry": dict(objective.carry()),
            "rng": random_state(),
            "running": {"sum": self.running},
        }
        counters = {name: getattr(self, name) for name in COUNTERS}
        kept = {
            "config": to_dict(self.config),
            "optimizer": settings,
            "schedule": self.schedule.state(),
            "scaler": self.runtime.scaler.state_dict(),
            "average_updates": self.average.updates,
        }
        return Checkpoint(tensors, counters | kept | values)

    def unpack(self, checkpoint: Checkpoint, objective: Objective) -> None:
        """Go on from a checkpoint of a run with the same settings."""
        values, tensors = checkpoint.values, checkpoint.tensors
        settings = to_dict(self.config)
        if values["config"] != settings:
            changed = [name for name in settings if values["config"].get(name) != settings[name]]
            raise ConfigError(
                "a run resumes with the settings it began with, but training."
                f"{', training.'.join(changed)} differ"
            )
        try:
            self.model.load_state_dict(dict(tensors["model"]))
        except RuntimeError as error:
            raise DataError(f"the checkpoint does not fit this model ({error})") from None
        if tensors.get("optimizer"):
            unpack_optimizer(self.optimizer, tensors["optimizer"], values["optimizer"])
        device = self.runtime.device
        self.average.mean = {k: v.to(device) for k, v in tensors.get("average", {}).items()}
        self.average.updates = values["average_updates"]
        objective.restore({k: v.to(device) for k, v in tensors.get("carry", {}).items()})
        restore_random_state(tensors["rng"])
        self.running.copy_(tensors["running"]["sum"])
        self.schedule.restore(values["schedule"])
        self.runtime.scaler.load_state_dict(values["scaler"])
        for name in COUNTERS:
            setattr(self, name, values[name])
