"""A traced cell as ONNX: its step printed as nodes, and the loop around it.

This is the fourth way a step is printed, after LaTeX, numba and Triton, so a cell of one's own is
exported as well as those that come with the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from seqloom.errors import BackendError
from seqloom.export.nodes import Nodes
from seqloom.kernels.expressions import Expression
from seqloom.kernels.plan import Plan, Variant, by_row
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.walking import in_order

Array = NDArray[Any]
OPERATIONS = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "neg": "Neg",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "softplus": "Softplus",
    "relu": "Relu",
    "abs": "Abs",
    "maximum": "Max",
    "minimum": "Min",
    "sign": "Sign",
}
"""What a step may use, and what ONNX calls it."""


@dataclass(frozen=True)
class Layer:
    """One direction of a layer, about to be written.

    Args:
        cell: The cell.
        weight_ih: W, gate after gate.
        weight_hh: U, gate after gate.
        bias_ih: b, or None.
        bias_hh: b', or None.
        projection: What the first state is multiplied with after each step, or None.
        vectors: The per-unit vectors, in the order of the cell.
        reverse: Whether it runs from each row's end to its beginning.
        clip: The largest absolute value a state may have, or None.
        keep: By state, the name of the share that stays at each step, or nothing.
    """

    cell: TracedCell
    weight_ih: Array
    weight_hh: Array
    bias_ih: Array | None
    bias_hh: Array | None
    projection: Array | None
    vectors: Sequence[Array]
    reverse: bool
    clip: float | None
    keep: Sequence[str]

    @property
    def size(self) -> int:
        """Width H of a gate."""
        return len(self.weight_hh) // len(self.cell.gates)

    @property
    def widths(self) -> list[int]:
        """Of the states."""
        return [self.weight_hh.shape[1], *[self.size] * (len(self.cell.states) - 1)]

    def rows(self, array: Array | None, gates: Sequence[str]) -> Array:
        """The rows of a matrix or a bias that some gates have; zeros for a bias that is none."""
        if array is None:
            return np.zeros(len(gates) * self.size, self.weight_hh.dtype)
        H = self.size
        places = [self.cell.gates.index(gate) for gate in gates]
        parts = [array[i * H : (i + 1) * H] for i in places]
        found: Array = np.concatenate(parts)
        return found


def print_expressions(
    nodes: Nodes, wanted: Mapping[str, Expression], values: Mapping[str, str]
) -> dict[str, str]:
    """Write expressions as nodes, what occurs twice once.

    Args:
        nodes: Where they are written.
        wanted: The expressions, by name.
        values: By input of the expressions ("a.i", "s.c", ...), the name of its value.

    Returns:
        By the names of `wanted`, the names of their values.
    """
    names: dict[Expression, str] = {}
    for node in in_order(wanted.values()):
        if node.operation == "number":
            names[node] = nodes.number(node.value)
        elif node.operation == "input":
            names[node] = values[str(node.value)]
        elif node.operation in OPERATIONS:
            given = [names[argument] for argument in node.arguments]
            names[node] = nodes.add(OPERATIONS[node.operation], *given)
        else:
            raise BackendError(f"a cell's {node.operation!r} cannot be exported to ONNX")
    return {name: names[node] for name, node in wanted.items()}


def print_scan(
    nodes: Nodes, layer: Layer, x: str, lengths: str, states: Sequence[str]
) -> tuple[str, list[str]]:
    """Write the loop of `kernels.reference.scan_reference` over whole sequences.

    Args:
        nodes: Where it is written.
        layer: What is run.
        x: The name of the inputs (B, T, D).
        lengths: Of the lengths (B,).
        states: Of the states before the first step, (B, _) each.

    Returns:
        The names of the outputs (B, T, R), and of the states after each row's last step.
    """
    projected = layer.projection is not None
    variant = Variant(keep=bool(layer.keep), clip=layer.clip is not None, projected=projected)
    plan = Plan(layer.cell, variant)
    # A bias that is only ever added to the input's is added with it, once for all steps.
    bias = layer.rows(layer.bias_ih, layer.cell.gates)
    if plan.joined:
        bias = bias + layer.rows(layer.bias_hh, layer.cell.gates)
    drive = nodes.add("MatMul", x, nodes.constant(layer.weight_ih.T, "weight_ih"))
    scanned = [nodes.add("Add", drive, nodes.constant(bias, "bias")), *layer.keep]
    turn = {"batch_axis": 0, "time_axis": 1}
    if layer.reverse:
        scanned = [nodes.add("ReverseSequence", each, lengths, **turn) for each in scanned]
    one, zero = nodes.constant(np.array(1)), nodes.constant(np.array(0))
    steps = nodes.add("Gather", nodes.add("Shape", x), one)
    times = nodes.add("Range", zero, steps, one)
    body = _Step(nodes, layer, plan, lengths).graph()
    *ended, outputs = nodes.add_several(
        "Scan",
        len(states) + 1,
        *states,
        times,
        *scanned,
        body=body,
        num_scan_inputs=1 + len(scanned),
        scan_input_axes=[0, *[1] * len(scanned)],
        scan_output_axes=[1],
    )
    if layer.reverse:
        outputs = nodes.add("ReverseSequence", outputs, lengths, **turn)
    return outputs, ended


class _Step:
    """The body of the loop: one step of all rows."""

    def __init__(self, outer: Nodes, layer: Layer, plan: Plan, lengths: str) -> None:
        self.outer, self.layer, self.plan, self.lengths = outer, layer, plan, lengths
        self.nodes = Nodes(outer.name("step"), outer.dtype)
        states = layer.cell.states
        self.before = [self.nodes.name(f"old_{state}") for state in states]
        self.shares = [self.nodes.name(f"keep_{state}") for state in states[: len(layer.keep)]]
        self.time, self.drive = self.nodes.name("time"), self.nodes.name("drive")

    def graph(self) -> Any:
        nodes, layer, cell = self.nodes, self.layer, self.layer.cell
        found = print_expressions(nodes, self.plan.outputs, self._values())
        new = [found[state] for state in cell.states]
        if layer.projection is not None:
            new[0] = self._projected(new[0])
        alive = nodes.add("Less", self.time, self.lengths)
        alive = nodes.add("Unsqueeze", alive, nodes.whole(-1))  # (B, 1)
        after = [nodes.add("Where", alive, n, o) for n, o in zip(new, self.before, strict=True)]
        output = nodes.add("Where", alive, after[0], nodes.number(0.0))
        real, widths = helper.np_dtype_to_tensor_dtype(nodes.dtype), layer.widths
        inputs = [
            *_described(self.before, real, widths),
            helper.make_tensor_value_info(self.time, TensorProto.INT64, []),
            *_described([self.drive], real, [len(layer.weight_hh)]),
            *_described(self.shares, real, widths),
        ]
        outputs = [*_described(after, real, widths), *_described([output], real, widths[:1])]
        return nodes.graph(self.outer.name("body"), inputs, outputs)

    def _values(self) -> dict[str, str]:
        """By input of the step, the name of its value."""
        nodes, layer, cell = self.nodes, self.layer, self.layer.cell
        values = {f"s.{s}": name for s, name in zip(cell.states, self.before, strict=True)}
        values |= {f"keep.{s}": n for s, n in zip(cell.states, self.shares, strict=False)}
        for name, vector in zip(cell.vectors, layer.vectors, strict=True):
            values[f"v.{name}"] = self.outer.constant(vector, f"vector_{name}")
        if layer.clip is not None:
            values["clip"] = nodes.number(layer.clip)
        direct = self.plan.direct
        if self.plan.joined:
            both = self._product(self.before[0], direct, self.drive)
            return values | self._split(both, "a", cell.gates)
        values |= self._split(self.drive, "x", cell.gates)
        if direct:
            bias = self.outer.constant(layer.rows(layer.bias_hh, direct), "bias_hh")
            values |= self._split(self._product(self.before[0], direct, bias), "u", direct)
        handed = print_expressions(nodes, self.plan.operands, values)
        for gate in self.plan.late:
            bias = self.outer.constant(layer.rows(layer.bias_hh, [gate]), "bias_hh")
            operand = handed[gate]
            if not by_row(self.plan.operands[gate]):  # the same for all rows
                operand = nodes.add("Expand", operand, nodes.add("Shape", self.before[0]))
            values[f"late.{gate}"] = self._product(operand, [gate], bias)
        return values

    def _product(self, state: str, gates: Sequence[str], added: str) -> str:
        """U h and something that is added to it."""
        matrix = self.outer.constant(self.layer.rows(self.layer.weight_hh, gates).T, "weight_hh")
        return self.nodes.add("Gemm", state, matrix, added)

    def _split(self, values: str, kind: str, gates: Sequence[str]) -> dict[str, str]:
        names = [f"{kind}.{gate}" for gate in gates]
        if len(names) == 1:
            return {names[0]: values}
        parts = self.nodes.add_several("Split", len(names), values, axis=-1, num_outputs=len(names))
        return dict(zip(names, parts, strict=True))

    def _projected(self, state: str) -> str:
        """The first state after its projection, finished as the others are."""
        nodes, layer = self.nodes, self.layer
        assert layer.projection is not None
        matrix = self.outer.constant(layer.projection.T, "projection")
        found = nodes.add("MatMul", state, matrix)
        if self.shares:
            moved = nodes.add("Sub", self.before[0], found)
            found = nodes.add("Add", found, nodes.add("Mul", self.shares[0], moved))
        if layer.clip is not None:
            bounds = [nodes.number(-layer.clip), nodes.number(layer.clip)]
            found = nodes.add("Clip", found, *bounds)
        return found


def _described(names: Sequence[str], kind: int, widths: Sequence[int]) -> list[Any]:
    return [
        helper.make_tensor_value_info(name, kind, ["rows", width])
        for name, width in zip(names, widths, strict=False)
    ]
