"""R-Net's matching word after word as one node of a trace, and as a loop of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor

from seqloom.export.nodes import Nodes
from seqloom.export.symbols import make_symbol
from seqloom.nn.matching import MatchOutput, RecurrentMatch

MATCH = "RecurrentMatch"


# It is there to be traced and never run, so all there is of it is its shapes.
torch.library.define(
    "seqloom::recurrent_match",
    "(Tensor items, Tensor own, Tensor keys, Tensor others, Tensor real_items, Tensor real_keys, "
    "Tensor state, Tensor out, Tensor weight_ih, Tensor weight_hh, Tensor bias_ih, "
    "Tensor bias_hh, Tensor? gate) -> (Tensor, Tensor)",
)


@torch.library.register_fake("seqloom::recurrent_match")  # type: ignore[untyped-decorator]
def _shapes(*given: Any) -> tuple[Tensor, Tensor]:
    items, keys, weight_hh = given[0], given[2], given[9]
    B, T, _ = items.shape
    return items.new_empty(B, T, weight_hh.shape[1]), items.new_empty(B, T, keys.shape[1])


def traced_match(
    layer: RecurrentMatch, items: Tensor, keys: Tensor, real_keys: Tensor, real_items: Tensor
) -> MatchOutput:
    """What `RecurrentMatch` does while it is traced."""
    cell = layer.cell
    gate = None if layer.gate is None else layer.gate.weight
    found = torch.ops.seqloom.recurrent_match(
        items, layer.items(items), keys, layer.keys(keys), real_items, real_keys,
        layer.state.weight, layer.out.weight, cell.weight_ih, cell.weight_hh, cell.bias_ih,
        cell.bias_hh, gate,
    )  # fmt: skip
    return MatchOutput(*found)


def match_symbol(*given: Any) -> Any:
    """What stands for the loop in a graph until `write_match`."""
    *values, gate = given
    values += [] if gate is None else [gate]
    return make_symbol(MATCH, values, 2, {"gated": int(gate is not None)})


def write_match(nodes: Nodes, node: NodeProto, arrays: Mapping[str, TensorProto]) -> str:
    """Write the loop, as `symbols.Writer` has it.

    Its state is v; of each step it reads the word of the passage, what that gives the score, and
    whether it is real; the question is seen from outside.
    """
    items, own, keys, others, real_items, real_keys = node.input[:6]
    weights = [numpy_helper.to_array(arrays[name]) for name in node.input[6:]]
    state, out, weight_ih, weight_hh, bias_ih, bias_hh, *gate = weights
    H = weight_hh.shape[1]
    body = Nodes(nodes.name("step"))
    old, item, drive, alive = (body.name(each) for each in ("old", "item", "drive", "alive"))

    def product(value: str, matrix: Any, bias: Any = None) -> str:
        constant = nodes.constant(matrix.T, "weight")
        if bias is None:
            return body.add("MatMul", value, constant)
        return body.add("Gemm", value, constant, nodes.constant(bias, "bias"))

    asked = body.add("Add", drive, product(old, state))  # (B, H)
    inner = body.add("Add", others, body.add("Unsqueeze", asked, body.whole(1)))  # (B, S, H)
    scores = product(body.add("Tanh", inner), out)  # (B, S, 1)
    scores = body.add("Squeeze", scores, body.whole(-1))
    seen = body.add("Where", real_keys, scores, body.number(-np.inf))
    looked = body.add("Softmax", seen, axis=-1)  # (B, S)
    found = body.add("MatMul", body.add("Unsqueeze", looked, body.whole(1)), keys)
    both = body.add("Concat", item, body.add("Squeeze", found, body.whole(1)), axis=-1)
    if gate:
        both = body.add("Mul", body.add("Sigmoid", product(both, gate[0])), both)
    x = body.add_several("Split", 3, product(both, weight_ih, bias_ih), axis=-1, num_outputs=3)
    u = body.add_several("Split", 3, product(old, weight_hh, bias_hh), axis=-1, num_outputs=3)
    r, z = (body.add("Sigmoid", body.add("Add", a, b)) for a, b in zip(x[:2], u[:2], strict=True))
    n = body.add("Tanh", body.add("Add", x[2], body.add("Mul", r, u[2])))
    stepped = body.add("Add", n, body.add("Mul", z, body.add("Sub", old, n)))
    is_real = body.add("Unsqueeze", alive, body.whole(-1))
    new = body.add("Where", is_real, stepped, old)
    output = body.add("Where", is_real, stepped, body.number(0.0))

    def value(name: str, kind: int, *shape: int | str) -> Any:
        return helper.make_tensor_value_info(name, kind, ["rows", *shape])

    real = TensorProto.FLOAT
    graph = body.graph(
        nodes.name("body"),
        [
            value(old, real, H),
            value(item, real, "width"),
            value(drive, real, H),
            value(alive, TensorProto.BOOL),
        ],
        [value(new, real, H), value(output, real, H), value(looked, real, "asked")],
    )
    rows = nodes.add("Slice", nodes.add("Shape", items), nodes.whole(0), nodes.whole(1))
    size = nodes.add("Concat", rows, nodes.whole(H), axis=0)
    zeros = numpy_helper.from_array(np.zeros(1, np.float32))
    begin = nodes.add("ConstantOfShape", size, value=zeros)
    last = nodes.name("last")
    nodes.add_named(
        "Scan",
        [begin, items, own, real_items],
        [last, *node.output],
        body=graph,
        num_scan_inputs=3,
        scan_input_axes=[1, 1, 1],
        scan_output_axes=[1, 1],
    )
    return "Scan"
