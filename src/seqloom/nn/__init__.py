"""Layers: what models are made of, and what a cell of one's own is made of.

`from seqloom.nn import Cell, State, sigmoid, tanh` is what the definition of a cell needs.
"""

from seqloom.kernels.functions import (
    absolute,
    exp,
    log,
    maximum,
    minimum,
    relu,
    sigmoid,
    softplus,
    sqrt,
    tanh,
)
from seqloom.nn.cells import Cell, State, register_cell
from seqloom.nn.recurrent import Recurrent

__all__ = [
    "Cell",
    "Recurrent",
    "State",
    "absolute",
    "exp",
    "log",
    "maximum",
    "minimum",
    "register_cell",
    "relu",
    "sigmoid",
    "softplus",
    "sqrt",
    "tanh",
]
