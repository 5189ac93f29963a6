"""Nodes that stand for loops while a network is traced, until they are written as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, defs
from onnxscript.values import Op, Opset

from seqloom.export.nodes import Nodes

DOMAIN = "seqloom"
Writer = Callable[[Nodes, NodeProto, Mapping[str, TensorProto]], str]
"""Writes a symbol as nodes whose outputs have its names, given the constants of the graph by name;
returns what it became."""


def make_symbol(name: str, inputs: Sequence[Any], outputs: int, settings: Mapping[str, Any]) -> Any:
    """Add a symbol to the graph that torch's exporter is writing.

    Args:
        name: What it is called.
        inputs: Values of that graph.
        outputs: How many it has.
        settings: Whole numbers, numbers and texts by name.
    """
    return Op(Opset(DOMAIN, 1), name, _schema(name, outputs, settings))(*inputs, **settings)


def _schema(name: str, outputs: int, settings: Mapping[str, Any]) -> defs.OpSchema:
    """A symbol's signature: any inputs, so many outputs, and its settings."""
    parameter, option = defs.OpSchema.FormalParameter, defs.OpSchema.FormalParameterOption
    kinds = defs.OpSchema.AttrType
    several = parameter("inputs", "T", param_option=option.Variadic, is_homogeneous=False)
    types = {int: kinds.INT, float: kinds.FLOAT, str: kinds.STRING}
    real = ["tensor(float)", "tensor(double)"]
    return defs.OpSchema(
        name,
        DOMAIN,
        1,
        inputs=[several],
        outputs=[parameter(f"output_{i}", "R") for i in range(outputs)],
        type_constraints=[("T", [*real, "tensor(int64)", "tensor(bool)"], ""), ("R", real, "")],
        attributes=[defs.OpSchema.Attribute(n, types[type(v)], n) for n, v in settings.items()],
    )


def write_symbols(graph: GraphProto, writers: Mapping[str, Writer]) -> list[str]:
    """Replace the symbols of a graph, in place.

    Args:
        graph: The graph.
        writers: What writes a symbol, by its name.

    Returns:
        What each became.
    """
    constants = {each.name: each for each in graph.initializer}
    written: list[NodeProto] = []
    became = []
    for number, node in enumerate(graph.node):
        if node.domain != DOMAIN:
            written.append(node)
            continue
        nodes = Nodes(f"loop_{number}")
        became.append(writers[node.op_type](nodes, node, constants))
        written += nodes.nodes
        graph.initializer.extend(nodes.constants.values())
    del graph.node[:]
    graph.node.extend(written)
    drop_unused(graph)
    return became


def drop_unused(graph: GraphProto) -> None:
    """Remove the constants that no node reads any more."""
    used = {name for node in graph.node for name in _read_by(node)}
    used |= {each.name for each in graph.output}
    kept = [each for each in graph.initializer if each.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _read_by(node: NodeProto) -> set[str]:
    """The names a node reads, those its loop reads from outside included."""
    found = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            found |= _read_by(inner)
    return found
