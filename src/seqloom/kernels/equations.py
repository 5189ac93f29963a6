r"""A traced step as a person would write it: a line for each gate, for what is used again, and for
each state.

A line is `name = formula`; what has a name is not written out again. Gate g's activation is $g_t$,
its products are $W_g x_t + b_g$ and $U_g h_{t-1} + b'_g$, vector p is $w_p$.
"""  # noqa: D205

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from seqloom.kernels.expressions import OPERATIONS, Expression, Graph, in_order, latex

if TYPE_CHECKING:
    from seqloom.kernels.tracing import TracedCell

LETTERS = "mpqdeklabcfgijnoruvyz"  # for what belongs to no gate, if it needs a name
ACCENTS = ("", r"\tilde", r"\hat", r"\bar", r"\check", r"\dot", r"\ddot")
MATRICES = ("x", "u", "late")  # inputs that are products of a gate's matrix


def equations(cell: TracedCell) -> list[str]:
    """The lines, each after those it needs, gates in their own order as far as that allows."""
    return _Writer(cell).lines()


class _Writer:
    """What gets a name, and which."""

    def __init__(self, cell: TracedCell) -> None:
        self.cell, self.graph = cell, Graph()
        self.nodes = in_order([*cell.late.values(), *cell.outputs.values()])
        self.taken = {"x"}
        self.states = {s: self._symbol([s]) for s in cell.states}
        self.names: dict[Expression, str] = {}
        for state, node in cell.outputs.items():
            if node.arguments and node not in self.names:
                self.names[node] = f"{self.states[state]}_t"
        shared = self._shared()
        self.names |= dict.fromkeys(shared, "")  # the names come after those of the gates
        for node in self.nodes:
            gates = self._gates(node.arguments)
            if _is_function(node) and gates and node not in self.names:
                self.names[node] = f"{self._symbol(gates)}_t"
        for node in shared:
            letters = self._gates(node.arguments or [node]) or [*LETTERS]
            self.names[node] = f"{self._symbol(letters)}_t"

    # -- what gets a name ------------------------------------------------------------------------

    def _shared(self) -> list[Expression]:
        """What is used more than once, is no state, and is too long to be written twice."""
        uses = Counter(argument for node in self.nodes for argument in node.arguments)
        uses.update(self.cell.late.values())
        return [n for n in self.nodes if uses[n] > 1 and n not in self.names and self._is_long(n)]

    def _is_long(self, node: Expression) -> bool:
        """Whether it is more than one operation on things that have a short name."""
        kind, _ = _input(node)
        if not node.arguments:
            return kind == "late"
        return any(
            _input(argument)[0] in MATRICES or (argument.arguments and argument not in self.names)
            for argument in node.arguments
        )

    def _gates(self, nodes: Iterable[Expression]) -> list[str]:
        """The gates whose products are written out in these nodes, in the gates' order."""
        found = {gate for kind, gate in map(_input, self._written(nodes)) if kind in MATRICES}
        return [gate for gate in self.cell.gates if gate in found]

    def _written(self, nodes: Iterable[Expression]) -> Iterator[Expression]:
        """The nodes below some that have no name."""
        for node in nodes:
            if node not in self.names:
                yield node
                yield from self._written(node.arguments)

    def _symbol(self, wanted: Iterable[str]) -> str:
        """The first of some symbols that is free, or the first with an accent."""
        choices = [_letters(name) for name in wanted]
        plain = (choice for choice in choices if choice not in self.taken)
        accented = (f"{accent}{{{choices[0]}}}" for accent in ACCENTS[1:])
        primed = (f"{choices[0]}^{{({k})}}" for k in range(2, 2 + len(self.nodes)))
        found = next(s for each in (plain, accented, primed) for s in each if s not in self.taken)
        self.taken.add(found)
        return found

    # -- the lines -------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        made = {node: self._formula(node) for node in self.names}
        needs = {node: self._needs(node) for node in self.names}
        waiting = sorted(self.names, key=self._rank)
        found, done = [], set()
        while waiting:
            node = next(n for n in waiting if needs[n] <= done)
            waiting.remove(node)
            done.add(node)
            found.append(f"{self.names[node]} = {made[node]}")
        for state, node in self.cell.outputs.items():
            name = f"{self.states[state]}_t"
            if self.names.get(node) != name:  # it is that of another state, or of the last step
                found.append(f"{name} = {latex(self._copy(node), {})}")
        return found

    def _rank(self, node: Expression) -> tuple[int, int]:
        """Gates in their order, then the others as the step has them."""
        gates = [f"{_letters(gate)}_t" for gate in self.cell.gates]
        name = self.names[node]
        is_state = node in self.cell.outputs.values()
        first = gates.index(name) if name in gates and not is_state else len(gates)
        return first, self.nodes.index(node)

    def _needs(self, node: Expression) -> set[Expression]:
        """The named nodes in a node's formula."""
        waiting, found = [*(node.arguments or self._handed(node))], set()
        while waiting:
            each = waiting.pop()
            if each in self.names:
                found.add(each)
            else:
                waiting += each.arguments or self._handed(each)
        return found

    def _handed(self, node: Expression) -> tuple[Expression, ...]:
        kind, gate = _input(node)
        return (self.cell.late[gate],) if kind == "late" else ()

    def _formula(self, node: Expression) -> str:
        if node.arguments:
            return latex(self._node(node), {})
        return latex(self._leaf(node), {})

    def _copy(self, node: Expression) -> Expression:
        """The node in the writer's own graph, where a leaf is called what is written."""
        if node in self.names:
            return self.graph.input(self.names[node])
        return self._node(node) if node.arguments else self._leaf(node)

    def _node(self, node: Expression) -> Expression:
        arguments = sorted(node.arguments, key=_place) if node.operation == "mul" else node.arguments
        return Expression(self.graph, node.operation, tuple(map(self._copy, arguments)))

    def _leaf(self, node: Expression) -> Expression:
        if node.operation == "number":
            return self.graph.number(node.value)
        kind, name = _input(node)
        short, first = _letters(name), self.states[self.cell.states[0]]
        ...
