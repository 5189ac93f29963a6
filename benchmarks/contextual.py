"""Words in context: tasks with them and without, senses, neighbours and speed.

    python benchmarks/contextual.py tasks --model elmo=DIR masked=DIR --out contextual --processes 8
    python benchmarks/contextual.py tasks --out contextual --table --picture shares.png
    python benchmarks/contextual.py senses --model DIR --picture bank.png [--word 苹果]
    python benchmarks/contextual.py neighbours --model DIR
    python benchmarks/contextual.py speed --model DIR
    python benchmarks/contextual.py probe --model DIR

`tasks` fits the recipes of relations, SST-2, chunks and entities as they are and with an embedder
at the input of taggers and the output of classifiers, on all of the training data and on a tenth
of it that the seed draws. Everything else is the same on both sides; words are read in their own
case on both. What decides which weights are kept is the validation data; the test data is read
once, at the end of a run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cells import (
    Cell,
    Result,
    TimeLimit,
    add_options,
    device,
    grouped,
    read_results,
    run_cells,
    spread,
    to_device,
)
from context_senses import RULES, neighbours, probe, senses
from seqloom import Embedder
from seqloom.data.inputs import read_input
from seqloom.explain.context import draw_layer_shares
from seqloom.figures import save
from seqloom.tasks.contextual import ContextReader, ContextualConfig
from seqloom.tasks.corpus import text_examples
from seqloom.tasks.recipe import load_recipe
from seqloom.text.pipeline import TextConfig, TextPipeline

TASKS = {
    "relations": (
        "semeval-att-blstm",
        "macro_f1",
        ["text.normalizer.lowercase=false", "model.consistency=0", "around=1000"],
    ),
    "sst-2": (
        "sst-blstm",
        "accuracy",
        ["data.train=sst-trees:train:binary", "training.epochs=20", "training.evaluate_every=70"],
    ),
    "chunks": ("conll2000-chunk", "f1", []),
    "entities": ("wnut17-ner", "f1", []),
}
INSERTED = {"relations": "output", "sst-2": "output", "chunks": "input", "entities": "input"}
AVERAGED = 0.99  # decay of averaged weights on a share of the data, which has few updates
TESTS = {
    "relations": "semeval2010-task8:test",
    "sst-2": "sst-trees:test:binary",
    "chunks": "conll2000-chunking:test:chunk",
    "entities": "wnut17:test",
}


def some_of(source: str, share: float, seed: int) -> list[Any]:
    """The training examples, or a share of them that the seed draws."""
    examples = list(read_input(source, "text"))
    if share >= 1:
        return examples
    order = np.random.default_rng([seed, 7]).permutation(len(examples))
    return [examples[i] for i in np.sort(order[: round(share * len(examples))]).tolist()]


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one model and measure it; the test data is read here and nowhere else."""
    name, metric, changes = TASKS[cell["task"]]
    plan = load_recipe(name, [*changes, *cell["set"].split()])
    training: dict[str, Any] = {"seed": cell["seed"], "device": device()}
    if cell["epochs"]:
        training["epochs"] = cell["epochs"]
    if cell["share"] < 1:
        training["average_decay"] = AVERAGED
    plan.model.pop("embed_size", None)  # as wide as the vectors
    model = plan.estimator(**training)
    if cell["vectors"]:
        model.set_params(vectors=cell["vectors"])
    if cell["model"]:
        given = {"model": cell["model"], "cache": cell["cache"], "insert": cell["insert"].split()}
        model.set_params(contextual={**given, "dropout": cell["dropout"]})
    assert isinstance(plan.data.train, str)
    model.fit(some_of(plan.data.train, cell["share"], cell["seed"]), valid=plan.data.valid,
              callbacks=[limit])  # fmt: skip
    to_device(model.model_)
    found = model.evaluate(TESTS[cell["task"]])
    valid = model.metrics_.get(f"valid_{metric}", float("nan"))
    result = {"valid": valid, "test": found[metric], "epochs": model.provenance_["epochs"]}
    mixes = model.model_.input.context
    return result if mixes is None else {**result, "shares": mixes.shares()}


def tasks(options: argparse.Namespace) -> None:
    """Run the cells that are missing and print the table."""
    models = {"": None} | dict(each.split("=", 1) for each in options.model)
    cells = [
        {
            "task": task,
            "share": share,
            "embedder": name,
            "model": place,
            "insert": (options.insert or INSERTED[task]) if place else "",
            "dropout": options.dropout if place else None,
            "cache": str(options.cache) if place else None,
            "vectors": options.vectors,
            "epochs": options.epochs,
            "set": options.set,
            "seed": seed,
        }
        for share in options.share
        for seed in options.seeds
        for task in options.task
        for name, place in models.items()
    ]
    results = read_results(options.out) if options.table else run_cells(cells, run_cell, options)
    print("| task | of the data | embedder | seeds | valid | test | gain | shares of the layers |")
    print("|---|---|---|---|---|---|---|---|")
    means: dict[tuple[Any, ...], float] = {}
    for runs in sorted(grouped(results).values(), key=_place):
        cell, test = runs[0]["cell"], [run["test"] for run in runs]
        key = (cell["task"], cell["share"], cell["set"])
        if not cell["embedder"]:
            means[key] = float(np.mean(test))
        gain = f"{100 * (np.mean(test) - means[key]):+.2f}" if key in means else ""
        shares = _shares(runs) if cell["embedder"] else ""
        cut = "*" if any(run["cut"] for run in runs) else ""
        print(
            f"| {cell['task']} | {cell['share']:.0%} | {cell['embedder'] or 'none'} | "
            f"{len(runs)}{cut} | {spread([run['valid'] for run in runs])} | {spread(test)} | "
            f"{gain if cell['embedder'] else ''} | {shares} |"
        )
    if any(run["cut"] for run in results):
        print("\n\\* some of its runs were ended by the time limit")
    if options.picture is not None:
        save(draw_layer_shares(_shares_by_task(results)), options.picture)


def _shares_by_task(results: Sequence[Result]) -> dict[str, NDArray[np.float64]]:
    """Mean shares of the layers of the first embedder, of the largest part of the data."""
    own = [run for run in results if run["cell"]["embedder"]]
    first, most = own[0]["cell"]["embedder"], max(run["cell"]["share"] for run in own)
    found: dict[str, NDArray[np.float64]] = {}
    for task in TASKS:
        shares = [
            np.mean(list(run["shares"].values()), axis=0)
            for run in own
            if (run["cell"]["task"], run["cell"]["embedder"], run["cell"]["share"])
            == (task, first, most)
        ]
        if shares:
            found[task] = np.mean(shares, axis=0)
    return found


def _place(runs: Sequence[Result]) -> tuple[Any, ...]:
    cell = runs[0]["cell"]
    return (list(TASKS).index(cell["task"]), -cell["share"], cell["embedder"])


def _shares(runs: Sequence[Result]) -> str:
    found = {place: np.mean([run["shares"][place] for run in runs], axis=0) for place in
             runs[0]["shares"]}  # fmt: skip
    return "; ".join(
        f"{place} {', '.join(f'{share:.2f}' for share in shares)}"
        for place, shares in found.items()
    )


def speed(options: argparse.Namespace) -> None:
    """Words a second of an embedder, and of its cache."""
    embedder = Embedder.load(options.model)
    pipeline = TextPipeline(TextConfig(language="en"))
    texts = text_examples(options.text)
    sentences = [words for example in texts if (words := pipeline.words(example.text))]
    sentences = sentences[: options.sentences]
    count = sum(map(len, sentences))
    list(embedder.embed_sentences(sentences[:20]))  # compile
    began = time.perf_counter()
    for _ in embedder.embed_sentences(sentences):
        pass
    seconds = time.perf_counter() - began
    print(f"{count:,} words in {len(sentences):,} sentences: {count / seconds:,.0f} words/s")
    with tempfile.TemporaryDirectory() as folder:
        settings = ContextualConfig(model=embedder, cache=folder)
        times = []
        for _ in range(2):
            began = time.perf_counter()
            flat = ContextReader(settings, embedder)(sentences).flat
            float(np.asarray(flat[:, :1], np.float32).sum())
            times.append(time.perf_counter() - began)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    print(f"cache: written in {times[0]:.2f} s, found again in {times[1]:.2f} s "
          f"({times[0] / times[1]:,.0f} times as fast), {size / 1e6:,.1f} MB")  # fmt: skip


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("tasks")
    verb.set_defaults(run=tasks)
    add_options(verb, "contextual")
    verb.add_argument("--model", nargs="*", default=[], help="NAME=DIR of embedders")
    verb.add_argument("--task", nargs="*", default=list(TASKS), choices=list(TASKS))
    verb.add_argument("--share", nargs="*", type=float, default=[0.1, 1.0])
    verb.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    verb.add_argument("--epochs", type=int, default=None, help="fewer than the recipes'")
    verb.add_argument("--set", default="", help="changes of the recipes, 'a=b c=d'")
    verb.add_argument("--insert", default="", help="'input', 'output' or 'input output' for all")
    verb.add_argument("--dropout", type=float, default=0.5)
    verb.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "layers")
    verb.add_argument("--vectors", default=None, help="another file than the recipes'")
    verb.add_argument("--picture", type=Path, default=None, help="of the layers' shares")
    for name, run in (("senses", senses), ("neighbours", neighbours), ("probe", probe),
                      ("speed", speed)):  # fmt: skip
        verb = verbs.add_parser(name)
        verb.set_defaults(run=run)
        verb.add_argument("--model", required=True)
        verb.add_argument("--text", default="wikitext-2:valid:known")
        verb.add_argument("--sentences", type=int, default=2000)
        verb.add_argument("--picture", type=Path, default=None)
        verb.add_argument("--word", default="bank", choices=list(RULES))
        verb.add_argument("--vectors", default="glove-6b-100d-subset", help="static ones")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
