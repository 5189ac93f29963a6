r"""How far a loss's gradient reaches back through time: vanishing and exploding, measured.

The loss of step T is differentiated by what lies k steps before it. For a `Recurrent` layer that is
the state, all of it ($h$ of an Elman cell or a GRU, $h$ and $c$ of an LSTM); for a model whose
states cannot be reached it is the input.

Paper: Hochreiter (1991); Bengio et al. (1994), "Learning Long-Term Dependencies with Gradient
Descent Is Difficult"; Pascanu et al. (2013), "On the Difficulty of Training Recurrent Neural
Networks".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.figures import curve
from seqloom.nn.recurrent import Recurrent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Model = Callable[[Tensor], Tensor]  # (rows, steps, width) -> (rows, steps, width of the outputs)
Loss = Callable[[Tensor], Tensor]  # the last step's output (rows, width) -> (rows,)


@dataclass(frozen=True)
class GradientFlow:
    """Norm of a loss's gradient by distance, its mean over the rows of a batch.

    Args:
        by: Whether it is the gradient by the state or by the input.
        distances: How many steps before the loss's step, from 1 on.
        norms: By name, one number a distance.
    """

    by: Literal["state", "input"]
    distances: tuple[int, ...]
    norms: dict[str, tuple[float, ...]]

    def change(self, name: str) -> float:
        """The norm at the largest distance over that at distance 1; NaN if that is 0."""
        if name not in self.norms:
            raise ConfigError(one_of("name", name, self.norms))
        norms = self.norms[name]
        return norms[-1] / norms[0] if norms[0] > 0 else math.nan


def gradient_flow(
    layers: Mapping[str, tuple[Recurrent, Loss]],
    inputs: Tensor,
    *,
    distance: int = 100,
    clip: float | None = None,
    state: str | None = None,
) -> GradientFlow:
    r"""The gradient by the state, for one or more layers on the same sequences.

    $$\delta_k = \lVert \partial L_T / \partial s_{T-k} \rVert$$

    The layer runs step by step, which equals the whole, and the gradient is handed from each step
    to the one before, so that it can be clipped on its way as Graves (2013), "Generating Sequences
    With Recurrent Neural Networks", does.

    Args:
        layers: By name, a layer and the loss of its last output, one number a row.
        inputs: Sequences (rows, steps, width) of at least `distance` steps.
        distance: The largest distance.
        clip: The largest norm a row's gradient may have at any step; more is scaled down.
        state: The one state whose part of the gradient is measured; all if not given.

    Raises:
        ConfigError: If `distance`, `clip` or `state` make no sense.
        ShapeError: If the sequences are too short, or a loss does not give a number a row.

    Examples:
        >>> layers = {"rnn": (Recurrent("rnn", 2, 4), lambda output: output.sum(1))}
        >>> flow = gradient_flow(layers, torch.randn(3, 8, 2), distance=5)
        >>> flow.by, flow.distances
        ('state', (1, 2, 3, 4, 5))
    """
    _check(distance, clip)
    _check_steps(inputs, distance)
    norms = {
        name: _state_norms(layer, inputs, loss, distance=distance, clip=clip, state=state)
        for name, (layer, loss) in layers.items()
    }
    return GradientFlow("state", tuple(range(1, distance + 1)), norms)


def input_gradient_flow(
    models: Mapping[str, tuple[Model, Loss]], inputs: Tensor, *, distance: int = 100
) -> GradientFlow:
    r"""The gradient by the input, for models whose states cannot be reached.

    $$\delta_k = \lVert \partial L_T / \partial x_{T-k} \rVert$$

    Args:
        models: By name, a function from sequences to outputs and the loss of its last output, one
            number a row.
        inputs: Sequences (rows, steps, width) of more than `distance` steps.
        distance: The largest distance.

    Raises:
        ConfigError: If `distance` makes no sense.
        ShapeError: If the sequences are too short, or a loss does not give a number a row.
    """
    _check(distance, None)
    _check_steps(inputs, distance + 1)
    norms = {}
    for name, (model, loss) in models.items():
        x = inputs.detach().requires_grad_()
        total = _by_row(loss, model(x)[:, -1]).sum()
        (gradient,) = torch.autograd.grad(total, x)
        by_step = gradient.double().norm(dim=-1).mean(0)  # (steps,)
        norms[name] = tuple(by_step[:-1].flip(0)[:distance].tolist())
    return GradientFlow("input", tuple(range(1, distance + 1)), norms)


def draw_gradient_flow(flow: GradientFlow, *, relative: bool = False, title: str = "") -> Figure:
    """One line a name on a logarithmic scale; where a gradient is 0 the line has a gap.

    Args:
        flow: What was measured.
        relative: Whether each norm is divided by that at distance 1.
        title: The title.
    """
    lines = {}
    for name, norms in flow.norms.items():
        unit = norms[0] if relative else 1.0
        lines[name] = (flow.distances, [n / unit if n > 0 < unit else math.nan for n in norms])
    what = f"gradient by the {flow.by}, " + ("distance 1 = 1" if relative else "norm")
    return curve(lines, xlabel="steps before the loss", ylabel=what, title=title, log_y=True)


def _state_norms(
    layer: Recurrent,
    inputs: Tensor,
    loss: Loss,
    *,
    distance: int,
    clip: float | None,
    state: str | None,
) -> tuple[float, ...]:
    if state is not None and state not in layer.cell.states:
        raise ConfigError(one_of("state", state, layer.cell.states))
    chosen = [i for i, name in enumerate(layer.cell.states) if state in (None, name)]
    steps, output = _run(layer, inputs)
    gradients: Sequence[Tensor] = torch.autograd.grad(_by_row(loss, output).sum(), steps[-1][0])
    norms = []
    for k in range(1, distance + 1):
        gradients = _clipped(gradients, clip)
        norms.append(_norm([gradients[i] for i in chosen]).mean().item())
        if k < distance:
            before, after = steps[-1 - k]
            gradients = torch.autograd.grad(after, before, gradients, materialize_grads=True)
    return tuple(norms)


def _run(
    layer: Recurrent, inputs: Tensor
) -> tuple[list[tuple[list[Tensor], tuple[Tensor, ...]]], Tensor]:
    """Every step's states before and after it, each step cut from the last, and the last output."""
    states, output, steps = layer.initial_states(inputs.shape[0]), inputs, []
    for x in inputs.unbind(1):
        before = [s.detach().requires_grad_() for s in states]
        output, states = layer.step(x, before)
        steps.append((before, states))
    return steps, output


def _norm(gradients: Sequence[Tensor]) -> Tensor:
    """The norm by row of gradients (layers, rows, width); in float64, as squares underflow."""
    return torch.stack([g.double().square().sum((0, 2)) for g in gradients]).sum(0).sqrt()


def _clipped(gradients: Sequence[Tensor], clip: float | None) -> Sequence[Tensor]:
    if clip is None:
        return gradients
    scale = (clip / _norm(gradients)).clamp(max=1.0)[:, None]
    return [(g * scale).to(g.dtype) for g in gradients]


def _by_row(loss: Loss, output: Tensor) -> Tensor:
    found = loss(output)
    if found.shape != output.shape[:1]:
        raise ShapeError(
            f"loss must give one number for each of the {output.shape[0]} rows, got shape "
            f"{tuple(found.shape)}; leave the sum over rows out"
        )
    return found


def _check(distance: int, clip: float | None) -> None:
    if distance < 1:
        raise ConfigError(f"distance must be at least 1, got {distance}")
    if clip is not None and clip <= 0:
        raise ConfigError(f"clip must be above 0, got {clip}")


def _check_steps(inputs: Tensor, needed: int) -> None:
    if inputs.ndim != 3 or inputs.shape[1] < needed:
        raise ShapeError(
            f"inputs must be (rows, steps, width) with at least {needed} steps, got shape "
            f"{tuple(inputs.shape)}; give longer sequences or lower distance"
        )
