"""Cells by a key that stands for their equations: what an operator can be handed."""

from __future__ import annotations

import hashlib

from seqloom.errors import BackendError
from seqloom.kernels.expressions import Expression
from seqloom.kernels.tracing import TracedCell
from seqloom.kernels.walking import in_order

_CELLS: dict[str, TracedCell] = {}


def key_of(cell: TracedCell, name: str) -> str:
    """The key of a cell, known in this process from now on.

    It has the name and a hash of the equations, gates, states and vectors by their places.
    """
    key = f"{name}-{hashlib.sha256(_spelled(cell).encode()).hexdigest()[:12]}"
    _CELLS.setdefault(key, cell)
    return key


def _spelled(cell: TracedCell) -> str:
    """A cell's equations as text, whatever its gates, states and vectors are called."""
    kinds = {"x": cell.gates, "u": cell.gates, "late": cell.gates}
    kinds |= {"s": cell.states, "v": cell.vectors}
    places = {f"{kind}.{name}": i for kind, names in kinds.items() for i, name in enumerate(names)}
    numbers: dict[Expression, int] = {}
    lines = [repr([len(names) for names in kinds.values()])]
    for node in in_order([*cell.late.values(), *cell.outputs.values()]):
        numbers[node] = len(numbers)
        own = node.value
        if node.operation == "input":
            own = f"{node.value.partition('.')[0]} {places[node.value]}"
        lines.append(f"{node.operation} {own} {[numbers[a] for a in node.arguments]}")
    handed = {cell.gates.index(gate): numbers[node] for gate, node in cell.late.items()}
    ends = [numbers[node] for node in cell.outputs.values()]
    return "\n".join([*lines, repr(sorted(handed.items())), repr(ends)])


def cell_of(key: str) -> TracedCell:
    """The cell of a key.

    Raises:
        BackendError: If this process does not know it.
    """
    if key not in _CELLS:
        raise BackendError(
            f"no cell {key!r} is known in this process; build a Recurrent with that cell first"
        )
    return _CELLS[key]
