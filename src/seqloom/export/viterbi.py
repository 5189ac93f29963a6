r"""The best tags of a conditional random field as two loops of an ONNX graph.

$$\delta_1 = b + s_1, \quad \delta_t(j) = s_t(j) + \max_i (\delta_{t-1}(i) + A_{ij}), \quad
\psi_t(j) = \mathrm{argmax}_i (\delta_{t-1}(i) + A_{ij})$$

$$y_n = \mathrm{argmax}_j (\delta_n(j) + e_j), \quad y_{t-1} = \psi_t(y_t)$$

Paper: Viterbi (1967), "Error bounds for convolutional codes"; Rabiner (1989), section III.B.
On padding $\delta$ stays and $\psi$ is the identity, so that every row ends at its own last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, TensorProto, helper

from seqloom.export.nodes import Nodes

Array = NDArray[Any]


def add_viterbi(
    graph: GraphProto,
    weights: tuple[Array, Array, Array],
    scores: str = "scores",
    lengths: str = "lengths",
    output: str = "tags",
) -> None:
    """Add the best tags (B, T), 0 on padding, to a graph that gives scores.

    Args:
        graph: The graph, changed in place.
        weights: Of transitions (K, K), first and last tags (K,), as `CRF.weights` gives them.
        scores: The name of the scores (B, T, K).
        lengths: The name of the lengths (B,).
        output: The name of the new output.
    """
    transitions, start, end = (each.astype(np.float32) for each in weights)
    K = len(start)
    nodes = Nodes("viterbi")
    one, zero = nodes.constant(np.array(1)), nodes.constant(np.array(0))
    steps = nodes.add("Gather", nodes.add("Shape", scores), one)
    times = nodes.add("Range", zero, steps, one)
    # The way into the first step is from a state before it that scores 0 and may go anywhere once.
    first = nodes.add("Gather", scores, zero, axis=1)  # (B, K)
    begun = nodes.add("Add", first, nodes.constant(start, "start"))
    forth = _forth(nodes, nodes.constant(transitions, "transitions"), lengths, K)
    best, pointers = nodes.add_several(
        "Scan",
        2,
        begun,
        times,
        scores,
        body=forth,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_output_axes=[1],
    )
    ended = nodes.add("Add", best, nodes.constant(end, "end"))
    last = nodes.add("ArgMax", ended, axis=1, keepdims=1)  # (B, 1)
    _, tags = nodes.add_several(
        "Scan",
        2,
        last,
        pointers,
        body=_back(nodes, K),
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_input_directions=[1],
        scan_output_axes=[1],
        scan_output_directions=[1],
    )  # (B, T, 1)
    flat = nodes.add("Squeeze", tags, nodes.whole(-1))
    real = nodes.add("Less", times, nodes.add("Unsqueeze", lengths, nodes.whole(1)))  # (B, T)
    nodes.add_named("Where", [real, flat, zero], [output])
    graph.node.extend(nodes.nodes)
    graph.initializer.extend(nodes.constants.values())
    graph.output.append(_value(output, TensorProto.INT64, "batch", "steps"))


def _forth(outer: Nodes, transitions: str, lengths: str, size: int) -> GraphProto:
    """One step of the scores of the best ways, and where each came from."""
    nodes = Nodes(outer.name("forth"))
    old, time, scores = nodes.name("old"), nodes.name("time"), nodes.name("scores")
    ways = nodes.add("Add", nodes.add("Unsqueeze", old, nodes.whole(2)), transitions)  # (B, K, K)
    best = nodes.add("ReduceMax", ways, nodes.whole(1), keepdims=0)
    found = nodes.add("Add", best, scores)
    origins = nodes.add("ArgMax", ways, axis=1, keepdims=0)  # (B, K)
    # The first step was made before the loop; after a row's last nothing moves.
    after = nodes.add("Greater", time, nodes.constant(np.array(0)))
    alive = nodes.add("And", after, nodes.add("Less", time, lengths))
    alive = nodes.add("Unsqueeze", alive, nodes.whole(1))  # (B, 1)
    new = nodes.add("Where", alive, found, old)
    kept = nodes.add("Where", alive, origins, nodes.constant(np.arange(size)[None], "same"))
    real, whole = TensorProto.FLOAT, TensorProto.INT64
    return nodes.graph(
        outer.name("body"),
        [
            _value(old, real, "rows", size),
            _value(time, whole),
            _value(scores, real, "rows", size),
        ],
        [_value(new, real, "rows", size), _value(kept, whole, "rows", size)],
    )


def _back(outer: Nodes, size: int) -> GraphProto:
    """One step back along the best way: the tag here, and the one before it."""
    nodes = Nodes(outer.name("back"))
    tag, origins = nodes.name("tag"), nodes.name("origins")
    before = nodes.add("GatherElements", origins, tag, axis=1)
    here = nodes.add("Identity", tag)
    whole = TensorProto.INT64
    return nodes.graph(
        outer.name("body"),
        [_value(tag, whole, "rows", 1), _value(origins, whole, "rows", size)],
        [_value(before, whole, "rows", 1), _value(here, whole, "rows", 1)],
    )


def _value(name: str, kind: int, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))
