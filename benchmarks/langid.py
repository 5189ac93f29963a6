"""Which of 52 languages is a snippet of 20 characters in: networks over characters and naive Bayes.

python benchmarks/langid.py --arch cnn gru

Everything is learned from articles 1 to 22 of the Declaration of Human Rights, chosen on articles
23 to 25 and measured, once, on articles 26 to 30.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.naive_bayes import MultinomialNB

from seqloom import Classifier
from seqloom.data import open_dataset
from seqloom.data.datasets.declaration import read_snippets
from seqloom.data.datasets.store import dataset_file
from seqloom.tasks.recipe import load_recipe

ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01)
NAME = "udhr-langid"


def snippets(part, characters=None):
    """Texts and labels of a part; of another length than the data set's own if wanted."""
    if characters is None:
        found = open_dataset(NAME, part)
    else:
        archive = dataset_file(NAME, "udhr2-52langs.tar")
        found = read_snippets(archive, part=part, characters=characters)
    examples = list(found)
    return [e.text for e in examples], [e.label for e in examples]


def naive_bayes(n, train, valid):
    """Counts of runs of up to n characters; how much each is raised is chosen on `valid`."""
    vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, n), lowercase=False)
    x, checked = vectorizer.fit_transform(train[0]), vectorizer.transform(valid[0])
    models = [MultinomialNB(alpha=alpha).fit(x, train[1]) for alpha in ALPHAS]
    best = max(models, key=lambda model: model.score(checked, valid[1]))
    return lambda texts: best.predict(vectorizer.transform(texts)), f"alpha {best.alpha}"


def network(name, epochs, train, valid):
    """The shipped recipe, or a recurrent network of a cell with the same settings of training."""
    recipe = load_recipe("udhr-langid")
    training = {**recipe.training, **({"epochs": epochs} if epochs else {})}
    arch, options = recipe.arch, recipe.model
    if name != recipe.arch:
        arch = "blstm"
        options = {"cell": name, "embed_size": 32, "hidden_size": 64, "hidden_sizes": ()}
    model = Classifier(arch, **recipe.settings, training=training, **options)
    model.fit(*train, valid=valid)
    return model.predict, f"{model.provenance_['epochs']} epochs"


def pairs(predict, texts, labels, count=5):
    """The languages that are taken for each other most often."""
    wrong = Counter(
        tuple(sorted((a, b))) for a, b in zip(predict(texts), labels, strict=True) if a != b
    )
    return ", ".join(f"{a} and {b} ({n})" for (a, b), n in wrong.most_common(count))


def main():
    """Fit each and print a row a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="*", default=["cnn"], help="cnn, rnn, lstm or gru")
    parser.add_argument("--bayes", nargs="*", type=int, default=[1, 3, 5], help="longest runs")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--lengths", nargs="*", type=int, default=[10, 20, 50])
    options = parser.parse_args()
    train, valid, test = (snippets(part) for part in ("train", "valid", "test"))
    tests = {n: snippets("test", n) for n in options.lengths}
    ways = {
        f"naive Bayes, {n}-grams": (lambda n=n: naive_bayes(n, train, valid)) for n in options.bayes
    }
    ways |= {a: (lambda a=a: network(a, options.epochs, train, valid)) for a in options.arch}
    print(f"{len(train[0]):,} / {len(valid[0]):,} / {len(test[0]):,} snippets of 20 characters")
    lengths = " | ".join(f"accuracy at {n}" for n in tests)
    print(f"| model | valid | test accuracy | macro F1 | {lengths} | seconds | |")
    print("|" + "---|" * (6 + len(tests)))
    confused = {}
    for name, fit in ways.items():
        began = time.perf_counter()
        predict, detail = fit()
        seconds = time.perf_counter() - began
        found = predict(test[0])
        figures = [
            accuracy_score(valid[1], predict(valid[0])),
            accuracy_score(test[1], found),
            f1_score(test[1], found, average="macro"),
            *(accuracy_score(labels, predict(texts)) for texts, labels in tests.values()),
        ]
        row = " | ".join(f"{100 * value:.2f}" for value in figures)
        print(f"| {name} | {row} | {seconds:.0f} | {detail} |", flush=True)
        confused[name] = pairs(predict, *test)
    for name, listed in confused.items():
        print(f"\n{name}: {listed}")
    counts = np.bincount(np.unique(test[1], return_inverse=True)[1])
    print(f"\nsnippets of a language in the test: {counts.min()} to {counts.max()}")


if __name__ == "__main__":
    main()
