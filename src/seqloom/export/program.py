"""What is exported: a network with named inputs and outputs, and what a reader must know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import GraphProto
from torch import Tensor, nn

Axes = tuple[str | int, ...]


@dataclass(frozen=True)
class Input:
    """An input of a graph.

    Args:
        name: Its name.
        sample: An example to trace with; axes with names must be longer than 1 in it.
        axes: By axis, the name of a length that may vary, or the length itself.
        meaning: One line for whoever calls the graph.
    """

    name: str
    sample: Tensor
    axes: Axes
    meaning: str


@dataclass(frozen=True)
class Output:
    """An output of a graph, described as an `Input` is.

    Args:
        name: Its name.
        axes: By axis, the name of a length that may vary, or the length itself.
        meaning: One line for whoever reads it.
        added: Whether `Program.finish` adds it; else the network gives it.
    """

    name: str
    axes: Axes
    meaning: str
    added: bool = False


@dataclass(frozen=True)
class Program:
    """A network that takes the inputs in order and gives the outputs in order.

    Args:
        network: The network.
        inputs: Its inputs.
        outputs: Its outputs.
        facts: What the file beside the graph says besides: how text becomes ids, what labels there
            are, and so on.
        finish: Adds to the graph what cannot be traced; its outputs are the last ones.
    """

    network: nn.Module
    inputs: Sequence[Input]
    outputs: Sequence[Output]
    facts: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[GraphProto], None] | None = None
