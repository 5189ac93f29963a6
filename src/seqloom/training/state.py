"""The state of a run: everything a checkpoint must keep, packed and unpacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.config import differences, to_dict
from seqloom.errors import ConfigError
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

COUNTERS = ("step", "epoch", "batch", "best", "best_step", "stale", "seconds", "ended")
LATER = {"content"}  # facts that runs of earlier versions did not note


class RunState:
    """What changes while a model trains.

    Attributes:
        step: Updates made.
        epoch: Epochs finished.
        batch: Batches of the present epoch that are done.
        best: The metrics of the best weights so far, reached at update `best_step`.
        stale: Evaluations since then.
        seconds: Wall time of earlier parts of a resumed run.
        ended: Why the run is over, or "".
        running: Loss and items of all processes since the last report, on the device so that no
            update waits.
    """

    def __init__(
        self, model: nn.Module, config: TrainConfig, facts: Mapping[str, Any], runtime: Runtime
    ) -> None:
        self.config, self.runtime = config, runtime
        self.settings = {"training": to_dict(config), **facts, "processes": runtime.world_size}
        self.model = model.to(runtime.device)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.schedule = Schedule(config.schedule)
        self.average = WeightAverage(
            self.model, config.averaging, config.average_decay, config.average_patience
        )
        self.step = self.epoch = self.batch = self.best_step = self.stale = 0
        self.best: dict[str, float] = {}
        self.seconds = 0.0
        self.ended = ""
        self.running = torch.zeros(2, dtype=torch.float64, device=runtime.device)

    def progress(self, batches: int) -> Progress:
        """Where the run stands, in an epoch of so many batches."""
        share = (self.epoch + self.batch / max(1, batches)) / self.config.epochs
        if self.config.max_steps is not None:
            share = max(share, self.step / self.config.max_steps)
        return Progress(self.step, self.epoch, min(1.0, share))

    def pack(self, objective: Objective, **values: Any) -> Checkpoint:
        """Return everything as a checkpoint, with some more plain values; all processes ask."""
        optimizer, settings = pack_optimizer(self.optimizer)
        carried = self.runtime.gather(objective.carry())
        chances = self.runtime.gather(random_state())
        tensors: dict[str, dict[str, Tensor]] = {
            "model": self.model.state_dict(),
            "optimizer": optimizer,
            "average": self.average.mean,
            "running": {"sum": self.running},
            **{f"carry{rank}": each for rank, each in enumerate(carried)},
            **{f"rng{rank}": each for rank, each in enumerate(chances)},
        }
        counters = {name: getattr(self, name) for name in COUNTERS}
        kept = {
            "settings": self.settings,
            "optimizer": settings,
            "schedule": self.schedule.state(),
            "scaler": self.runtime.scaler.state_dict(),
            "average_updates": self.average.updates,
            "average_seen": self.average.seen,
            "average_triggered": self.average.triggered,
        }
        return Checkpoint(tensors, counters | kept | values)

    def unpack(self, checkpoint: Checkpoint, objective: Objective) -> None:
        """Go on from a checkpoint of a run with the same settings.

        Raises:
            ConfigError: If a setting is another one now.
            KeyError, RuntimeError: If it is no checkpoint of a run, or of another model.
        """
        values, tensors, rank = checkpoint.values, checkpoint.tensors, self.runtime.rank
        began = values["settings"]
        unknown = {name: self.settings[name] for name in LATER & self.settings.keys()}
        changed = list(differences(unknown | began, self.settings))
        if changed:
            raise ConfigError(
                f"a run resumes with the settings it began with, but {'; '.join(changed)}"
            )
        self.model.load_state_dict(dict(tensors["model"]))
        if tensors.get("optimizer"):
            unpack_optimizer(self.optimizer, tensors["optimizer"], values["optimizer"])
        device = self.runtime.device
        self.average.mean = {k: v.to(device) for k, v in tensors.get("average", {}).items()}
        self.average.updates = values["average_updates"]
        self.average.seen = list(values["average_seen"])
        self.average.triggered = values["average_triggered"]
        carried = tensors.get(f"carry{rank}", {})
        objective.restore({k: v.to(device) for k, v in carried.items()})
        restore_random_state(tensors[f"rng{rank}"])
        self.running.copy_(tensors["running"]["sum"])
        self.schedule.restore(values["schedule"])
        self.runtime.scaler.load_state_dict(values["scaler"])
        for name in COUNTERS:
            setattr(self, name, values[name])
