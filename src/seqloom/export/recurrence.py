"""The recurrences of a graph: each becomes an operator of ONNX where that is equal, else a loop.

While a model is traced a recurrence is one node of our own (`SYMBOL`), whose cell goes by a key
that stands for its equations. ONNX Runtime has fast operators for some cells; the others, and
layers with a projection, zoneout or clipping, are written as a `Scan` of the cell's step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from seqloom.errors import ConfigError
from seqloom.export.cell_steps import Layer, print_scan
from seqloom.export.nodes import Nodes
from seqloom.export.symbols import make_symbol
from seqloom.kernels import operator as _operator  # noqa: F401 (which names torch.ops.seqloom.recurrent)
from seqloom.kernels.keys import cell_of, key_of
from seqloom.nn import cells

SYMBOL = "Recurrent"


def symbol(
    cell: str,
    x: Any,
    lengths: Any,
    states: Sequence[Any],
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any | None,
    bias_hh: Any | None,
    vectors: Sequence[Any],
    projection: Any | None,
    mask: Any | None,
    keep: Sequence[Any],
    clip: float | None,
    reverse: bool,
    bf16: bool,
    save: bool,
) -> Any:
    """What stands for `torch.ops.seqloom.recurrent` in a graph until `write_recurrence`.

    torch's exporter calls it with the values of its graph in place of tensors.
    """
    if bf16:
        raise ConfigError("products in bfloat16 cannot be exported to ONNX; set products='full'")
    assert mask is None and not save, "a model is exported as it is used, not as it is trained"
    given = [x, lengths, weight_ih, weight_hh]
    settings = {"cell": cell, "reverse": int(reverse), "clip": clip or 0.0, "states": len(states)}
    settings |= {"vectors": len(vectors), "keep": len(keep)}
    for name, weight in (("bias_ih", bias_ih), ("bias_hh", bias_hh), ("projection", projection)):
        settings[name] = int(weight is not None)
        given += [] if weight is None else [weight]
    return make_symbol(SYMBOL, [*given, *states, *vectors, *keep], 1 + len(states), settings)


def write_recurrence(nodes: Nodes, node: NodeProto, arrays: Mapping[str, TensorProto]) -> str:
    """Write a recurrence, as `symbols.Writer` has it: an operator of ONNX, or "Scan"."""
    settings = {each.name: helper.get_attribute_value(each) for each in node.attribute}

    waiting = iter(node.input)

    def array() -> NDArray[Any]:
        return numpy_helper.to_array(arrays[next(waiting)])

    x, lengths = next(waiting), next(waiting)
    weight_ih, weight_hh = array(), array()
    bias_ih, bias_hh, projection = (
        array() if settings[name] else None for name in ("bias_ih", "bias_hh", "projection")
    )
    states = [next(waiting) for _ in range(settings["states"])]
    key = settings["cell"].decode()
    layer = Layer(
        cell_of(key),
        weight_ih,
        weight_hh,
        bias_ih,
        bias_hh,
        projection,
        [array() for _ in range(settings["vectors"])],
        bool(settings["reverse"]),
        settings["clip"] or None,
        [next(waiting) for _ in range(settings["keep"])],
    )
    nodes.dtype = weight_hh.dtype
    operator = _known().get(_equations(key))
    is_plain = projection is None and layer.clip is None and not layer.keep
    if operator is None or not is_plain or nodes.dtype != np.float32:
        outputs, ended = print_scan(nodes, layer, x, lengths, states)
        kind = "Scan"
    else:
        outputs, ended = _write_operator(nodes, operator, layer, x, lengths, states)
        kind = operator.name
    for own, name in zip((outputs, *ended), node.output, strict=True):
        if name:
            nodes.add_named("Identity", [own], [name])
    return kind


# -- operators of ONNX -----------------------------------------------------------------------------


class Operator(NamedTuple):
    """An operator of ONNX that is equal to a cell, by the places of gates and vectors in the cell.

    A cell with the same equations has the same places, whatever it calls them.

    Args:
        name: What ONNX calls it.
        gates: The places of the cell's gates, in the operator's order.
        vectors: Those of its vectors.
        attributes: Further attributes.
    """

    name: str
    gates: tuple[int, ...]
    vectors: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = {}


OPERATORS: tuple[tuple[type[cells.Cell], Operator], ...] = (
    (cells.Elman, Operator("RNN", (0,), attributes={"activations": ["Tanh"]})),
    (cells.ElmanRelu, Operator("RNN", (0,), attributes={"activations": ["Relu"]})),
    (cells.ElmanSigmoid, Operator("RNN", (0,), attributes={"activations": ["Sigmoid"]})),
    (cells.GRU, Operator("GRU", (1, 0, 2), attributes={"linear_before_reset": 1})),  # z r n
    (cells.GRUBefore, Operator("GRU", (1, 0, 2), attributes={"linear_before_reset": 0})),
    (cells.LSTM, Operator("LSTM", (0, 3, 1, 2))),  # i o f g
    (cells.PeepholeLSTM, Operator("LSTM", (0, 3, 1, 2), (0, 2, 1))),  # and i o f
)


def _equations(key: str) -> str:
    """The part of a key that stands for the equations, whatever the cell is called."""
    return key.rpartition("-")[2]


@cache
def _known() -> Mapping[str, Operator]:
    """The operators by the equations they are equal to."""
    return {_equations(key_of(c.traced(), c.__name__)): operator for c, operator in OPERATORS}


def _write_operator(
    nodes: Nodes, operator: Operator, layer: Layer, x: str, lengths: str, states: Sequence[str]
) -> tuple[str, list[str]]:
    """Write an operator of ONNX, which has time before the batch."""
    gates = [layer.cell.gates[place] for place in operator.gates]
    order: Callable[[Any], NDArray[Any]] = lambda a: layer.rows(a, gates)  # noqa: E731
    biases = np.concatenate([order(layer.bias_ih), order(layer.bias_hh)])
    inputs = [
        nodes.add("Transpose", x, perm=[1, 0, 2]),  # (T, B, D)
        nodes.constant(order(layer.weight_ih)[None], "weight_ih"),
        nodes.constant(order(layer.weight_hh)[None], "weight_hh"),
        nodes.constant(biases[None], "bias"),
        nodes.add("Cast", lengths, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))),
        *(nodes.add("Unsqueeze", state, nodes.whole(0)) for state in states),
    ]
    if operator.vectors:
        peepholes = np.concatenate([layer.vectors[place] for place in operator.vectors])
        inputs.append(nodes.constant(peepholes[None], "peepholes"))
    direction = "reverse" if layer.reverse else "forward"
    outputs, *ended = nodes.add_several(
        operator.name,
        1 + len(states),
        *inputs,
        hidden_size=layer.size,
        direction=direction,
        **operator.attributes,
    )
    found = nodes.add("Squeeze", outputs, nodes.whole(1))  # (T, B, H)
    return nodes.add("Transpose", found, perm=[1, 0, 2]), [
        nodes.add("Squeeze", each, nodes.whole(0)) for each in ended
    ]
