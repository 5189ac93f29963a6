"""Classifiers that read words in order beside a bag of words, on the sentences of SST-2.

    SEQLOOM_DATA=... python benchmarks/classification.py --arch att-blstm

Each takes about a minute on one core. The oracle is scikit-learn's logistic regression over tf-idf,
its strength chosen on the validation sentences; the networks begin with GloVe and stop by the same
sentences.
"""

from __future__ import annotations

import argparse
import time

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from seqloom import Classifier
from seqloom.data.inputs import read_input

ARCHITECTURES = ("brnn", "blstm", "att-blstm", "cnn", "joint-attention", "transformer")
OPTIONS = {"word_dropout": 0.1, "embedding_dropout": 0.3}


def sentences(split: str) -> tuple[list[str], list[str]]:
    examples = list(read_input(f"sst:{split}", "labeled"))
    return [e.text for e in examples], [e.label for e in examples]


def bag_of_words() -> float:
    train, valid, test = (sentences(split) for split in ("train", "valid", "test"))
    found = []
    for strength in (1, 3, 10, 30):
        model = make_pipeline(
            TfidfVectorizer(token_pattern=r"\S+"), LogisticRegression(C=strength, max_iter=1000)
        ).fit(*train)
        found.append((model.score(*valid), model.score(*test)))
    return max(found)[1]


def in_order(arch: str, epochs: int, seed: int) -> dict[str, float]:
    model = Classifier(
        arch,
        text={"unit": "space"},
        vectors="glove-6b-100d-subset",
        training={"epochs": epochs, "patience": 3, "seed": seed, "device": "cpu"},
        **OPTIONS,
    )
    model.fit("sst:train", valid="sst:valid")
    return model.evaluate("sst:test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="*", default=["tf-idf", *ARCHITECTURES])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| model | test accuracy | expected calibration error | seconds |\n|---|---|---|---|")
    for arch in given.arch:
        began = time.monotonic()
        if arch == "tf-idf":
            accuracy, error = bag_of_words(), float("nan")
        else:
            found = in_order(arch, given.epochs, given.seed)
            accuracy, error = found["accuracy"], found["ece"]
        seconds = time.monotonic() - began
        print(f"| {arch} | {accuracy:.4f} | {error:.3f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
