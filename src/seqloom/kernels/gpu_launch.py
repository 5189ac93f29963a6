"""Launching a printed kernel: which one, cut how, with what around it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.errors import BackendError, ShapeError
from seqloom.files import cache_folder
from seqloom.kernels.plan import Plan, Variant
from seqloom.kernels.tiles import LEAST, NARROWEST, Job, Tiles, choose_tiles, set_aside
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.triton_backward import Backward
from seqloom.kernels.triton_forward import Forward
from seqloom.kernels.triton_printing import TritonProgram
from seqloom.kernels.triton_products import Form, power
from seqloom.kernels.triton_text import BAD_LENGTH, PATIENCE


class Shape(NamedTuple):
    """Rows, steps, directions; units, and the width of the first state, both as arrays have them.

    And how many of both are real: rows of an array begin at 16 bytes.
    """

    B: int
    T: int
    directions: int
    H: int
    R: int
    real: int
    real_r: int


@cache
def plan_of(cell: TracedCell, variant: Variant) -> Plan:
    """What a cell's kernels compute."""
    return Plan(cell, variant, decisions=True, after=True)


@cache
def program_of(cell: TracedCell, variant: Variant, form: Form, *, backward: bool) -> TritonProgram:
    """A cell's kernel, printed."""
    return (Backward if backward else Forward)(plan_of(cell, variant), form).program()


@cache
def _kernel(cell: TracedCell, variant: Variant, form: Form, *, backward: bool) -> Any:
    program = program_of(cell, variant, form, backward=backward)
    return getattr(_module(program.source), program.name)


def _module(source: str) -> Any:
    name = f"seqloom_triton_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    folder = cache_folder() / "triton"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(dir=folder)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="seqloom-triton-"))
        descriptor, beside = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(source)
    path = folder / f"{name}.py"
    Path(beside).replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def processors_of(device: torch.device) -> int:
    """How many processors a card has."""
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def flag_of(device: torch.device) -> Tensor:
    """What a program raises that waited too long: in the host's memory, which is looked at soon."""
    return torch.zeros(1, dtype=torch.int32, pin_memory=device.type == "cuda")


def check_flags(device: torch.device) -> None:
    """Raise if an earlier launch failed: programs waited in vain, or lengths were no lengths.

    Raises:
        BackendError: If programs waited for each other in vain.
        ShapeError: If a length was below 1 or above the number of steps.
    """
    flag = flag_of(device)
    found = int(flag)
    if not found:
        return
    flag.zero_()
    if found == BAD_LENGTH:
        raise ShapeError(
            "lengths of an earlier call did not lie between 1 and the steps of its input; "
            "its results are wrong"
        )
    raise BackendError(
        "programs of a kernel waited for each other in vain, its results are wrong; "
        "use backend='torch' or 'reference', and report it"
    )


def job_of(plan: Plan, shape: Shape, item: int, *, backward: bool) -> Job:
    """What tiles are chosen for."""
    H, direct, late = shape.H, len(plan.direct), len(plan.late)
    across = 1 if backward else power(max(direct, 1))
    width = H * max(direct, 1) if backward else shape.R
    late += plan.variant.projected  # which is one more product
    return Job(
        H, shape.B, shape.directions, width, across, item, backward, direct, late,
        plan.variant.projected,
    )  # fmt: skip


@dataclass(frozen=True)
class Given:
    """What a run is given besides tensors that have gradients.

    Args:
        cell: The cell.
        variant: The options that are part of the loop.
        lengths: How many steps each row has, or None if all have all.
        order: The rows, the longest first.
        alive: (B + B * T, 1), all bits set for what rows begin with, and where one is not over.
        clip: The bound of states.
        precision: Of products of numbers of 4 bytes.
        directions: One or two.
        biased: Whether there are biases.
        begun: Whether there are states to begin with; otherwise they are 0.
        masks: By direction, what the state is multiplied with before its product.
        keep: By direction and state, the share that stays.
    """

    cell: TracedCell
    variant: Variant
    lengths: Tensor | None
    order: Tensor | None
    alive: Tensor | None
    clip: float
    precision: str
    directions: int
    biased: bool
    begun: bool
    masks: Sequence[Tensor]
    keep: Sequence[Sequence[Tensor]]

    @property
    def each(self) -> int:
        """Tensors a direction has: matrices, two biases, vectors, states."""
        states = len(self.cell.states) if self.begun else 0
        return 2 + self.variant.projected + 2 * self.biased + len(self.cell.vectors) + states


class TilesError(Exception):
    """Tiles were chosen that this card or its compiler cannot take; others will be."""


REFUSALS = ("OutOfResources", "PassManager::run failed")  # of the card, of the compiler


class Launch:
    """A kernel for a shape: its tiles, its grid, and the compiled forms of it that were needed.

    Args:
        cell: The cell.
        variant: The options that are part of the loop.
        shape: The shape; the number of steps may be any.
        dtype: Of the numbers.
        device: Where it runs; on the CPU, by Triton's interpreter.
        backward: Which of the two kernels.
    """

    def __init__(
        self, cell: TracedCell, variant: Variant, shape: Shape, dtype: torch.dtype,
        device: torch.device, *, backward: bool,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.device = shape, dtype, device
        B, H, R = shape.B, shape.H, shape.R
        plan, item = plan_of(cell, variant), dtype.itemsize
        self.interpreted = device.type == "cpu"
        self.job = job_of(plan, shape, item, backward=backward)
        tiles: Tiles | None = OPTIONS.get("back_tiles" if backward else "tiles")
        self.was_chosen = tiles is None and not self.interpreted
        if tiles is None and self.interpreted:  # its programs run in turn: one takes all
            split = OPTIONS.get("split", 1)
            tiles = Tiles(power(max(B, 16)), power(max(H, 16)), split, 16 * split, looks=split > 1)
        elif tiles is None:
            tiles = choose_tiles(self.job, processors_of(device))
        self.tiles, self.plan = tiles, plan
        self.grid = (-(-H // tiles.units), -(-B // tiles.rows), shape.directions)
        self.spots = tiles.units
        if variant.projected:  # a program's part of the first state
            self.spots = max(NARROWEST, power(-(-R // self.grid[0])))
            self.spots = max(LEAST, self.spots) if self.interpreted else self.spots
        self.kernel = _kernel(cell, variant, tiles.form(H, R, item), backward=backward)
        self.awaits = tiles.looks and self.grid[0] > 1
        self.bits = torch.int32 if item == 4 else torch.int16
        self._compiled: dict[Any, Any] = {}

    def awaited(self, given: Given, rows: int, width: int, *, front: int = 0) -> Tensor:
        """An array whose numbers are looked for, or 0 where a row is over."""
        alive = given.alive
        if alive is None and not self.awaits:
            return torch.empty(rows, width, dtype=self.dtype, device=self.device)
        if alive is None:
            return torch.full((rows, width), -1, dtype=self.bits, device=self.device).view(
                self.dtype
            )
        if not self.awaits:
            return torch.zeros(rows, width, dtype=self.dtype, device=self.device)
        if not front:
            alive = alive[self.shape.B :]
        found = alive.expand(-1, rows * width // len(alive))
        found = found.clone(memory_format=torch.contiguous_format)
        return found.view(self.dtype).view(rows, width)

    def run(
        self,
        given: Given,
        steps: int,
        pointers: Sequence[Tensor | None],
        *,
        save: bool,
        ended: bool,
        between: tuple[int, int] | None = None,
    ) -> None:
        """Launch the kernel, for all steps or those between two."""
        options = (
            save, bool(given.masks), given.biased, given.begun, ended, given.lengths is not None,
            between is not None, given.precision,
        )  # fmt: skip
        sizes = (steps, self.shape.B, given.clip, *(between or (0, steps)))
        if self.interpreted:
            some = next(pointer for pointer in pointers if pointer is not None)
            arrays = [some if pointer is None else pointer for pointer in pointers]
            self.kernel[self.grid](*arrays, *sizes, *self._constants(options))
            return
        # Addresses, and not tensors, which Triton would ask the driver about one by one.
        places = [0 if pointer is None else pointer.data_ptr() for pointer in pointers]
        key = (options, *(place % 16 == 0 for place in places))
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(pointers, sizes, options)
        run, constants = found
        run(*places, *sizes, *constants)

    def _constants(self, options: tuple[Any, ...]) -> tuple[Any, ...]:
        shape, tiles = self.shape, self.tiles
        return (
            shape.H, shape.R, shape.real, shape.real_r, tiles.rows, tiles.units, self.spots,
            self.grid[0], shape.directions, tiles.held, *options, PATIENCE,
        )  # fmt: skip

    def _compile(
        self, pointers: Sequence[Tensor | None], sizes: tuple[Any, ...], options: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """What runs the kernel with these options, compiled or from the cache on disk."""
        some = next(pointer for pointer in pointers if pointer is not None)
        arrays = [some if pointer is None else pointer for pointer in pointers]
        constants = self._constants(options)
        try:
            compiled = self.kernel.warmup(
                *arrays, *sizes, *constants, grid=self.grid, num_warps=self.tiles.warps,
                num_stages=1, launch_cooperative_grid=self.grid[0] > 1,
            )  # fmt: skip
            return compiled[self.grid], constants
        except Exception as error:
            said = f"{type(error).__name__} {error}"
            if not self.was_chosen or not any(name in said for name in REFUSALS):
                raise
            set_aside(self.job, self.tiles)
            _launches.clear()
            raise TilesError from error

    def matrices(self, hidden: Tensor, precision: str) -> Tensor:
        """The recurrent matrices as the kernel takes them, (directions, gates, H, R).

        Where they are streamed, what lies side by side is what is multiplied with a row of the
        operand, and numbers are rounded to tf32 if products are, as no program could do it in time.
        """
        if not self.tiles.stages:
            return hidden
        found = hidden.transpose(2, 3).contiguous() if self.job.turned else hidden
        if self.dtype != torch.float32 or precision != "tf32":
            return found
        rounded = (found.view(torch.int32) + 0x1000).view(torch.float32)
        return torch.where(found.isnan(), found, rounded)

    def counters(self) -> Tensor | None:
        """The barrier's counters, where there is one."""
        if self.tiles.looks or self.grid[0] == 1:
            return None
        units, rows, directions = self.grid
        groups = units // self.tiles.parts if self.tiles.parts > 1 else 0
        count = rows * directions * (1 + groups) * 32
        return torch.zeros(count, dtype=torch.int32, device=self.device)

    def partial(self) -> Tensor | None:
        """Room for the sums of programs that share a product: those of two steps."""
        tiles = self.tiles
        if tiles.parts == 1:
            return None
        units, rows, directions = self.grid
        count = 2 * units * rows * directions * tiles.rows * tiles.units * tiles.parts
        return torch.empty(count, dtype=torch.float32, device=self.device)


def launch_of(
    cell: TracedCell, variant: Variant, shape: Shape, dtype: torch.dtype, device: torch.device,
    *, backward: bool,
) -> Launch:  # fmt: skip
    """The launch of a kernel for a shape with any number of steps."""
    key = (cell, variant, shape._replace(T=0), dtype, device, backward, *OPTIONS.items())
    found = _launches.get(key)
    if found is None:
        found = Launch(cell, variant, shape, dtype, device, backward=backward)
        _launches[key] = found
    return found


_launches: dict[Any, Launch] = {}

OPTIONS: dict[str, Any] = {}
"""For measurements and tests: "tiles" and "back_tiles" to use, or the "split" when interpreted."""
