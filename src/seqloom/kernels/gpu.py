"""A recurrence on a GPU: the printed Triton kernels, and the large products around them."""

from __future__ import annotations

import os
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
from seqloom.kernels.gpu_graphs import LARGEST, Recording, Replayed, Work, take
from seqloom.kernels.gpu_launch import (
    OPTIONS,
    Given,
    Shape,
    check_flags,
    job_of,
    plan_of,
    processors_of,
)
from seqloom.kernels.gpu_runs import Arrays, Kept, run_back, run_forth
from seqloom.kernels.layer import Direction, Ran, Weights
from seqloom.kernels.plan import Variant
from seqloom.kernels.tiles import choose_tiles
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.triton_printing import in_place


class Recurrence(torch.autograd.Function):
    """A layer of one or two directions, the products of the input included.

    All in one place, because at this speed the time of launching many small kernels shows.
    """

    @staticmethod
    def forward(ctx: Any, given: Given, x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: D102
        save = any(ctx.needs_input_grad)
        outputs, kept = run_forth(given, x, tensors, save=save)
        if kept is not None:
            ctx.facts, ctx.walked = kept[:3], False
            ctx.save_for_backward(x, *tensors, *kept.arrays[:-1], *kept.arrays.states)
            ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: D102
        given, shape, kinds = ctx.facts
        x, *saved = ctx.saved_tensors
        tensors, arrays = saved[: len(kinds)], Arrays.joined(saved[len(kinds) :])
        kept: Kept | None = Kept(given, shape, kinds, arrays)
        if ctx.walked and in_place(plan_of(given.cell, given.variant)):  # it was written over
            _, kept = run_forth(given, x, tensors, save=True)
        assert kept is not None
        ctx.walked = True
        return (None, *run_back(kept, gradients, needs_x=ctx.needs_input_grad[1]))


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
