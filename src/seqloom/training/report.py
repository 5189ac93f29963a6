"""What a run tells: reports to callbacks, lines of `metrics.jsonl`, a picture, TensorBoard."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seqloom.errors import BackendError, DataError
from seqloom.files import METRICS_FILE

CURVE_FILE = "learning-curve.png"


@dataclass(frozen=True)
class StepReport:
    """Where a run stands after an update; what callbacks and progress displays are given.

    Args:
        step: Updates made.
        epoch: Epochs finished.
        share: Share of the run that is done.
        loss: Mean loss an item since the last report.
        rate: The learning rate.
        items_per_second: Items (tokens, examples) a second since the last report.
        seconds_left: An estimate of the time left.
        metrics: Validation metrics, if an evaluation was made.
    """

    step: int
    epoch: int
    share: float
    loss: float
    rate: float
    items_per_second: float
    seconds_left: float
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass
class TrainResult:
    """How a run ended; the model holds its best weights.

    Args:
        steps: Updates made.
        epochs: Epochs finished.
        reason: "epochs", "max_steps", "max_seconds", "patience" or "callback".
        metrics: Validation metrics of the best weights.
        best_step: When those were reached.
        seconds: Wall time, over all resumed parts.
        rows: The lines of `metrics.jsonl`.
    """

    steps: int
    epochs: int
    reason: str
    metrics: dict[str, float]
    best_step: int
    seconds: float
    rows: list[dict[str, Any]] = field(repr=False)


class Display(Protocol):
    """Shows how a run goes."""

    def show(self, report: StepReport) -> None:
        """Show one more report."""
        ...

    def close(self) -> None:
        """Stop showing."""
        ...


class Silent:
    """Shows nothing."""

    def show(self, report: StepReport) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


class Lines:
    """Plain lines on standard error, at most one every few seconds and one an evaluation."""

    def __init__(self, every: float = 10.0) -> None:
        self.every, self._last = every, 0.0

    def show(self, report: StepReport) -> None:
        """Print the report if the last one is long enough ago or it brings metrics."""
        now = time.monotonic()
        if report.metrics or now - self._last >= self.every:
            self._last = now
            print(describe(report), file=sys.stderr, flush=True)  # noqa: T201

    def close(self) -> None:
        """Do nothing."""


class Bar:
    """A progress bar on a terminal, with a line an evaluation above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("starting", total=1.0)
        self._progress.start()

    def show(self, report: StepReport) -> None:
        """Move the bar."""
        text = f"step {report.step:,} loss {report.loss:.4f} {report.items_per_second:,.0f}/s"
        self._progress.update(self._task, completed=report.share, description=text)
        if report.metrics:
            self._progress.console.print(describe(report))

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def describe(report: StepReport) -> str:
    """One line about a report."""
    metrics = "".join(f"  {name} {value:.4f}" for name, value in report.metrics.items())
    minutes, seconds = divmod(round(report.seconds_left), 60)
    left = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return (
        f"epoch {report.epoch}  step {report.step:,}  loss {report.loss:.4f}{metrics}  "
        f"rate {report.rate:.2e}  {report.items_per_second:,.0f} items/s  {left} left"
    )


def choose_display() -> Display:
    """A bar on a terminal, plain lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


class MetricsFile:
    """`metrics.jsonl`: a line a report. A resumed run drops the lines after its checkpoint."""

    def __init__(self, folder: Path | None, size: int = 0) -> None:
        self.path = None if folder is None else folder / METRICS_FILE
        self.rows: list[dict[str, Any]] = []
        self.size = size
        if self.path is None:
            return
        if not size:
            self.path.write_bytes(b"")
            return
        try:
            text = self.path.read_bytes()[:size]
            self.rows = [json.loads(line) for line in text.splitlines()]
        except (OSError, ValueError) as error:
            raise DataError(f"is not what the run wrote ({error})", self.path) from None
        if len(text) != size:
            raise DataError(f"must hold {size:,} bytes, got {len(text):,}; it was cut", self.path)
        with self.path.open("rb+") as stream:
            stream.truncate(size)

    def add(self, row: dict[str, Any]) -> None:
        """Add a line."""
        self.rows.append(row)
        if self.path is None:
            return
        line = (json.dumps(row) + "\n").encode()
        try:
            with self.path.open("ab") as stream:
                stream.write(line)
        except OSError as error:
            raise DataError(f"cannot be written ({error.strerror})", self.path) from None
        self.size += len(line)


def draw_curve(rows: list[dict[str, Any]], path: Path) -> bool:
    """Draw loss and metrics over the updates; return whether matplotlib was there to do it.

    A perplexity is drawn as its logarithm, which is a loss and fits the same axis.
    """
    from seqloom.figures import curve, save

    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        for name, value in row.items():
            if name in {"step", "epoch", "rate", "seconds"} or not math.isfinite(value):
                continue
            is_perplexity = name == "perplexity"
            shown = "ln perplexity, validation" if is_perplexity else name
            xs, ys = series.setdefault(shown, ([], []))
            xs.append(row["step"])
            ys.append(math.log(value) if is_perplexity else value)
    if not series:
        return False
    try:
        save(curve(series, xlabel="updates"), path)
    except BackendError:
        return False
    return True


def open_tensorboard(folder: Path) -> Any:
    """Return a TensorBoard writer."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BackendError(
            "training.tensorboard needs the tensorboard package; pip install tensorboard"
        ) from None
    return SummaryWriter(str(folder / "tensorboard"))
