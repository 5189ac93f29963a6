"""One run of a recurrence on a GPU, forth and back: its arrays, and the products around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.kernels.gpu_launch import Given, Launch, Shape, TilesError, flag_of, launch_of
from seqloom.kernels.gpu_layout import (
    Wide,
    as_wide,
    cut,
    states_before,
    sums_of_rows,
    weight_gradients,
    widened,
)
from seqloom.kernels.triton_printing import in_place, runs_of, sums_of

APART = 1 << 23
"""Bytes of gradients from which on they are handed on in an array of some of the steps."""
PARTS, SHORTEST = 4, 32
"""Into how many parts the steps are then cut at most, and how many steps a part has at least."""


class Arrays(NamedTuple):
    """What the way forth keeps for the way back, where there is such a thing.

    Args:
        x: The input, its rows at multiples of 16 bytes.
        drive: The products of the input.
        inner: The matrices of the input.
        hidden: Those of the state.
        projection: Those of the projection.
        vectors: The vectors.
        mask: What states are multiplied with before their products.
        keep: The share of states that stays, by step.
        keep_r: That of the first state.
        out: What was put out.
        seen: The first state as the matrices saw it.
        whole: The first state before its projection.
        saved: The saved values.
        sums: Recurrent products, or the sums they are part of.
        late: The late products.
        operand: What these were products of.
        states: The further states of all steps.
    """

    x: Tensor
    drive: Tensor | None
    inner: Tensor
    hidden: Tensor
    projection: Tensor | None
    vectors: Tensor | None
    mask: Tensor | None
    keep: Tensor | None
    keep_r: Tensor | None
    out: Tensor
    seen: Tensor
    whole: Tensor | None
    saved: Tensor | None
    sums: Tensor | None
    late: Tensor | None
    operand: Tensor | None
    states: tuple[Tensor | None, ...]

    @classmethod
    def joined(cls, tensors: Sequence[Any]) -> Arrays:
        """They from a list that ends with the further states."""
        count = len(cls._fields) - 1
        return cls._make([*tensors[:count], tuple(tensors[count:])])


class Kept(NamedTuple):
    """What the way back needs.

    Args:
        given: What the run was given besides tensors with gradients.
        shape: Of the run.
        kinds: Shape and type of each tensor with a gradient.
        arrays: What the way forth kept.
    """

    given: Given
    shape: Shape
    kinds: Sequence[tuple[torch.Size, torch.dtype]]
    arrays: Arrays


def run_forth(
    given: Given, x: Tensor, tensors: Sequence[Tensor], *, save: bool
) -> tuple[tuple[Tensor, ...], Kept | None]:
    """Run a layer; the outputs and, with `save`, what the way back needs."""
    try:
        return _run_forth(given, x, tensors, save=save)
    except TilesError:
        return run_forth(given, x, tensors, save=save)


def run_back(kept: Kept, gradients: Sequence[Tensor | None], *, needs_x: bool) -> list[Any]:
    """The gradients of the input, if it is wanted, and of all tensors.

    They take the place of what was kept where they can, which serves once then.
    """
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

    saved = drive.view(steps, -1) if in_place(plan) else room(len(plan.saved), save)
    sums = room(len(sums_of(plan)), save)
    late = room(len(plan.late), save and "late" in plan.kept)
    operand = launch.awaited(given, steps, len(plan.late) * H) if plan.late else None
    whole = launch.awaited(given, steps, H) if plan.variant.projected else None
    states = [drive.new_empty(front + steps, H) if save else None for _ in runs]
    begin: Sequence[Tensor | None] = wide.begin or [None] * len(ends)
    launch.run(
        given, T,
        [drive, launch.matrices(wide.hidden, given.precision), wide.projection, wide.late_bias,
         wide.vectors, given.lengths, given.order, wide.mask, wide.keep, wide.keep_r, out, seen,
         whole, saved, sums, late, operand, launch.counters(), flag_of(drive.device), *begin,
         *ends, *states],
        save=save, ended=True,
    )  # fmt: skip
    kept = None
    if save:
        read_again = "x" in plan.kept and not plan.joined
        arrays = Arrays(
            wide.x, drive if read_again else None, wide.inner, wide.hidden, wide.projection,
            wide.vectors, wide.mask, wide.keep, wide.keep_r, out, seen, whole, saved, sums, late,
            operand, tuple(states),
        )  # fmt: skip
        kept = Kept(given, shape, [(t.shape, t.dtype) for t in tensors], arrays)
    outputs = cut(out[front:].view(B, T, directions, R), R - shape.real_r, 3)
    found = [cut(ends[0], R - shape.real_r, 2)]
    return (outputs, *found, *(cut(end, H - shape.real, 2) for end in ends[1:])), kept


def _run_back(kept: Kept, gradients: Sequence[Tensor | None], *, needs_x: bool) -> list[Any]:
    given, shape, kinds, arrays = kept
    x, out, whole = arrays.x, arrays.out, arrays.whole
    B, T, directions, H, R, real, real_r = shape
    launch = launch_of(given.cell, given.variant, shape, out.dtype, out.device, backward=True)
    plan = launch.plan
    G, more, more_r = len(plan.cell.gates), H - real, R - real_r
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
    dx, du, dlate, dr, dv, dbegin = _walk_back(launch, kept, dout, dends, widths)
    dhidden, late_sums = weight_gradients(
        plan,
        states_before(arrays.seen, given, shape),
        (dx if du is None else du, dlate, arrays.operand),
        H,
        biased=given.biased,
    )
    flat = dx.view(B * T, directions * G * H)
    dinner = (flat.t() @ x.reshape(B * T, -1)).view(directions, G, H, -1)
    dbias = sums_of_rows(flat).view(directions, G, H) if given.biased else None
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
            found += list(cut(dv.sum((0, 1))[d], more, 1))
        if given.begun:
            found.append(cut(dbegin[0][d], more_r, 1))
            found += [cut(gradient[d], more, 1) for gradient in dbegin[1:]]
    given_x = cut((flat @ arrays.inner).view_as(x), more_x, 2) if needs_x else None
    shaped = [one.reshape(size) for one, (size, _) in zip(found, kinds, strict=True)]
    return [given_x, *as_wide(shaped, [dtype for _, dtype in kinds])]


def _pieces(launch: Launch, T: int, size: int) -> list[tuple[int, int]]:
    """The parts of the steps, the last first, that gradients are handed on in an array of.

    None where programs do not look for gradients, which can then be where they stay, or where there
    are too few for it to matter.

    Args:
        launch: What runs the steps back.
        T: The steps.
        size: Bytes of all gradients.
    """
    if not in_place(launch.plan) or not launch.awaits or size < APART or T < 2 * SHORTEST:
        return []
    most = max(SHORTEST, -(-T // PARTS))
    return [(since, min(T, since + most)) for since in range(0, T, most)][::-1]


class Walked(NamedTuple):
    """What the kernel gives.

    Args:
        dx: Of the products of the input.
        du: Of those of the state, where they are others.
        dlate: Of the late products.
        dr: Of the projected state.
        dv: Of the vectors, by launch and by rows.
        dbegin: Of the states a run begins with.
    """

    dx: Tensor
    du: Tensor | None
    dlate: Tensor | None
    dr: Tensor | None
    dv: Tensor | None
    dbegin: list[Tensor]


def _walk_back(
    launch: Launch, kept: Kept, dout: Tensor, dends: Sequence[Tensor | None], widths: Sequence[int]
) -> Walked:
    """Run the kernel; where it can, the gradients take the place of what was saved."""
    given, shape, _, arrays = kept
    out, saved = arrays.out, arrays.saved
    B, T, directions, H, R, *_ = shape
    plan, steps, device = launch.plan, B * T * directions, out.device
    G, V = len(plan.cell.gates), len(plan.cell.vectors)
    pieces = _pieces(launch, T, steps * G * H * out.itemsize) if plan.joined else []
    placed = in_place(plan) and (pieces or not (plan.joined and launch.awaits))
    du = None
    if placed:
        assert saved is not None
        dx = saved
    elif plan.joined:
        dx = launch.awaited(given, steps, G * H)
    else:
        dx = (out.new_empty if given.lengths is None else out.new_zeros)(steps, G * H)
    if plan.direct and not plan.joined:
        du = launch.awaited(given, steps, len(plan.direct) * H)
    dlate = launch.awaited(given, steps, len(plan.late) * H) if plan.late else None
    dr = None if arrays.whole is None else launch.awaited(given, steps, R)
    handed, kind = dx if du is None else du, out.dtype
    if pieces:
        since, until = pieces[-1]  # no other one is longer
        handed = out.new_empty(B * (until - since) * directions, G * H)
        kind = torch.float32  # of what a launch hands on to the next
        dends = [
            torch.zeros(directions, B, width, device=device) if one is None else one.float()
            for one, width in zip(dends, widths, strict=True)
        ]
    dv = torch.empty(max(1, len(pieces)), launch.grid[1], directions, V, H, device=device)
    dbegin: list[Tensor] = []
    matrices = launch.matrices(arrays.hidden, given.precision)
    for number, piece in enumerate(pieces or [None]):
        if piece is not None:
            handed.view(launch.bits).fill_(-1)
        dbegin = [torch.empty(directions, B, n, dtype=kind, device=device) for n in widths]
        launch.run(
            given, T,
            [arrays.drive, matrices, arrays.projection, arrays.vectors, given.lengths,
             given.order, arrays.mask, arrays.keep, arrays.keep_r, out, saved, arrays.sums,
             arrays.late, dout, dx, du, handed, dlate, dr, dv[number], launch.partial(),
             launch.counters(), flag_of(device), *dends, *dbegin, *arrays.states],
            save=True, ended=dends[0] is not None, between=piece,
        )  # fmt: skip
        dends = dbegin
    if placed and given.alive is not None:  # where a row is over, something else is left there
        bits = dx.data.view(launch.bits)  # `data`: autograd need not know, as with kernels
        bits.view(B * T, -1).bitwise_and_(given.alive[B:])
    return Walked(dx, du, dlate, dr, dv if V else None, dbegin)
