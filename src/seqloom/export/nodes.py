"""A part of an ONNX graph while it is written: nodes, constants and names that are not taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper


class Nodes:
    """Nodes in the order they run, with the constants they need.

    Args:
        prefix: What every name begins with, so that parts of a graph do not share one.
        dtype: Of constants that are not whole numbers.
    """

    def __init__(self, prefix: str, dtype: Any = np.float32) -> None:
        self.prefix, self.dtype = prefix, np.dtype(dtype)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, TensorProto] = {}
        self._count = 0

    def name(self, hint: str) -> str:
        """A name that is not taken."""
        self._count += 1
        return f"{self.prefix}/{hint}_{self._count}"

    def constant(self, value: NDArray[Any], hint: str = "constant") -> str:
        """The name of a constant."""
        name = self.name(hint)
        array = np.array(value, order="C")
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value: float) -> str:
        """The name of a number."""
        return self.constant(np.array(value, self.dtype), "number")

    def whole(self, *values: int) -> str:
        """The name of a list of whole numbers."""
        return self.constant(np.array(values, np.int64), "whole")

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        return self.add_several(operation, 1, *inputs, **attributes)[0]

    def add_several(
        self, operation: str, outputs: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [self.name(operation.lower()) for _ in range(outputs)]
        self.add_named(operation, inputs, names, **attributes)
        return names

    def add_named(
        self, operation: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        """Add a node whose outputs have names already."""
        own = {key: value for key, value in attributes.items() if value is not None}
        name = self.name(f"node_{operation.lower()}")
        self.nodes.append(helper.make_node(operation, inputs, outputs, name=name, **own))

    def graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> GraphProto:
        """A graph of them, as the body of a loop is one."""
        return helper.make_graph(self.nodes, name, inputs, outputs, [*self.constants.values()])
