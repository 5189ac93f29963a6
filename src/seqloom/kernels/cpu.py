"""A recurrence on the CPU: printed loops between matrix products, for real steps only.

Forward, a step is one product (added in place where the cell lets it), one printed loop, and a
product more where the cell computes what it multiplies or the state is projected. Backward, the
loops run the other way and leave the gradients of all gates behind; weight gradients are then one
product each over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from seqloom.kernels.buffers import BUFFERS
from seqloom.kernels.layer import Settings, Weights
from seqloom.kernels.loading import load_program
from seqloom.kernels.packing import Packing, pack_lengths
from seqloom.kernels.plan import Variant
from seqloom.kernels.printing import Program, print_cell
from seqloom.kernels.products import Matrix
from seqloom.kernels.tracing import TracedCell


@cache
def _program(cell: TracedCell, variant: Variant) -> Program:
    return print_cell(cell, variant)


class _Run:
    """What forward and backward share: sizes, the program, arrays by name."""

    def __init__(
        self, cell: TracedCell, weights: Weights, settings: Settings, x: Tensor, packing: Packing
    ) -> None:
        self.cell, self.weights, self.settings, self.packing = cell, weights, settings, packing
        self.H = weights.weight_hh.shape[0] // len(cell.gates)
        self.R = weights.weight_hh.shape[1]
        self.projected = weights.projection is not None
        self.program = program_for(cell, weights, settings)
        self._like = x
        self._functions = load_program(self.program, 8 * x.element_size())
        self._arrays: dict[str, Any] = {}
        direct = [self._rows(weights.weight_hh, g) for g in self.program.direct]
        self.direct = weights.weight_hh if not cell.late else _cat(direct, weights.weight_hh)
        self.bias_direct = weights.bias_hh
        if cell.late and weights.bias_hh is not None:
            biases = [self._rows(weights.bias_hh, g) for g in self.program.direct]
            self.bias_direct = _cat(biases, weights.bias_hh)
        self.mask = None if settings.mask is None else packing.sort(settings.mask)
        self.keep = [packing.pack(each) for each in settings.keep]
        if cell.vectors:
            self.hold("v", torch.stack(list(weights.vectors)))
        own = self.keep[1:] if self.projected else self.keep
        if own:
            self.hold("keep", torch.cat(own, dim=1))

    def _rows(self, weight: Tensor, gate: str) -> Tensor:
        at = self.cell.gates.index(gate) * self.H
        return weight[at : at + self.H]

    def hold(self, name: str, tensor: Tensor) -> Tensor:
        """Hand a tensor to the printed functions under a name."""
        self._arrays[name] = tensor.view(-1).numpy()
        return tensor

    def take(self, *shape: int) -> Tensor:
        """Memory with anything in it."""
        return BUFFERS.take(shape, self._like)

    def room(self, name: str, *shape: int) -> Tensor:
        """The same for the printed functions."""
        return self.hold(name, self.take(*shape))

    def function(self, name: str) -> Callable[[int, int, int, int], None]:
        """A printed function that takes places alone: at, previous, following, rows."""
        call = self._functions[name]
        arrays = [self._arrays[each] for each in self.program.functions[name].arrays]
        size, clip = self.H, self.settings.clip or 0.0

        def run(at: int, previous: int, following: int, rows: int) -> None:
            call(at, previous, following, rows, size, clip, *arrays)

        return run

    def matrix(self, weight: Tensor) -> Matrix:
        """A matrix to multiply with at every step."""
        return Matrix(weight, self.packing.counts, bf16=self.settings.bf16)

    def once(self, x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
        """One product over all steps: x @ weight.T and the bias, into memory that is there."""
        return Matrix(weight, [len(x)], bf16=self.settings.bf16).into(x, bias, out)

    def outer(self, gradients: Tensor, values: Tensor) -> Tensor:
        """A weight's gradient, over all steps at once."""
        if self.settings.bf16:
            return (gradients.t().bfloat16() @ values.bfloat16()).to(values.dtype)
        return gradients.t() @ values

    def late_products(self) -> list[tuple[slice, Tensor, Tensor | None]]:
        """By late gate: its block, its matrix and its bias."""
        found = []
        for i, gate in enumerate(self.program.late):
            bias = self.weights.bias_hh
            rows = None if bias is None else self._rows(bias, gate)
            block = slice(i * self.H, (i + 1) * self.H)
            found.append((block, self._rows(self.weights.weight_hh, gate), rows))
        return found

    def finished(self, new: Tensor, old: Tensor, here: slice) -> Tensor:
        """A projected state after zoneout and clipping."""
        if self.keep:
            new = torch.lerp(new, old, self.keep[0][here])
        clip = self.settings.clip
        return new if clip is None else new.clamp(-clip, clip)

    def unfinished(self, grad: Tensor, result: Tensor, here: slice) -> tuple[Tensor, Tensor]:
        """From the gradient of a finished state, those of the old one and of the new one."""
        if self.settings.clip is not None:
            grad = grad * (result.abs() < self.settings.clip)
        if not self.keep:
            return torch.zeros_like(grad), grad
        stays = grad * self.keep[0][here]
        return stays, grad - stays


def _cat(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.cat(parts) if parts else like[:0]


def program_for(cell: TracedCell, weights: Weights, settings: Settings) -> Program:
    """The program for a cell with these options."""
    projected = weights.projection is not None
    return _program(cell, Variant(bool(settings.keep), settings.clip is not None, projected))


def saved_shapes(
    cell: TracedCell, weights: Weights, settings: Settings, batch: int, steps: int
) -> dict[str, tuple[int, int]]:
    """The tensors the way back needs, by name: room for every step of the padded batch."""
    program = program_for(cell, weights, settings)
    shapes = _shapes(cell, weights, settings, batch, steps)
    unneeded = {"u", "late"} - program.kept
    return {name: shape for name, shape in shapes.items() if name not in unneeded}


def _shapes(
    cell: TracedCell, weights: Weights, settings: Settings, batch: int, steps: int
) -> dict[str, tuple[int, int]]:
    """All that the way forth fills."""
    program, G = program_for(cell, weights, settings), len(cell.gates)
    H, R, rows = weights.weight_hh.shape[0] // G, weights.weight_hh.shape[1], batch * steps
    shapes = {f"s_{k}": (batch + rows, H) for k in cell.states}
    if weights.projection is not None:
        shapes["out"] = (batch + rows, R)
    shapes["x"] = (rows, G * H)
    if program.saved:
        shapes["saved"] = (rows, program.saved * H)
    if not program.joined:
        shapes["u"] = (rows, len(program.direct) * H)
    if program.late:
        shapes["operand"] = shapes["late"] = (rows, len(program.late) * H)
    if settings.mask is not None:
        shapes["seen"] = (rows, R)
    return shapes


def run_forward(
    cell: TracedCell,
    x: Tensor,
    lengths: Tensor,
    states: Sequence[Tensor],
    weights: Weights,
    settings: Settings,
    *,
    save: bool,
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Run a cell over a batch.

    Returns:
        The first state after each step, 0 on padding; every state after each row's last step; and
        what `run_backward` needs, if it is to be saved.
    """
    B, T, _ = x.shape
    packing = pack_lengths(lengths, T, reverse=settings.reverse)
    run = _Run(cell, weights, settings, x, packing)
    shapes, N = _shapes(cell, weights, settings, B, T), packing.rows
    room = {
        name: run.room(name, *shape) for name, shape in shapes.items() if save or name != "saved"
    }
    outputs = room["out"] if run.projected else room[f"s_{cell.states[0]}"]
    runs = [outputs, *(room[f"s_{k}"] for k in cell.states[1:])]
    for state, each in zip(states, runs, strict=True):
        each[:B] = packing.sort(state)
    bias = _sum(weights.bias_ih, weights.bias_hh) if run.program.joined else weights.bias_ih
    run.once(packing.pack(x), weights.weight_ih, bias, room["x"][:N])
    _loop_forward(run, room, outputs, save=save)
    ends = [packing.ends(each[: B + N]) for each in runs]
    needed = saved_shapes(cell, weights, settings, B, T) if save else {}
    return packing.unpack(outputs[B : B + N]), ends, [room[name] for name in needed]


def _loop_forward(run: _Run, room: Mapping[str, Tensor], outputs: Tensor, *, save: bool) -> None:
    """Step by step."""
    packing, program = run.packing, run.program
    advance = run.function("advance_saving" if save else "advance")
    operands = None
    if program.late:
        operands = run.function("operands_saving" if save else "operands")
    recurrent = run.matrix(run.direct)
    late = [(b, run.matrix(w), bias) for b, w, bias in run.late_products()]
    product = room["x" if program.joined else "u"][: packing.rows].split(packing.counts)
    previous = 0
    for step, count in enumerate(packing.counts):
        at = packing.starts[step]
        here, following = slice(at, at + count), packing.batch + at
        seen = outputs[previous : previous + count]
        if run.mask is not None:
            seen = torch.mul(seen, run.mask[:count], out=room["seen"][here])
        if program.joined:
            recurrent.add(seen, product[step])
        elif program.direct:
            recurrent.into(seen, run.bias_direct, product[step])
        if operands is not None:
            operands(at, previous, following, count)
            for block, matrix, bias in late:
                matrix.into(room["operand"][here, block], bias, room["late"][here, block])
        advance(at, previous, following, count)
        if run.projected:
            own = room[f"s_{run.cell.states[0]}"][following : following + count]
            new = torch.mm(own, run.weights.projection.t())  # type: ignore[union-attr]
            old = outputs[previous : previous + count]
            outputs[following : following + count] = run.finished(new, old, here)
        previous = following


def run_backward(
    cell: TracedCell,
    grads: Sequence[Tensor],
    x: Tensor,
    lengths: Tensor,
    weights: Weights,
    settings: Settings,
    saved: Sequence[Tensor],
    *,
    needs_x: bool = True,
) -> dict[str, Any]:
    """Gradients from those of the outputs and of the last states, all given.

    Returns:
        By name, those of `x` (empty if not needed), `states`, `weight_ih`, `weight_hh`, `bias_ih`,
        `bias_hh`, `vectors` and `projection`.
    """
    B, T, _ = x.shape
    packing = pack_lengths(lengths, T, reverse=settings.reverse)
    run = _Run(cell, weights, settings, x, packing)
    program, H, N, G = run.program, run.H, packing.rows, len(cell.gates)
    names = saved_shapes(cell, weights, settings, B, T)
    room = {name: run.hold(name, tensor) for name, tensor in zip(names, saved, strict=True)}
    outputs = room["out"] if run.projected else room[f"s_{cell.states[0]}"]
    dout = run.hold("dout", packing.pack(grads[0]))
    carried = [packing.sort(grad).contiguous().clone() for grad in grads[1:]]
    for state, carry in zip(cell.states, carried, strict=True):
        run.hold(f"d_{state}", carry)
    dx = run.room("dx", N, G * H)
    du = dx if program.joined else run.room("du", N, len(program.direct) * H)
    dlate = run.room("dlate", N, len(program.late) * H)
    dv = run.hold("dv", x.new_zeros(len(cell.vectors), H))
    dprojected = _loop_backward(run, outputs, dout, carried, du, dlate)
    found: dict[str, Any] = {"states": [packing.unsort(carry) for carry in carried]}
    seen = room["seen"][:N] if run.mask is not None else packing.before(outputs[: B + N])
    weight_hh = run.outer(du, seen)
    bias_hh = du.sum(0)
    if program.late:
        weight_hh, bias_hh = _in_order(run, weight_hh, bias_hh, room["operand"][:N], dlate)
    found["weight_hh"], found["bias_hh"] = weight_hh, bias_hh
    found["bias_ih"] = bias_hh.clone() if program.joined else dx.sum(0)
    found["weight_ih"] = run.outer(dx, packing.pack(x))
    found["x"] = x.new_empty(0)
    if needs_x:
        room_x = run.take(N, x.shape[-1])
        found["x"] = packing.unpack(run.once(dx, weights.weight_ih.t(), None, room_x))
    found["vectors"] = [each.clone() for each in dv]
    if dprojected is not None:
        whole = room[f"s_{cell.states[0]}"][B : B + N]
        found["projection"] = run.outer(dprojected, whole)
    return found


def _loop_backward(
    run: _Run, outputs: Tensor, dout: Tensor,
    carried: Sequence[Tensor], du: Tensor, dlate: Tensor,
) -> Tensor | None:  # fmt: skip
    """Step by step from the last; returns the gradients of what was projected, if anything was."""
    packing, program, B, H = run.packing, run.program, run.packing.batch, run.H
    back_late = None
    projected, whole = None, None
    if run.projected:
        projected = run.take(packing.rows, run.R)
        whole = run.room(f"d_{run.cell.states[0]}", B, H)
    if program.late:
        back_late = run.function("back_late")
        handed = run.room("doperand", B, len(program.late) * H)
    back = run.function("back")
    recurrent = run.matrix(run.direct.t())
    late = [(block, run.matrix(w.t())) for block, w, _ in run.late_products()]
    first, gradients = carried[0], du.split(packing.counts)
    for step in range(len(packing.counts) - 1, -1, -1):
        at, count = packing.starts[step], packing.counts[step]
        here, following = slice(at, at + count), B + at
        previous = B + packing.starts[step - 1] if step else 0
        if projected is not None and whole is not None:
            total = first[:count] + dout[here]
            result = outputs[following : following + count]
            first[:count], projected[here] = run.unfinished(total, result, here)
            torch.mm(projected[here], run.weights.projection, out=whole[:count])  # type: ignore[arg-type]
        if back_late is not None:
            back_late(at, previous, following, count)
            for block, matrix in late:
                matrix.into(dlate[here, block], None, handed[:count, block])
        back(at, previous, following, count)
        if not program.direct:
            continue
        if run.mask is not None:
            first[:count] += (du[here] @ run.direct) * run.mask[:count]
        else:
            recurrent.add(gradients[step], first[:count])
    return projected


def _in_order(
    run: _Run, weight: Tensor, bias: Tensor, operand: Tensor, dlate: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the recurrent weights, gate after gate, those of late products among them."""
    H = run.H
    weights, biases = {}, {}
    for i, gate in enumerate(run.program.direct):
        weights[gate], biases[gate] = weight[i * H : (i + 1) * H], bias[i * H : (i + 1) * H]
    for gate, (block, _, _) in zip(run.program.late, run.late_products(), strict=True):
        weights[gate] = run.outer(dlate[:, block], operand[:, block])
        biases[gate] = dlate[:, block].sum(0)
    gates = run.cell.gates
    return torch.cat([weights[g] for g in gates]), torch.cat([biases[g] for g in gates])


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return one if other is None else other if one is None else one + other
