"""Which backend `auto` takes: by measurements, those that came with the package or the user's own.

They have the time of our printed loops and kernels over that of torch's own layer, for the cells
torch has. What torch does not have runs by our own, and by the visible loop where they cannot.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from seqloom.kernels.backends import BACKENDS
from seqloom.kernels.layer import Direction, Kind
from seqloom.kernels.measured import load_table

FEW = 4  # rows up to which a batch is measured by one of few rows
PACKED = 0.5  # at most so much of torch's time, where torch packs a batch on a card
NUMBERS = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


def line_of(cell: str, rows: int, *, training: bool, ragged: bool) -> str:
    """The name of a line of the table: its ratios by hidden size."""
    return " ".join(
        [
            cell,
            "training" if training else "inference",
            "few" if rows <= FEW else "many",
            "ragged" if ragged else "whole",
        ]
    )


def ratio(line: str, size: int) -> float | None:
    """Our time over torch's by the table, between the measured sizes; None if it has no such line.

    Beyond the measured sizes it is that of the nearest one.
    """
    measured = {int(k): float(v) for k, v in load_table()["ratios"].get(line, {}).items()}
    if not measured:
        return None
    sizes = sorted(measured)
    above = next((s for s in sizes if s >= size), sizes[-1])
    below = next((s for s in reversed(sizes) if s <= size), sizes[0])
    if above == below or size >= sizes[-1] or size <= sizes[0]:
        return measured[above if size >= above else below]
    share = math.log(size / below) / math.log(above / below)
    return math.exp((1 - share) * math.log(measured[below]) + share * math.log(measured[above]))


def gpu_line(cell: str, dtype: torch.dtype, *, training: bool) -> str:
    """The name of a line of the table of a card: its ratios by rows and hidden size."""
    kind = NUMBERS.get(dtype, "")
    if kind == "fp32" and torch.backends.cuda.matmul.allow_tf32:
        kind = "tf32"
    return f"{cell} {kind} {'training' if training else 'inference'}"


def gpu_ratio(line: str, rows: int, size: int) -> float | None:
    """Our kernels' time over torch's at the nearest point measured; None if there is none."""
    points = load_table()["gpu"]["ratios"].get(line, {})
    return float(points[_nearest(tuple(points), rows, size)]) if points else None


@cache
def _nearest(places: tuple[str, ...], rows: int, size: int) -> str:
    """The place, written as rows and size, that is the fewest doublings away."""

    def distance(place: str) -> float:
        batch, hidden = map(int, place.split())
        return abs(math.log(rows / batch)) + abs(math.log(size / hidden))

    return min(places, key=distance)


def choose(
    backend: str, kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> str:
    """The backend itself if it was named, or the fastest one that can run this."""
    if backend != "auto":
        return backend
    own = "triton" if x.device.type == "cuda" else "cpu"
    able = [name for name in (own, "torch") if not BACKENDS[name].why_not(kind, x, directions)]
    if len(able) < 2:
        loops = not BACKENDS["reference"].why_not(kind, x, directions)
        found = able[0] if able else "reference" if loops else own  # which says why it cannot
        _say(kind, found, "the only fast one that has it")
        return found
    weights = directions[0].weights
    size = weights.weight_hh.shape[0] // len(kind.traced.gates)
    training = torch.is_grad_enabled() and weights.weight_hh.requires_grad
    table = load_table()
    if own == "cpu":
        line = line_of(kind.torch_name, len(x), training=training, ragged=lengths is not None)
        time, when = ratio(line, size), table["measured"]
    else:
        time = gpu_ratio(gpu_line(kind.torch_name, x.dtype, training=training), len(x), size)
        when = table["gpu"]["measured"]
        if lengths is not None:  # torch packs such a batch, and loses its fast kernels
            time = min(PACKED if time is None else time, PACKED)
    found = "torch" if time is None or time >= 1 else own
    measured = "" if time is None else f": {own} takes {time:.2f} of torch's time"
    _say(kind, found, f"by the measurements of {when}{measured}")
    return found


_said: set[str] = set()


def _say(kind: Kind, backend: str, why: str) -> None:
    """Say once in a process what was chosen."""
    if not _said and not torch.compiler.is_compiling():
        _said.add(kind.name)
        print(f"seqloom: {kind.name} runs on backend {backend!r}, {why}", file=sys.stderr)  # noqa: T201
