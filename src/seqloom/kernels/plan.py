"""What a step computes and what its way back needs, before it is printed in any language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.kernels.expressions import Expression, apply
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.walking import adjoints, in_order, replaced

EXPENSIVE = frozenset({"exp", "log", "sqrt", "tanh", "sigmoid", "softplus"})  # kept, not redone
DECISIONS = frozenset({"step", "half_step", "sign"})


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


class Plan:
    """A cell's step with a layer's options, and its derivatives.

    Args:
        cell: The cell.
        variant: The options.
        decisions: Whether to save which side of a maximum or of zero a value is on, and not to
            find it again from values that may have lost digits by being saved.
        after: Whether the way back can read the further states after each step, as inputs "e.c"
            and their like. What is computed of one alone, as tanh(c), is then not saved.

    Attributes:
        direct: The gates with a product of the state, in the order their weights lie.
        late: The gates with a product of something the step computes.
        joined: Whether every recurrent product is only ever added to the input's, so that it can be
            added in place: gates are then the inputs "a.i", and not "x.i" and "u.i".
        outputs: By state, its value after the step.
        operands: By late gate, what its matrix is multiplied with.
        saved: The expensive values that the way back uses, by the names "n.0", "n.1" and so on.
        early: Those of them that are known before the late products.
        gradients: By input, its gradient, from "d.h" and its like (the gradients of the states
            after the step), "dout" (of what is put out) and "dm.n" (of the late operands); saved
            values are inputs of it.
        late_gradients: By late gate, the gradient of its product.
        kept: Which of the inputs x, u and late the way back reads.
    """

    def __init__(
        self, cell: TracedCell, variant: Variant, *, decisions: bool = False, after: bool = False
    ) -> None:
        self.cell, self.variant, self.graph = cell, variant, cell.graph
        self._decisions = decisions
        self.direct = tuple(g for g in cell.gates if g not in cell.late)
        self.late = tuple(cell.late)
        self.outputs = {k: self._finished(k, cell.outputs[k]) for k in cell.states}
        self.operands = dict(cell.late)
        self.joined = not cell.late and self._are_joined()
        if self.joined:
            sums = {
                apply("add", self.input(f"x.{g}"), self.input(f"u.{g}")): self.input(f"a.{g}")
                for g in cell.gates
            }
            values = replaced(list(self.outputs.values()), sums)
            self.outputs = dict(zip(self.outputs, values, strict=True))
        gradients, late = self._gradients(), self._late_gradients()
        back = [*gradients.values(), *late]
        ends = self._ends(back) if after else {}
        self.saved = {f"n.{i}": node for i, node in enumerate(self._to_save(back, set(ends)))}
        known = ends | {node: name for name, node in self.saved.items()}
        cut = replaced(back, {node: self.input(name) for node, name in known.items()})
        self.gradients = dict(zip(gradients, cut, strict=False))
        self.late_gradients = dict(zip(self.late, cut[len(gradients) :], strict=True))
        early = dict.fromkeys(in_order(self.operands.values()))
        self.early = {name: node for name, node in self.saved.items() if node in early}
        read = {str(n.value) for n in in_order(cut) if n.operation == "input"}
        kinds = {name.partition(".")[0].replace("a", "x") for name in read if name[:2] == "a."}
        kinds |= {name.partition(".")[0] for name in read}
        self.kept = frozenset(kinds & {"x", "u", "late"})

    def input(self, name: str) -> Expression:
        """An input by its name."""
        return self.graph.input(name)

    def _finished(self, state: str, value: Expression) -> Expression:
        """A state after zoneout and clipping."""
        if self.variant.projected and state == self.cell.states[0]:
            return value
        if self.variant.keep:
            share = self.input(f"keep.{state}")
            value = (1 - share) * value + share * self.input(f"s.{state}")
        if self.variant.clip:
            bound = self.input("clip")
            value = apply("minimum", apply("maximum", value, -bound), bound)
        return value

    def _are_joined(self) -> bool:
        used_by: dict[Expression, set[Expression]] = {}
        for node in in_order(self.outputs.values()):
            for argument in node.arguments:
                used_by.setdefault(argument, set()).add(node)
        for gate in self.cell.gates:
            x, u = self.input(f"x.{gate}"), self.input(f"u.{gate}")
            if {x, u}.intersection(self.outputs.values()):  # a state that is a product itself
                return False
            if not used_by.get(x, set()) == used_by.get(u, set()) == {apply("add", x, u)}:
                return False
        return True

    # -- the way back ----------------------------------------------------------------------------

    def _seeds(self) -> list[Expression]:
        """The gradient of each state after the step; the first one is put out as well."""
        seeds = [self.input(f"d.{k}") for k in self.cell.states]
        if not self.variant.projected:
            seeds[0] = seeds[0] + self.input("dout")
        return seeds

    def _gradients(self) -> dict[str, Expression]:
        """By input: its gradient, where the late products' are inputs too."""
        cell = self.cell
        names = [f"{'a' if self.joined else 'x'}.{g}" for g in cell.gates]
        names += [] if self.joined else [f"u.{g}" for g in self.direct]
        names += [f"s.{k}" for k in cell.states] + [f"v.{v}" for v in cell.vectors]
        handed = [self.input(f"dm.{g}") for g in cell.late]
        found = adjoints(
            [*self.outputs.values(), *self.operands.values()],
            [*self._seeds(), *handed],
            [self.input(name) for name in names],
        )
        return dict(zip(names, found, strict=True))

    def _late_gradients(self) -> list[Expression]:
        inputs = [self.input(f"late.{g}") for g in self.cell.late]
        return adjoints(list(self.outputs.values()), self._seeds(), inputs) if inputs else []

    def _ends(self, needed: Sequence[Expression]) -> dict[Expression, str]:
        """The further states after a step, where those before it are read anyway."""
        inputs = {str(n.value) for n in in_order(needed) if n.operation == "input"}
        states = [k for k in self.cell.states[1:] if f"s.{k}" in inputs]
        found = {self.outputs[k]: f"e.{k}" for k in states}
        return {node: name for node, name in found.items() if node.arguments}

    def _to_save(self, needed: Sequence[Expression], ends: set[Expression]) -> list[Expression]:
        """The expensive values of the way forth that the way back uses."""
        forth = dict.fromkeys(in_order([*self.outputs.values(), *self.operands.values()]))
        found: set[Expression] = set()
        seen: set[Expression] = set()
        waiting = list(needed)
        while waiting:
            node = waiting.pop()
            if node in seen or node in ends:
                continue
            seen.add(node)
            is_expensive = node in forth and node.operation in EXPENSIVE and by_row(node)
            decides = self._decisions and node.operation in DECISIONS and _is_forth(node)
            if decides or (is_expensive and not ends.issuperset(node.arguments)):
                found.add(node)
            else:
                waiting += node.arguments
        ordered = [*forth, *in_order(needed)]  # so that it is always the same one
        return list(dict.fromkeys(node for node in ordered if node in found))


def by_row(node: Expression) -> bool:
    """Whether a value differs from row to row, as what depends on vectors alone does not."""
    inputs = [str(n.value) for n in in_order([node]) if n.operation == "input"]
    return any(not name.startswith("v.") for name in inputs)


def _is_forth(node: Expression) -> bool:
    """Whether a value depends on nothing that comes from the way back."""
    inputs = [str(n.value) for n in in_order([node]) if n.operation == "input"]
    return not any(name.startswith(("d.", "dm.", "dout")) for name in inputs)
