"""A layer's tensors as the kernels take them, and the large products after the way back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.kernels.gpu_launch import Given, Shape
from seqloom.kernels.plan import Plan


def cut(tensor: Tensor, more: int, axis: int) -> Tensor:
    """Without the units that were added."""
    return tensor.narrow(axis, 0, tensor.shape[axis] - more) if more else tensor


def joined(
    parts: Sequence[Tensor | None], shape: tuple[int, ...], axis: int, more: int, like: Tensor
) -> Tensor:
    """The gradients of the directions as one array, zeros where there is none."""
    whole = [like.new_zeros(shape) if part is None else part for part in parts]
    found = whole[0].unsqueeze(axis) if len(whole) == 1 else torch.stack(whole, axis)
    return functional.pad(found, (0, more)) if more else found.contiguous()


class Wide:
    """A layer's tensors as the kernels take them: both directions together, rows of 16 bytes."""

    def __init__(self, given: Given, x: Tensor, tensors: Sequence[Tensor]) -> None:
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

        def bias_of(tensor: Tensor) -> Tensor:
            return columns(tensor.view(G, H), more).reshape(-1) if more else tensor

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
            bias = [bias_of(one.pop(0)) for one in each]
            self.bias = bias[0] if len(bias) == 1 else torch.cat(bias)
            self.late_bias = _together([bias_of(one.pop(0)) for one in each])
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
    """Those of the directions one after the other; without a copy if there is one."""
    return parts[0] if len(parts) == 1 else torch.stack(list(parts))


def states_before(seen: Tensor, lengths: Tensor | None, shape: Shape) -> list[Tensor]:
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


def weight_gradients(
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
