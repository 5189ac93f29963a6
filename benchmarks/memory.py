"""How far cells remember, and how far their gradients reach, as tables and pictures.

    python benchmarks/memory.py [--seeds 3] [--save FILE]

Probes of one recurrent layer are trained on the copying and the adding problem at growing
distances; then the gradient of a trained probe's loss is measured by distance up to 100. The
documentation's pictures and `docs/figures/memory.json` are written, a report is printed. One
thread; about 17 CPU minutes, a third of that with `--seeds 1`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from seqloom.explain.gradients import GradientFlow, draw_gradient_flow, gradient_flow
from seqloom.explain.memory import (
    Memory,
    Probe,
    ProbeConfig,
    draw_reach,
    measure_memory,
    score_probe,
    train_probe,
)
from seqloom.explain.problems import Adding, Copying
from seqloom.explain.products import state_products
from seqloom.figures import save

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
PROBLEMS = (Copying(), Adding())
CELLS = ("rnn", "residual", "coupled", "two-gate", "gru", "lstm", "peephole-lstm")
DISTANCES = (10, 20, 50, 100, 200)
REMEMBERING = ProbeConfig(horizon=100)
USUAL = ProbeConfig()  # the gates that keep the state begin with a bias of 1
USUAL_LSTM = "lstm, bias 1"

FARTHEST = 100
GRADIENT_PROBES = {
    "rnn": ("rnn", REMEMBERING),
    "two-gate": ("two-gate", REMEMBERING),
    "gru": ("gru", REMEMBERING),
    "lstm": ("lstm", REMEMBERING),
    USUAL_LSTM: ("lstm", USUAL),
}
SHOWN = (1, 10, 25, 50, 75, 100)
GRADIENT_ROWS = 64
SCALE, CLIP = 5, 1.0  # of the Elman layer that explodes


def measure_reach(seeds: int) -> list[Memory]:
    """Every cell with gates that begin by remembering, and the LSTM with the usual bias."""
    found = []
    for problem in PROBLEMS:
        begun = time.process_time()
        scores = measure_memory(
            problem, CELLS, DISTANCES, REMEMBERING, seeds=seeds, say=_say
        ).scores
        usual = measure_memory(
            problem, {USUAL_LSTM: "lstm"}, DISTANCES, USUAL, seeds=seeds, say=_say
        ).scores
        found.append(Memory(problem, scores | usual))
        _say(f"{problem.name}: {time.process_time() - begun:.0f} CPU seconds")
    return found


def trained_probes() -> dict[str, Probe]:
    """Probes of the adding problem at the farthest distance."""
    return {
        name: train_probe(cell, Adding(), FARTHEST, config)
        for name, (cell, config) in GRADIENT_PROBES.items()
    }


def untrained_probe(cell: str, config: ProbeConfig) -> Probe:
    """The probe that training begins with."""
    torch.manual_seed(config.seed)
    return Probe(cell, Adding(), config)


def measure_gradients(
    probes: dict[str, Probe], *, clip: float | None = None, state: str | None = None
) -> GradientFlow:
    """The adding problem's loss by the state, on sequences no probe was trained on."""
    problem = Adding()
    inputs, targets = problem.draw(FARTHEST + 1, GRADIENT_ROWS, Generator().manual_seed(7))
    layers = {}
    for name, probe in probes.items():
        probe.double()

        def loss(output: torch.Tensor, probe: Probe = probe) -> torch.Tensor:
            return problem.loss(probe.readout(output)[:, None], targets.double())

        layers[name] = (probe.layer, loss)
    return gradient_flow(layers, inputs.double(), distance=FARTHEST, clip=clip, state=state)


def measure_exploding() -> GradientFlow:
    """An untrained Elman probe with recurrent weights `SCALE` times as large, and clipped."""
    probe = untrained_probe("rnn", USUAL)
    with torch.no_grad():
        probe.layer.weight_hh_l0.mul_(SCALE)
    free = measure_gradients({f"rnn x {SCALE}": probe})
    clipped = measure_gradients({f"rnn x {SCALE}, clipped": probe}, clip=CLIP)
    return GradientFlow("state", free.distances, free.norms | clipped.norms)


def measure_product(probe: Probe) -> dict[str, float]:
    """The Elman layer's largest singular values, measured and bounded, at the farthest distance."""
    inputs, _ = Adding().draw(FARTHEST, GRADIENT_ROWS, Generator().manual_seed(7))
    products = state_products(probe.double().layer, inputs.double())
    return {
        "step": products.bound[0].item(),
        "measured": products.largest[-1].max().item(),
        "bound": products.bound[-1].item(),
    }


@dataclass(frozen=True)
class Found:
    """All that is measured; seconds are those of the CPU."""

    seeds: int
    memories: list[Memory]
    errors: dict[str, float]  # of the trained probes, on the adding problem
    untrained: GradientFlow
    trained: GradientFlow
    lstm_parts: dict[str, float]  # by state, the norm at the farthest distance over the first
    exploding: GradientFlow
    product: dict[str, float]
    reach_seconds: float
    gradient_seconds: float

    def to_json(self) -> dict[str, Any]:
        """What the documentation is held to."""
        return {
            "settings": asdict(REMEMBERING) | {"seeds": self.seeds},
            "scores": {m.problem.name: m.scores for m in self.memories},
            "reach": {m.problem.name: {c: m.reach(c) for c in m.scores} for m in self.memories},
            "errors": self.errors,
            "untrained norms": self.untrained.norms,
            "norms": self.trained.norms,
            "lstm parts": self.lstm_parts,
            "exploding norms": self.exploding.norms,
            "product": self.product,
            "seconds": {"reach": self.reach_seconds, "gradients": self.gradient_seconds},
        }


def measure(seeds: int) -> Found:
    begun = time.process_time()
    memories = measure_reach(seeds)
    reached = time.process_time()
    probes = trained_probes()
    return Found(
        seeds,
        memories,
        errors={name: score_probe(probe, Adding(), FARTHEST) for name, probe in probes.items()},
        untrained=measure_gradients(
            {name: untrained_probe(*given) for name, given in GRADIENT_PROBES.items()}
        ),
        trained=measure_gradients(probes),
        lstm_parts={
            state: measure_gradients({"lstm": probes["lstm"]}, state=state).change("lstm")
            for state in ("h", "c")
        },
        exploding=measure_exploding(),
        product=measure_product(probes["rnn"]),
        reach_seconds=round(reached - begun),
        gradient_seconds=round(time.process_time() - reached),
    )


def draw(found: Found) -> None:
    reach = draw_reach(found.memories, title="The largest distance at which each cell succeeds")
    save(reach, FIGURES / "memory-reach.png")
    trained = draw_gradient_flow(
        found.trained, relative=True, title="Probes trained to add over 100 steps"
    )
    save(trained, FIGURES / "gradient-flow.png")
    exploding = draw_gradient_flow(found.exploding, title="An Elman cell with large weights")
    save(exploding, FIGURES / "gradient-clipping.png")


def report(found: Found) -> Iterator[str]:
    yield from ("# How far cells remember", "", "    python benchmarks/memory.py --save FILE", "")
    yield (
        f"{date.today()}, {platform.machine()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, one thread; {found.reach_seconds} CPU seconds for the reach, "
        f"{found.gradient_seconds} for the gradients. One layer of {USUAL.hidden_size} units, "
        f"{USUAL.steps} batches of {USUAL.batch_size}, Adam at {USUAL.rate}, gradient norm clipped "
        f"at {USUAL.clip_norm}; gates begin by keeping up to {REMEMBERING.horizon} steps, those of "
        f"'{USUAL_LSTM}' with a bias of 1. Medians of {found.seeds} seeds."
    )
    for memory in found.memories:
        yield from ("", f"## {memory.problem.name}: {memory.problem.measure} by distance", "")
        yield from memory.to_table()
    yield from gradient_table(found)
    parts = ", ".join(f"{change:.2f} by {state}" for state, change in found.lstm_parts.items())
    product = found.product
    yield from ("", f"The trained LSTM's last over first, by one state alone: {parts}.", "")
    yield (
        f"The trained Elman layer's largest singular value times the largest tanh' is "
        f"{product['step']:.3f}, so the product of {FARTHEST} Jacobians is at most "
        f"{product['bound']:.1e}; the largest measured is {product['measured']:.1e}."
    )


def gradient_table(found: Found) -> Iterator[str]:
    yield from ("", "## Norm of the adding loss's gradient by the state, by distance", "")
    yield f"| probe | error | {' | '.join(map(str, SHOWN))} | last over first |"
    yield "|---" * (len(SHOWN) + 3) + "|"
    untrained = dict.fromkeys([*found.untrained.norms, *found.exploding.norms], "untrained")
    errors = {name: f"{error:.4f}" for name, error in found.errors.items()}
    for flow, said in (
        (found.untrained, untrained),
        (found.trained, errors),
        (found.exploding, untrained),
    ):
        for name, norms in flow.norms.items():
            cells = " | ".join(f"{norms[k - 1]:.1e}" for k in SHOWN)
            yield f"| {name} | {said[name]} | {cells} | {flow.change(name):.1e} |"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = measure(options.seeds)
    draw(found)
    numbers = json.dumps(found.to_json(), indent=1)
    (FIGURES / "memory.json").write_text(numbers + "\n", encoding="utf-8")
    lines = list(report(found))
    print("\n".join(lines))
    if options.save:
        options.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
