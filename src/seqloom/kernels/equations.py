r"""A traced step as a person would write it.

There is a line for each gate, for what is used more than once, and for each state, and what has a
line is called by its name in the others. Gate g is $g_t$, its products are $W_g x_t + b_g$ and
$U_g h_{t-1} + b'_g$, vector p is $w_p$.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

from seqloom.kernels.expressions import OPERATIONS, Expression, Graph
from seqloom.kernels.latex import latex
from seqloom.kernels.walking import in_order

if TYPE_CHECKING:
    from seqloom.kernels.tracing import TracedCell

PRODUCTS = ("x", "u", "late")  # inputs that are products with a gate's matrix
FACTORS = ("number", "v", "", *PRODUCTS, "s")  # in a product, what comes before what
ACCENTS = (r"\tilde", r"\hat", r"\bar")  # where a letter is taken
LETTERS = "mpqdekl"  # for what is used more than once and has no gate


def write_equations(cell: TracedCell) -> list[str]:
    """The lines, each after those it needs, gates in their own order as far as that allows."""
    return [f"{name} = {formula}" for name, formula, _ in _Writer(cell).lines()]


def named_nodes(cell: TracedCell) -> dict[str, Expression]:
    """What the lines compute, by the name each line begins with, in their order."""
    return {name: node for name, _, node in _Writer(cell).lines()}


class _Writer:
    def __init__(self, cell: TracedCell) -> None:
        self.cell, self.graph = cell, Graph()  # formulas are built in a graph of their own
        self.nodes = in_order([*cell.late.values(), *cell.outputs.values()])
        self.places = {node: place for place, node in enumerate(self.nodes)}
        self.taken = {"x"}
        self.states = {state: self._free([state]) for state in cell.states}
        self.names: dict[Expression, str] = {}
        self.gate_of: dict[Expression, str] = {}
        self._name()

    # -- names -----------------------------------------------------------------------------------

    def _name(self) -> None:
        for state, node in self.cell.outputs.items():
            if node.arguments:
                self.names.setdefault(node, f"{self.states[state]}_t")
        uses = Counter(chain(self.cell.late.values(), *(node.arguments for node in self.nodes)))
        gates: dict[Expression, list[str]] = {}
        shared: dict[Expression, list[str]] = {}
        for node in self.nodes:
            if node in self.names:
                continue
            found = self._gates(node)
            if found and _is_function(node):
                gates[node] = found
            elif uses[node] > 1 and self._is_long(node):
                shared[node] = found or list(LETTERS)
            else:
                continue
            self.names[node] = ""  # named from here on; a gate has the first choice of a letter
        for node, letters in (*gates.items(), *shared.items()):
            self.names[node] = f"{self._free(letters)}_t"
        self.gate_of = {node: found[0] for node, found in gates.items()}

    def _gates(self, node: Expression) -> list[str]:
        """The gates whose products a node's formula has, in the order of the gates."""
        found = {name for kind, name in map(_kind, self._formula(node)) if kind in PRODUCTS}
        return [gate for gate in self.cell.gates if gate in found]

    def _formula(self, node: Expression) -> Iterator[Expression]:
        """A node and those below it, as far down as they have no name."""
        yield node
        for argument in node.arguments:
            if argument not in self.names:
                yield from self._formula(argument)

    def _is_long(self, node: Expression) -> bool:
        """Whether a formula is more than one operation on things that are short."""
        if not node.arguments:
            return _kind(node)[0] == "late"
        return any(_kind(n)[0] in ("", *PRODUCTS) for n in list(self._formula(node))[1:])

    def _free(self, wanted: Iterable[str]) -> str:
        """The first of some letters that is not taken, with an accent if all are."""
        letters = [_letter(name) for name in wanted]
        accented = (f"{accent}{{{letters[0]}}}" for accent in ACCENTS)
        numbered = (f"{letters[0]}^{{({k})}}" for k in count(2))
        found = next(s for s in chain(letters, accented, numbered) if s not in self.taken)
        self.taken.add(found)
        return found

    # -- lines -----------------------------------------------------------------------------------

    def lines(self) -> list[tuple[str, str, Expression]]:
        """By line its name, its formula, and the node it stands for."""
        found: list[tuple[str, str, Expression]] = []
        waiting = dict.fromkeys(sorted(self.names, key=self._rank))
        while waiting:
            node = next(n for n in waiting if not self._needed(n).intersection(waiting))
            del waiting[node]
            found.append((self.names[node], latex(self._written(node), {}), node))
        for state, node in self.cell.outputs.items():
            name = f"{self.states[state]}_t"
            if self.names.get(node) != name:  # what another state is, or was
                found.append((name, latex(self._called(node), {}), node))
        return found

    def _rank(self, node: Expression) -> tuple[int, int]:
        gates, gate = self.cell.gates, self.gate_of.get(node)
        return len(gates) if gate is None else gates.index(gate), self.places[node]

    def _needed(self, node: Expression) -> set[Expression]:
        """The nodes that a node's formula calls by their names."""
        found: set[Expression] = set()
        for each in self._formula(node):
            below = [*each.arguments, *self._handed(each)]
            found |= {n for n in below if n in self.names}
            for handed in self._handed(each):
                found |= set() if handed in self.names else self._needed(handed)
        return found

    def _handed(self, node: Expression) -> list[Expression]:
        kind, name = _kind(node)
        return [self.cell.late[name]] if kind == "late" else []

    # -- formulas --------------------------------------------------------------------------------

    def _called(self, node: Expression) -> Expression:
        """A node by its name, or by its formula if it has none."""
        name = self.names.get(node)
        return self._written(node) if name is None else self.graph.input(name)

    def _written(self, node: Expression) -> Expression:
        """A node's formula, its inputs called what is to be read."""
        if node.arguments:
            arguments = tuple(map(self._called, _ordered(node)))
            return Expression(self.graph, node.operation, arguments)
        kind, name = _kind(node)
        if kind == "number":
            return self.graph.number(node.value)
        below = _below(name)
        if kind == "x":
            return self._sum(f"W{below} x_t", f"b{below}")
        if kind == "v":
            return self.graph.input(f"w{below}")
        if kind == "s":
            return self.graph.input(f"{self.states[name]}_{{t-1}}")
        multiplied = f"{self.states[self.cell.states[0]]}_{{t-1}}"
        if kind == "late":
            multiplied = latex(self._called(self.cell.late[name]), {}, binds=2)
        return self._sum(f"U{below} {multiplied}", f"b'{below}")

    def _sum(self, product: str, bias: str) -> Expression:
        parts = self.graph.input(product), self.graph.input(bias)
        return Expression(self.graph, "add", parts)


def _kind(node: Expression) -> tuple[str, str]:
    """An input's kind and name, such as ("x", "i"); ("number", ""); ("", "") if it is computed."""
    if node.operation == "input":
        kind, _, name = str(node.value).partition(".")
        return kind, name
    return ("number", "") if node.operation == "number" else ("", "")


def _ordered(node: Expression) -> Sequence[Expression]:
    """A node's arguments as one would read them; the graph has them as they were made."""
    if node.operation == "mul":
        return sorted(node.arguments, key=lambda each: FACTORS.index(_kind(each)[0]))
    if node.operation == "add":
        return sorted(node.arguments, key=lambda each: not _is_product(each))
    return node.arguments


def _is_product(node: Expression) -> bool:
    """Whether a node is a product with a gate's matrix, or the sum of both."""
    parts = node.arguments if node.operation == "add" else (node,)
    return all(_kind(part)[0] in PRODUCTS for part in parts)


def _is_function(node: Expression) -> bool:
    return (
        bool(node.arguments) and node.operation != "div" and OPERATIONS[node.operation].binds == 2
    )


def _letter(name: str) -> str:
    escaped = name.replace("_", r"\_")
    return name if len(name) == 1 else rf"\mathrm{{{escaped}}}"


def _below(name: str) -> str:
    return f"_{name}" if len(name) == 1 else f"_{{{_letter(name)}}}"
