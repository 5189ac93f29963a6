"""Reading comprehension over models, changes and seeds; steps, answers and long documents timed.

    python benchmarks/reading.py --out reading --rows bidaf rnet-notes --seeds 3 --device cuda
    python benchmarks/reading.py --out reading --rows ablation --device cuda
    python benchmarks/reading.py --out reading --table
    python benchmarks/reading.py --step bidaf rnet-notes --device cuda
    python benchmarks/reading.py --baseline
    python benchmarks/reading.py --cpu MODEL
    python benchmarks/reading.py --long MODEL
    python benchmarks/reading.py --long MODEL --held-out --documents article

A run follows its recipe; the epoch is chosen on articles of the training data, if any are set
apart, and dev is read once, at the end. The readers that teach a taught one lie under `--out` in
the folder `teachers`, each under the name of its recipe; those that are missing are trained first.
A run's directory under `--out` holds the model; one that was stopped goes on from its checkpoint.
`--step` times updates on our kernels and on torch's own layers, by turns. `--cpu` times answers,
`--long` hides passages in documents of 20,000 words; with `--held-out` they are of the training
articles that the reader was chosen by, as its settings for long documents are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import time
from itertools import islice
from pathlib import Path
from typing import Any

from cells import Cell, Result, TimeLimit, add_options, device, read_results, run_cells
from reading_use import measure_baseline, measure_cpu, measure_long

ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bidaf": ("squad-bidaf", ()),
    "bidaf, no characters": ("squad-bidaf", ("model.characters=none",)),
    "bidaf, passage does not attend": ("squad-bidaf", ("model.to_question=false",)),
    "bidaf, question does not attend": ("squad-bidaf", ("model.to_passage=false",)),
    "bidaf, Adadelta": (
        "squad-bidaf",
        (
            "training.optimizer.name=adadelta",
            "training.optimizer.rate=0.5",
            "training.schedule.name=constant",
            "training.schedule.warmup=0",
        ),
    ),
    "bidaf, words whole": ("squad-bidaf", ("cut_words=false",)),
    "rnet-notes": ("squad-rnet-notes", ()),
    "rnet-notes, no self-matching": ("squad-rnet-notes", ("model.self_matching=false",)),
    "rnet-notes, no gate": ("squad-rnet-notes", ("model.gated=false",)),
    "bidaf + exact match": ("squad-bidaf", ("model.exact_match=true",)),
    "bidaf + ELMo": ("squad-bidaf", ("contextual=english-elmo",)),
    "bidaf + other passages": ("english-reader", ()),
    "rnet-notes + exact match": ("squad-rnet-notes", ("model.exact_match=true",)),
    "rnet-paper": ("squad-rnet-paper", ()),
    "rnet, gated in parallel, pointer": ("squad-rnet", ()),
    "rnet + teachers": ("squad-rnet-taught", ()),
    "rnet-notes + ELMo": ("squad-rnet-notes", ("contextual=english-elmo",)),
    "cmrc-bidaf": ("cmrc-bidaf", ()),
}
GROUPS = {
    "main": ["bidaf", "rnet-notes"],
    "ablation": [name for name in ROWS if "," in name],
    "all": [*ROWS],
}
STEP_UPDATES = 40


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one reader and measure it; dev is read here and nowhere else."""
    from seqloom import Reader
    from seqloom.tasks.recipe import load_recipe, with_needed

    recipe, changes = ROWS[cell["row"]]
    plan = with_needed(
        load_recipe(recipe, [*changes, *cell["set"]]), Path(cell["folder"]) / "teachers", print
    )
    name = f"{cell['row'].replace(', ', '-').replace(' + ', '-').replace(' ', '-')}-{cell['seed']}"
    if cell["set"]:
        name += "-" + hashlib.sha256(" ".join(cell["set"]).encode()).hexdigest()[:6]
    place = Path(cell["folder"]) / name
    if (place / "seqloom.json").exists():  # fitted, but not tested
        model = Reader.load(place)
    else:
        model = plan.estimator(seed=cell["seed"], device=device())
        resume = (place / "training" / "last.safetensors").exists()
        model.fit(plan.data.train, valid=None, out=place, resume=resume, callbacks=[limit])
    if device() != "cpu":
        model.to("cuda")
    began = time.perf_counter()
    found = model.evaluate(plan.data.test)
    history = model.provenance_
    return {
        "exact": found["exact"],
        "f1": found["f1"],
        "valid_exact": model.metrics_.get("valid_exact", math.nan),
        "valid_f1": model.metrics_.get("valid_f1", math.nan),
        "epochs": history["epochs"],
        "updates": history["updates"],
        "training_seconds": history["seconds"],
        "test_seconds": round(time.perf_counter() - began, 1),
        "misaligned": history["misaligned"],
        "words_with_vectors": history.get("words_with_vectors"),
        "target": None if plan.target is None else plan.target.value,
    }


def show(results: list[Result]) -> None:
    """Print a row a model: mean and spread over seeds."""
    print("| row | seeds | dev EM | dev F1 | held-out F1 | epochs | minutes a run | F1 to reach |")
    print("|---|---|---|---|---|---|---|---|")
    rows: dict[str, list[Result]] = {}
    for result in results:
        changed = " ".join(result["cell"]["set"])
        rows.setdefault(f"{result['cell']['row']} {changed}".strip(), []).append(result)
    for name, runs in rows.items():
        numbers = [
            _spread([run[key] for run in runs]) for key in ("exact", "f1", "valid_f1", "epochs")
        ]
        minutes = statistics.mean(run["training_seconds"] for run in runs) / 60
        columns = [name, str(len(runs)), *numbers, f"{minutes:.1f}", str(runs[0]["target"])]
        print("| " + " | ".join(columns) + " |")


def _spread(values: list[float]) -> str:
    if any(map(math.isnan, values)):
        return ""
    mean = f"{statistics.mean(values):.2f}"
    return f"{mean} ± {statistics.stdev(values):.2f}" if len(values) > 1 else mean


def measure_steps(rows: list[str], changed: list[str], chosen: str) -> None:
    """Print the time of an update on our kernels and on torch's own layers, by turns.

    The rows learn from the data and the batches of the first of them.
    """
    from seqloom.tasks.reader_data import encode_training
    from seqloom.tasks.reader_objective import ReadingObjective
    from seqloom.tasks.reader_text import read_all
    from seqloom.tasks.reader_words import ReaderVocabulary
    from seqloom.tasks.recipe import load_recipe
    from seqloom.training.runtime import Runtime

    plans = {row: load_recipe(ROWS[row][0], [*ROWS[row][1], *changed]) for row in rows}
    first = plans[rows[0]]
    reader = first.estimator(device=chosen)
    began = time.perf_counter()
    train = read_all(first.data.train, reader.make_splitter(), "training")
    words = ReaderVocabulary.learn([*train.texts()], min_count=10)
    data, _ = encode_training(train, words, reader.max_length)
    print(f"read and numbered in {time.perf_counter() - began:.1f} s", flush=True)
    training = reader.build_training()
    objective = ReadingObjective(data, lambda _: {}, training.batch, consistency=reader.consistency)
    batches = list(islice(objective.batches(0, 0, rank=0, world_size=1), STEP_UPDATES))
    assert words.characters is not None
    sizes = {"vocab_size": len(words.words), "char_vocab_size": len(words.characters)}
    runtime = Runtime(chosen, training.precision)
    for row, plan in plans.items():
        times = _update_times(plan.estimator(device=chosen), sizes, objective, batches, runtime)
        for name, found in times.items():
            step, total = statistics.median(found), objective.num_batches(0)
            print(f"{row} on {name}: {1000 * step:.1f} ms an update, {step * total:.1f} s an epoch")
        ratio = statistics.median(times["auto"]) / statistics.median(times["torch"])
        print(f"auto takes {ratio:.2f} of torch's time", flush=True)


def _update_times(
    reader: Any, sizes: dict[str, int], objective: Any, batches: list[Any], runtime: Any
) -> dict[str, list[float]]:
    """Seconds an update, by backend, of several turns."""
    import torch

    from seqloom.architectures import load_model_class

    networks: dict[str, Any] = {}
    for backend in ("auto", "torch"):
        config = reader.set_params(backend=backend).build_config(**sizes)
        torch.manual_seed(0)
        network = load_model_class(reader.architecture)(config).to(runtime.device).train()
        networks[backend] = network, torch.optim.Adam(network.parameters(), 1e-3)
    times: dict[str, list[float]] = {name: [] for name in networks}
    with runtime.products():
        for turn in range(4):
            for name, (network, optimizer) in networks.items():
                _wait(runtime.device)
                began = time.perf_counter()
                for batch in batches:
                    optimizer.zero_grad(set_to_none=True)
                    with runtime.autocast():
                        found = objective.loss(network, batch.tensors(runtime.device))
                    (found.total / found.items).backward()
                    optimizer.step()
                _wait(runtime.device)
                if turn:  # the first turn compiles
                    times[name].append((time.perf_counter() - began) / len(batches))
    return times


def _wait(place: Any) -> None:
    import torch

    if place.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_options(parser, "reading")
    parser.add_argument("--rows", nargs="+", default=["main"], help=f"of {[*ROWS, *GROUPS]}")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each row")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], help="settings, as training.epochs=2")
    parser.add_argument("--step", metavar="ROW", nargs="+", help="time updates of rows")
    parser.add_argument("--cpu", metavar="MODEL", help="time answers of a model directory")
    parser.add_argument("--long", metavar="MODEL", help="answer from long documents")
    parser.add_argument(
        "--documents",
        choices=("mixed", "flat", "foreign", "article"),
        default="mixed",
        help="of --long",
    )
    parser.add_argument("--held-out", action="store_true", help="--long: not on dev")
    parser.add_argument("--questions", type=int, default=500, help="of --cpu and --long")
    parser.add_argument("--baseline", action="store_true", help="score the sliding window")
    options = parser.parse_args()
    if options.step:
        measure_steps(options.step, options.set, options.device)
    elif options.cpu:
        measure_cpu(options.cpu, options.questions)
    elif options.long:
        measure_long(
            options.long, options.questions, kind=options.documents, held_out=options.held_out
        )
    elif options.baseline:
        measure_baseline()
    else:
        names = [name for row in options.rows for name in GROUPS.get(row, [row])]
        cells = [
            {"row": name, "seed": seed, "set": options.set, "folder": str(options.out)}
            for name in names
            for seed in range(options.first_seed, options.first_seed + options.seeds)
        ]
        for cell in cells:
            if cell["row"] not in ROWS:
                parser.error(f"no row {cell['row']!r}; there are {', '.join(ROWS)}")
        results = (
            read_results(options.out) if options.table else run_cells(cells, run_cell, options)
        )
        print(json.dumps(results[-1]) if results else "nothing is done yet")
        show(results)


if __name__ == "__main__":
    main()
