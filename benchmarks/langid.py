"""Which of 52 languages is a snippet of 20 characters in: networks over characters and naive Bayes.

    python benchmarks/langid.py --model naive-bayes-5 cnn gru --seeds 0 1 2
    python benchmarks/langid.py --out langid --table

Everything is learned from articles 1 to 22 of the Declaration of Human Rights, chosen on articles
23 to 25 and measured, once, on articles 26 to 30.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.naive_bayes import MultinomialNB

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
from seqloom.data import open_dataset
from seqloom.data.datasets.declaration import read_snippets
from seqloom.data.datasets.store import dataset_file
from seqloom.tasks.estimator import merge
from seqloom.tasks.recipe import load_recipe

ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01)
NAME = "udhr-langid"
BAYES = "naive-bayes-"
RECIPE = "udhr-langid"
LENGTHS = (10, 20, 50)
RECURRENT = {"embed_size": 64, "hidden_size": 128, "hidden_sizes": (), "dropout": 0.4}

Texts = tuple[list[str], list[str]]
Predict = Callable[[list[str]], Any]


def snippets(part: str, characters: int | None = None) -> Texts:
    """Texts and labels of a part; of another length than the data set's own if wanted."""
    if characters is None:
        found = open_dataset(NAME, part, variant="snippets")
    else:
        archive = dataset_file(NAME, "udhr2-52langs.tar")
        found = read_snippets(archive, part=part, characters=characters)
    examples = list(found)
    return [e.text for e in examples], [e.label for e in examples]


def naive_bayes(n: int) -> Predict:
    """Counts of runs of up to n characters; how much each is raised is chosen on validation."""
    train, valid = snippets("train"), snippets("valid")
    vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, n), lowercase=False)
    x, checked = vectorizer.fit_transform(train[0]), vectorizer.transform(valid[0])
    models = [MultinomialNB(alpha=alpha).fit(x, train[1]) for alpha in ALPHAS]
    best = max(models, key=lambda model: model.score(checked, valid[1]))
    return lambda texts: best.predict(vectorizer.transform(texts))


def network(cell: Cell, limit: TimeLimit) -> Predict:
    """The shipped recipe, or a recurrent network of a cell with the same settings of training."""
    recipe = load_recipe(RECIPE, cell["set"].split())
    training = merge(recipe.training, {"seed": cell["seed"], "device": device()})
    if cell["epochs"]:
        training["epochs"] = cell["epochs"]
    arch, options = recipe.arch, recipe.model
    if cell["model"] != recipe.arch:
        arch, options = "blstm", {"cell": cell["model"], **RECURRENT}
    model = Classifier(arch, **recipe.settings, training=training, **options)
    model.fit(recipe.data.train, valid=recipe.data.valid, callbacks=[limit])
    to_device(model.model_)
    predict: Predict = model.predict
    return predict


def run_cell(cell: Cell, limit: TimeLimit) -> Result:
    """Fit one model and measure it; the test data is read here and nowhere else."""
    name = cell["model"]
    is_bayes = name.startswith(BAYES)
    predict = naive_bayes(int(name.removeprefix(BAYES))) if is_bayes else network(cell, limit)
    valid, test = snippets("valid"), snippets("test")
    found = predict(test[0])
    by_length = {}
    for length in LENGTHS:
        texts, labels = snippets("test", length)
        by_length[str(length)] = accuracy_score(labels, predict(texts))
    return {
        "valid": accuracy_score(valid[1], predict(valid[0])),
        "test": accuracy_score(test[1], found),
        "macro_f1": f1_score(test[1], found, average="macro"),
        "by_length": by_length,
        "confused": pairs(found, test[1]),
    }


def pairs(found: Any, labels: list[str], count: int = 5) -> str:
    """The languages that are taken for each other most often."""
    wrong = Counter(tuple(sorted((a, b))) for a, b in zip(found, labels, strict=True) if a != b)
    return ", ".join(f"{a} and {b} ({n})" for (a, b), n in wrong.most_common(count))


def show(results: list[Result]) -> None:
    """Print a row a model."""
    lengths = " | ".join(f"test, {length} characters" for length in LENGTHS)
    print(f"| model | changed | seeds | valid | test | macro F1 | {lengths} | seconds |")
    print("|" + "---|" * (7 + len(LENGTHS)))
    for runs in grouped(results).values():
        cell = runs[0]["cell"]
        figures = [spread([run[name] for run in runs]) for name in ("valid", "test", "macro_f1")]
        figures += [
            f"{100 * np.mean([run['by_length'][str(n)] for run in runs]):.1f}" for n in LENGTHS
        ]
        seconds = np.mean([run["seconds"] for run in runs])
        cut = "*" if any(run["cut"] for run in runs) else ""
        print(
            f"| {cell['model']} | {cell['set'] or '-'} | {len(runs)}{cut} | "
            f"{' | '.join(figures)} | {seconds:.0f} |"
        )
    for result in results:
        print(f"\n{result['cell']['model']}, seed {result['cell']['seed']}: {result['confused']}")


def main() -> None:
    """Run the cells that are missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, "langid")
    parser.add_argument("--model", nargs="*", default=[f"{BAYES}3", f"{BAYES}5", "cnn"])
    parser.add_argument("--set", nargs="*", default=[], help="further rows of the recipe")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--epochs", type=int, default=None)
    options = parser.parse_args()
    rows = [(model, "") for model in options.model]
    rows += [("cnn", changes) for changes in options.set]
    cells = [
        {"model": model, "set": changes, "seed": seed, "epochs": options.epochs}
        for model, changes in rows
        for seed in (options.seeds[:1] if model.startswith(BAYES) else options.seeds)
    ]
    show(read_results(options.out) if options.table else run_cells(cells, run_cell, options))


if __name__ == "__main__":
    main()
