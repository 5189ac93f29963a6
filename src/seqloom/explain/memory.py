"""How far a cell remembers: probes trained at growing distances, and the reach they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.explain.problems import Problem
from seqloom.figures import curve, grouped_bars
from seqloom.nn.cells import Cell
from seqloom.nn.recurrent import Recurrent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEEP_GATES = ("f", "z")  # what our cells call the gate that multiplies the old state
TEST_ROWS = 512


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """How a probe is built and trained.

    Args:
        hidden_size: Width of the states.
        steps: How many batches it is trained on, each drawn anew.
        batch_size: Sequences a batch.
        rate: Adam's learning rate.
        clip_norm: The largest norm of the weights' gradient.
        keep_bias: Added to the bias of the gate that keeps the state (Jozefowicz et al. 2015).
        seed: Of the weights, the training sequences and, in a stream of their own, the test ones.
    """

    hidden_size: int = 32
    steps: int = 1000
    batch_size: int = 32
    rate: float = 5e-3
    clip_norm: float = 1.0
    keep_bias: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that make no probe."""
        sizes = (self.hidden_size, self.steps, self.batch_size)
        if min(sizes) < 1:
            raise ConfigError(
                f"hidden_size, steps and batch_size must be positive, got {', '.join(map(str, sizes))}"
            )


class Probe(nn.Module):
    """One recurrent layer and a linear readout of every step."""

    def __init__(self, cell: str | type[Cell], problem: Problem, config: ProbeConfig) -> None:
        super().__init__()
        self.layer = Recurrent(cell, problem.input_size, config.hidden_size)
        self.readout = nn.Linear(config.hidden_size, problem.output_size)
        raise_keep_bias(self.layer, config.keep_bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """What the readout says at every step."""
        outputs: Tensor = self.readout(self.layer(inputs).outputs)
        return outputs


def raise_keep_bias(layer: Recurrent, amount: float) -> None:
    """Add to the bias of the gates that keep the state, so that a cell begins by remembering.

    Paper: Jozefowicz et al. (2015), "An Empirical Exploration of Recurrent Network Architectures".
    """
    size = layer.hidden_size
    with torch.no_grad():
        for place, gate in enumerate(layer.cell.gates):
            if gate in KEEP_GATES:
                for name, weight in layer.named_parameters():
                    if name.startswith("bias_ih"):
                        weight[place * size : (place + 1) * size] += amount
