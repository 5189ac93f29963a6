r"""SemEval-2010 Task 8 over architectures, poolings and seeds, by the official score.

    python benchmarks/relations.py --out relations --processes 8 --seconds 1200
    python benchmarks/relations.py --out relations --table
    python benchmarks/relations.py --out folds --arch att-blstm --set '' around=1000 --folds 5

Every run sets its own tenth of the training data apart and keeps the epoch that is best there. The
first table has a row an architecture, the second a row a pooling of the same network; "chosen" is
the test figure of the seed that is best on validation.

A network may be taught by others of the same seed, or fold, that an earlier call kept:

    python benchmarks/relations.py --out relations --arch blstm joint-attention --keep models
    python benchmarks/relations.py --out taught --arch att-blstm --kept models \
        --teachers blstm joint-attention

With --folds nothing of the test data is read: every training sentence is predicted by a network
that learned from the other folds, without validation data, the last epoch's weights. The table has
the official F1 of all predictions together, by fold, and the mean cross-entropy of a label.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

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
from seqloom import RelationClassifier
from seqloom.data.inputs import read_input
from seqloom.metrics.relations import score_relations
from seqloom.tasks.estimator import merge
from seqloom.tasks.recipe import load_recipe

ARCHITECTURES = ("brnn", "blstm", "att-blstm", "joint-attention", "cnn", "transformer")
POOLINGS = ("max", "sum", "mean", "last", "attention")
RECIPES = ("brnn", "blstm", "att-blstm", "joint-attention", "cnn")
FOLDS_BY = 11  # the seed that deals sentences to folds
PUBLISHED = {"brnn": 0.796, "blstm": 0.827, "att-blstm": 0.840, "cnn": 0.789}


def settings_of(cell: Cell) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The settings of a cell: those of its recipe, or of Att-BLSTM's with other layers."""
    arch = cell["arch"]
    name = f"semeval-{arch if arch in RECIPES else 'att-blstm'}"
    recipe = load_recipe(name, cell["set"].split())
    model = dict(recipe.model) if arch in RECIPES else {"dropout": 0.3, "embedding_dropout": 0.3}
    model.pop("embed_size", None)  # as wide as the vectors
    own = {**recipe.settings}
    if cell["vectors"]:
        own["vectors"] = cell["vectors"]
    if cell["positions"] is not None:
        own["position_size"] = cell["positions"]
    if cell["pooling"] is not None:
        model["pooling"] = cell["pooling"]
    if cell.get("teachers"):
        teachers = [str(kept_place(cell, arch)) for arch in cell["teachers"]]
        own["teaching"] = {"teachers": teachers, "texts": marked_texts(cell["texts"])}
    changes = {"seed": cell["seed"], "device": device()}
    if cell["epochs"]:
        changes["epochs"] = cell["epochs"]
    return own, merge(recipe.training, changes), model


def kept_place(cell: Cell, arch: str) -> Path:
    """Where a network of the seed of a cell, or of its fold, is kept."""
    return Path(cell["models"]) / f"{arch}-{cell['seed']}{'-fold' if cell.get('folds') else ''}"


def marked_texts(path: str | None) -> list[str] | None:
    """The marked sentences of a file, one a line."""
    return None if path is None else Path(path).read_text(encoding="utf-8").splitlines()


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one model and measure it; the test data is read here and nowhere else."""
    own, training, model = settings_of(cell)
    classifier = RelationClassifier(cell["arch"], **own, training=training, **model)
    classifier.fit(cell["train"], callbacks=[limit])
    if cell.get("keep"):
        classifier.save(kept_place(cell, cell["arch"]))
    to_device(classifier.model_)
    found = classifier.evaluate(cell["test"])
    return {
        "valid": classifier.metrics_["valid_macro_f1"],
        "test": found["macro_f1"],
        "test_directed": found["macro_f1_directed"],
        "test_accuracy": found["accuracy"],
        "epochs": classifier.provenance_["epochs"],
    }


def run_fold(cell: Cell, _limit: TimeLimit) -> Result:
    """Fit one model on all folds but one, and predict that one."""
    own, training, model = settings_of(cell)
    data = list(read_input(cell["train"], "text"))
    order = np.random.default_rng(FOLDS_BY).permutation(len(data))
    apart = set(order[cell["seed"] :: cell["folds"]].tolist())
    classifier = RelationClassifier(
        cell["arch"], **{**own, "valid_share": 0}, training=training, **model
    )
    classifier.fit([each for place, each in enumerate(data) if place not in apart])
    if cell.get("keep"):
        classifier.save(kept_place(cell, cell["arch"]))
    to_device(classifier.model_)
    held = [data[place] for place in sorted(apart)]
    shares, names = classifier.predict_proba(held), classifier.classes_.tolist()
    true = [each.label for each in held]
    # A label that none of the other folds has counts as one of a thousand.
    of_true = [
        row[names.index(label)] if label in names else 1e-3
        for row, label in zip(shares, true, strict=True)
    ]
    return {
        "cross_entropy": float(-np.log(np.maximum(of_true, 1e-9)).mean()),
        "predicted": [names[place] for place in shares.argmax(axis=1)],
        "true": true,
    }


def show_folds(results: list[Result]) -> None:
    """Print a row a change: F1 of all predictions together, by fold, and the cross-entropy."""
    print("| arch | changed | folds | F1 | by fold | cross-entropy |")
    print("|---|---|---|---|---|---|")
    for runs in grouped(results).values():
        runs.sort(key=lambda run: run["cell"]["seed"])
        both = [[label for run in runs for label in run[key]] for key in ("predicted", "true")]
        by_fold = [score_relations(run["predicted"], run["true"]).macro_f1 for run in runs]
        cell = runs[0]["cell"]
        print(
            f"| {cell['arch']} | {cell['set'] or '-'} | {len(runs)} of {cell['folds']} | "
            f"{100 * score_relations(*both).macro_f1:.2f} | "
            f"{', '.join(f'{100 * each:.2f}' for each in by_fold)} | "
            f"{np.mean([run['cross_entropy'] for run in runs]):.3f} |"
        )


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """All cells: first the architectures with their pooling, then with others; seed by seed."""
    rest = {
        "epochs": options.epochs,
        "train": options.train,
        "test": options.test,
        "vectors": options.vectors,
    }
    if options.keep:
        rest |= {"keep": True, "models": str(options.keep)}
    if options.teachers:
        rest |= {"teachers": options.teachers, "texts": options.texts, "models": str(options.kept)}
    plain = [(arch, None, None, changes) for changes in options.set for arch in options.arch]
    more = [(arch, None, None, changes) for changes in options.later for arch in options.pooled]
    more += [(arch, pooling, None, "") for arch in options.pooled for pooling in options.pooling]
    more += [(arch, None, size, "") for arch in options.arch for size in options.positions]
    return [
        {
            "arch": arch,
            "pooling": pooling,
            "positions": size,
            "set": changes,
            "seed": seed,
            **rest,
        }
        for rows in (plain, more)
        for seed in options.seeds
        for arch, pooling, size, changes in rows
    ]


def show(results: list[Result]) -> None:
    """Print a row an architecture and pooling: mean, spread, and the seed chosen on validation."""
    print("| arch | pooling | positions | changed | seeds | valid F1 | test F1 | chosen | paper |")
    print("|---|---|---|---|---|---|---|---|---|")
    for runs in grouped(results).values():
        cell, best = runs[0]["cell"], max(runs, key=lambda run: run["valid"])
        positions = "own" if cell["positions"] is None else cell["positions"]
        own = cell["pooling"] is None and cell["positions"] is None and not cell["set"]
        paper = f"{100 * PUBLISHED[cell['arch']]:.1f}" if own and cell["arch"] in PUBLISHED else ""
        cut = "*" if any(run["cut"] for run in runs) else ""
        print(
            f"| {cell['arch']} | {cell['pooling'] or 'own'} | {positions} | {cell['set'] or '-'} | "
            f"{len(runs)}{cut} | "
            f"{spread([run['valid'] for run in runs])} | {spread([run['test'] for run in runs])} | "
            f"{100 * best['test']:.2f} | {paper} |"
        )
    if any(run["cut"] for run in results):
        print("\n\\* some of its runs were ended by the time limit")


def main() -> None:
    """Run the cells that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, "relations")
    parser.add_argument("--arch", nargs="*", default=list(ARCHITECTURES[:4]))
    parser.add_argument(
        "--set", nargs="*", default=[""], help="rows with changes: '' 'model.dropout=0.3'"
    )
    parser.add_argument("--later", nargs="*", default=[], help="rows with changes after all others")
    parser.add_argument(
        "--pooled", nargs="*", default=[], help="architectures for them and --pooling"
    )
    parser.add_argument("--pooling", nargs="*", default=[], choices=POOLINGS)
    parser.add_argument("--positions", nargs="*", type=int, default=[], help="position_size")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--epochs", type=int, default=None, help="fewer than the recipe's")
    parser.add_argument("--train", default="semeval2010-task8:train")
    parser.add_argument("--test", default="semeval2010-task8:test")
    parser.add_argument("--vectors", default=None, help="another file than the recipe's")
    parser.add_argument("--keep", type=Path, help="save the networks in this folder")
    parser.add_argument("--teachers", nargs="*", default=[], help="architectures that teach")
    parser.add_argument("--kept", type=Path, help="the folder they were kept in")
    parser.add_argument("--texts", default=None, help="marked sentences, one a line")
    parser.add_argument("--folds", type=int, default=0, help="parts of the training data")
    options = parser.parse_args()
    if options.folds:
        options.seeds = [seed for seed in options.seeds if seed < options.folds]
        cells = [{**cell, "folds": options.folds} for cell in cells_of(options)]
        show_folds(run_cells(cells, run_fold, options))
    elif options.table:
        show(read_results(options.out))
    else:
        show(run_cells(cells_of(options), run_cell, options))


if __name__ == "__main__":
    main()
