"""How far a cell remembers: probes trained at growing distances, and the reach they find."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from seqloom.errors import ConfigError
from seqloom.explain.problems import Problem, Sequences
from seqloom.figures import curve, grouped_bars
from seqloom.nn.cells import Cell
from seqloom.nn.recurrent import Recurrent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEEP_GATES, WRITE_GATES = ("f", "z"), ("i",)  # what our cells call them
HELD_OUT_ROWS, HELD_OUT_SEED = 512, 1_000_003


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """How a probe is built and trained.

    Args:
        hidden_size: Width of the states.
        steps: How many batches it is trained on, each drawn anew.
        batch_size: Sequences a batch.
        rate: Adam's learning rate.
        clip_norm: The largest norm of the weights' gradient.
        horizon: Up to how many steps gates keep the state at the beginning, see `open_gates`.
        seed: Of the weights and the training sequences; the held-out sequences never change.
    """

    hidden_size: int = 32
    steps: int = 600
    batch_size: int = 32
    rate: float = 1e-2
    clip_norm: float = 1.0
    horizon: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that make no probe."""
        sizes = (self.hidden_size, self.steps, self.batch_size)
        if min(sizes) < 1:
            raise ConfigError(
                f"hidden_size, steps and batch_size must be positive, got {sizes}; raise them"
            )


class Probe(nn.Module):
    """One recurrent layer and a linear readout of every step."""

    def __init__(self, cell: str | type[Cell], problem: Problem, config: ProbeConfig) -> None:
        super().__init__()
        self.layer = Recurrent(cell, problem.input_size, config.hidden_size)
        self.readout = nn.Linear(config.hidden_size, problem.output_size)
        open_gates(self.layer, config.horizon)

    def forward(self, inputs: Tensor) -> Tensor:
        """What the readout says at every step."""
        outputs: Tensor = self.readout(self.layer(inputs).outputs)
        return outputs


def open_gates(layer: Recurrent, horizon: int | None) -> None:
    r"""Change the biases of a layer's gates so that it begins by remembering.

    Without a horizon 1 is added to those of the gates that keep the state (`f`; `z` of a GRU), as
    is usual: Jozefowicz et al. (2015), "An Empirical Exploration of Recurrent Network
    Architectures".

    With one, $\log u$ is added to them and subtracted from those of the gates that write (`i`), $u$
    uniform between 1 and `horizon` - 1 for each unit, which then keeps its state for about $u$
    steps: Tallec and Ollivier (2018), "Can Recurrent Neural Networks Warp Time?".
    """
    if horizon is not None and horizon < 2:
        raise ConfigError(f"horizon must be at least 2, got {horizon}")
    size, gates = layer.hidden_size, layer.cell.gates
    with torch.no_grad():
        for name, bias in layer.named_parameters():
            if not name.startswith("bias_ih"):
                continue
            amount = bias.new_ones(size)
            if horizon is not None:
                amount = torch.empty_like(amount).uniform_(1, horizon - 1).log()
            for gate, part in zip(gates, bias.split(size), strict=True):
                if gate in KEEP_GATES:
                    part.add_(amount)
                elif gate in WRITE_GATES and horizon is not None:
                    part.sub_(amount)


def train_probe(
    cell: str | type[Cell], problem: Problem, distance: int, config: ProbeConfig
) -> Probe:
    """Train a probe of one cell at one distance, with Adam and clipped gradients.

    Torch's global random numbers are left as they were.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        probe = Probe(cell, problem, config)
    optimizer = torch.optim.Adam(probe.parameters(), config.rate)
    generator = Generator().manual_seed(config.seed)
    for _ in range(config.steps):
        batch = problem.draw(distance, config.batch_size, generator)
        optimizer.zero_grad()
        problem.loss(probe(batch.inputs), batch.targets).mean().backward()
        nn.utils.clip_grad_norm_(probe.parameters(), config.clip_norm)
        optimizer.step()
    return probe


def held_out_sequences(problem: Problem, distance: int, rows: int = HELD_OUT_ROWS) -> Sequences:
    """The sequences that probes are scored on: the same for all, and no probe's training ones."""
    return problem.draw(distance, rows, Generator().manual_seed(HELD_OUT_SEED))


def score_probe(probe: Probe, problem: Problem, distance: int) -> float:
    """What a probe scores on the held-out sequences."""
    inputs, targets = held_out_sequences(problem, distance)
    with torch.no_grad():
        return problem.score(probe(inputs), targets)


@dataclass(frozen=True)
class Memory:
    """What probes scored on a problem.

    Args:
        problem: The problem.
        scores: By cell and distance, one score a seed.
    """

    problem: Problem
    scores: dict[str, dict[int, tuple[float, ...]]]

    def score(self, cell: str, distance: int) -> float:
        """The median over seeds."""
        return statistics.median(self.scores[cell][distance])

    def reach(self, cell: str) -> int:
        """The largest distance measured at which the median score solves the problem, or 0."""
        solved = [d for d in self.scores[cell] if self.problem.is_solved(self.score(cell, d))]
        return max(solved, default=0)

    def to_table(self) -> list[str]:
        """The median scores as lines of a Markdown table, with the reach of each cell."""
        distances = sorted({d for by_distance in self.scores.values() for d in by_distance})
        lines = [f"| cell | {' | '.join(map(str, distances))} | reach |"]
        lines.append("|---" * (len(distances) + 2) + "|")
        for cell, by_distance in self.scores.items():
            cells = [f"{self.score(cell, d):.3f}" if d in by_distance else "" for d in distances]
            lines.append(f"| {cell} | {' | '.join(cells)} | {self.reach(cell)} |")
        return lines


def measure_memory(
    problem: Problem,
    cells: Mapping[str, str | type[Cell]] | Sequence[str],
    distances: Sequence[int],
    config: ProbeConfig,
    *,
    seeds: int = 1,
    say: Callable[[str], object] | None = None,
) -> Memory:
    """Train a probe for every cell, distance and seed, and score it.

    Args:
        problem: `Copying` or `Adding`, or another.
        cells: Names of cells, or cells by a name of your own.
        distances: How far back what is to be remembered lies.
        config: How probes are trained; seeds count up from its `seed`.
        seeds: How many probes are trained of each cell at each distance.
        say: Is told of each score as it is found.
    """
    named = cells if isinstance(cells, Mapping) else {name: name for name in cells}
    scores: dict[str, dict[int, tuple[float, ...]]] = {}
    for name, cell in named.items():
        scores[name] = {}
        for distance in distances:
            found = []
            for seed in range(config.seed, config.seed + seeds):
                probe = train_probe(cell, problem, distance, replace(config, seed=seed))
                found.append(score_probe(probe, problem, distance))
            scores[name][distance] = tuple(found)
            if say is not None:
                said = ", ".join(f"{score:.4f}" for score in found)
                say(f"{problem.name}, {name}, distance {distance}: {problem.measure} {said}")
    return Memory(problem, scores)


def draw_scores(memory: Memory, *, title: str = "") -> Figure:
    """The median score by distance, one line a cell."""
    lines = {
        cell: (sorted(by_distance), [memory.score(cell, d) for d in sorted(by_distance)])
        for cell, by_distance in memory.scores.items()
    }
    return curve(lines, xlabel="distance", ylabel=memory.problem.measure, title=title, log_x=True)


def draw_reach(memories: Sequence[Memory], *, title: str = "") -> Figure:
    """Each cell's reach, one series of bars a problem."""
    series = {
        memory.problem.name: {cell: float(memory.reach(cell)) for cell in memory.scores}
        for memory in memories
    }
    return grouped_bars(series, horizontal=True, label="reach in steps", title=title)
