"""Several commands at once on one machine, as the reports' trainings on a shared card were run.

    python benchmarks/side_by_side.py plan.txt --seconds 540 --logs logs

A line of the plan is a name and a command; blank lines and lines that begin with # are passed over:

    attention   python benchmarks/translation.py train multi30k-attention --out runs/attention
    relations   python benchmarks/relations.py --out runs/relations --processes 2 --device cuda

What stands after a line of dashes begins when all before it have ended, and not at all if one of
them failed: readers that are taught by others, say, whose teachers come first.

    teacher     seqloom train squad-bidaf --out runs/reading/teachers/squad-bidaf --resume
    ---
    taught      python benchmarks/reading.py --rows "rnet + teachers" --out runs/reading

Each runs with one thread and writes to a log of its name. Where NVIDIA's multi-process service is
installed it is started first, so that small trainings share a card instead of taking turns. When
the time is over commands are asked to end (a training keeps its checkpoint then), and killed if
they have not after ten seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GRACE = 10.0  # seconds to end in


class Job(NamedTuple):
    """A command that was started."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    began: float


def read_plan(text: str) -> list[dict[str, str]]:
    """The commands by name, stage by stage.

    Raises:
        SystemExit: If a line has no command, or a name comes twice.
    """
    stages: list[dict[str, str]] = [{}]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.strip().strip("-"):
            stages.append({})
            continue
        name, _, command = line.strip().partition(" ")
        if not command.strip() or any(name in stage for stage in stages):
            raise SystemExit(f"line {number}: wanted a new name and a command, got {line!r}")
        stages[-1][name] = command.strip()
    return [stage for stage in stages if stage]


def surroundings() -> dict[str, str]:
    """The environment of the commands; the multi-process service runs afterwards."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    env = {**os.environ, **threads, "PYTHONUNBUFFERED": "1"}
    control = shutil.which("nvidia-cuda-mps-control")
    if control is not None:
        folder = Path(tempfile.gettempdir(), "seqloom-mps")
        folder.mkdir(exist_ok=True)
        env |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
        subprocess.run([control, "-d"], env=env, check=False)  # one may run already
    return env


def start(plan: dict[str, str], logs: Path, env: dict[str, str]) -> list[Job]:
    """Start all commands of a stage."""
    jobs = []
    for name, command in plan.items():
        log = logs / f"{name}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command,
                shell=True,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,  # so that what it starts ends with it
            )
        jobs.append(Job(name, process, log, time.monotonic()))
    return jobs


def send(jobs: list[Job], what: int) -> bool:
    """Send a signal to the commands and all they started; say whether any of that still runs."""
    found = False
    for job in jobs:
        job.process.poll()
        with suppress(ProcessLookupError):
            os.killpg(job.process.pid, what)
            found = True
    return found


def end(jobs: list[Job]) -> None:
    """Ask all to end, and kill what has not in time: a command's processes may outlive it."""
    began = time.monotonic()
    send(jobs, signal.SIGTERM)
    while send(jobs, 0) and time.monotonic() - began < GRACE:
        time.sleep(0.2)
    send(jobs, signal.SIGKILL)


def show(jobs: list[Job]) -> None:
    """Print how each stands, with the last line of its log."""
    for job in jobs:
        code = job.process.poll()
        lines = job.log.read_text(errors="replace").strip().splitlines()
        state = f"{time.monotonic() - job.began:4.0f} s" if code is None else f"rc {code:3d}"
        print(f"{job.name:16s} {state}  {lines[-1][:120] if lines else ''}")
    sys.stdout.flush()


def wait(jobs: list[Job], deadline: float | None, every: float) -> None:
    """Wait until all have ended, or the time is over."""
    shown = time.monotonic()
    while any(job.process.poll() is None for job in jobs):
        now = time.monotonic()
        if deadline is not None and now > deadline:
            end(jobs)
            return
        if now - shown > every:
            shown = now
            show(jobs)
        time.sleep(0.2)


def main() -> None:
    """Read the plan, run it, say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("--seconds", type=float, default=None, help="end after so many")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="the folder of logs")
    parser.add_argument("--every", type=float, default=60, help="seconds between two reports")
    options = parser.parse_args()
    stages = read_plan(options.plan.read_text())
    if not stages:
        raise SystemExit(f"{options.plan}: wanted commands, got none")
    deadline = None if options.seconds is None else time.monotonic() + options.seconds
    options.logs.mkdir(parents=True, exist_ok=True)
    env = surroundings()
    for stage in stages:
        jobs = start(stage, options.logs, env)
        try:
            wait(jobs, deadline, options.every)
        except KeyboardInterrupt:
            end(jobs)
        show(jobs)
        if any(job.process.wait() for job in jobs):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
