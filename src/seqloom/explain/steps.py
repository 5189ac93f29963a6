r"""What each gate and state of a cell was at every step: a cell's equations with their values.

The equations are those of `Cell.equations`, made from the step itself. Each line has its value
here, so that $i_t$ in the picture is $i_t$ in the formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError
from seqloom.figures import heatmap
from seqloom.kernels.equations import named_nodes
from seqloom.kernels.expressions import Expression
from seqloom.kernels.walking import in_order
from seqloom.nn.recurrent import Recurrent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CellSteps:
    """The values of a cell's equations over a sequence.

    Args:
        cell: The cell's name.
        equations: Its equations as LaTeX, one a line.
        values: By the name a line begins with ("i_t"), its value by step and unit (T, H).
    """

    cell: str
    equations: tuple[str, ...]
    values: dict[str, Tensor]


def cell_steps(layer: Recurrent, inputs: Tensor, *, number: int = 0) -> CellSteps:
    """Run one layer of a stack over a sequence and keep what every equation gave.

    Args:
        layer: Layers in one direction, without options that change a state.
        inputs: The sequence (T, D) that the first layer of the stack reads.
        number: Which layer of the stack, from 0.

    Raises:
        ConfigError: If the layer has such an option, or there is no layer of that number.
        ShapeError: If `inputs` is no such sequence.

    Examples:
        >>> steps = cell_steps(Recurrent("lstm", 3, 4), torch.zeros(5, 3))
        >>> list(steps.values), steps.values["f_t"].shape
        (['i_t', 'f_t', 'g_t', 'o_t', 'c_t', 'h_t'], torch.Size([5, 4]))
    """
    _check(layer, inputs, number)
    with torch.no_grad():
        x = inputs
        for below in range(number):
            _, x = _run(layer, x, below)
        values, _ = _run(layer, x, number)
    return CellSteps(layer.cell.__name__, tuple(layer.cell.equations()), values)


def draw_cell_steps(
    steps: CellSteps, name: str, words: Sequence[str] | None = None, *, title: str = ""
) -> Figure:
    """One gate or state as a heat map, units by steps."""
    values = steps.values[name].T.tolist()
    columns = [str(t) for t in range(len(values[0]))] if words is None else list(words)
    return heatmap(values, [str(unit) for unit in range(len(values))], columns, title=title)


def _run(layer: Recurrent, inputs: Tensor, number: int) -> tuple[dict[str, Tensor], Tensor]:
    """The value of every line of one layer, by step, and what the layer gives (T, H)."""
    traced, size = layer.cell.traced(), layer.hidden_size
    first = traced.states[0]
    named = named_nodes(traced)
    nodes = in_order([*traced.late.values(), *traced.outputs.values()])
    rows = {gate: slice(i * size, (i + 1) * size) for i, gate in enumerate(traced.gates)}

    def weight(name: str) -> Any:
        return getattr(layer, f"{name}_l{number}", None)

    def product(gate: str, value: Tensor) -> Tensor:
        bias = weight("bias_hh")
        return functional.linear(
            value, weight("weight_hh")[rows[gate]], None if bias is None else bias[rows[gate]]
        )

    drive = functional.linear(inputs, weight("weight_ih"), weight("bias_ih"))  # (T, G * H)
    states = {state: inputs.new_zeros(size) for state in traced.states}
    kept: dict[str, list[Tensor]] = {name: [] for name in named}
    outputs = []
    for t in range(len(inputs)):
        values: dict[Expression, Tensor] = {}
        for node in nodes:
            kind, _, name = str(node.value).partition(".")
            if node.operation == "number":
                values[node] = inputs.new_tensor(node.value)
            elif node.operation != "input":
                values[node] = _apply(node, [values[below] for below in node.arguments])
            elif kind == "x":
                values[node] = drive[t, rows[name]]
            elif kind == "s":
                values[node] = states[name]
            elif kind == "v":
                values[node] = weight(f"vector_{name}")
            else:  # a product with the state, or with what the step hands to it
                given = states[first] if kind == "u" else values[traced.late[name]]
                values[node] = product(name, given)
        for name, node in named.items():
            kept[name].append(values[node].expand(size))
        states = {state: values[node].expand(size) for state, node in traced.outputs.items()}
        outputs.append(states[first])
    found = {name: torch.stack(each) for name, each in kept.items()}
    return found, torch.stack(outputs)


def _apply(node: Expression, arguments: Sequence[Tensor]) -> Tensor:
    """An operation of a step is torch's of the same name."""
    found: Tensor = getattr(torch, node.operation, None) or getattr(functional, node.operation)
    return found(*arguments)  # type: ignore[operator, no-any-return]


def _check(layer: Recurrent, inputs: Tensor, number: int) -> None:
    if not 0 <= number < layer.num_layers:
        raise ConfigError(f"number must lie between 0 and {layer.num_layers - 1}, got {number}")
    if inputs.ndim != 2 or inputs.shape[1] != layer.input_size or not len(inputs):
        raise ShapeError(
            f"inputs must be (steps, {layer.input_size}) with at least one step, got shape "
            f"{tuple(inputs.shape)}"
        )
    changes = {
        "bidirectional": layer.bidirectional,
        "projection_size": bool(layer.projection_size),
        "zoneout": bool(layer.zoneout),
        "clip": layer.clip is not None,
        "residual": layer.residual,
        "layer_norm": len(layer.norms) > 0,
    }
    for name, is_set in changes.items():
        if is_set:
            raise ConfigError(
                f"steps are shown of plain layers in one direction, got one with {name}"
            )
