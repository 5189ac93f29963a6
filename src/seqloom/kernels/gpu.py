"""A recurrence on a GPU: the printed Triton kernels, and the large products around them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from seqloom.errors import BackendError
from seqloom.kernels.gpu_graphs import LARGEST, Recording, Replayed, Work, take
from seqloom.kernels.gpu_launch import (
    OPTIONS,
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
from seqloom.kernels.layer import Direction, Ran, Weights
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
        save = any(ctx.needs_input_grad)
        outputs, kept = run_forth(given, x, tensors, save=save)
        if kept is not None:
            ctx.facts = kept[:3]
            ctx.save_for_backward(*kept.tensors)
            ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: D102
        given, shape, kinds = ctx.facts
        kept = Kept(given, shape, kinds, ctx.saved_tensors)
        return (None, *run_back(kept, gradients, needs_x=ctx.needs_input_grad[1]))


class Kept(NamedTuple):
    """What the way back needs.

    Args:
        given: What the run was given besides tensors with gradients.
        shape: Of the run.
        kinds: Shape and type of each tensor with a gradient.
        tensors: What the way forth kept.
    """

    given: Given
    shape: Shape
    kinds: Sequence[tuple[torch.Size, torch.dtype]]
    tensors: Sequence[Tensor | None]


def run_forth(
    given: Given, x: Tensor, tensors: Sequence[Tensor], *, save: bool
) -> tuple[tuple[Tensor, ...], Kept | None]:
    """Run a layer; the outputs and, with `save`, what the way back needs."""
    try:
        return _run_forth(given, x, tensors, save=save)
    except TilesError:
        return run_forth(given, x, tensors, save=save)


def run_back(kept: Kept, gradients: Sequence[Tensor | None], *, needs_x: bool) -> list[Any]:
    """The gradients of the input, if it is wanted, and of all tensors."""
    try:
        return _run_back(kept, gradients, needs_x=needs_x)
    except TilesError:
        return run_back(kept, gradients, needs_x=needs_x)


def _run_forth(
    given: Given, x: Tensor, tensors: Sequence[Tensor], *, save: bool
) -> tuple[tuple[Tensor, ...], Kept | None]:
    wide = Wide(given, x, tensors)
    shape = wide.shape
    B, T, directions, H, R, *_ = shape
    drive = functional.linear(wide.x, wide.inner, wide.bias)
    launch = launch_of(given.cell, given.variant, shape, drive.dtype, drive.device, backward=False)
    plan = launch.plan
    runs = runs_of(plan)
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
    kept = None
    if save:
        kept = Kept(given, shape, [(t.shape, t.dtype) for t in tensors], [
            wide.x, drive if "x" in plan.kept and not plan.joined else None, wide.inner,
            wide.hidden, wide.projection, wide.vectors, wide.mask, wide.keep, wide.keep_r, out,
            seen, whole, saved, u, late, operand, *states,
        ])  # fmt: skip
    outputs = cut(out[front:].view(B, T, directions, R), R - shape.real_r, 3)
    found = [cut(ends[0], R - shape.real_r, 2)]
    return (outputs, *found, *(cut(end, H - shape.real, 2) for end in ends[1:])), kept


def _run_back(kept: Kept, gradients: Sequence[Tensor | None], *, needs_x: bool) -> list[Any]:
    given, shape, kinds, tensors = kept
    x, drive, inner, hidden, projection, vectors, mask, *rest = tensors
    keep, keep_r, out, seen, whole, saved, u, late, operand, *states = rest
    assert x is not None and inner is not None and out is not None and seen is not None
    B, T, directions, H, R, real, real_r = shape
    launch = launch_of(given.cell, given.variant, shape, out.dtype, out.device, backward=True)
    plan = launch.plan
    G, steps, more, more_r = len(plan.cell.gates), B * T * directions, H - real, R - real_r
    more_x = x.shape[-1] - kinds[0][0][-1]  # the first is a matrix of the input
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
        found.append(cut(cut(dinner[d], more, 1), more_x, 2))
        found.append(cut(cut(dhidden[d], more, 1), more_r, 2))
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
    given_x = cut((flat @ inner).view_as(x), more_x, 2) if needs_x else None
    shaped = [one.reshape(size) for one, (size, _) in zip(found, kinds, strict=True)]
    return [given_x, *as_wide(shaped, [dtype for _, dtype in kinds])]


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
    full = x.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32
    variant, begun, clip = variant_of(first), bool(first.states), settings.clip or 0.0
    masks = [d.settings.mask for d in directions if d.settings.mask is not None]
    keep = [d.settings.keep for d in directions if d.settings.keep]

    def given_of(x: Tensor, lengths: Tensor | None) -> Given:
        order, alive = (None, None) if lengths is None else _rows_of(lengths, x)
        return Given(
            cell=cell, variant=variant, lengths=lengths, order=order, alive=alive, clip=clip,
            precision="ieee" if full else "tf32", directions=count, biased=biased, begun=begun,
            masks=masks, keep=keep,
        )  # fmt: skip

    tensors: list[Tensor] = []
    stay: list[bool] = []
    for each in directions:
        weights = [w for w in _weights_of(each.weights) if w is not None]
        tensors += [*weights, *each.states]
        stay += [True] * len(weights) + [False] * len(each.states)
    if may_replay(x, tensors, stay) and not keep and not masks:
        save = torch.is_grad_enabled() and any(each.requires_grad for each in (x, *tensors))
        place = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
        lengthy = None if lengths is None else lengths.dtype
        fixed = [t.data_ptr() for t, stays in zip(tensors, stay, strict=True) if stays]
        key = (
            cell, variant, x.shape, x.dtype, x.device, place, lengthy, clip, full, count, biased,
            begun, save, torch.is_inference_mode_enabled(), *fixed,
        )  # fmt: skip

        def forth(
            x: Tensor, lengths: Tensor | None, tensors: Sequence[Tensor]
        ) -> tuple[Sequence[Tensor], Any]:
            return run_forth(given_of(x, lengths), x, tensors, save=save)

        work = Work(forth, lambda kept, g, needs_x: run_back(kept, g, needs_x=needs_x), stay)
        lease = take(key, tensors[1], x.device, lambda: Recording(work, x, lengths, tensors))
        if lease is not None:
            outputs, *ended = Replayed.apply(lease, x, lengths, *tensors)  # type: ignore[no-untyped-call]
            return Ran(outputs, ended)
    given = given_of(x, lengths)
    outputs, *ended = Recurrence.apply(given, x, *tensors)  # type: ignore[no-untyped-call]
    return Ran(outputs, ended)


REPLAYED = () if os.environ.get("SEQLOOM_REPLAY") == "0" else ("cuda",)
"""The kinds of devices where runs that come again in the same shape are recorded and replayed."""


def may_replay(x: Tensor, tensors: Sequence[Tensor], stay: Sequence[bool]) -> bool:
    """Whether a run can be recorded: a small one, of weights that stay where they are."""
    if x.device.type not in REPLAYED or torch.compiler.is_compiling() or OPTIONS:
        return False
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    size = len(x) * x.shape[1] * tensors[1].shape[0]  # of the gates
    return size <= LARGEST and all(
        each.is_leaf for each, stays in zip(tensors, stay, strict=True) if stays
    )


def _weights_of(weights: Weights) -> list[Tensor | None]:
    """In the order that `Wide` takes them."""
    return [
        weights.weight_ih, weights.weight_hh, weights.projection, weights.bias_ih, weights.bias_hh,
        *weights.vectors,
    ]  # fmt: skip
