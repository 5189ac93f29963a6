"""Which backend `auto` takes: by measurements, those that came with the package or the user's own.

The table has the time of our printed loops over that of torch's own layer, for the cells torch has.
What torch does not have runs by the printed loops on the CPU, and by the visible loop elsewhere.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqloom.errors import DataError
from seqloom.files import cache_folder
from seqloom.kernels.backends import BACKENDS
from seqloom.kernels.layer import Direction, Kind

FEW = 4  # rows up to which a batch is measured by one of few rows
LARGEST_TABLE = 1 << 20  # bytes

Table = Mapping[str, Any]


def own_table() -> Path:
    """Where the user's measurements are kept."""
    return cache_folder() / "backends.json"


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


@cache
def load_table() -> Table:
    """The user's measurements if there are any, or those that came with the package.

    Raises:
        DataError: If the user's file is damaged.
    """
    own = own_table()
    if not own.is_file():
        packed = resources.files("seqloom.kernels").joinpath("backends.json")
        return json.loads(packed.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    try:
        if own.stat().st_size > LARGEST_TABLE:
            raise ValueError("too large")
        table = json.loads(own.read_text(encoding="utf-8"))
        for ratios in table["ratios"].values():
            if not all(int(size) > 0 and float(ratio) > 0 for size, ratio in ratios.items()):
                raise ValueError("not a ratio")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"the table of backends cannot be read ({error}); delete it, or make it again with "
            "`seqloom bench --tune`",
            own,
        ) from None
    return table  # type: ignore[no-any-return]


def save_table(table: Table) -> Path:
    """Keep measurements for `auto`; returns where."""
    own = own_table()
    own.parent.mkdir(parents=True, exist_ok=True)
    beside = own.with_suffix(".partial")
    beside.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    beside.replace(own)
    load_table.cache_clear()
    return own


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


def choose(
    backend: str, kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> str:
    """The backend itself if it was named, or the fastest one that can run this."""
    if backend != "auto":
        return backend
    able = [name for name, one in BACKENDS.items() if not one.why_not(kind, x, directions)]
    if "torch" not in able or "cpu" not in able:
        found = next(
            (n for n in ("cpu", "torch", "reference") if n in able), "cpu"
        )  # which says why
        _say(kind, found, "the only fast one that has it")
        return found
    weights = directions[0].weights
    size = weights.weight_hh.shape[0] // len(kind.traced.gates)
    training = torch.is_grad_enabled() and weights.weight_hh.requires_grad
    ragged = lengths is not None
    time = ratio(line_of(kind.torch_name, len(x), training=training, ragged=ragged), size)
    found = "torch" if time is None or time >= 1 else "cpu"
    measured = "" if time is None else f": cpu takes {time:.2f} of torch's time"
    _say(kind, found, f"by the measurements of {load_table()['measured']}{measured}")
    return found


_said: set[str] = set()


def _say(kind: Kind, backend: str, why: str) -> None:
    """Say once in a process what was chosen."""
    if not _said and not torch.compiler.is_compiling():
        _said.add(kind.name)
        print(f"seqloom: {kind.name} runs on backend {backend!r}, {why}", file=sys.stderr)  # noqa: T201
