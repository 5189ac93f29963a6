"""How kernels are best cut on a card, for some shapes: measures, and merges into the table.

    python benchmarks/tiles_gpu.py lstm:bf16:256:1024 gru:tf32:64:512:2 --save tiles.json
    python benchmarks/tiles_gpu.py --merge tiles.json

A shape is a cell, its numbers (bf16, fp16 or tf32), rows, units and, if there are two, directions.
Tiles whose matrices are held from step to step are tried, and tiles of many rows that stream them
(`seqloom.kernels.tiles.streamed`). A process for each shape compiles beforehand, as that takes most
of the time; what they measure beside each other is thrown away. `--merge` needs no card: what was
measured takes the place of what the package's table has for the same shapes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src")]

from seqloom.kernels.tiles import Job  # noqa: E402
from seqloom.nn.cells import CELLS  # noqa: E402
from seqloom.nn.timing_gpu import MOST, Point, tune_tiles  # noqa: E402

TABLE = ROOT / "src/seqloom/kernels/backends.json"
KINDS = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32}


def read_shape(text: str) -> Point:
    """A shape as it is written on the command line."""
    cell, kind, batch, size, *more = text.split(":")
    point = Point(cell, KINDS[kind], int(batch), int(size), int(more[0]) if more else 1)
    if cell not in CELLS or len(more) > 1 or point.directions not in (1, 2):
        raise ValueError(text)
    if min(point.batch, point.size) < 1:
        raise ValueError(text)
    return point


def merge(path: Path) -> None:
    """Put measured tiles into the package's table."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        measured = {Job(*entry["job"]) for entry in found if len(entry["tiles"]) in (6, 7)}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SystemExit(f"{path} must be what --save wrote: {error}") from None
    kept = [one for one in table.pop("tiles") if Job(*one["job"]) not in measured]
    lines = ",\n".join(f"  {json.dumps(one)}" for one in [*kept, *found])
    whole = json.dumps(table, indent=1).removesuffix("\n}")
    TABLE.write_text(f'{whole},\n "tiles": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    print(f"{len(found)} of {len(kept) + len(found)} shapes are as measured now in {TABLE.name}")


def compile_beforehand(shapes: list[str], most: int) -> None:
    """Have a process for each shape compile what will be measured."""
    command = [sys.executable, __file__, "--most", str(most), "--only-compile"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    at_once = os.cpu_count() or 1
    for first in range(0, len(shapes), at_once):
        some = shapes[first : first + at_once]
        running = [subprocess.Popen([*command, shape], **quiet) for shape in some]
        for process in running:
            process.wait()


def main() -> None:
    """Measure, or merge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shapes", nargs="*", metavar="CELL:KIND:ROWS:UNITS[:2]")
    parser.add_argument("--save", type=Path, help="where measured tiles are kept")
    parser.add_argument("--merge", type=Path, help="such a file, for the package's table")
    parser.add_argument("--most", type=int, default=MOST, help="tiles of a kind that are tried")
    parser.add_argument("--only-compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.merge:
        merge(options.merge)
        return
    if not options.shapes:
        parser.error("there must be shapes to measure, or a file to --merge")
    try:
        shapes = [read_shape(text) for text in options.shapes]
    except (KeyError, ValueError):
        parser.error(
            "a shape is CELL:KIND:ROWS:UNITS, as lstm:bf16:256:1024, with a cell of "
            f"{', '.join(CELLS)} and a kind of {', '.join(KINDS)}, got {options.shapes}"
        )
    if options.most < 1:
        parser.error(f"--most must be at least 1, got {options.most}")
    if not torch.cuda.is_available():
        parser.error("shapes are measured on a card, and torch sees none here")
    if not options.only_compile:
        compile_beforehand(options.shapes, options.most)
    found = []
    for entry in tune_tiles(lambda line: print(line, flush=True), shapes, most=options.most):
        found.append(entry)
        if options.save:  # after each, so that a call that is cut off leaves what it has
            options.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
