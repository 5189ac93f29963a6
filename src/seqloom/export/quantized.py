"""Products of 8-bit numbers in an ONNX graph, where they are faster, and tables of vectors.

A product's weights become whole numbers of 8 bits with a scale a column, once; its inputs are
rounded as they come, with one scale for all of them (dynamic quantization). The vectors of a table
are rounded with a scale each, as `seqloom.tasks.packed_weights` rounds them.
"""

from __future__ import annotations

import logging
import math
import tempfile
from pathlib import Path

import onnx
import torch
from onnx import GraphProto, ModelProto, numpy_helper

from seqloom.export.nodes import Nodes
from seqloom.export.symbols import drop_unused
from seqloom.tasks.packed_weights import SCALE, SMALL, pack_weights

OPERATIONS = ("MatMul", "Gemm", "LSTM")
"""What is rounded. Convolutions of 8 bits are slower in ONNX Runtime than full ones."""


def quantized(model: ModelProto) -> ModelProto:
    """Return the graph with products of 8-bit numbers; the given one is used up."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    sizes = {each.name: list(each.dims) for each in model.graph.initializer}
    _pack_tables(model.graph)
    left = []
    for node in model.graph.node:
        if node.op_type not in OPERATIONS:
            continue
        shapes = [sizes[name] for name in node.input if name in sizes]
        # ONNX Runtime has no product of 8-bit numbers with a vector.
        worth = [shape for shape in shapes if len(shape) > 1 and math.prod(shape) > SMALL]
        if not worth:
            left.append(node.name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "graph.onnx"
        logging.disable(logging.WARNING)  # it recommends what does not apply to loops
        try:
            quantize_dynamic(
                model,
                place,
                op_types_to_quantize=list(OPERATIONS),
                per_channel=True,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=left,
                extra_options={"MatMulConstBOnly": True},
            )
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(place)


def _pack_tables(graph: GraphProto) -> None:
    """Let tables that vectors are looked up in be 8-bit numbers with a scale a row, in place."""
    tables = {each.name: each for each in graph.initializer}
    written = []
    for number, node in enumerate(graph.node):
        table = tables.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or len(table.dims) != 2 or math.prod(table.dims) <= SMALL:
            written.append(node)
            continue
        nodes = Nodes(f"table_{number}")
        packed = pack_weights({"table": torch.tensor(numpy_helper.to_array(table))}, "int8")
        if "table" + SCALE not in packed:
            written.append(node)
            continue
        rows = nodes.constant(packed["table"].numpy(), "rows")
        scales = nodes.constant(packed["table" + SCALE].numpy()[:, None], "scales")
        found = nodes.add("Gather", rows, node.input[1])
        found = nodes.add("Cast", found, to=table.data_type)
        scale = nodes.add("Gather", scales, node.input[1])
        nodes.add_named("Mul", [found, scale], node.output)
        written += nodes.nodes
        graph.initializer.extend(nodes.constants.values())
    del graph.node[:]
    graph.node.extend(written)
    drop_unused(graph)
