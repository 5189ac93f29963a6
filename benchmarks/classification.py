"""Networks that read words in order beside a bag of words, over data sets, architectures and seeds.

    python benchmarks/classification.py --data sst --arch tf-idf cnn blstm --seeds 0 1 2
    python benchmarks/classification.py --out classification --table

The settings are those of the recipes. The oracle is scikit-learn's logistic regression over tf-idf
of the same words in runs of one and two (characters: up to three), trained on the same examples,
its strength chosen on the same validation data. "Chosen" is the test figure of the seed that is
best on validation.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
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
from seqloom import Classifier
from seqloom.config import from_dict
from seqloom.data.inputs import read_input
from seqloom.tasks.estimator import merge
from seqloom.tasks.recipe import Recipe, load_recipe, shipped_recipes, with_needed
from seqloom.text import TextConfig, TextPipeline

DATA = {"sst": "blstm", "imdb": "blstm", "chnsenticorp": "cnn", "thucnews": "cnn"}
"""Each with the architecture whose recipe another one without its own takes."""
LENGTHS = (0, 100, 200, 400, 800, 10**9)
STRENGTHS = (1, 3, 10, 30, 100)


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a cell's data and architecture, or the one whose text and training it takes."""
    name = f"{cell['data']}-{cell['arch']}"
    if name not in shipped_recipes():
        name = f"{cell['data']}-{DATA[cell['data']]}"
    return load_recipe(name, cell["set"].split())


def read(source: str) -> tuple[list[str], list[str]]:
    """Texts and labels."""
    examples = list(read_input(source, "labeled"))
    return [example.text for example in examples], [example.label for example in examples]


def bag_of_words(cell: Cell) -> Result:
    """Logistic regression; its strength is the best on validation."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    recipe = recipe_of(cell)
    text = from_dict(TextConfig, recipe.settings["text"])
    longest = 3 if text.unit == "character" else 2
    texts, labels = read(recipe.data.train)
    if recipe.data.valid is None:
        share, seed = recipe.settings.get("valid_share", 0.1), cell["seed"]
        texts, kept, labels, checked = train_test_split(
            texts, labels, test_size=share, random_state=seed, stratify=labels
        )
    else:
        kept, checked = read(recipe.data.valid)
    vectorizer = TfidfVectorizer(
        tokenizer=TextPipeline(text).words,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, longest),
        sublinear_tf=True,
    )
    x = vectorizer.fit_transform(texts)
    valid = vectorizer.transform(kept)
    models = [LogisticRegression(C=c, max_iter=1000).fit(x, labels) for c in STRENGTHS]
    best = max(models, key=lambda model: model.score(valid, checked))
    return measured(
        lambda given: best.predict(vectorizer.transform(given)),
        recipe,
        {"valid": float(best.score(valid, checked)), "strength": best.C},
    )


def network(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one model and measure it."""
    recipe = recipe_of(cell)
    if recipe.needs():
        recipe = with_needed(recipe, Path(cell["models"]))
    model: dict[str, Any] = dict(recipe.model)
    if recipe.arch != cell["arch"]:
        shared = ("dropout", "embedding_dropout", "word_dropout")
        model = {name: model[name] for name in shared if name in model}
    for name in ("pooling", "identity_weight"):
        if cell[name] is not None:
            model[name] = cell[name]
    own = {**recipe.settings}
    if cell["vectors"] and "vectors" in own:
        own["vectors"] = cell["vectors"]
    changes = {"seed": cell["seed"], "device": device()}
    if cell["epochs"]:
        changes["epochs"] = cell["epochs"]
    training = merge(recipe.training, changes)
    classifier = Classifier(cell["arch"], **own, training=training, **model)
    classifier.fit(recipe.data.train, valid=recipe.data.valid, callbacks=[limit])
    facts = {
        "valid": classifier.metrics_["valid_accuracy"],
        "epochs": classifier.provenance_["epochs"],
    }
    to_device(classifier.model_)
    return measured(classifier.predict, recipe, facts)


def measured(predict: Any, recipe: Recipe, facts: dict[str, Any]) -> Result:
    """Accuracy on the test data, in all and by the length of the text."""
    assert recipe.data.test is not None
    texts, labels = read(recipe.data.test)
    right = np.asarray(predict(texts)) == np.asarray(labels)
    pipeline = TextPipeline(from_dict(TextConfig, recipe.settings["text"]))
    lengths = np.array([len(pipeline.words(text)) for text in texts])
    by_length = []
    for least, most in pairwise(LENGTHS):
        inside = (lengths > least) & (lengths <= most)
        if inside.any():
            by_length.append([least + 1, int(inside.sum()), float(right[inside].mean())])
    return {**facts, "test": float(right.mean()), "by_length": by_length}


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Run one cell; the test data is read here and nowhere else."""
    return bag_of_words(cell) if cell["arch"] == "tf-idf" else network(cell, limit)


def with_models(cells: list[Cell], options: argparse.Namespace) -> list[Cell]:
    """The cells, those of taught networks with the folder of their teachers, which are fitted."""
    found = []
    for cell in cells:
        more = {}
        if cell["arch"] != "tf-idf" and recipe_of(cell).needs():
            with_needed(
                recipe_of(cell),
                options.out,
                print,
                lambda one: one.estimator(device=options.device),
            )
            more = {"models": str(options.out)}
        found.append({**cell, **more})
    return found


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """All cells that were asked for, seed by seed."""
    rest = {"epochs": options.epochs, "vectors": options.vectors}
    plain = {"pooling": None, "identity_weight": None}
    rows = [(data, arch, plain) for data in options.data for arch in options.arch]
    for data in options.data:
        for arch in options.arch:
            others = [{**plain, "pooling": pooling} for pooling in options.pooling]
            if arch == "joint-attention":
                others += [{**plain, "identity_weight": each} for each in options.identity]
            rows += [(data, arch, other) for other in others if arch != "tf-idf"]
    return [
        {"data": data, "arch": arch, "seed": seed, "set": changes, **row, **rest}
        for seed in options.seeds
        for changes in options.set
        for data, arch, row in rows
        if arch != "tf-idf" or (seed, changes) == (options.seeds[0], options.set[0])
    ]


def show(results: list[Result]) -> None:
    """Print a row a data set, architecture and pooling, and accuracy by length."""
    rows = list(grouped(results).values())
    print("| data | model | seeds | valid | test accuracy | chosen | seconds |")
    print("|---|---|---|---|---|---|---|")
    for runs in rows:
        cell, best = runs[0]["cell"], max(runs, key=lambda run: run["valid"])
        cut = "*" if any(run["cut"] for run in runs) else ""
        print(
            f"| {cell['data']} | {name_of(cell)} | {len(runs)}{cut} | "
            f"{spread([run['valid'] for run in runs])} | {spread([run['test'] for run in runs])} | "
            f"{100 * best['test']:.2f} | {np.mean([run['seconds'] for run in runs]):.0f} |"
        )
    if any(run["cut"] for run in results):
        print("\n\\* some of its runs were ended by the time limit")
    long = [runs for runs in rows if len(runs[0]["by_length"]) == len(LENGTHS) - 1]
    if long:
        heads = [f"from {begin} ({count})" for begin, count, _ in long[0][0]["by_length"]]
        print("\n| data | model, accuracy by words of a text | " + " | ".join(heads) + " |")
        print("|---" * (2 + len(heads)) + "|")
    for runs in long:
        means = np.mean([[part[2] for part in run["by_length"]] for run in runs], axis=0)
        figures = " | ".join(f"{100 * mean:.2f}" for mean in means)
        cell = runs[0]["cell"]
        print(f"| {cell['data']} | {name_of(cell)} | {figures} |")


def name_of(cell: Cell) -> str:
    """How a table calls it."""
    more = []
    if cell["pooling"] is not None:
        more.append(cell["pooling"])
    if cell["identity_weight"] is not None:
        more.append(f"identity_weight {cell['identity_weight']:g}")
    if cell["set"]:
        more.append(cell["set"])
    return ", ".join([cell["arch"], *more])


def main() -> None:
    """Run the cells that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, "classification")
    parser.add_argument("--data", nargs="*", default=["sst"], choices=list(DATA))
    parser.add_argument("--arch", nargs="*", default=["tf-idf", "cnn", "blstm", "joint-attention"])
    parser.add_argument("--pooling", nargs="*", default=[], help="other than the recipe's")
    parser.add_argument(
        "--identity", nargs="*", type=float, default=[], help="other weights of the penalty"
    )
    parser.add_argument(
        "--set", nargs="*", default=[""], help="rows with changes: '' 'model.dropout=0.3'"
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--epochs", type=int, default=None, help="fewer than the recipe's")
    parser.add_argument("--vectors", default=None, help="another file than the recipe's")
    options = parser.parse_args()
    if options.table:
        show(read_results(options.out))
    else:
        show(run_cells(with_models(cells_of(options), options), run_cell, options))


if __name__ == "__main__":
    main()
