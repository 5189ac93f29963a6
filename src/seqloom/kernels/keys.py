"""Cells by a key that stands for their equations: what an operator can be handed."""

from __future__ import annotations

import hashlib

from seqloom.errors import BackendError
from seqloom.kernels.plan import Variant
from seqloom.kernels.printing import print_cell
from seqloom.kernels.tracing import TracedCell

_CELLS: dict[str, TracedCell] = {}


def key_of(cell: TracedCell, name: str) -> str:
    """The key of a cell, known in this process from now on."""
    source = print_cell(cell, Variant()).source
    key = f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    _CELLS.setdefault(key, cell)
    return key


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
