"""Runs that are killed, again and again, and end as if nothing had happened.

The log of the long test is kept in the documentation:

    SEQLOOM_KILL_LOG=docs/kill-test.md python -m pytest -m slow tests/training/test_kills.py
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from toy import Points, line, run, same_weights, without_seconds

from seqloom.errors import StoppedError
from seqloom.training import TrainConfig
from seqloom.training import loop as loop_module
from seqloom.training.checkpoint import read_checkpoint

CHILD = Path(__file__).with_name("kill_child.py")
LIMIT = 120.0  # seconds a child may take


@dataclass(frozen=True)
class Blow:
    """When to strike: at the n-th line that says `moment`, and a little later."""

    moment: str
    count: int
    delay: float = 0.0
    signal: signal.Signals = signal.SIGKILL


@dataclass(frozen=True)
class Ending:
    """What became of a child."""

    status: int
    update: int  # the last one it spoke of
    said: list[str]


def child(out: Path, blow: Blow | None = None) -> Ending:
    pause = "0.03" if blow is not None and blow.moment not in ("step", "start") else "0"
    environment = os.environ | {"KILL_PAUSE": pause, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(CHILD), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None and process.stderr is not None
    said: list[str] = []
    if blow is not None and blow.moment == "start":
        time.sleep(blow.delay)
        process.send_signal(blow.signal)
    seen = 0
    for text in process.stdout:
        said.append(text.strip())
        if blow is not None and text.startswith(blow.moment):
            seen += 1
            if seen == blow.count:
                time.sleep(blow.delay)
                process.send_signal(blow.signal)
    errors = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    status = process.wait(LIMIT)
    assert "Traceback" not in errors, errors
    steps = [int(text.split()[1]) for text in said if text.startswith("step")]
    return Ending(status, max(steps, default=0), said)


def assert_same_end(cut: Path, whole: Path) -> None:
    """Weights, metrics, best step and the last checkpoint are the same, bit for bit."""
    assert (cut / "weights.safetensors").read_bytes() == (
        whole / "weights.safetensors"
    ).read_bytes()
    rows = [
        [json.loads(t) for t in (place / "training" / "metrics.jsonl").read_text().splitlines()]
        for place in (cut, whole)
    ]
    assert without_seconds(rows[0]) == without_seconds(rows[1])
    for name in ("last", "best"):
        paths = [place / "training" / f"{name}.safetensors" for place in (cut, whole)]
        a, b = (load_file(path) for path in paths)
        assert a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)
        a, b = (dict(read_checkpoint(path).values) for path in paths)
        for timed in ("seconds", "metrics_size"):
            a.pop(timed, None), b.pop(timed, None)
        assert a == b
    left = [path.name for path in (*cut.rglob(".*"), *cut.glob("training/data"))]
    assert left == []


def test_three_kills_leave_no_trace(tmp_path):
    whole = child(tmp_path / "whole")
    assert whole.status == 0
    blows = [
        Blow("step", 3, 0.001),
        Blow("writing", 9),  # a checkpoint lies beside its place and is not flushed yet
        Blow("renaming", 8),
    ]
    for blow in blows:
        ending = child(tmp_path / "cut", blow)
        assert ending.status == -signal.SIGKILL, ending
        assert ending.update < whole.update
    assert child(tmp_path / "cut").status == 0
    assert_same_end(tmp_path / "cut", tmp_path / "whole")


KINDS = ["step"] * 6 + ["writing"] * 3 + ["renaming"] * 3 + ["start"] * 2 + ["term", "int"] * 2
AT_THE_END = [Blow("renaming weights.safetensors", 1), Blow("renaming seqloom.json", 1)]


def random_blow(kind: str, rng: random.Random) -> Blow:
    if kind == "start":
        return Blow("start", 1, rng.uniform(0.05, 4.0))
    if kind in ("term", "int"):
        number = signal.SIGTERM if kind == "term" else signal.SIGINT
        return Blow("step", rng.randint(1, 14), rng.uniform(0, 0.01), number)
    return Blow(kind, rng.randint(1, 14), rng.uniform(0, 0.02))


@pytest.mark.slow
def test_twenty_kills_leave_no_trace(tmp_path):
    rng = random.Random(20)
    whole = child(tmp_path / "whole")
    assert whole.status == 0
    lines = []
    rng.shuffle(KINDS)
    blows = [random_blow(kind, rng) for kind in KINDS] + AT_THE_END
    for number, blow in enumerate(blows, start=1):
        ending = child(tmp_path / "cut", blow)
        when = f"{blow.delay * 1000:.0f} ms after the start of the process"
        if blow.moment != "start":
            when = f'{blow.delay * 1000:.1f} ms after "{blow.moment}" number {blow.count}'
        reached = "" if ending.status != 0 else " (it was done before the blow fell)"
        lines.append(
            f"| {number} | {blow.signal.name} | {when} | {ending.update or 'none yet'}{reached} | "
            f"{ending.status} |"
        )
        print(lines[-1])  # noqa: T201 (pytest -s shows how it goes)
        if blow.signal is signal.SIGKILL:
            assert ending.status in (-signal.SIGKILL, 0)
        else:
            assert ending.status in (3, 0), ending
    assert child(tmp_path / "cut").status == 0
    assert_same_end(tmp_path / "cut", tmp_path / "whole")
    place = os.environ.get("SEQLOOM_KILL_LOG")
    if place:
        Path(place).write_text(report(lines, whole.update), encoding="utf-8")


def report(lines: list[str], updates: int) -> str:
    return "\n".join(
        [
            "# Twenty kills",
            "",
            f"One run of {updates} updates (an LSTM with dropout, averaged weights, a schedule "
            "that watches the validation perplexity, a checkpoint every 4 updates) was struck "
            "twenty times and resumed each time. Its weights, its metrics, its best step and all "
            "that its last checkpoint holds equal, bit for bit, those of a run that nobody "
            'disturbed. A moment "writing" or "renaming" lies inside the writing of a checkpoint.',
            "",
            "    SEQLOOM_KILL_LOG=docs/kill-test.md python -m pytest -m slow "
            "tests/training/test_kills.py",
            "",
            f"Python {sys.version.split()[0]}, torch {torch.__version__}, one thread.",
            "",
            "| kill | signal | moment | last update reported | exit status |",
            "|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


# -- signals, in this process --------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("at", [2, 4, 12])
def test_a_signal_stops_after_the_update_and_says_how_to_go_on(number, at, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "draw_curve", lambda rows, path: False)
    config = TrainConfig(epochs=3, log_every=1, device="cpu")
    whole, expected = run(config, Points(carries=True), tmp_path / "whole", model=line(0, 0.2))

    def strike(report):
        if report.step == at:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(
        StoppedError,
        match=rf"stopped by {number.name} at update {at}; all is kept in {tmp_path}/cut; go on by "
        r"resuming \(seqloom train \.\.\. --resume, or resume=True\)",
    ):
        run(
            config,
            Points(carries=True),
            tmp_path / "cut",
            model=line(0, 0.2),
            callbacks=[strike],
        )
    assert signal.getsignal(number) is before
    assert read_checkpoint(tmp_path / "cut" / "last.safetensors").values["step"] == at
    cut, found = run(
        config, Points(carries=True), tmp_path / "cut", model=line(8, 0.2), resume=True
    )
    assert same_weights(cut, whole)
    assert without_seconds(found.rows) == without_seconds(expected.rows)
    assert found.best_step == expected.best_step


def test_a_signal_without_a_directory_says_that_nothing_was_kept():
    def strike(report):
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError, match="SIGTERM at update 1; nothing was kept"):
        run(TrainConfig(log_every=1, device="cpu"), callbacks=[strike])


def test_a_second_signal_acts_at_once(tmp_path):
    def strike(report):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    # A background job is started with SIGINT ignored; the test is about a terminal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(TrainConfig(log_every=1, device="cpu"), None, tmp_path, callbacks=[strike])
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.glob(".*"))
