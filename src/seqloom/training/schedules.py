"""Learning-rate schedules: a pure function of the step, but for the plateau, which watches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqloom.training.config import ScheduleConfig


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Args:
        step: Updates made.
        epoch: Epochs finished.
        share: Share of the whole run that is done, in [0, 1].
    """

    step: int
    epoch: int
    share: float


class Schedule:
    """The factor on the learning rate.

    Args:
        config: Which schedule, and its numbers.
    """

    def __init__(self, config: ScheduleConfig) -> None:
        self.config = config
        self.reductions = 0  # of the plateau
        self.waited = 0  # evaluations without improvement since the last of them

    def factor(self, progress: Progress) -> float:
        """The factor for the update that comes next."""
        config, step = self.config, progress.step + 1
        if config.name == "noam":
            peak = config.warmup**-0.5
            return float(min(step**-0.5, step * config.warmup**-1.5) / peak)
        warm = min(1.0, step / config.warmup) if config.warmup else 1.0
        if config.name == "step":
            late = progress.epoch - (config.after or config.every)  # epochs since the first step
            steps = 0 if late < 0 else late // config.every + 1
            return warm * max(config.floor, config.factor**steps)
        if config.name == "cosine":
            wave = (1 + math.cos(math.pi * min(1.0, progress.share))) / 2
            return warm * (config.floor + (1 - config.floor) * wave)
        if config.name == "plateau":
            return warm * max(config.floor, config.factor**self.reductions)
        return warm

    def observe(self, *, improved: bool) -> None:
        """Tell the plateau whether an evaluation improved on the best so far."""
        self.waited = 0 if improved else self.waited + 1
        if self.waited > self.config.patience:
            self.reductions += 1
            self.waited = 0

    def state(self) -> dict[str, int]:
        """What a checkpoint must keep."""
        return {"reductions": self.reductions, "waited": self.waited}

    def restore(self, state: dict[str, int]) -> None:
        """Go on from a checkpoint."""
        self.reductions, self.waited = state["reductions"], state["waited"]
