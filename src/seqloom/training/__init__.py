"""The one loop, optimizers, schedules, checkpoints and progress."""

from seqloom.training.config import OptimizerConfig, ScheduleConfig, TrainConfig
from seqloom.training.loop import STOP, train
from seqloom.training.objective import LossOutput, Objective
from seqloom.training.report import StepReport, TrainResult

__all__ = [
    "STOP",
    "LossOutput",
    "Objective",
    "OptimizerConfig",
    "ScheduleConfig",
    "StepReport",
    "TrainConfig",
    "TrainResult",
    "train",
]
