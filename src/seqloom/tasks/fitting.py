"""What fitting has in common, whatever is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import nn

from seqloom.config import to_dict
from seqloom.errors import ConfigError, SeqloomError
from seqloom.tasks.content import content_digest
from seqloom.tasks.directory import (
    TRAINING,
    discard_unbegun,
    prepare_place,
    provenance,
    reopen,
)
from seqloom.tasks.supervised_objective import Examples, Goal, SupervisedObjective

if TYPE_CHECKING:
    from seqloom.tasks.estimator import Estimator
    from seqloom.training import Objective, StepReport, TrainConfig

Callbacks = Sequence[Callable[["StepReport"], object]]


@contextmanager
def _training_place(
    out: str | PathLike[str] | None, *, resume: bool, is_main: bool
) -> Iterator[Path | None]:
    """A directory to train into; one that nothing came of is removed."""
    place = None if out is None else Path(out)
    if place is not None and is_main:
        prepare_place(place, resume=resume)
    try:
        yield place
    except SeqloomError:
        if place is not None and is_main:
            discard_unbegun(place)
        raise


@dataclass(frozen=True)
class RunSettings:
    """What a run of the loop needs besides a model and its examples.

    Args:
        training: The settings of the loop.
        place: The model directory it runs in, if there is one.
        resume: Whether to go on with an interrupted run there.
        callbacks: Told how it goes.
        facts: What must be the same when it resumes.
    """

    training: TrainConfig
    place: Path | None
    resume: bool
    callbacks: Callbacks
    facts: Mapping[str, Any] = field(default_factory=dict)

    def about(self, **facts: Any) -> RunSettings:
        """The same with what must be the same when it resumes."""
        return replace(self, facts=facts)

    def noting(self, data: Mapping[str, Any], **settings: Any) -> RunSettings:
        """The same with further facts, which runs of earlier versions did not note.

        Args:
            data: Data by its name, None where there is none; a digest tells it from other data.
            settings: Plain values.
        """
        if self.place is None:
            return self
        digests = {k: None if v is None else content_digest(v) for k, v in data.items()}
        content = {**self.facts.get("content", {}), **digests, **settings}
        return replace(self, facts={**self.facts, "content": content})

    def with_data(self, asked: Any, *, is_checked: bool) -> RunSettings:
        """The same without an architecture's own patience where nothing can be validated.

        Args:
            asked: The settings of the loop that the user gave, refused if they cannot be had.
            is_checked: Whether there is validation data.
        """
        training = self.training
        if is_checked or not training.needs_validation:
            return self
        changed = replace(training, patience=None)
        given = to_dict(training) if is_dataclass(asked) else asked or {}
        if changed.needs_validation or given.get("patience") is not None:
            raise ConfigError(
                "training.patience and schedule 'plateau' need validation data, got valid=None; "
                "give some or raise valid_share"
            )
        return replace(self, training=changed)


@contextmanager
def fitting(
    estimator: Estimator, out: str | PathLike[str] | None, *, resume: bool, callbacks: Callbacks
) -> Iterator[RunSettings]:
    """A fit: what it leaves on the estimator is saved in `out`, once, by one process.

    Set the estimator's attributes at the end, so that a run that fails leaves it as it was; `arch_`
    is set here.
    """
    from seqloom.training.runtime import Runtime

    training = estimator.build_training()
    runtime = Runtime(training.device, training.precision)
    with _training_place(out, resume=resume, is_main=runtime.is_main) as place:
        yield RunSettings(training, place, resume, callbacks)
    estimator.arch_ = estimator.arch
    if place is not None and runtime.is_main:
        reopen(place)
        estimator.save(place)
    runtime.wait()


class Learned(NamedTuple):
    """What came of it: metrics, and how it went, for the model directory."""

    metrics: dict[str, Any]
    history: dict[str, Any]


def run_training(
    model: nn.Module,
    train: Examples,
    valid: Examples | None,
    goal: Goal,
    settings: RunSettings,
    *,
    before_epoch: Callable[[], None] | None = None,
) -> Learned:
    """Train a model by the one loop; without a directory nothing is shown.

    L-BFGS goes for the minimum of the training loss itself, so validation chooses no earlier
    weights there; it only measures the last.

    Args:
        model: What to train; it ends on the CPU.
        train: The training examples.
        valid: The validation examples, if there are any.
        goal: What is minimized and measured.
        settings: Everything else.
        before_epoch: What is done before each epoch but the first, with L-BFGS.
    """
    training = settings.training
    settings = settings.noting({"train": train, "valid": valid})
    batches = replace(training.batch, seed=training.batch.seed + training.seed)
    if training.optimizer.name != "lbfgs":
        return run_objective(model, SupervisedObjective(train, valid, goal, batches), settings)
    objective = SupervisedObjective(train, None, goal, None, before_epoch)
    learned = run_objective(model, objective, settings)
    metrics = {} if valid is None else goal.measure(model, valid)
    return learned._replace(metrics={f"valid_{name}": value for name, value in metrics.items()})


def run_objective(model: nn.Module, objective: Objective, settings: RunSettings) -> Learned:
    """Train a model by the one loop; without a directory nothing is shown.

    Args:
        model: What to train; it ends on the CPU.
        objective: Its batches, loss and evaluation.
        settings: Everything else.
    """
    from seqloom.training import train as run
    from seqloom.training.report import Silent

    place = settings.place
    result = run(
        model,
        objective,
        settings.training,
        place and place / TRAINING,
        resume=settings.resume,
        facts=settings.facts,
        callbacks=settings.callbacks,
        display=Silent() if place is None else None,
    )
    model.cpu()
    history = {
        "updates": result.steps,
        "epochs": result.epochs,
        "seconds": round(result.seconds, 1),
    }
    return Learned({f"valid_{name}": value for name, value in result.metrics.items()}, history)


def origin(train: Any, valid: Any, training: TrainConfig, **facts: Any) -> dict[str, Any]:
    """Return where a fitted model comes from, for its directory."""
    return provenance(
        train=str(train) if isinstance(train, (str, PathLike)) else "given in Python",
        valid=str(valid) if isinstance(valid, (str, PathLike)) else None,
        training=to_dict(training),
        **facts,
    )
