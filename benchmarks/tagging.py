"""Tagging over data sets, outputs and seeds; what a CRF costs; how fast Chinese text is cut.

    python benchmarks/tagging.py --out tagging --processes 8 --device cuda
    python benchmarks/tagging.py --out tagging --table
    python benchmarks/tagging.py --step
    python benchmarks/tagging.py --cut

A run follows the recipe of its data set. "chosen" is the test figure of the seed that is best on
validation. `--step` times an update of the same network with a CRF and with a softmax, by turns;
`--cut` trains the segmenter for one epoch and times it beside rjieba.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from cells import Cell, Result, TimeLimit, add_options, grouped, read_results, run_cells, spread

RECIPES = {
    "ewt": "ewt-pos",
    "conll2000": "conll2000-chunk",
    "atis": "atis-slots",
    "resume": "resume-ner",
    "weibo": "weibo-ner",
    "wnut17": "wnut17-ner",
    "pd199801": "pd199801-segment",
}
OUTPUTS = ("crf", "softmax")


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one tagger and measure it; the test data is read here and nowhere else."""
    from seqloom.tasks.recipe import load_recipe

    changed = [f"model.output={cell['output']}", *cell.get("set", "").split()]
    plan = load_recipe(RECIPES[cell["data"]], changed)
    changes: dict[str, Any] = {"seed": cell["seed"], "device": cell["device"]}
    if cell["epochs"]:
        changes["epochs"] = cell["epochs"]
    model = plan.estimator(**changes)
    model.fit(plan.data.train, valid=plan.data.valid, callbacks=[limit])
    found = model.evaluate(plan.data.test)
    metric = plan.target.metric
    return {
        "metric": metric,
        "valid": model.metrics_.get(f"valid_{metric}"),  # none where all data was trained on
        "test": found[metric],
        "test_accuracy": found["accuracy"],
        "target": plan.target.value,
        "epochs": model.provenance_["epochs"],
    }


def show(results: list[Result]) -> None:
    """Print a row a data set and output: mean, spread, and the seed chosen on validation."""
    print("| data | output | metric | seeds | valid | test | chosen | to reach | minutes a run |")
    print("|---|---|---|---|---|---|---|---|---|")
    for runs in grouped(results).values():
        cell, chosen, valid = runs[0]["cell"], "", ""
        if all(run["valid"] is not None for run in runs):
            chosen = f"{100 * max(runs, key=lambda run: run['valid'])['test']:.2f}"
            valid = spread([run["valid"] for run in runs])
        cut = "*" if any(run["cut"] for run in runs) else ""
        minutes = statistics.mean(run["seconds"] for run in runs) / 60
        print(
            f"| {named(cell)} | {cell['output']} | {runs[0]['metric']} | {len(runs)}{cut} | "
            f"{valid} | {spread([run['test'] for run in runs])} | "
            f"{chosen} | {100 * runs[0]['target']:.1f} | {minutes:.1f} |"
        )
    if any(run["cut"] for run in results):
        print("\n\\* some of its runs were ended by the time limit")


def named(cell: Cell) -> str:
    """The data set of a cell, and what was changed in its recipe."""
    return " ".join([cell["data"], *cell.get("set", "").split()])


def time_step(rounds: int) -> None:
    """Time an update of the tagger of each recipe with both outputs, batch by batch by turns."""
    import torch

    from seqloom.tasks.recipe import load_recipe
    from seqloom.tasks.tagger_text import read_tagged_sentences
    from seqloom.training.optimizers import make_optimizer

    print("| data | tags | words a batch | softmax ms | CRF ms | ratio |")
    print("|---|---|---|---|---|---|")
    for data in ("ewt", "conll2000", "atis", "resume", "pd199801"):
        runs, kept = {}, {}
        for output in OUTPUTS:
            plan = load_recipe(RECIPES[data], [f"model.output={output}"])
            plan.settings.pop("vectors", None)
            model = plan.estimator(max_steps=1, device="cpu")
            given = read_tagged_sentences(plan.data.train, None, "training", segment=model.segment)
            network, objective = built(model, given)
            optimizer = make_optimizer(network, model.build_training().optimizer)
            batches = objective.batches(0, 0, rank=0, world_size=1)
            kept[output] = [next(batches) for _ in range(10)]
            runs[output] = (network, objective, optimizer)
        times: dict[str, list[float]] = {output: [] for output in OUTPUTS}
        for turn in range(rounds * 10):
            for output in OUTPUTS:
                network, objective, optimizer = runs[output]
                batch = kept[output][turn % 10].tensors("cpu")
                began = time.perf_counter()
                optimizer.zero_grad(set_to_none=True)
                loss = objective.loss(network, batch)
                (loss.total / loss.items).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                if turn >= 10:  # the first ones compile and fill memory
                    times[output].append(time.perf_counter() - began)
        words = statistics.mean(batch.host["items"].lengths.sum() for batch in kept["crf"])
        softmax, crf = (1e3 * statistics.median(times[name]) for name in ("softmax", "crf"))
        tags = runs["crf"][0].config.output_size
        print(
            f"| {data} | {tags} | {words:.0f} | {softmax:.1f} | {crf:.1f} | {crf / softmax:.2f} |"
        )


def built(model: Any, given: Any) -> tuple[Any, Any]:
    """A network and its objective as `fit` makes them, without training."""
    from seqloom.tasks import tagger_training
    from seqloom.tasks.fitting import Learned, RunSettings
    from seqloom.tasks.text_features import TermLimits

    kept: list[Any] = []

    def keep(network: Any, objective: Any, *_: Any, **__: Any) -> Learned:
        kept.extend([network, objective])
        return Learned({}, {})

    before, tagger_training.run_objective = tagger_training.run_objective, keep
    try:
        settings = RunSettings(model.build_training(), None, False, (), {})
        tagger_training.learn_tags(model, given, None, TermLimits(), settings)
    finally:
        tagger_training.run_objective = before
    network, objective = kept
    return network.train(), objective


def time_cut(repeat: int) -> None:
    """Time the segmenter on the test text, all texts at once and one by one, beside rjieba."""
    from seqloom.data.inputs import read_input
    from seqloom.tasks.recipe import load_recipe

    plan = load_recipe(RECIPES["pd199801"])
    model = plan.estimator(epochs=1, device="cpu")
    model.fit(plan.data.train, valid=plan.data.valid)
    sentences = list(read_input(plan.data.test, "tagged"))
    texts = ["".join(sentence.tokens) for sentence in sentences]
    size = sum(len(text.encode()) for text in texts) / 1e6
    ways = {
        "all texts at once": lambda: model.cut_all(texts),
        "one by one": lambda: [model.cut(text) for text in texts],
        "as one text": lambda: model.cut("\n".join(texts)),
    }
    try:
        import rjieba

        ways["rjieba, one by one"] = lambda: [rjieba.cut(text) for text in texts]
    except ModuleNotFoundError:
        print("rjieba is not installed")
    print(f"{len(texts)} texts, {size:.2f} MB, {os.cpu_count()} cores")
    print("| way | MB/s |\n|---|---|")
    for name, way in ways.items():
        way()
        times = []
        for _ in range(repeat):
            began = time.perf_counter()
            way()
            times.append(time.perf_counter() - began)
        print(f"| {name} | {size / min(times):.2f} |")


def main() -> None:
    """Run the cells that are missing and print the table, or time."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, "tagging")
    parser.add_argument("--data-sets", nargs="*", default=[*RECIPES], choices=[*RECIPES])
    parser.add_argument("--outputs", nargs="*", default=[*OUTPUTS], choices=OUTPUTS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=None, help="fewer than the recipe's")
    parser.add_argument("--set", default="", help="changes of the recipe, as KEY=VALUE KEY=VALUE")
    parser.add_argument("--data", default=None, help="the folder of data sets ($SEQLOOM_DATA)")
    parser.add_argument("--step", action="store_true", help="time an update")
    parser.add_argument("--cut", action="store_true", help="time the segmenter")
    options = parser.parse_args()
    if options.data:
        os.environ["SEQLOOM_DATA"] = options.data
    if options.step:
        time_step(rounds=5)
        return
    if options.cut:
        time_cut(repeat=5)
        return
    if options.table:
        show(read_results(options.out))
        return
    cells = [
        {
            "data": data,
            "output": output,
            "seed": seed,
            "epochs": options.epochs,
            "device": options.device,
            **({"set": options.set} if options.set else {}),
        }
        for seed in options.seeds
        for data in options.data_sets
        for output in options.outputs
    ]
    show(run_cells(cells, run_cell, options))


if __name__ == "__main__":
    main()
