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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seqloom.kernels.expressions import Expression, adjoints, apply, in_order, replaced
from seqloom.kernels.tracing import TracedCell

EXPENSIVE = frozenset({"exp", "log", "sqrt", "tanh", "sigmoid", "softplus"})  # kept, not redone

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


@dataclass(frozen=True)
class Variant:
    """What of a layer's options is part of the loop.

    Args:
        keep: Whether some of each state stays what it was (zoneout).
        clip: Whether states are bounded.
        projected: Whether the first state is projected after the step, and finished there.
    """

    keep: bool = False
    clip: bool = False
    projected: bool = False


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
        self.cell, self.variant, self.graph = cell, variant, cell.graph
        self.direct = tuple(g for g in cell.gates if g not in cell.late)
        self.outputs = [self._finished(k, cell.outputs[k]) for k in cell.states]
        self.operands = list(cell.late.values())
        self.joined = not cell.late and self._are_joined()
        if self.joined:
            sums = {
                apply("add", self._input(f"x.{g}"), self._input(f"u.{g}")): self._input(f"a.{g}")
                for g in cell.gates
            }
            self.outputs = replaced(self.outputs, sums)

    def _input(self, name: str) -> Expression:
        return self.graph.input(name)

    def _finished(self, state: str, value: Expression) -> Expression:
        """A state after zoneout and clipping."""
        if self.variant.projected and state == self.cell.states[0]:
            return value
        if self.variant.keep:
            share = self._input(f"keep.{state}")
            value = (1 - share) * value + share * self._input(f"s.{state}")
        if self.variant.clip:
            bound = self._input("clip")
            value = apply("minimum", apply("maximum", value, -bound), bound)
        return value

    def _are_joined(self) -> bool:
        used_by: dict[Expression, set[Expression]] = {}
        for node in in_order(self.outputs):
            for argument in node.arguments:
                used_by.setdefault(argument, set()).add(node)
        for gate in self.cell.gates:
            x, u = self._input(f"x.{gate}"), self._input(f"u.{gate}")
            if not used_by.get(x, set()) == used_by.get(u, set()) == {apply("add", x, u)}:
                return False
        return True

    # -- the way back ----------------------------------------------------------------------------

    def _seeds(self) -> list[Expression]:
        """The gradient of each state after the step; the first one is put out as well."""
        seeds = [self._input(f"d.{k}") for k in self.cell.states]
        if not self.variant.projected:
            seeds[0] = seeds[0] + self._input("d.out")
        return seeds

    def _gradients(self) -> dict[str, Expression]:
        """By input: its gradient, where the late products' are inputs too."""
        cell = self.cell
        names = [f"{'a' if self.joined else 'x'}.{g}" for g in cell.gates]
        names += [] if self.joined else [f"u.{g}" for g in self.direct]
        names += [f"s.{k}" for k in cell.states] + [f"v.{v}" for v in cell.vectors]
        handed = [self._input(f"dm.{g}") for g in cell.late]
        found = adjoints(
            [*self.outputs, *self.operands],
            [*self._seeds(), *handed],
            [self._input(name) for name in names],
        )
        return dict(zip(names, found, strict=True))

    def _late_gradients(self) -> list[Expression]:
        inputs = [self._input(f"late.{g}") for g in self.cell.late]
        return adjoints(self.outputs, self._seeds(), inputs) if inputs else []

    def _to_save(self, needed: Sequence[Expression]) -> list[Expression]:
        """The expensive values of the way forth that the way back uses."""
        forth = dict.fromkeys(in_order([*self.outputs, *self.operands]))
        found: set[Expression] = set()
        seen: set[Expression] = set()
        waiting = list(needed)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in forth and node.operation in EXPENSIVE and _by_row(node):
                found.add(node)
            else:
                waiting += node.arguments
        return [node for node in forth if node in found]  # in an order that is always the same

    # -- printing --------------------------------------------------------------------------------

    def program(self) -> Program:
        """Everything together."""
        cell = self.cell
        gradients, late = self._gradients(), self._late_gradients()
        back = [*gradients.values(), *late]
        saved = self._to_save(back)
        names = {f"n.{i}": node for i, node in enumerate(saved)}
        cut = replaced(back, {node: self._input(name) for name, node in names.items()})
        gradients = dict(zip(gradients, cut, strict=False))
        late = cut[len(gradients) :]
        read = {str(n.value) for n in in_order(cut) if n.operation == "input"}
        kept = {kind for kind in ("x", "u", "late") if any(n.startswith(f"{kind}.") for n in read)}
        kept |= {"x"} if any(n.startswith("a.") for n in read) else set()
        early = dict.fromkeys(in_order(self.operands))
        first = {name: node for name, node in names.items() if node in early}
        # What is found last takes the place of x, used up by then, if the way back needs no x.
        late_names = [] if "x" in kept else [n for n in names if n not in first][: len(cell.gates)]
        outside = [name for name in names if name not in late_names]
        gates = len(cell.gates)
        self.places = {n: Place("x", i, gates, "at") for i, n in enumerate(late_names)}
        self.places |= {n: Place("saved", i, len(outside), "at") for i, n in enumerate(outside)}
        states = {f"new.{k}": v for k, v in zip(cell.states, self.outputs, strict=True)}
        printed = [self._function("advance", states)]
        if names:
            rest = states | {name: node for name, node in names.items() if name not in first}
            known = {node: self._input(name) for name, node in first.items()}
            later = dict(zip(rest, replaced(list(rest.values()), known), strict=True))
            printed.append(self._function("advance_saving", later))
        if cell.late:
            handed = {f"m.{g}": v for g, v in cell.late.items()}
            printed.append(self._function("operands", handed))
            printed.append(self._function("operands_saving", handed | first))
            targets = [f"dlate.{g}" for g in cell.late]
            printed.append(self._function("back_late", dict(zip(targets, late, strict=True))))
        unused = f"s.{cell.states[0]}" if self.variant.projected else ""
        named = {f"d{name}": value for name, value in gradients.items() if name != unused}
        printed.append(self._function("back", named))
        functions = {function.name: function for function, _ in printed}
        functions.setdefault("advance_saving", functions["advance"])
        return Program(
            "\n\n".join(text for _, text in printed), functions, self.joined, self.direct,
            tuple(cell.late), len(outside), frozenset(kept),
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
            return Place(kind, self.direct.index(which), len(self.direct), "at")
        if kind in ("late", "dlate", "m"):
            return Place({"m": "operand"}.get(kind, kind), late.index(which), len(late), "at")
        if kind == "dm":
            return Place("doperand", late.index(which), len(late), "")
        if kind == "keep":
            own = cell.states[1:] if self.variant.projected else cell.states
            return Place("keep", own.index(which), len(own), "at")
        if kind in ("v", "dv"):
            return Place(kind, cell.vectors.index(which), 0, "")
        if name == "d.out":
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


def _by_row(node: Expression) -> bool:
    """Whether a value differs from row to row, as what depends on vectors alone does not."""
    inputs = [str(n.value) for n in in_order([node]) if n.operation == "input"]
    return any(not name.startswith("v.") for name in inputs)


def _name(place: Place) -> str:
    return f"{place.array}_{place.row or 'all'}_{place.block}"


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
