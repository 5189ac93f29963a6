"""The one training loop.

`train` runs epochs of batches: forward, backward, sum over processes, clip, update, average. It
evaluates, keeps the best and the last checkpoint, stops early, resumes in the middle of an epoch
and stops before a non-finite loss spoils what it has. It knows a model and an `Objective`, never a
task.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.data.batches import Batch
from seqloom.errors import ConfigError, DataError, StoppedError, TrainingError, one_of
from seqloom.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from seqloom.training.config import TrainConfig
from seqloom.training.objective import LossOutput, Objective, is_more_better
from seqloom.training.report import (
    CURVE_FILE,
    Display,
    MetricsFile,
    Silent,
    StepReport,
    TrainResult,
    choose_display,
    draw_curve,
    open_tensorboard,
)
from seqloom.training.runtime import Runtime
from seqloom.training.signals import StopSignals
from seqloom.training.state import RunState

STOP = object()  # what a callback returns to end the run
LAST, BEST = "last.safetensors", "best.safetensors"

Callback = Callable[[StepReport], object]


def train(
    model: nn.Module,
    objective: Objective,
    config: TrainConfig,
    out: Path | None = None,
    *,
    resume: bool = False,
    facts: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    display: Display | None = None,
) -> TrainResult:
    """Train a model in place.

    Args:
        model: What to train; it ends with the best weights seen.
        objective: Its batches, loss and evaluation.
        config: Everything else.
        out: A directory for checkpoints and metrics; without one nothing is written.
        resume: Whether to go on from the last checkpoint in `out`.
        facts: What else must be the same when a run resumes, as nested plain values: settings of
            the model, the vocabulary's hash.
        callbacks: Called with a `StepReport` now and then, in the main process; one that returns
            `STOP` ends the run.
        display: Shows progress; by default a bar on a terminal and plain lines elsewhere.

    Raises:
        ConfigError: If a run is to be resumed with other settings.
        DataError: If a checkpoint cannot be read or written.
        TrainingError: If the loss is not finite; the last good checkpoint is kept.
        StoppedError: On SIGINT or SIGTERM, after a checkpoint was written.
    """
    run = _Run(model, objective, config, out, facts or {})
    if not run.runtime.is_main:
        display = Silent()
    display = display or choose_display()
    try:
        with StopSignals() as signals, run.runtime.products():
            run.start(resume=resume)
            reason = run.go(signals, callbacks, display)
        return run.finish(reason)
    finally:
        display.close()


class _Run:
    """One call of `train`: the state, and what is done with it."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        config: TrainConfig,
        out: Path | None,
        facts: Mapping[str, Any],
    ) -> None:
        self.config, self.objective, self.out = config, objective, out
        self.runtime = Runtime(config.device, config.precision)
        if config.optimizer.name == "lbfgs" and self.runtime.world_size > 1:
            raise ConfigError("optimizer 'lbfgs' runs in one process, got several")
        self.state = RunState(model, config, facts, self.runtime)
        self.model, self.optimizer = self.state.model, self.state.optimizer
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.best_weights: dict[str, Tensor] = {}  # only where there is no directory
        self.writer: Any = None

    def start(self, *, resume: bool) -> None:
        torch.manual_seed(self.config.seed + self.runtime.rank)
        self.runtime.share([*self.model.parameters(), *self.model.buffers()])
        size = 0
        if self.out is not None:
            if self.runtime.is_main:
                self.out.mkdir(parents=True, exist_ok=True)
            self.runtime.wait()
            if (self.out / LAST).exists():
                size = self._resume(self.out / LAST, resume=resume)
            self.runtime.wait()  # nobody writes before everybody has looked
        folder = self.out if self.runtime.is_main else None
        self.metrics = MetricsFile(folder, size)
        if self.config.tensorboard and folder is not None:
            self.writer = open_tensorboard(folder)
        self.began = self.reported = time.monotonic()
        self.share_at_start = self._share()

    def _resume(self, path: Path, *, resume: bool) -> int:
        """Go on from a checkpoint; return how long the file of metrics was then."""
        if not resume:
            raise DataError("holds a run already; resume it or name another directory", path.parent)
        checkpoint = read_checkpoint(path)
        try:
            self.state.unpack(checkpoint, self.objective)
            return int(checkpoint.values["metrics_size"])
        except (KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise DataError(f"is no checkpoint of this run and model ({reason})", path) from None

    def go(self, signals: StopSignals, callbacks: Sequence[Callback], display: Display) -> str:
        state, runtime = self.state, self.runtime
        self.model.train()
        while not state.ended:
            total = self.objective.num_batches(state.epoch)
            batches = self.objective.batches(
                state.epoch, state.batch, rank=runtime.rank, world_size=runtime.world_size
            )
            for group in _groups(batches, self.config.accumulate):
                rate = self.config.optimizer.rate * state.schedule.factor(state.progress(total))
                self._update(group, rate)
                state.step += 1
                state.batch += len(group)
                if state.batch >= total:
                    state.epoch, state.batch = state.epoch + 1, 0
                over = self._after_update(rate, callbacks, display)
                if runtime.any(signals.received is not None):
                    self._stop(signals.received.name if signals.received else "another process")
                if over:
                    break
        return state.ended

    def _update(self, group: list[Batch], rate: float) -> None:
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        if self.config.optimizer.name == "lbfgs":
            self._converge(group[0])
        else:
            self._descend(group)
        if self.runtime.device.type == "cpu":  # elsewhere asking makes the device wait: later
            self._check_finite(self.state.step + 1)
        if self.config.averaging != "uniform" or self.state.epoch >= self.config.average_from:
            self.state.average.update()

    def _descend(self, group: list[Batch]) -> None:
        """Follow the gradient of the mean loss over all items of all batches and processes."""
        runtime, config, weights = self.runtime, self.config, self.weights
        self.optimizer.zero_grad(set_to_none=True)
        first = items = pace = 0.0
        for batch in group:
            with runtime.autocast():
                loss = self.objective.loss(self.model, batch.tensors(runtime.device))
            count = self._count(loss)
            first, items = first or max(count, 1.0), items + count
            pace += loss.pace / len(group)
            runtime.scaler.scale(loss.total / first).backward()
        runtime.sum_gradients(weights)
        runtime.scaler.unscale_(self.optimizer)
        if len(group) > 1 and items:
            for weight in weights:
                if weight.grad is not None:
                    weight.grad.mul_(first / items)
        if config.clip_value is not None:
            nn.utils.clip_grad_value_(weights, config.clip_value)
        if config.clip_norm is not None:
            nn.utils.clip_grad_norm_(weights, config.clip_norm)
        for settings in self.optimizer.param_groups:
            settings["lr"] *= pace
        runtime.scaler.step(self.optimizer)
        runtime.scaler.update()

    def _count(self, loss: LossOutput) -> float:
        """Add a loss to what is reported; return its items over all processes."""
        running, runtime = self.state.running, self.runtime
        if runtime.world_size == 1:
            running[0] += loss.total.detach()
            running[1] += loss.items
            return float(loss.items)
        both = runtime.sum(
            torch.stack([loss.total.detach().double(), running.new_tensor(loss.items)])
        )
        running += both
        return float(both[1])

    def _converge(self, batch: Batch) -> None:
        """Run L-BFGS on one batch until it converges."""
        tensors = batch.tensors(self.runtime.device)
        carried = self.objective.carry()
        self.optimizer.state.clear()  # what it learned of the last batch is not true of this one

        def closure() -> Tensor:
            self.objective.restore(carried)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.objective.loss(self.model, tensors)
            mean = loss.total / max(loss.items, 1)
            mean.backward()
            return mean

        self.optimizer.step(closure)  # type: ignore[arg-type]
        self.objective.restore(carried)
        with torch.no_grad():
            self._count(self.objective.loss(self.model, tensors))

    def _check_finite(self, step: int, *, weights: bool = False) -> None:
        """Stop before a loss, or weights, that are not finite are kept."""
        what = "loss is"
        if math.isfinite(self.state.running[0].item()):
            what = "weights are"
            if not weights or all(bool(w.isfinite().all()) for w in self.model.parameters()):
                return
        kept = "nothing was kept"
        if self.out is not None and (self.out / LAST).exists():
            kept = f"the last good state is kept in {self.out}"
        raise TrainingError(
            f"the {what} not finite at update {step} (learning rate "
            f"{self.optimizer.param_groups[0]['lr']:.3g}); {kept}; lower training.optimizer.rate "
            "or set training.clip_norm"
        )

    def _after_update(self, rate: float, callbacks: Sequence[Callback], display: Display) -> bool:
        """Evaluate, report and save where it is due; return whether the run is over."""
        config, state = self.config, self.state
        new_epoch = state.batch == 0
        if state.step == config.max_steps:
            state.ended = "max_steps"
        elif state.epoch == config.epochs:
            state.ended = "epochs"
        elif config.max_seconds and self.runtime.any(self._elapsed() >= config.max_seconds):
            state.ended = "max_seconds"
        due = (
            new_epoch if config.evaluate_every is None else state.step % config.evaluate_every == 0
        )
        metrics: dict[str, float] = {}
        if due or state.ended:
            self._check_finite(state.step, weights=True)
            metrics = self._evaluate()
            if config.patience is not None and state.stale >= config.patience:
                state.ended = state.ended or "patience"
        if metrics or state.ended or state.step % config.log_every == 0:
            report = self._report(rate, metrics)
            display.show(report)
            answers = [callback(report) for callback in callbacks if self.runtime.is_main]
            if self.runtime.any(any(answer is STOP for answer in answers)):
                state.ended = state.ended or "callback"
        save_due = config.save_every is not None and state.step % config.save_every == 0
        if metrics or new_epoch or state.ended or save_due:
            self._save()
        return bool(state.ended)

    def _evaluate(self) -> dict[str, float]:
        self.model.eval()
        with self.state.average.applied(), torch.no_grad(), self.runtime.autocast():
            metrics = self.objective.evaluate(self.model)
            if metrics:
                self._judge(metrics)
        self.model.train()
        return metrics

    def _judge(self, metrics: dict[str, float]) -> None:
        """Keep the weights that are in place now if they are the best so far."""
        state, name = self.state, self.config.metric or self.objective.metric
        if name not in metrics:
            raise ConfigError(one_of("metric", name, metrics))
        now, before = metrics[name], state.best.get(name)
        more = is_more_better(self.objective, name)
        improved = not math.isnan(now) and (
            before is None or (now > before if more else now < before)
        )
        state.schedule.observe(improved=improved)
        state.average.observe(-now if more else now)
        state.stale = 0 if improved else state.stale + 1
        if not improved:
            return
        state.best, state.best_step = dict(metrics), state.step
        weights = self.model.state_dict()
        if self.out is None:
            self.best_weights = {k: v.detach().clone() for k, v in weights.items()}
        elif self.runtime.is_main:
            values = {"step": state.step, "metrics": metrics}
            write_checkpoint(self.out / BEST, Checkpoint({"model": weights}, values))

    def _report(self, rate: float, metrics: dict[str, float]) -> StepReport:
        state = self.state
        loss, items = state.running.tolist()
        state.running.zero_()
        now, share = time.monotonic(), self._share()
        done = share - self.share_at_start
        report = StepReport(
            step=state.step,
            epoch=state.epoch,
            share=share,
            loss=loss / items if items else math.nan,
            rate=rate,
            items_per_second=items / max(now - self.reported, 1e-9),
            seconds_left=(now - self.began) / done * (1 - share) if done > 0 else 0.0,
            metrics=metrics,
        )
        self.reported = now
        row = {"step": report.step, "epoch": report.epoch, "loss": report.loss, "rate": rate}
        self.metrics.add({**row, **metrics, "seconds": round(self._elapsed(), 3)})
        if self.writer is not None:
            for name, value in (row | metrics).items():
                self.writer.add_scalar(name, value, report.step)
        return report

    def _share(self) -> float:
        return self.state.progress(self.objective.num_batches(self.state.epoch)).share

    def _elapsed(self) -> float:
        return self.state.seconds + time.monotonic() - self.began

    def _save(self) -> None:
        if self.out is None:
            return
        self._check_finite(self.state.step, weights=True)
        seconds, size = self._elapsed(), self.metrics.size
        packed = self.state.pack(self.objective, seconds=seconds, metrics_size=size)
        if self.runtime.is_main:
            write_checkpoint(self.out / LAST, packed)
        self.runtime.wait()

    def _stop(self, signal: str) -> None:
        at = f"stopped by {signal} at update {self.state.step}"
        if self.out is None:
            raise StoppedError(f"{at}; nothing was kept, since no directory was given")
        self._save()
        raise StoppedError(
            f"{at}; all is kept in {self.out}; go on by resuming (seqloom train ... --resume, or "
            "resume=True)"
        )

    def finish(self, reason: str) -> TrainResult:
        state = self.state
        if self.best_weights:
            self.model.load_state_dict(self.best_weights)
        elif state.best and self.out is not None:
            self.runtime.wait()
            self.model.load_state_dict(dict(read_checkpoint(self.out / BEST).tensors["model"]))
        elif state.average.mean:
            state.average.keep()
        self.model.eval()
        if self.out is not None and self.runtime.is_main:
            draw_curve(self.metrics.rows, self.out / CURVE_FILE)
        if self.writer is not None:
            self.writer.close()
        return TrainResult(
            steps=state.step,
            epochs=state.epoch,
            reason=reason,
            metrics=dict(state.best),
            best_step=state.best_step,
            seconds=self._elapsed(),
            rows=self.metrics.rows,
        )


def _groups(batches: Iterator[Batch], size: int) -> Iterator[list[Batch]]:
    while group := list(islice(batches, size)):
        yield group
