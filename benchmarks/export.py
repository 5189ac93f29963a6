"""What export costs and gives: accuracy, size and speed of ONNX graphs and of int8, beside torch.

    python benchmarks/export.py runs/ptb-lstm-small=ptb:valid runs/sst-cnn=sst:valid
    python benchmarks/export.py            (recurrences: ONNX's operators beside a loop of the step)

Each argument is a model directory and the data to measure it on. Four ways are compared: the model
itself; a model directory with weights of 8 bits; its ONNX graph; that graph with products of 8-bit
numbers. The graphs take the place of the network inside the estimator, so all go the same way from
text to figure. Times are of the network alone on one thread, processor time by default, the ways
taking turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import onnxruntime
import torch
from torch import Tensor, nn

import seqloom
from seqloom.data.inputs import read_input
from seqloom.export import export_int8, export_onnx, recurrence
from seqloom.export.graphs import build_graph
from seqloom.export.program import Input, Output, Program
from seqloom.export.programs import program_of
from seqloom.models.outputs import LMOutput, ScoreOutput
from seqloom.models.reader_parts import SpanOutput
from seqloom.models.tagger import TaggerInput, TagOutput
from seqloom.nn.recurrent import Recurrent
from seqloom.tasks.corpus import text_examples

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SHAPES = ((1, 1), (1, 32), (16, 32))  # rows, steps
WIDTH, CELLS = 200, ("rnn", "gru", "gru-before", "lstm", "peephole-lstm", "coupled")
METRICS = {"lm": "perplexity", "classify": "accuracy", "tag": "accuracy"}
METRICS |= {"relate": "macro_f1", "answer": "f1"}


class Graph:
    """An ONNX graph that takes and gives tensors by name."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.given = [each.name for each in self.session.get_inputs()]
        self.names = [each.name for each in self.session.get_outputs()]

    def __call__(self, feed: dict[str, Tensor]) -> dict[str, Tensor]:
        """Run it."""
        found = self.session.run(None, {name: x.numpy() for name, x in feed.items()})
        return dict(zip(self.names, map(torch.from_numpy, found), strict=True))


class GraphOutput(nn.Module):
    """An output layer whose features are log-probabilities already."""

    def log_probs(self, features: Tensor) -> Tensor:
        """The features."""
        return features

    def target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        """Those of one word a row."""
        return features.gather(1, targets[:, None].long())[:, 0]

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy, summed."""
        return -self.target_log_probs(features, targets).sum()


class GraphNetwork(nn.Module):
    """A graph in the place of a network."""

    def __init__(self, model: Any, graph: Graph, task: str) -> None:
        super().__init__()
        self.config, self.graph, self.task = model.config, graph, task
        self.place = nn.Parameter(torch.zeros(()))  # says which device it is on
        self.output = GraphOutput() if task == "lm" else getattr(model, "output", None)
        if task == "lm":
            self.initial_state = model.initial_state

    def forward(self, x: Any, lengths: Tensor | None = None, state: Any = None) -> Any:
        """What the network would give, as far as an evaluation needs it."""
        if self.task == "answer":
            given = {name: getattr(x, name).long() for name in self.graph.given}
            return SpanOutput(**self.graph(given))
        items = x.items if isinstance(x, TaggerInput) else x
        rows, steps = items.shape[:2]
        lengths = torch.full((rows,), steps) if lengths is None else lengths
        feed = {"ids": items.long(), "lengths": lengths.long()}
        if self.task == "lm":
            state = self.initial_state(rows) if state is None else state
            feed |= {f"state_{name}": part for name, part in state._asdict().items()}
            found = self.graph(feed)
            after = type(state)(*(found[f"next_{name}"] for name in state._fields))
            return LMOutput(found["log_probs"], after)
        if self.task == "tag":
            feed |= {f"feature_{i}": each.long() for i, each in enumerate(x.features)}
            if x.spellings is not None:
                feed |= {"spellings": x.spellings.long(), "which": x.which.long()}
                feed["spelling_lengths"] = x.spelling_lengths.long()
            return TagOutput(self.graph(feed)["scores"])
        return ScoreOutput(self.graph(feed)["scores"])


def with_graph(place: str, path: Path) -> Any:
    """The estimator with a graph in place of its network."""
    model = seqloom.load(place)
    if model.task == "lm":
        model.engine_.model = GraphNetwork(model.engine_.model, Graph(path), model.task)
    else:
        model.model_ = GraphNetwork(model.model_, Graph(path), model.task)
    return model


def example(program: Program, rows: int, steps: int) -> dict[str, Tensor]:
    """Inputs of a graph: whole rows, whose words are those of the sample."""
    sizes = {"batch": rows, "steps": steps, "words": rows * steps, "characters": 8, "asked": 12}
    feed = {}
    for each in program.inputs:
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in each.axes]
        real = {"lengths": steps, "passage_lengths": steps, "question_lengths": 12}
        fill = {**real, "spelling_lengths": 8}.get(each.name, 1)
        zero = each.name.startswith("state_") or each.name in ("passage", "question", "which")
        feed[each.name] = torch.full(shape, 0 if zero else fill, dtype=each.sample.dtype)
    return feed


def times(runs: dict[str, Callable[[], Any]], options: argparse.Namespace) -> dict[str, float]:
    """The median milliseconds of each, in turns."""
    clock, found = CLOCKS[options.clock], {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(options.rounds):
        for name, run in runs.items():
            began, calls = clock(), 0
            while clock() - began < options.seconds:
                run()
                calls += 1
            found[name].append(1000 * (clock() - began) / calls)
    return {name: statistics.median(each) for name, each in found.items()}


def size(path: Path) -> float:
    """In MB; of a directory, what the model is made of."""
    files = [path] if path.is_file() else [each for each in path.iterdir() if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6


def measure(place: str, data: str, folder: Path, options: argparse.Namespace) -> None:
    model = seqloom.load(place)
    given: Any = data
    if options.lines and model.task == "lm":
        given = [each.text for each in islice(text_examples(data), options.lines)]
    elif options.lines and model.task == "answer":
        given = list(islice(read_input(data, "text"), options.lines))
    full, small = folder / "full.onnx", folder / "int8.onnx"
    export_onnx(model, full)
    export_onnx(model, small, products="int8")
    packed = export_int8(place, folder / "int8")
    metric = METRICS[model.task]
    if metric == "accuracy" and model.task == "tag" and model.tags_.scheme is not None:
        metric = "f1"
    ways = {
        "torch": (model, Path(place)),
        "torch, int8 weights": (seqloom.load(packed), packed),
        "ONNX Runtime": (with_graph(place, full), full),
        "ONNX Runtime, int8 products": (with_graph(place, small), small),
    }
    figures = {name: each.evaluate(given)[metric] for name, (each, _) in ways.items()}
    program = program_of(model)
    graphs = {name: Graph(path) for name, (_, path) in ways.items() if path.suffix == ".onnx"}
    columns = []
    with torch.no_grad():
        for rows, steps in SHAPES:
            feed = example(program, rows, steps)
            runs: dict[str, Callable[[], Any]] = {"torch": partial(program.network, *feed.values())}
            runs |= {name: partial(graph, feed) for name, graph in graphs.items()}
            columns.append(times(runs, options))
    heads = " | ".join(f"{rows} x {steps}, ms" for rows, steps in SHAPES)
    print(f"\n{Path(place).name} ({model.task}, {model.arch}), {data}\n")
    print(f"| way | MB | {metric} | {heads} |\n|---|---|---|{'---|' * len(SHAPES)}")
    for name, (_, path) in ways.items():
        cells = [f"{each[name]:.3g}" if name in each else "as torch" for each in columns]
        print(f"| {name} | {size(path):.2f} | {figures[name]:.4f} | {' | '.join(cells)} |")


NO_OPERATORS = patch.object(recurrence, "_known", dict)  # so that all recurrences are loops


def call(network: nn.Module, feed: dict[str, Tensor]) -> Any:
    return network(*feed.values())


class Layer(nn.Module):
    """A recurrent layer as a program."""

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.layer = Recurrent(cell, WIDTH, WIDTH)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """Its outputs."""
        return (self.layer(x, lengths).outputs,)


def compare_recurrences(folder: Path, options: argparse.Namespace) -> None:
    """Time ONNX's own operators beside the loop of the same cell."""
    print(f"\nOne layer of {WIDTH} units, ms\n")
    heads = " | ".join(f"{rows} x {steps}" for rows, steps in SHAPES)
    print(f"| cell | way | {heads} |\n|---|---|{'---|' * len(SHAPES)}")
    for cell in CELLS:
        axes = ("batch", "steps", WIDTH)
        inputs = [
            Input("x", torch.zeros(3, 5, WIDTH), axes, ""),
            Input("lengths", torch.tensor([5, 2, 1]), ("batch",), ""),
        ]
        program = Program(Layer(cell), inputs, [Output("y", axes, "")])
        runs: dict[str, Callable[..., Any]] = {"torch": partial(call, program.network)}
        for name, ways in (("ONNX's operator", nullcontext()), ("Scan", NO_OPERATORS)):
            with ways:
                graph, became = build_graph(program)
            if name != "Scan" and became == ["Scan"]:
                continue
            path = folder / f"{cell}-{name[:4]}.onnx"
            path.write_bytes(graph.SerializeToString())
            runs[name] = Graph(path)
        columns = []
        with torch.no_grad():
            for rows, steps in SHAPES:
                feed = example(program, rows, steps)
                columns.append(times({n: partial(run, feed) for n, run in runs.items()}, options))
        for name in runs:
            print(f"| {cell} | {name} | {' | '.join(f'{c[name]:.3g}' for c in columns)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="DIRECTORY=DATA; none compares recurrences.")
    parser.add_argument("--lines", type=int, default=0, help="Lines or questions; 0 for all.")
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="A way runs so long a round.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.models:
        with tempfile.TemporaryDirectory() as folder:
            compare_recurrences(Path(folder), options)
    for given in options.models:
        place, _, data = given.rpartition("=")
        with tempfile.TemporaryDirectory() as folder:
            measure(place, data, Path(folder), options)


if __name__ == "__main__":
    main()
