"""A recurrence on a GPU: the printed Triton kernels, and the large products around them."""

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
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqloom.errors import BackendError
from seqloom.files import cache_folder
from seqloom.kernels.layer import Direction, Ran
from seqloom.kernels.plan import Variant
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.triton_printing import TritonProgram, print_triton

PATIENCE = 1 << 22  # looks at a barrier before a program gives up


@dataclass(frozen=True)
class Tiles:
    """How a kernel is cut.

    Args:
        rows: Rows of a program.
        units: Units of a program.
        warps: Its warps.
        hold: Whether it holds its part of the matrix from step to step.
    """

    rows: int
    units: int
    warps: int
    hold: bool


@cache
def program_of(cell: TracedCell, variant: Variant, chunks: int = 1) -> TritonProgram:
    """A cell's kernels, printed."""
    return print_triton(cell, variant, chunks)


@cache
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


def power(n: int) -> int:
    """The next power of 2."""
    return 1 << max(0, n - 1).bit_length()


CHUNK = 256  # units of the state that a product takes at a time
SMEM = 200_000  # bytes a program may hold on chip


def choose_tiles(
    program: TritonProgram, size: int, batch: int, directions: int, item: int, processors: int, *,
    backward: bool,
) -> Tiles:  # fmt: skip
    """Tiles for a shape: every program of a launch must be at work at once, one a processor.

    Few rows and few units a program are best while there are processors for them all and its part
    of the matrix can be held; measured on an H200 for the LSTM.
    """
    width = power(max(size, 16))
    gates = len(program.plan.cell.gates) if backward else program.gates + len(program.plan.late)
    least = 16 if backward else max(4, 16 // program.gates)
    fitting = []
    for rows in (16, 32, 64, 128):
        slices = -(-batch // rows) * directions
        for units in (4, 8, 16, 32, 64, 128):
            programs = -(-size // units) * slices
            if units < least or units > width or programs > processors:
                continue
            held = width * gates * units * item + rows * min(width, CHUNK) * item
            fitting.append((held > SMEM, rows, abs(units - (32 if backward else 8)), units))
        if rows >= batch:
            break
    if not fitting:
        raise BackendError(
            f"{batch} rows of {size} units in {directions} directions are more than the "
            f"{processors} processors of this card take at once; use smaller batches"
        )
    too_large, rows, _, units = min(fitting)
    return Tiles(rows, units, 4 if rows <= 32 else 8, not too_large)


class _Launch:
    """One run of a kernel."""

    def __init__(
        self, cell: TracedCell, variant: Variant, like: Tensor, lengths: Tensor | None,
        shape: tuple[int, int, int, int], tiles: Tiles | None, *, backward: bool,
    ) -> None:  # fmt: skip
        width = power(max(shape[3], 16))
        self.chunk = min(width, CHUNK)
        self.program = program_of(cell, variant, width // self.chunk)
        self.B, self.T, self.directions, self.H = shape
        self.like, self.interpreted = like, like.device.type == "cpu"
        if self.interpreted:  # programs run one after another there: one takes all
            tiles = Tiles(power(max(self.B, 16)), power(max(self.H, 16)), 4, hold=True)
        else:
            processors = torch.cuda.get_device_properties(like.device).multi_processor_count
        self.tiles = tiles or choose_tiles(
            self.program, self.H, self.B, self.directions, like.element_size(), processors,
            backward=backward,
        )  # fmt: skip
        if lengths is None:
            lengths = torch.full((self.B,), self.T, device=like.device)
            self.order = torch.arange(self.B, device=like.device)
        else:
            self.order = lengths.argsort(descending=True, stable=True)
        self.lengths = lengths
        self.nothing = like.new_empty(1)

    @property
    def grid(self) -> tuple[int, int, int]:
        tiles = self.tiles
        return -(-self.H // tiles.units), -(-self.B // tiles.rows), self.directions

    def run(
        self, kernel: str, pointers: Sequence[Tensor | None], *, clip: float, save: bool,
        masked: bool, biased: bool, precision: str,
    ) -> None:  # fmt: skip
        grid = self.grid
        options: dict[str, Any] = {}
        if not self.interpreted:
            options = {"num_warps": self.tiles.warps, "num_stages": 1}
            options["launch_cooperative_grid"] = grid[0] > 1
        given = [self.nothing if p is None else p for p in pointers]
        getattr(_module(self.program.source), kernel)[grid](
            *given, self.T, self.B, clip,
            H=self.H, KC=self.chunk, BB=self.tiles.rows, BH=self.tiles.units,
            NU=grid[0], DIRECTIONS=self.directions, HOLD=self.tiles.hold, SAVE=save, MASKED=masked,
            BIASED=biased, PRECISION=precision, PATIENCE=PATIENCE, **options,
        )  # fmt: skip

    def counters(self) -> tuple[Tensor, Tensor]:
        """The barrier's counters, and the flag a program raises that waited too long."""
        count = self.grid[1] * self.grid[2] * 32
        room = torch.zeros(count + 1, dtype=torch.int32, device=self.like.device)
        _FLAGS.append(room[count:])
        return room[:count], room[count:]


_FLAGS: list[Tensor] = []


def check_flags() -> None:
    """Raise if a barrier of an earlier launch was given up.

    Raises:
        BackendError: If one was.
    """
    raised = any(bool(flag) for flag in _FLAGS)
    _FLAGS.clear()
    if raised:
        raise BackendError(
            "programs of a kernel waited for each other in vain, its results are wrong; "
            "use backend='reference' and report it"
        )


class Recurrence(torch.autograd.Function):
    """The recurrence of both directions, from the products of the input on."""

    @staticmethod
    def forward( # noqa: D102
        ctx: Any, settings: dict[str, Any], drive: Tensor, weight: Tensor, bias: Tensor | None,
        vectors: Tensor | None, mask: Tensor | None, keep: Tensor | None, *begin: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        cell, variant, lengths = settings["cell"], settings["variant"], settings["lengths"]
        directions, B, H = begin[0].shape
        T = drive.shape[1]
        launch = _Launch(
            cell, variant, drive, lengths, (B, T, directions, H), settings.get("tiles"),
            backward=False,
        )  # fmt: skip
        program, plan = launch.program, launch.program.plan
        save = any(ctx.needs_input_grad)
        make = drive.new_zeros if lengths is not None else drive.new_empty
        out = make(B, T, directions, H)
        ends = [torch.empty_like(s) for s in begin]

        def room(count: int, wanted: bool) -> Tensor | None:
            return drive.new_empty(B, T, directions, count, H) if wanted and count else None

        saved = room(len(plan.saved), save)
        sums = plan.joined and "x" in plan.kept
        u = room(len(plan.direct), save and ("u" in plan.kept or sums))
        late = room(len(plan.late), save and "late" in plan.kept)
        operand = room(len(plan.late), wanted=True)
        if operand is not None and lengths is not None:
            operand.zero_()
        runs = [room(1, save) for _ in program.runs]
        counters, flag = launch.counters()
        launch.run(
            "forward",
            [drive, weight, bias, vectors, launch.lengths, launch.order, mask, keep, out, saved, u,
             late, operand, counters, flag, *begin, *ends, *runs],
            clip=settings["clip"], save=save, masked=mask is not None, biased=bias is not None,
            precision=settings["precision"],
        )  # fmt: skip
        if save:
            ctx.settings, ctx.states, ctx.runs = settings, len(begin), len(runs)
            ctx.save_for_backward(
                drive if "x" in plan.kept and not plan.joined else None, weight, bias, vectors,
                mask, keep, out, saved, u, late, operand, *begin, *runs,
            )  # fmt: skip
        return (out, *ends)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, *dends: Tensor) -> Any:  # noqa: D102
        settings = ctx.settings
        drive, weight, bias, vectors, mask, keep, out, saved, u, late, operand, *rest = (
            ctx.saved_tensors
        )
        begin, runs = rest[: ctx.states], rest[ctx.states :]
        lengths = settings["lengths"]
        B, T, directions, H = out.shape
        launch = _Launch(
            settings["cell"], settings["variant"], out, lengths, (B, T, directions, H),
            settings.get("back_tiles"), backward=True,
        )  # fmt: skip
        plan = launch.program.plan
        G = len(plan.cell.gates)
        make = out.new_zeros if lengths is not None else out.new_empty
        dx = make(B, T, directions, G, H)
        du = None if plan.joined else make(B, T, directions, len(plan.direct), H)
        dlate = make(B, T, directions, len(plan.late), H) if plan.late else None
        dv = None
        if plan.cell.vectors:
            shape = (launch.grid[1], directions, len(plan.cell.vectors), H)
            dv = torch.zeros(shape, device=out.device)
        dbegin = [torch.empty_like(s) for s in begin]
        counters, flag = launch.counters()
        launch.run(
            "backward",
            [drive, weight, vectors, launch.lengths, launch.order, mask, keep, out, saved, u, late,
             dout.contiguous(), dx, du, dlate, dv, counters, flag, *begin,
             *(d.contiguous() for d in dends), *dbegin, *runs],
            clip=settings["clip"], save=True, masked=mask is not None, biased=bias is not None,
            precision=settings["precision"],
        )  # fmt: skip
        dweight, dbias = _weight_gradients(
            plan, begin[0], out, lengths, mask, dx, du, dlate, operand
        )
        return (
            None, dx.view(B, T, -1), dweight, None if bias is None else dbias,
            None if dv is None else dv.sum(0).to(vectors.dtype), None, None, *dbegin,
        )  # fmt: skip


def _weight_gradients(
    plan: Any, begin: Tensor, out: Tensor, lengths: Tensor | None, mask: Tensor | None, dx: Tensor,
    du: Tensor | None, dlate: Tensor | None, operand: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Those of the recurrent matrices and biases, each one product over all steps."""
    B, T, directions, H = out.shape
    before = torch.empty_like(out)
    before[:, 1:, 0], before[:, 0, 0] = out[:, :-1, 0], begin[0]
    if directions == 2:
        before[:, :-1, 1] = out[:, 1:, 1]
        if lengths is None:
            before[:, -1, 1] = begin[1]
        else:
            before[torch.arange(B, device=out.device), lengths - 1, 1] = begin[1]
    if mask is not None:
        before = before * mask.transpose(0, 1)[:, None]
    gradients = dx if du is None else du
    gates = plan.cell.gates
    dweight = out.new_empty(directions, len(gates), H, H)
    dbias = out.new_empty(directions, len(gates), H)
    for d in range(directions):
        rows = gradients[:, :, d].reshape(B * T, -1)
        found = (rows.t() @ before[:, :, d].reshape(B * T, H)).view(-1, H, H)
        sums = rows.sum(0).view(-1, H)
        for number, gate in enumerate(plan.direct):
            dweight[d, gates.index(gate)], dbias[d, gates.index(gate)] = found[number], sums[number]
        for number, gate in enumerate(plan.late):
            rows = dlate[:, :, d, number].reshape(B * T, H)  # type: ignore[index]
            values = operand[:, :, d, number].reshape(B * T, H)  # type: ignore[index]
            dweight[d, gates.index(gate)] = rows.t() @ values
            dbias[d, gates.index(gate)] = rows.sum(0)
    return dweight.view(directions, -1, H), dbias.view(directions, -1)


def run_directions(
    cell: TracedCell, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> list[Ran]:
    """Run a layer of one or two directions, both in one launch."""
    weights, settings = [d.weights for d in directions], directions[0].settings
    variant = Variant(bool(settings.keep), settings.clip is not None)
    joined = program_of(cell, variant).plan.joined
    has_bias = weights[0].bias_hh is not None
    bias = None
    if has_bias:
        parts = [w.bias_ih + w.bias_hh if joined else w.bias_ih for w in weights]  # type: ignore[operator]
        bias = torch.cat(parts)  # type: ignore[arg-type]
    drive = functional.linear(x, torch.cat([w.weight_ih for w in weights]), bias)
    late_bias = None
    if has_bias and not joined:
        late_bias = torch.stack([w.bias_hh for w in weights])  # type: ignore[misc]
    vectors = None
    if cell.vectors:
        vectors = torch.stack([torch.stack(list(w.vectors)) for w in weights])
    mask = None
    if settings.mask is not None:
        mask = torch.stack([d.settings.mask for d in directions])  # type: ignore[misc]
    keep = None
    if settings.keep:
        keep = torch.stack([torch.stack(list(d.settings.keep), 2) for d in directions], 2)
    begin = [torch.stack(parts) for parts in zip(*(d.states for d in directions), strict=True)]
    full = x.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32
    options = {
        "cell": cell, "variant": variant, "lengths": lengths, "clip": settings.clip or 0.0,
        "precision": "ieee" if full else "tf32",
    }  # fmt: skip
    hidden = torch.stack([w.weight_hh for w in weights])
    out, *ended = Recurrence.apply(  # type: ignore[no-untyped-call]
        options, drive, hidden, late_bias, vectors, mask, keep, *begin
    )
    return [Ran(out[:, :, i], [e[i] for e in ended]) for i in range(len(directions))]
