"""Products of 8-bit numbers in an ONNX graph, where they are faster.

A product's weights become whole numbers of 8 bits with a scale a column, once; its inputs are
rounded as they come, with one scale for all of them (dynamic quantization).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto

OPERATIONS = ("MatMul", "Gemm", "LSTM")
"""What is rounded. Convolutions of 8 bits are slower in ONNX Runtime than full ones."""
SMALL = 4096  # numbers up to which a matrix is not worth it


def quantized(model: ModelProto) -> ModelProto:
    """Return the graph with products of 8-bit numbers."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    sizes = {each.name: list(each.dims) for each in model.graph.initializer}
    left = []
    for node in model.graph.node:
        if node.op_type not in OPERATIONS:
            continue
        shapes = [sizes[name] for name in node.input if name in sizes]
        # ONNX Runtime has no product of 8-bit numbers with a vector.
        worth = [shape for shape in shapes if len(shape) > 1 and _numbers(shape) > SMALL]
        if not worth:
            left.append(node.name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "graph.onnx"
        quantize_dynamic(
            model,
            place,
            op_types_to_quantize=list(OPERATIONS),
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=left,
            extra_options={"MatMulConstBOnly": True},
        )
        return onnx.load(place)


def _numbers(shape: list[int]) -> int:
    found = 1
    for each in shape:
        found *= each
    return found
