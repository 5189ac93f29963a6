"""SemEval-2010 Task 8 over architectures, poolings and seeds, by the official score.

python benchmarks/relations.py --seeds 0 1 2 --arch brnn blstm att-blstm --pooling max attention

A cell (architecture, pooling, positions, seed) that is done is kept in a JSON file and not run
again. Every run sets its own tenth of the training data apart and keeps the epoch that is best
there; the row whose mean on validation is best is the one whose test figure counts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from seqloom import RelationClassifier
from seqloom.tasks.estimator import merge
from seqloom.tasks.recipe import load_recipe

ARCHITECTURES = ("brnn", "blstm", "att-blstm", "cnn", "joint-attention", "transformer")
POOLINGS = ("last", "mean", "max", "sum", "attention")
# What an architecture without a recipe of its own begins with.
SHARED = {"embedding_dropout": 0.3, "dropout": 0.5, "l2": 1e-5}
RECIPES = {name: f"semeval-{name}" for name in ("brnn", "blstm", "att-blstm", "cnn")}


def settings_of(arch, positions):
    """The settings of a row: those of the recipe, or of Att-BLSTM's with other layers."""
    recipe = load_recipe(RECIPES.get(arch, "semeval-att-blstm"))
    model = dict(recipe.model) if arch in RECIPES else {"hidden_size": 100, **SHARED}
    model.pop("embed_size", None)  # as wide as the vectors
    own = {**recipe.settings}
    if positions is not None:
        own["position_size"] = positions
    training = recipe.training
    if arch == "transformer":  # Adam, as its paper has it, and so no penalty
        training = merge(training, {"optimizer": {"name": "adam", "rate": 5e-4}})
        model |= {"l2": 0.0, "dropout": 0.3}
    return own, training, model


def run_cell(arch, pooling, positions, seed, options):
    """Fit one model and measure it; the test data is read here and nowhere else."""
    own, training, model = settings_of(arch, positions)
    changes = {"seed": seed, "device": options.device}
    if options.epochs:
        changes["epochs"] = options.epochs
    if pooling is not None:
        model["pooling"] = pooling
    began = time.perf_counter()
    classifier = RelationClassifier(arch, **own, training=merge(training, changes), **model)
    classifier.fit(options.train)
    found = classifier.evaluate(options.test)
    return {
        "valid": classifier.metrics_["valid_macro_f1"],
        "test": found["macro_f1"],
        "test_directed": found["macro_f1_directed"],
        "test_accuracy": found["accuracy"],
        "epochs": classifier.provenance_["epochs"],
        "seconds": round(time.perf_counter() - began, 1),
    }


def key_of(arch, pooling, positions, seed, options):
    """The name of a cell in the JSON file; whatever changes a result is in it."""
    parts = {"arch": arch, "pooling": pooling, "positions": positions, "seed": seed}
    parts |= {"epochs": options.epochs, "train": options.train, "test": options.test}
    return json.dumps(parts, sort_keys=True)


def load_cells(path):
    """The cells that are done."""
    return json.loads(path.read_text()) if path.exists() else {}


def keep(path, cells):
    """Write the cells beside and rename, so that a kill leaves the old file or the new."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(cells, indent=1, sort_keys=True))
    beside.replace(path)


def show(rows):
    """Print mean and spread of every row, and the test figure of the one chosen on validation."""
    print("| arch | pooling | positions | seeds | valid F1 | test F1 | test spread | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    best = None
    for (arch, pooling, positions), cells in rows.items():
        valid, test = (100 * np.array([c[name] for c in cells]) for name in ("valid", "test"))
        spread = f"{test.std(ddof=1):.2f}" if len(cells) > 1 else "-"
        seconds = np.mean([c["seconds"] for c in cells])
        print(
            f"| {arch} | {pooling or 'own'} | {'own' if positions is None else positions} | "
            f"{len(cells)} | {valid.mean():.2f} | {test.mean():.2f} | {spread} "
            f"({test.min():.2f} to {test.max():.2f}) | {seconds:.0f} |"
        )
        if best is None or valid.mean() > best[0]:
            single = test[int(valid.argmax())]
            best = valid.mean(), test.mean(), single, (arch, pooling, positions)
    if best is not None:
        _, mean, single, (arch, pooling, positions) = best
        print(
            f"\nchosen on validation: {arch}, pooling {pooling or 'own'}, positions "
            f"{'own' if positions is None else positions}: test F1 {mean:.2f} in the mean of its "
            f"seeds, {single:.2f} for the seed that is best on validation"
        )


def main():
    """Run the cells that are missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="*", default=list(ARCHITECTURES), choices=ARCHITECTURES)
    parser.add_argument("--pooling", nargs="*", default=[None], choices=POOLINGS)
    parser.add_argument("--positions", nargs="*", type=int, default=[None], help="position_size")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=None, help="fewer than the recipe's")
    parser.add_argument("--train", default="semeval2010-task8:train")
    parser.add_argument("--test", default="semeval2010-task8:test")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cells", type=Path, default=Path("relations-cells.json"))
    parser.add_argument("--table", action="store_true", help="only print what is done")
    options = parser.parse_args()
    cells = load_cells(options.cells)
    rows = {}
    for arch in options.arch:
        for pooling in options.pooling:
            for positions in options.positions:
                for seed in options.seeds:
                    key = key_of(arch, pooling, positions, seed, options)
                    if key not in cells and not options.table:
                        cells[key] = run_cell(arch, pooling, positions, seed, options)
                        keep(options.cells, cells)
                        print(key, cells[key], flush=True)
                    if key in cells:
                        rows.setdefault((arch, pooling, positions), []).append(cells[key])
    show(rows)


if __name__ == "__main__":
    main()
