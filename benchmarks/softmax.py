"""Output layers against the full softmax: the same LSTM on WikiText-2 with each of them.

    python benchmarks/softmax.py [--device cuda] [--save FILE]

All runs have the same data, seed, optimizer, rate and number of updates. An update's time is the
median over tenths of the run, everything in it counted: recurrence, output layer, gradients,
clipping, optimizer. On a CPU it is CPU time of one thread. The perplexity is exact for every layer,
on the validation text, and that of a run of a given number of updates, not of one that converged.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch

from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.data.windows import Windows
from seqloom.metrics import perplexity
from seqloom.models.outputs import SOFTMAXES
from seqloom.models.recurrent_lm import RecurrentLM, RecurrentLMConfig
from seqloom.tasks.corpus import prepared_text
from seqloom.tasks.language_objective import LanguageModelObjective, inform_model, stream_loss
from seqloom.text import TextConfig
from seqloom.training import OptimizerConfig, StepReport, TrainConfig, train
from seqloom.training.config import ScheduleConfig
from seqloom.training.report import Silent

PARTS = 10  # of a run, each timed
SIZES: dict[str, dict[str, Any]] = {
    "cpu": {"hidden": 128, "layers": 1, "lanes": 16, "window": 20, "steps": 200, "valid": 20_000},
    "cuda": {"hidden": 650, "layers": 2, "lanes": 64, "window": 35, "steps": 1800, "valid": None},
}


def run(
    name: str, data: PreparedData, valid: PreparedData, given: argparse.Namespace
) -> tuple[float, float, int]:
    """Train with one output layer; return the seconds of an update, the perplexity, the weights."""
    sizes = SIZES[given.device]
    torch.manual_seed(0)
    vocabulary = data.vocabularies["words"]
    config = RecurrentLMConfig(
        vocab_size=len(vocabulary),
        hidden_size=sizes["hidden"],
        num_layers=sizes["layers"],
        dropout=0.2 if given.device == "cuda" else 0.0,
        init_range=0.05,
        softmax=name,  # type: ignore[arg-type]
        samples=given.samples,
    )
    model = RecurrentLM(config)
    inform_model(model, data)
    objective = LanguageModelObjective(
        model, data, None, lanes=sizes["lanes"], window=sizes["window"]
    )
    clock: Callable[[], float] = time.process_time
    if given.device == "cuda":
        clock = time.perf_counter
    marks: list[float] = []

    def mark(report: StepReport) -> None:
        if not report.step % (given.steps // PARTS):
            if given.device == "cuda":
                torch.cuda.synchronize()
            marks.append(clock())

    settings = TrainConfig(
        epochs=1000,
        max_steps=given.steps,
        optimizer=OptimizerConfig(name=given.optimizer, rate=given.rate),
        schedule=ScheduleConfig(name="cosine"),
        clip_norm=0.25,
        device=given.device,
        log_every=given.steps // PARTS,
    )
    train(model, objective, settings, callbacks=[mark], display=Silent())
    parts = [(b - a) / (given.steps // PARTS) for a, b in itertools.pairwise(marks)]
    ids = valid.data.sequences["ids"].flat[: sizes["valid"]]
    windows = Windows(ids, batch_size=16, window=64, before=vocabulary["</s>"], keep_rest=True)
    reached = perplexity(*stream_loss(model.eval(), windows))
    return statistics.median(parts), reached, sum(w.numel() for w in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=list(SIZES), default="cpu")
    parser.add_argument("--steps", type=int, help="updates; by default what takes minutes")
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--only", nargs="+", choices=SOFTMAXES, default=list(SOFTMAXES))
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    given.steps = given.steps or SIZES[given.device]["steps"]
    if given.steps < 2 * PARTS:
        parser.error(f"--steps must be at least {2 * PARTS}, got {given.steps}")
    if given.device == "cpu":
        torch.set_num_threads(1)
    where = platform.machine() if given.device == "cpu" else torch.cuda.get_device_name()
    sizes = SIZES[given.device]
    with tempfile.TemporaryDirectory() as folder:
        prepare = PrepareConfig(text=TextConfig(unit="space"))
        data = prepared_text("wikitext-2:train", Path(folder) / "train", prepare)
        valid = prepared_text("wikitext-2:valid", Path(folder) / "valid", like=data)
        lines = [
            "# Output layers",
            "",
            f"    python benchmarks/softmax.py --device {given.device} --steps {given.steps}",
            "",
            f"{date.today()}, {where}, torch {torch.__version__}, float32. LSTM of "
            f"{sizes['layers']} x {sizes['hidden']}, {len(data.vocabularies['words'])} words, "
            f"{sizes['lanes']} x {sizes['window']} words an update, {given.steps} updates of "
            f"{given.optimizer} from {given.rate:g} down to 0, gradients clipped to 0.25, "
            f"{given.samples} samples.",
            "",
            "| output layer | ms an update | over full | weights | valid perplexity |",
            "|---|---|---|---|---|",
        ]
        full = None
        for name in given.only:
            print(f"... {name}", file=sys.stderr)
            seconds, reached, weights = run(name, data, valid, given)
            full = seconds if name == "full" else full
            ratio = "" if full is None else f"{seconds / full:.2f}"
            lines.append(
                f"| {name} | {1000 * seconds:.1f} | {ratio} | {weights / 1e6:.1f} M | "
                f"{reached:.1f} |"
            )
    report = "\n".join(lines) + "\n"
    print(report)
    if given.save:
        given.save.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
