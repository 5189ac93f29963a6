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


def widened(tensor: Tensor, more: int) -> Tensor:
    """With more units, of zeros."""
    return functional.pad(tensor, (0, more)) if more else tensor.contiguous()


def copy_together(places: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
    """Copy parts to places, those of a kind in one launch."""
    for dtype in dict.fromkeys(part.dtype for part in parts):
        own = [i for i, part in enumerate(parts) if part.dtype == dtype]
        torch._foreach_copy_([places[i] for i in own], [parts[i] for i in own])


def as_wide(tensors: Sequence[Tensor], kinds: Sequence[torch.dtype]) -> list[Tensor]:
    """Tensors of other kinds of numbers, where they are not of them already."""
    found = list(tensors)
    own = [i for i, (one, kind) in enumerate(zip(found, kinds, strict=True)) if one.dtype != kind]
    for i in own:
        found[i] = torch.empty_like(found[i], dtype=kinds[i])
    copy_together([found[i] for i in own], [tensors[i] for i in own])
    return found


def sums_of_rows(matrix: Tensor) -> Tensor:
    """The sum of all rows of (N, M), as a product with ones.

    torch's own sum takes more memory than the matrix: 134 MB for 16,384 rows of 1,024 on a card.
    """
    return matrix.new_ones(len(matrix)) @ matrix


class _Copies:
    """Arrays made of parts, rounded if need be, which are copied all together at the end."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.places: list[Tensor] = []
        self.parts: list[Tensor] = []

    def joined(self, parts: Sequence[Tensor], *wide: int) -> Tensor:
        """(parts, *wide), zeros where a part is less wide; without a copy if it is one as it is."""
        first = parts[0]
        fits = first.shape == wide
        if len(parts) == 1 and fits and first.dtype == self.dtype and first.is_contiguous():
            return first[None]
        make = torch.empty if fits else torch.zeros
        found = make(len(parts), *wide, dtype=self.dtype, device=first.device)
        places = found.unbind()
        if not fits:
            corner = tuple(slice(size) for size in first.shape)
            places = tuple(place[corner] for place in places)
        self.places += places
        self.parts += parts
        return found


class Wide:
    """A layer's tensors as the kernels take them: both directions together, rows of 16 bytes."""

    def __init__(self, given: Given, x: Tensor, tensors: Sequence[Tensor]) -> None:
        cell, projected = given.cell, given.variant.projected
        G, (rows, R) = len(cell.gates), tensors[1].shape
        real, unit = rows // G, 4 if x.element_size() == 4 else 8
        H, wide_r = real + -real % unit, R + -R % unit
        self.shape = Shape(len(x), x.shape[1], given.directions, H, wide_r, real=real, real_r=R)
        each = [list(tensors[i : i + given.each]) for i in range(0, len(tensors), given.each)]
        more = -x.shape[-1] % unit  # rows of products begin at multiples of 16 bytes
        self.x = functional.pad(x, (0, more)) if more else x
        copies = _Copies(x.dtype)

        def gates(width: int) -> Tensor:
            """The next matrix of each direction."""
            own = [one.pop(0).view(G, real, -1) for one in each]
            return copies.joined(own, G, H, width)

        width = self.x.shape[-1]
        self.inner = gates(width).view(-1, width)
        self.hidden = gates(wide_r)
        self.projection = self.bias = self.late_bias = self.vectors = None
        self.mask = self.keep = self.keep_r = None
        if projected:
            self.projection = copies.joined([one.pop(0) for one in each], wide_r, H)
        if given.biased:
            biases = [[one.pop(0).view(G, real) for one in each] for _ in range(2)]
            self.bias = copies.joined(biases[0], G, H).view(-1)
            self.late_bias = copies.joined(biases[1], G, H)
        if cell.vectors:
            own = [one.pop(0) for one in each for _ in cell.vectors]
            self.vectors = copies.joined(own, H)
        self.begin: list[Tensor] = []
        for k in range(len(cell.states) if given.begun else 0):
            states = [one[k] for one in each]
            self.begin.append(copies.joined(states, len(x), H if k else wide_r))
        if given.masks:
            self.mask = copies.joined(given.masks, len(x), wide_r)
        copy_together(copies.places, copies.parts)
        if given.keep:
            first = torch.stack([one[0] for one in given.keep], 2)  # (B, T, directions, R)
            self.keep_r = widened(first, wide_r - R)
            if len(cell.states) > 1:
                kept = [torch.stack(list(one[1:]), 2) for one in given.keep]
                self.keep = widened(torch.stack(kept, 2), H - real)


def states_before(seen: Tensor, given: Given, shape: Shape) -> list[Tensor]:
    """By direction: what the matrices were multiplied with at each step, (B * T, R)."""
    B, T, directions, _, R, *_ = shape
    front = directions * B
    body = seen[front:].view(B, T, directions, R)
    begin = seen[:front].view(directions, B, 1, R)
    found = [torch.cat([begin[0], body[:, :-1, 0]], 1).view(B * T, R)]
    if directions == 2:
        back = torch.cat([body[:, 1:, 1], begin[1]], 1)
        if given.lengths is not None and given.begun:  # else it is 0, as what is beyond a row
            back[torch.arange(B, device=back.device), given.lengths - 1] = begin[1, :, 0]
        found.append(back.view(B * T, R))
    return found


def weight_gradients(
    plan: Plan, before: list[Tensor], parts: tuple[Tensor, Tensor | None, Tensor | None], H: int,
    *, biased: bool,
) -> tuple[Sequence[Tensor], Tensor | None]:  # fmt: skip
    """Those of the recurrent matrices by direction, each one product over all steps, (G, H, R).

    And those of their biases, where they are not the same as the input's.
    """
    gradients, dlate, operand = parts
    gates, (steps, R), directions = plan.cell.gates, before[0].shape, len(before)
    if plan.joined:
        rows = gradients.view(steps, directions, -1)
        found = [rows[:, d].t() @ before[d] for d in range(directions)]
        return [matrices.view(-1, H, R) for matrices in found], None
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
            sums = sums_of_rows(one).view(-1, H) if dbias is not None else None
            for number, gate in enumerate(names):
                dweight[d, gates.index(gate)] = matrices[number]
                if dbias is not None and sums is not None:
                    dbias[d, gates.index(gate)] = sums[number]
    return list(dweight), dbias
