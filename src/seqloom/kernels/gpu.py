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
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from seqloom.errors import BackendError
from seqloom.files import cache_folder
from seqloom.kernels.layer import Direction, Ran
from seqloom.kernels.plan import Plan, Variant
from seqloom.kernels.tiles import LEAST, NARROWEST, Job, Tiles, choose_tiles, set_aside
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.triton_backward import Backward
from seqloom.kernels.triton_forward import Forward
from seqloom.kernels.triton_printing import TritonProgram, runs_of
from seqloom.kernels.triton_products import Form, power
from seqloom.kernels.triton_text import PATIENCE


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
    return Plan(cell, variant, decisions=True)


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
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def _flag(device: torch.device) -> Tensor:
    """What a program raises that waited too long: in the host's memory, which is looked at soon."""
    return torch.zeros(1, dtype=torch.int32, pin_memory=device.type == "cuda")


def check_flags(device: torch.device) -> None:
    """Raise if programs of an earlier launch waited for each other in vain.

    Raises:
        BackendError: If they did.
    """
    flag = _flag(device)
    if flag.item():
        flag.zero_()
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
class _Given:
    """What a run is given besides tensors that have gradients.

    Args:
        cell: The cell.
        variant: The options that are part of the loop.
        lengths: How many steps each row has, or None if all have all.
        order: The rows, the longest first.
        alive: (B, T), -1 where a row is not over.
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


_compiled: dict[Any, Any] = {}


class _TooLargeError(Exception):
    """Tiles were chosen that the card has no room for; others will be."""


class _Launch:
    """One run of a kernel."""

    def __init__(self, given: _Given, like: Tensor, shape: Shape, *, backward: bool) -> None:
        self.given, self.like, self.shape = given, like, shape
        B, H, R = shape.B, shape.H, shape.R
        plan = plan_of(given.cell, given.variant)
        item = like.element_size()
        self.interpreted = like.device.type == "cpu"
        self.job = job_of(plan, shape, item, backward=backward)
        tiles: Tiles | None = OPTIONS.get("back_tiles" if backward else "tiles")
        self.was_chosen = tiles is None and not self.interpreted
        if self.interpreted:  # programs run one after another there: one takes all
            split = OPTIONS.get("split", 1)
            tiles = Tiles(power(max(B, 16)), power(max(H, 16)), split, 16 * split, looks=split > 1)
        elif tiles is None:
            tiles = choose_tiles(self.job, _processors(like.device))
        self.tiles, self.plan = tiles, plan
        self.grid = (-(-H // tiles.units), -(-B // tiles.rows), shape.directions)
        self.spots = tiles.units
        if given.variant.projected:  # a program's part of the first state
            self.spots = max(NARROWEST, power(-(-R // self.grid[0])))
            self.spots = max(LEAST, self.spots) if self.interpreted else self.spots
        form = tiles.form(H, R, item)
        self.kernel = _kernel(given.cell, given.variant, form, backward=backward)
        self.awaits = tiles.looks and self.grid[0] > 1

    def awaited(self, rows: int, width: int, *, front: int = 0) -> Tensor:
        """An array whose numbers are looked for, or 0 where a row is over."""
        like, alive = self.like, self.given.alive
        B, T = self.shape.B, self.shape.T
        if alive is None:
            found = like.new_empty(rows, width)
            if self.awaits:
                _bits(found).fill_(-1)
            return found
        pattern = alive if self.awaits else torch.zeros_like(alive)
        kind = torch.int32 if like.element_size() == 4 else torch.int16
        found = like.new_empty(rows, width)
        body = _bits(found)[front:].view(B * T, -1)
        body.copy_(pattern.view(B * T, 1).to(kind).expand_as(body))
        if front:
            _bits(found)[:front].fill_(-1)
        return found

    def run(self, pointers: Sequence[Tensor | None], *, save: bool, ended: bool) -> None:
        """Launch the kernel."""
        given, tiles, like = self.given, self.tiles, self.like
        shape = self.shape
        constants = (
            shape.H, shape.R, shape.real, shape.real_r, tiles.rows, tiles.units, self.spots,
            self.grid[0], shape.directions, tiles.held, save, bool(given.masks), given.biased,
            given.begun, ended, given.lengths is not None, given.precision, PATIENCE,
        )  # fmt: skip
        arguments = [*(like if p is None else p for p in pointers), shape.T, shape.B, given.clip]
        arguments += constants
        if self.interpreted:
            self.kernel[self.grid](*arguments)
            return
        aligned = tuple(p is None or p.data_ptr() % 16 == 0 for p in pointers)
        key = (self.kernel, like.dtype, like.device, tiles.warps, constants, aligned)
        compiled = _compiled.get(key)
        if compiled is not None:  # which spares what Triton finds out at every launch
            compiled[self.grid](*arguments)
            return
        options = {"num_warps": tiles.warps, "num_stages": 1}
        options["launch_cooperative_grid"] = self.grid[0] > 1
        try:
            _compiled[key] = self.kernel[self.grid](*arguments, **options)
        except Exception as error:
            if type(error).__name__ != "OutOfResources" or not self.was_chosen:
                raise
            set_aside(self.job, tiles)
            raise _TooLargeError from error

    def counters(self) -> Tensor | None:
        """The barrier's counters, where there is one."""
        if self.tiles.looks or self.grid[0] == 1:
            return None
        units, rows, directions = self.grid
        groups = units // self.tiles.parts if self.tiles.parts > 1 else 0
        count = rows * directions * (1 + groups) * 32
        return torch.zeros(count, dtype=torch.int32, device=self.like.device)

    def partial(self) -> Tensor | None:
        """Room for the sums of programs that share a product: those of two steps."""
        tiles = self.tiles
        if tiles.parts == 1:
            return None
        units, rows, directions = self.grid
        count = 2 * units * rows * directions * tiles.rows * tiles.units * tiles.parts
        return torch.empty(count, dtype=torch.float32, device=self.like.device)


def _bits(tensor: Tensor) -> Tensor:
    return tensor.view(torch.int32 if tensor.element_size() == 4 else torch.int16)


class Recurrence(torch.autograd.Function):
    """A layer of one or two directions, the products of the input included.

    All in one place, because at this speed the time of launching many small kernels shows.
    """

    @staticmethod
    def forward(ctx: Any, given: _Given, x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: D102
        try:
            return _run_forward(ctx, given, x, tensors)
        except _TooLargeError:
            return Recurrence.forward(ctx, given, x, *tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: D102
        try:
            return _run_backward(ctx, gradients)
        except _TooLargeError:
            return Recurrence.backward(ctx, *gradients)


def _run_forward(
    ctx: Any, given: _Given, x: Tensor, tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    wide = _Wide(given, x, tensors)
    shape = wide.shape
    B, T, directions, H, R, *_ = shape
    drive = functional.linear(x, wide.inner, wide.bias)
    launch = _Launch(given, drive, shape, backward=False)
    plan = launch.plan
    runs = runs_of(plan)
    save = any(ctx.needs_input_grad)
    front, steps = directions * B, B * T * directions
    seen = launch.awaited(front + steps, R, front=front)
    out = seen
    if given.masks:
        out = (seen.new_empty if given.lengths is None else seen.new_zeros)(front + steps, R)
    widths = [R] + [H] * (len(plan.cell.states) - 1)
    ends = [drive.new_empty(directions, B, width) for width in widths]

    def room(count: int, wanted: bool) -> Tensor | None:
        return drive.new_empty(steps, count, H) if wanted and count else None

    saved = room(len(plan.saved), save)
    sums = plan.joined and "x" in plan.kept
    u = room(len(plan.direct), save and ("u" in plan.kept or sums))
    late = room(len(plan.late), save and "late" in plan.kept)
    operand = launch.awaited(steps, len(plan.late) * H) if plan.late else None
    whole = launch.awaited(steps, H) if plan.variant.projected else None
    states = [drive.new_empty(front + steps, H) if save else None for _ in runs]
    begin: Sequence[Tensor | None] = wide.begin or [None] * len(ends)
    launch.run(
        [drive, wide.hidden, wide.projection, wide.late_bias, wide.vectors, given.lengths,
         given.order, wide.mask, wide.keep, wide.keep_r, out, seen, whole, saved, u, late, operand,
         launch.counters(), _flag(drive.device), *begin, *ends, *states],
        save=save, ended=True,
    )  # fmt: skip
    if save:
        ctx.given, ctx.shape, ctx.kinds = given, shape, [t.shape for t in tensors]
        ctx.save_for_backward(
            x, drive if "x" in plan.kept and not plan.joined else None, wide.inner, wide.hidden,
            wide.projection, wide.vectors, wide.mask, wide.keep, wide.keep_r, out, seen, whole,
            saved, u, late, operand, *states,
        )  # fmt: skip
        ctx.set_materialize_grads(False)
    outputs = _cut(out[front:].view(B, T, directions, R), R - shape.real_r, 3)
    found = [_cut(ends[0], R - shape.real_r, 2)]
    found += [_cut(end, H - shape.real, 2) for end in ends[1:]]
    return (*outputs.unbind(2), *(end for state in found for end in state.unbind()))


def _run_backward(ctx: Any, gradients: Sequence[Tensor | None]) -> Any:
    given: _Given = ctx.given
    shape: Shape = ctx.shape
    x, drive, inner, hidden, projection, vectors, mask, *rest = ctx.saved_tensors
    keep, keep_r, out, seen, whole, saved, u, late, operand, *states = rest
    B, T, directions, H, R, real, real_r = shape
    launch = _Launch(given, out, shape, backward=True)
    plan = launch.plan
    G, steps, more, more_r = len(plan.cell.gates), B * T * directions, H - real, R - real_r
    dout = _joined(gradients[:directions], (B, T, real_r), 2, more_r, x)
    ended = gradients[directions:]
    dends: list[Tensor | None] = [None] * len(plan.cell.states)
    if any(gradient is not None for gradient in ended):
        for k in range(len(dends)):
            width, wider = (real, more) if k else (real_r, more_r)
            mine = ended[k * directions : (k + 1) * directions]
            dends[k] = _joined(mine, (B, width), 0, wider, x)
    if plan.joined:
        dx, du = launch.awaited(steps, G * H), None
    else:
        dx = (out.new_empty if given.lengths is None else out.new_zeros)(steps, G * H)
        du = launch.awaited(steps, len(plan.direct) * H) if plan.direct else None
    dlate = launch.awaited(steps, len(plan.late) * H) if plan.late else None
    dr = None if whole is None else launch.awaited(steps, R)
    dv = None
    if plan.cell.vectors:
        dv = torch.empty(launch.grid[1], directions, len(plan.cell.vectors), H, device=out.device)
    widths = [R] + [H] * (len(plan.cell.states) - 1)
    dbegin = [out.new_empty(directions, B, width) for width in widths]
    launch.run(
        [drive, hidden, projection, vectors, given.lengths, given.order, mask, keep, keep_r, out,
         saved, u, late, dout, dx, du, dlate, dr, dv, launch.partial(), launch.counters(),
         _flag(out.device), *dends, *dbegin, *states],
        save=True, ended=dends[0] is not None,
    )  # fmt: skip
    before = _before(seen, given.lengths, shape)
    parts = (dx if du is None else du, dlate, operand)
    dhidden, late_sums = _weight_gradients(plan, before, parts, H, biased=given.biased)
    flat = dx.view(B * T, directions * G * H)
    dinner = (flat.t() @ x.reshape(B * T, -1)).view(directions, G, H, -1)
    dbias = flat.sum(0).view(directions, G, H) if given.biased else None
    found: list[Tensor] = []
    for d in range(directions):
        found += [_cut(dinner[d], more, 1), _cut(_cut(dhidden[d], more, 1), more_r, 2)]
        if dr is not None and whole is not None:
            one, other = (a.view(B * T, directions, -1)[:, d] for a in (dr, whole))
            found.append(_cut(_cut(one.t() @ other, more_r, 0), more, 1))
        if dbias is not None:
            own = _cut(dbias[d], more, 1)
            found += [own, own if late_sums is None else _cut(late_sums[d], more, 1)]
        if dv is not None:
            found += list(_cut(dv.sum(0)[d].to(x.dtype), more, 1))
        if given.begun:
            found.append(_cut(dbegin[0][d], more_r, 1))
            found += [_cut(gradient[d], more, 1) for gradient in dbegin[1:]]
    given_x = (flat @ inner).view_as(x) if ctx.needs_input_grad[1] else None
    shaped = [found_.reshape(kind) for found_, kind in zip(found, ctx.kinds, strict=True)]
    return (None, given_x, *shaped)


def _cut(tensor: Tensor, more: int, axis: int) -> Tensor:
    """Without the units that were added."""
    return tensor.narrow(axis, 0, tensor.shape[axis] - more) if more else tensor


def _joined(
    parts: Sequence[Tensor | None], shape: tuple[int, ...], axis: int, more: int, like: Tensor
) -> Tensor:
    """The gradients of the directions as one array, zeros where there is none."""
    whole = [like.new_zeros(shape) if part is None else part for part in parts]
    found = whole[0].unsqueeze(axis) if len(whole) == 1 else torch.stack(whole, axis)
    return functional.pad(found, (0, more)) if more else found.contiguous()


class _Wide:
    """A layer's tensors as the kernels take them: both directions together, rows of 16 bytes."""

    def __init__(self, given: _Given, x: Tensor, tensors: Sequence[Tensor]) -> None:
        cell, projected = given.cell, given.variant.projected
        G, (rows, R) = len(cell.gates), tensors[1].shape
        H, unit = rows // G, 4 if x.element_size() == 4 else 8
        more, more_r = -H % unit, -R % unit
        self.shape = Shape(
            len(x), x.shape[1], given.directions, H + more, R + more_r, real=H, real_r=R
        )
        each = [list(tensors[i : i + given.each]) for i in range(0, len(tensors), given.each)]

        def gates(tensor: Tensor) -> Tensor:
            """Rows of every gate made more."""
            if not more:
                return tensor
            return functional.pad(tensor.view(G, H, -1), (0, 0, 0, more)).flatten(0, 1)

        def columns(tensor: Tensor, more: int) -> Tensor:
            return functional.pad(tensor, (0, more)) if more else tensor

        inner = [gates(one.pop(0)) for one in each]
        self.inner = inner[0] if len(inner) == 1 else torch.cat(inner)
        self.hidden = _together([columns(gates(one.pop(0)), more_r) for one in each])
        self.projection = self.bias = self.late_bias = self.vectors = None
        self.mask = self.keep = self.keep_r = None
        if projected:
            taller = [functional.pad(one.pop(0), (0, more, 0, more_r)) for one in each]
            self.projection = _together(taller)
        if given.biased:
            bias = [columns(one.pop(0).view(G, H), more).reshape(-1) for one in each]
            self.bias = bias[0] if len(bias) == 1 else torch.cat(bias)
            late = [columns(one.pop(0).view(G, H), more).reshape(-1) for one in each]
            self.late_bias = _together(late)
        if cell.vectors:
            count = len(cell.vectors)
            own = [columns(torch.stack(one[:count]), more) for one in each]
            self.vectors = _together(own)
            each = [one[count:] for one in each]
        self.begin: list[Tensor] = []
        for k in range(len(cell.states) if given.begun else 0):
            own = [columns(one[k], more if k else more_r) for one in each]
            self.begin.append(_together(own).contiguous())
        if given.masks:
            self.mask = _together([columns(mask, more_r) for mask in given.masks]).contiguous()
        if given.keep:
            first = torch.stack([one[0] for one in given.keep], 2)  # (B, T, directions, R)
            self.keep_r = columns(first, more_r).contiguous()
            if len(cell.states) > 1:
                kept = [torch.stack(list(one[1:]), 2) for one in given.keep]
                self.keep = columns(torch.stack(kept, 2), more).contiguous()


def _together(parts: Sequence[Tensor]) -> Tensor:
    """Those of the directions as one; without a copy if there is one."""
    return parts[0][None] if len(parts) == 1 else torch.stack(list(parts))


def _before(seen: Tensor, lengths: Tensor | None, shape: Shape) -> list[Tensor]:
    """By direction: what the matrices were multiplied with at each step, (B * T, R)."""
    B, T, directions, _, R, *_ = shape
    front = directions * B
    body = seen[front:].view(B, T, directions, R)
    begin = seen[:front].view(directions, B, 1, R)
    found = [torch.cat([begin[0], body[:, :-1, 0]], 1).view(B * T, R)]
    if directions == 2:
        back = torch.cat([body[:, 1:, 1], begin[1]], 1)
        if lengths is not None:
            back[torch.arange(B, device=back.device), lengths - 1] = begin[1, :, 0]
        found.append(back.view(B * T, R))
    return found


def _weight_gradients(
    plan: Plan, before: list[Tensor], parts: tuple[Tensor, Tensor | None, Tensor | None], H: int,
    *, biased: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Those of the recurrent matrices, each one product over all steps, (directions, G, H, R).

    And those of their biases, where they are not the same as the input's.
    """
    gradients, dlate, operand = parts
    gates, (steps, R), directions = plan.cell.gates, before[0].shape, len(before)
    if plan.joined:
        rows = gradients.view(steps, directions, -1)
        found = [rows[:, d].t() @ before[d] for d in range(directions)]
        return _together(found).view(directions, -1, H, R), None
    dweight = before[0].new_empty(directions, len(gates), H, R)
    dbias = before[0].new_empty(directions, len(gates), H) if biased else None
    for d in range(directions):
        products = []
        if plan.direct:
            products.append((plan.direct, gradients.view(steps, directions, -1)[:, d], before[d]))
        for number, gate in enumerate(plan.late):
            assert dlate is not None and operand is not None
            shape, columns = (steps, directions, -1), slice(number * H, (number + 1) * H)
            one, other = (array.view(shape)[:, d, columns] for array in (dlate, operand))
            products.append(((gate,), one, other))
        for names, one, other in products:
            matrices = (one.t() @ other).view(-1, H, R)
            sums = one.sum(0).view(-1, H) if dbias is not None else None
            for number, gate in enumerate(names):
                dweight[d, gates.index(gate)] = matrices[number]
                if dbias is not None and sums is not None:
                    dbias[d, gates.index(gate)] = sums[number]
    return dweight, dbias


def run_directions(
    cell: TracedCell, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> list[Ran]:
    """Run a layer of one or two directions, both in one launch."""
    check_flags(x.device)
    settings, biased = directions[0].settings, directions[0].weights.bias_ih is not None
    begun = bool(directions[0].states)
    order = alive = None
    if lengths is not None:
        order = lengths.argsort(descending=True, stable=True)
        steps = torch.arange(x.shape[1], device=x.device)
        alive = (steps < lengths[:, None]).int().neg()
    full = x.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32
    given = _Given(
        cell=cell,
        variant=Variant(
            bool(settings.keep), settings.clip is not None,
            directions[0].weights.projection is not None,
        ),
        lengths=lengths, order=order, alive=alive, clip=settings.clip or 0.0,
        precision="ieee" if full else "tf32", directions=len(directions), biased=biased,
        begun=begun, masks=[d.settings.mask for d in directions if d.settings.mask is not None],
        keep=[d.settings.keep for d in directions if d.settings.keep],
    )  # fmt: skip
    tensors: list[Tensor | None] = []
    for each in directions:
        weights = each.weights
        tensors += [weights.weight_ih, weights.weight_hh]
        tensors += [] if weights.projection is None else [weights.projection]
        tensors += [weights.bias_ih, weights.bias_hh] if biased else []
        tensors += [*weights.vectors, *each.states]
    found = Recurrence.apply(given, x, *tensors)  # type: ignore[no-untyped-call]
    count = len(directions)
    outputs, ended = found[:count], found[count:]
    return [Ran(outputs[d], list(ended[d::count])) for d in range(count)]


OPTIONS: dict[str, Any] = {}
"""For measurements and tests: "tiles" and "back_tiles" to use, or the "split" when interpreted."""
