"""Cells of a table: each is one training run, kept as a JSON line, many of them side by side.

A benchmark names its cells and a function that runs one. What is in the folder already is not run
again, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
"""What is run, as plain values; whatever changes a result is in it."""

Result = dict[str, Any]
FILE = "cells.jsonl"
DEVICE = "auto"
"""Where this process trains; `run_cells` sets it in each of its processes."""


class TimeLimit:
    """A callback of the training loop that ends a run in time; its best weights are kept.

    Args:
        deadline: When it ends, as `time.time` counts; None for never.
    """

    def __init__(self, deadline: float | None) -> None:
        self.deadline, self.reached = deadline, False

    def __call__(self, _report: object) -> object:
        """Say when to stop."""
        from seqloom.training import STOP

        self.reached = self.deadline is not None and time.time() > self.deadline
        return STOP if self.reached else None


def add_options(parser: argparse.ArgumentParser, folder: str) -> None:
    """Add the options that all benchmarks of cells have."""
    parser.add_argument("--out", type=Path, default=Path(folder), help="the folder of results")
    parser.add_argument("--processes", type=int, default=1, help="cells at a time")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto")
    parser.add_argument("--seconds", type=float, default=None, help="end after so many")
    parser.add_argument("--reserve", type=float, default=15, help="of them, for the last tests")
    parser.add_argument("--least", type=float, default=60, help="begin no cell with less left")
    parser.add_argument("--table", action="store_true", help="only print what is done")


def read_results(folder: Path) -> list[Result]:
    """The results in all JSON lines of a folder, the last of each cell."""
    found: dict[str, Result] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            result = json.loads(line)
            found[_key(result["cell"])] = result
    return list(found.values())


def run_cells(
    cells: Iterable[Cell],
    run: Callable[[Cell, TimeLimit], Result],
    options: argparse.Namespace,
) -> list[Result]:
    """Run the cells that are missing, and return all results of the folder.

    Args:
        cells: What to run, in this order.
        run: Runs one in a process of its own; a function of a module.
        options: What `add_options` added.

    Raises:
        SystemExit: If one failed, after all the others have ended.
    """
    folder: Path = options.out
    done = {_key(result["cell"]) for result in read_results(folder)}
    missing = [cell for cell in cells if _key(cell) not in done]
    if options.table or not missing:
        return read_results(folder)
    folder.mkdir(parents=True, exist_ok=True)
    deadline = None
    if options.seconds is not None:
        deadline = time.time() + options.seconds - options.reserve
    context = multiprocessing.get_context("spawn")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"  # before the processes begin: they read it once
    pool_options = {"mp_context": context, "initializer": _begin, "initargs": (options.device,)}
    failed = 0
    with ProcessPoolExecutor(options.processes, **pool_options) as pool:
        waiting = [pool.submit(_run, run, cell, deadline, options.least) for cell in missing]
        for future in as_completed(waiting):
            result = future.result()
            if result is None:
                continue
            if "error" in result:
                failed += 1
                print(f"{json.dumps(result['cell'])} failed:\n{result['error']}", flush=True)
                continue
            print(json.dumps(result)[:600], flush=True)
            with (folder / FILE).open("a") as stream:
                stream.write(json.dumps(result) + "\n")
    if failed:
        raise SystemExit(f"{failed} of {len(missing)} cells failed")
    return read_results(folder)


def device() -> str:
    """Where a cell of this process is to be trained; it is no part of the cell."""
    return DEVICE


def to_device(model: Any) -> None:
    """Move a fitted model to where it was trained, for its tests."""
    if DEVICE not in ("auto", "cpu"):
        model.to(DEVICE)


def _begin(chosen: str) -> None:
    global DEVICE  # noqa: PLW0603 (one a process, set once)
    DEVICE = chosen


def _run(
    run: Callable[[Cell, TimeLimit], Result], cell: Cell, deadline: float | None, least: float
) -> Result | None:
    began = time.time()
    if deadline is not None and began > deadline - least:
        return None
    limit = TimeLimit(deadline)
    try:
        result = run(cell, limit)
    except Exception:  # one that fails must not end the others
        return {"cell": cell, "error": traceback.format_exc()[-1500:]}
    seconds = round(time.time() - began, 1)
    return {"cell": cell, **result, "seconds": seconds, "cut": limit.reached}


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def grouped(results: Sequence[Result], without: str = "seed") -> dict[str, list[Result]]:
    """Results by cell, one part of the cell left out: the runs that differ in it alone."""
    rows: dict[str, list[Result]] = {}
    for result in results:
        rest = {name: value for name, value in result["cell"].items() if name != without}
        rows.setdefault(_key(rest), []).append(result)
    return rows


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in percent; nothing where nothing was measured."""
    from math import isnan
    from statistics import mean, stdev

    if any(isnan(value) for value in values):
        return ""
    middle = f"{100 * mean(values):.2f}"
    return f"{middle} ± {100 * stdev(values):.2f}" if len(values) > 1 else middle
