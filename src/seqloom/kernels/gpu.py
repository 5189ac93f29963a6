"""A recurrence on a GPU: the printed Triton kernels, and the large products around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from seqloom.errors import BackendError
from seqloom.kernels.gpu_launch import (
    Given,
    Shape,
    TilesError,
    check_flags,
    flag_of,
    job_of,
    launch_of,
    plan_of,
    processors_of,
)
from seqloom.kernels.gpu_layout import (
    Wide,
    as_wide,
    cut,
    states_before,
    weight_gradients,
    widened,
)
from seqloom.kernels.layer import Direction, Ran
from seqloom.kernels.plan import Variant
from seqloom.kernels.tiles import choose_tiles
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.triton_printing import runs_of


class Recurrence(torch.autograd.Function):
    """A layer of one or two directions, the products of the input included.

    All in one place, because at this speed the time of launching many small kernels shows.
    """

    @staticmethod
    def forward(ctx: Any, given: Given, x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: D102
        try:
            return _run_forward(ctx, given, x, tensors)
        except TilesError:
            return Recurrence.forward(ctx, given, x, *tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: D102
        try:
            return _run_backward(ctx, gradients)
        except TilesError:
            return Recurrence.backward(ctx, *gradients)


def _run_forward(
    ctx: Any, given: Given, x: Tensor, tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    wide = Wide(given, x, tensors)
    shape = wide.shape
    B, T, directions, H, R, *_ = shape
    drive = functional.linear(x, wide.inner, wide.bias)
    launch = launch_of(given.cell, given.variant, shape, drive.dtype, drive.device, backward=False)
    plan = launch.plan
    runs = runs_of(plan)
    save = any(ctx.needs_input_grad)
    front, steps = directions * B, B * T * directions
    seen = launch.awaited(given, front + steps, R, front=front)
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
    operand = launch.awaited(given, steps, len(plan.late) * H) if plan.late else None
    whole = launch.awaited(given, steps, H) if plan.variant.projected else None
    states = [drive.new_empty(front + steps, H) if save else None for _ in runs]
    begin: Sequence[Tensor | None] = wide.begin or [None] * len(ends)
    launch.run(
        given, T,
        [drive, wide.hidden, wide.projection, wide.late_bias, wide.vectors, given.lengths,
         given.order, wide.mask, wide.keep, wide.keep_r, out, seen, whole, saved, u, late, operand,
         launch.counters(), flag_of(drive.device), *begin, *ends, *states],
        save=save, ended=True,
    )  # fmt: skip
    if save:
        ctx.given, ctx.shape, ctx.kinds = given, shape, [(t.shape, t.dtype) for t in tensors]
        ctx.save_for_backward(
            x, drive if "x" in plan.kept and not plan.joined else None, wide.inner, wide.hidden,
            wide.projection, wide.vectors, wide.mask, wide.keep, wide.keep_r, out, seen, whole,
            saved, u, late, operand, *states,
        )  # fmt: skip
        ctx.set_materialize_grads(False)
    outputs = cut(out[front:].view(B, T, directions, R), R - shape.real_r, 3)
    found = [cut(ends[0], R - shape.real_r, 2)]
    return (outputs, *found, *(cut(end, H - shape.real, 2) for end in ends[1:]))


def _run_backward(ctx: Any, gradients: Sequence[Tensor | None]) -> Any:
    given: Given = ctx.given
    shape: Shape = ctx.shape
    x, drive, inner, hidden, projection, vectors, mask, *rest = ctx.saved_tensors
    keep, keep_r, out, seen, whole, saved, u, late, operand, *states = rest
    B, T, directions, H, R, real, real_r = shape
    launch = launch_of(given.cell, given.variant, shape, out.dtype, out.device, backward=True)
    plan = launch.plan
    G, steps, more, more_r = len(plan.cell.gates), B * T * directions, H - real, R - real_r
    first, *ended = gradients
    widths = [R] + [H] * (len(plan.cell.states) - 1)
    dout = widened(x.new_zeros(B, T, directions, real_r) if first is None else first, more_r)
    dends: Sequence[Tensor | None] = ended
    if any(gradient is not None for gradient in ended):
        wider = [more_r] + [more] * (len(ended) - 1)
        dends = [
            x.new_zeros(directions, B, width) if one is None else widened(one, by)
            for one, width, by in zip(ended, widths, wider, strict=True)
        ]
    if plan.joined:
        dx, du = launch.awaited(given, steps, G * H), None
    else:
        dx = (out.new_empty if given.lengths is None else out.new_zeros)(steps, G * H)
        du = launch.awaited(given, steps, len(plan.direct) * H) if plan.direct else None
    dlate = launch.awaited(given, steps, len(plan.late) * H) if plan.late else None
    dr = None if whole is None else launch.awaited(given, steps, R)
    dv = None
    if plan.cell.vectors:
        dv = torch.empty(launch.grid[1], directions, len(plan.cell.vectors), H, device=out.device)
    dbegin = [out.new_empty(directions, B, width) for width in widths]
    launch.run(
        given, T,
        [drive, hidden, projection, vectors, given.lengths, given.order, mask, keep, keep_r, out,
         saved, u, late, dout, dx, du, dlate, dr, dv, launch.partial(), launch.counters(),
         flag_of(out.device), *dends, *dbegin, *states],
        save=True, ended=dends[0] is not None,
    )  # fmt: skip
    before = states_before(seen, given, shape)
    parts = (dx if du is None else du, dlate, operand)
    dhidden, late_sums = weight_gradients(plan, before, parts, H, biased=given.biased)
    flat = dx.view(B * T, directions * G * H)
    dinner = (flat.t() @ x.reshape(B * T, -1)).view(directions, G, H, -1)
    dbias = flat.sum(0).view(directions, G, H) if given.biased else None
    found: list[Tensor] = []
    for d in range(directions):
        found += [cut(dinner[d], more, 1), cut(cut(dhidden[d], more, 1), more_r, 2)]
        if dr is not None and whole is not None:
            one, other = (a.view(B * T, directions, -1)[:, d] for a in (dr, whole))
            found.append(cut(cut(one.t() @ other, more_r, 0), more, 1))
        if dbias is not None:
            own = cut(dbias[d], more, 1)
            found += [own, own if late_sums is None else cut(late_sums[d], more, 1)]
        if dv is not None:
            found += list(cut(dv.sum(0)[d], more, 1))
        if given.begun:
            found.append(cut(dbegin[0][d], more_r, 1))
            found += [cut(gradient[d], more, 1) for gradient in dbegin[1:]]
    given_x = (flat @ inner).view_as(x) if ctx.needs_input_grad[1] else None
    shaped = [one.reshape(shape) for one, (shape, _) in zip(found, ctx.kinds, strict=True)]
    return (None, given_x, *as_wide(shaped, [dtype for _, dtype in ctx.kinds]))


@cache
def rows_at_once(
    cell: TracedCell, variant: Variant, directions: int, size: int, item: int, processors: int,
    rows: int,
) -> int:  # fmt: skip
    """How many of some rows a launch takes, forward and backward; 0 if not even a few."""
    plan = plan_of(cell, variant)
    while True:
        shape = Shape(rows, 0, directions, size, size, size, size)
        try:
            for backward in (False, True):
                choose_tiles(job_of(plan, shape, item, backward=backward), processors)
        except BackendError:
            if rows <= 16:
                return 0
            rows = -(-rows // 2)
        else:
            return rows


def variant_of(direction: Direction) -> Variant:
    """The options that are part of a direction's loop."""
    settings, projection = direction.settings, direction.weights.projection
    return Variant(bool(settings.keep), settings.clip is not None, projection is not None)


def room_for(cell: TracedCell, x: Tensor, directions: Sequence[Direction]) -> int:
    """How many rows of a batch a launch on its card takes."""
    if x.device.type == "cpu":
        return len(x)
    size = directions[0].weights.weight_hh.shape[0] // len(cell.gates)
    size += -size % (16 // x.element_size())
    return rows_at_once(
        cell, variant_of(directions[0]), len(directions), size, x.element_size(),
        processors_of(x.device), len(x),
    )  # fmt: skip


def run_directions(
    cell: TracedCell, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> Ran:
    """Run a layer of one or two directions, both in one launch.

    More rows than the card takes at once are run in several launches.
    """
    check_flags(x.device)
    most = room_for(cell, x, directions)
    if most == len(x):
        return _run(cell, x, lengths, directions)
    runs = []
    for first in range(0, len(x), most):
        some = slice(first, first + most)
        short = None if lengths is None else lengths[some]
        runs.append(_run(cell, x[some], short, [_rows(each, some) for each in directions]))
    ends = zip(*(run.states for run in runs), strict=True)
    return Ran(torch.cat([run.outputs for run in runs]), [torch.cat(each, 1) for each in ends])


def _rows(direction: Direction, some: slice) -> Direction:
    """A direction for some rows of a batch."""
    settings = direction.settings
    mask = None if settings.mask is None else settings.mask[some]
    settings = replace(settings, mask=mask, keep=[keep[some] for keep in settings.keep])
    return Direction(direction.weights, settings, [state[some] for state in direction.states])


_known_rows: Any = WeakTensorKeyDictionary()


def _rows_of(lengths: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The rows in the order of their lengths, and what `Given.alive` is.

    They are kept for the layers after this one; what a graph captures is computed each time.
    """
    on_card = lengths.device.type == "cuda"
    if lengths.is_inference() or (on_card and torch.cuda.is_current_stream_capturing()):
        return _ordered(lengths, x)
    stream = torch.cuda.current_stream(lengths.device).cuda_stream if on_card else 0
    key = (lengths._version, x.shape[1], x.element_size(), stream)
    found = _known_rows.get(lengths)
    if found is None or found[0] != key:
        found = _known_rows[lengths] = (key, _ordered(lengths, x))
    rows: tuple[Tensor, Tensor] = found[1]
    return rows


def _ordered(lengths: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    order = lengths.argsort(descending=True, stable=True)
    steps = torch.arange(x.shape[1], device=x.device)
    bits = torch.int32 if x.element_size() == 4 else torch.int16
    alive = (steps < lengths[:, None]).to(bits).neg_().flatten()
    return order, functional.pad(alive, (len(x), 0), value=-1)[:, None]


def _run(
    cell: TracedCell, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> Ran:
    first, count = directions[0], len(directions)
    settings, biased = first.settings, first.weights.bias_ih is not None
    order, alive = (None, None) if lengths is None else _rows_of(lengths, x)
    full = x.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32
    given = Given(
        cell=cell, variant=variant_of(first), lengths=lengths, order=order, alive=alive,
        clip=settings.clip or 0.0, precision="ieee" if full else "tf32", directions=count,
        biased=biased, begun=bool(first.states),
        masks=[d.settings.mask for d in directions if d.settings.mask is not None],
        keep=[d.settings.keep for d in directions if d.settings.keep],
    )  # fmt: skip
    tensors: list[Tensor | None] = []
    for each in directions:
        weights = each.weights
        tensors += [weights.weight_ih, weights.weight_hh]
        tensors += [] if weights.projection is None else [weights.projection]
        tensors += [weights.bias_ih, weights.bias_hh] if biased else []
        tensors += [*weights.vectors, *each.states]
    outputs, *ended = Recurrence.apply(given, x, *tensors)  # type: ignore[no-untyped-call]
    return Ran(outputs, ended)
