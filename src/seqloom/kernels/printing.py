"""A traced cell as loops for numba: forward, backward, and what has to be kept in between.

A step is printed as up to four functions over the rows of a batch that are at one time step:

- `operands`: what the cell hands to its late products (only if it has any);
- `advance`: the new states; both also as `..._saving`, with the values the way back needs;
- `back_late`: from the gradients of the new states, those of the late products;
- `back`: those of everything else.

Between them stand matrix products, which are not printed. Every array is flat, a row of it a few
blocks of H numbers side by side; `Function.arrays` names those a function takes, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from seqloom.kernels.expressions import Expression
from seqloom.kernels.plan import Plan, Variant
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.walking import in_order, replaced

SCALARS = ("at", "previous", "following", "rows", "size", "clip")

_OPERATORS = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}"}
_OPERATORS |= {"abs": "abs({})"}
_CALLS = {"relu": "ZERO", "step": "ZERO, ONE", "half_step": "ZERO, HALF, ONE", "sign": "ZERO, ONE"}

HEADER = '''"""Printed from the equations of a cell."""
from numpy import float{bits} as R

from seqloom.compiled import compiled_real
from seqloom.kernels.elementary import (
    exp{bits} as exp, half_step, log{bits} as log, maximum, minimum, relu, sigmoid{bits} as sigmoid,
    sign, softplus{bits} as softplus, sqrt, step, tanh{bits} as tanh,
)

ZERO, HALF, ONE = R(0), R(0.5), R(1)
'''


class Place(NamedTuple):
    """Where a value lies: a block of a row of an array.

    `row` says which row is the first of the batch: "at" counts packed rows, "previous" and
    "following" those of the states' own arrays; "" is the batch itself, or all rows if `blocks` is
    0.
    """

    array: str
    block: int
    blocks: int
    row: str


@dataclass(frozen=True)
class Function:
    """A printed function: its name, and the arrays it takes after `SCALARS`."""

    name: str
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A cell ready to be compiled.

    Args:
        source: The functions, but for what depends on the precision.
        functions: Those that there are, by name.
        joined: Whether every recurrent product is only ever added to the input's, so that it can be
            added in place.
        direct: The gates with a product of the state, in the order their weights lie.
        late: The gates with a product of something computed.
        saved: How many blocks the array `saved` has.
        kept: Which of the arrays x, u and late the way back reads.
    """

    source: str
    functions: Mapping[str, Function]
    joined: bool
    direct: tuple[str, ...]
    late: tuple[str, ...]
    saved: int
    kept: frozenset[str]


def print_cell(cell: TracedCell, variant: Variant) -> Program:
    """Print a cell's step and its derivatives."""
    return _Printer(cell, variant).program()


class _Printer:
    def __init__(self, cell: TracedCell, variant: Variant) -> None:
        self.cell, self.variant = cell, variant
        self.plan = plan = Plan(cell, variant)
        gates = len(cell.gates)
        # What is found last takes the place of x, used up by then, if the way back needs no x.
        late = [name for name in plan.saved if name not in plan.early][:gates]
        inside = [] if "x" in plan.kept else late
        self.outside = [name for name in plan.saved if name not in inside]
        self.places = {n: Place("x", i, gates, "at") for i, n in enumerate(inside)}
        blocks = len(self.outside)
        self.places |= {n: Place("saved", i, blocks, "at") for i, n in enumerate(self.outside)}

    def program(self) -> Program:
        """Everything together."""
        cell, plan = self.cell, self.plan
        states = {f"new.{k}": v for k, v in plan.outputs.items()}
        printed = [self._function("advance", states)]
        if plan.saved:
            rest = states | {n: node for n, node in plan.saved.items() if n not in plan.early}
            known = {node: plan.input(name) for name, node in plan.early.items()}
            later = dict(zip(rest, replaced(list(rest.values()), known), strict=True))
            printed.append(self._function("advance_saving", later))
        if plan.late:
            handed = {f"m.{g}": v for g, v in plan.operands.items()}
            printed.append(self._function("operands", handed))
            printed.append(self._function("operands_saving", handed | plan.early))
            gradients = {f"dlate.{g}": v for g, v in plan.late_gradients.items()}
            printed.append(self._function("back_late", gradients))
        unused = f"s.{cell.states[0]}" if self.variant.projected else ""
        named = {f"d{name}": value for name, value in plan.gradients.items() if name != unused}
        printed.append(self._function("back", named))
        functions = {function.name: function for function, _ in printed}
        functions.setdefault("advance_saving", functions["advance"])
        return Program(
            "\n\n".join(text for _, text in printed), functions, plan.joined, plan.direct,
            plan.late, len(self.outside), plan.kept,
        )  # fmt: skip

    def _place(self, name: str) -> Place:
        """Where the value of that name lies."""
        cell = self.cell
        kind, _, which = name.partition(".")
        gates, late = len(cell.gates), tuple(cell.late)
        if name in self.places:
            return self.places[name]
        if kind in ("x", "a", "dx", "da"):
            return Place(kind.replace("a", "x"), cell.gates.index(which), gates, "at")
        if kind in ("u", "du"):
            return Place(kind, self.plan.direct.index(which), len(self.plan.direct), "at")
        if kind in ("late", "dlate", "m"):
            return Place({"m": "operand"}.get(kind, kind), late.index(which), len(late), "at")
        if kind == "dm":
            return Place("doperand", late.index(which), len(late), "")
        if kind == "keep":
            own = cell.states[1:] if self.variant.projected else cell.states
            return Place("keep", own.index(which), len(own), "at")
        if kind in ("v", "dv"):
            return Place(kind, cell.vectors.index(which), 0, "")
        if name == "dout":
            return Place("dout", 0, 1, "at")
        if kind in ("d", "ds"):
            return Place(f"d_{which}", 0, 1, "")
        return Place(f"s_{which}", 0, 1, "following" if kind == "new" else "previous")

    def _function(self, name: str, targets: Mapping[str, Expression]) -> tuple[Function, str]:
        nodes = in_order(targets.values())
        inputs = [str(n.value) for n in nodes if n.operation == "input" and n.value != "clip"]
        places = {key: self._place(key) for key in [*inputs, *targets]}
        arrays = tuple(sorted({place.array for place in places.values()}))
        once = [_slice(p) for p in sorted(set(places.values())) if p.blocks == 0]
        each = [_slice(p) for p in sorted(set(places.values())) if p.blocks > 0]
        variables: dict[Expression, str] = {}
        body = []
        for number, node in enumerate(nodes):
            if node.operation == "number":
                variables[node] = f"R({node.value!r})"
                continue
            variables[node] = f"n{number}"
            if node.operation == "input":
                value = "bound" if node.value == "clip" else f"{_name(self._place(node.value))}[j]"
            else:
                value = _value(node.operation, [variables[a] for a in node.arguments])
            body.append(f"n{number} = {value}")
        for target, node in targets.items():
            sign = "+=" if target.startswith("dv.") else "="
            body.append(f"{_name(places[target])}[j] {sign} {variables[node]}")
        lines = [
            "@compiled_real",
            f"def {name}({', '.join((*SCALARS, *arrays))}):",
            "    bound = R(clip)",
            *(f"    {line}" for line in once),
            "    for r in range(rows):",
            *(f"        {line}" for line in each),
            "        for j in range(size):",
            *(f"            {line}" for line in body),
        ]
        return Function(name, arrays), "\n".join(lines)


def _name(place: Place) -> str:
    """A variable that is no array's name, whatever the states are called."""
    return f"{place.row or 'all'}_{place.block}_{place.array}"


def _slice(place: Place) -> str:
    if place.blocks == 0:
        return f"{_name(place)} = {place.array}[{place.block} * size :]"
    row = f"({place.row} + r)" if place.row else "r"
    return f"{_name(place)} = {place.array}[({row} * {place.blocks} + {place.block}) * size :]"


def _value(operation: str, arguments: Iterable[str]) -> str:
    if operation in _OPERATORS:
        return _OPERATORS[operation].format(*arguments)
    constants = [_CALLS[operation]] if operation in _CALLS else []
    return f"{operation}({', '.join([*arguments, *constants])})"
