"""The grammar beside n-grams and an LSTM on the Penn Treebank sample: perplexity and time.

    python benchmarks/grammar.py [--choose N] [--min-count N] [--no-lstm]

The first nine tenths of the trees are for training, the last tenth is for the test. All models
read the same words with the same vocabulary, an unknown word being one word. The grammar's orders
and the weights of the mixture are chosen on the last tenth of the training part, by models fitted
to the rest of it; then all are fitted to the whole training part. The LSTM is trained for a fixed,
short time.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

from seqloom import LanguageModel, mix
from seqloom.data.datasets import open_dataset
from seqloom.data.examples import Tree
from seqloom.grammar import sentences

ORDERS = [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]  # vertical, horizontal
LSTM: dict[str, Any] = {
    "hidden_size": 200,
    "num_layers": 1,
    "dropout": 0.5,
    "window": 20,
    "training": {
        "epochs": 8,
        "clip_norm": 0.25,
        "optimizer": {"name": "sgd", "rate": 20.0},
        "schedule": {"name": "step", "factor": 0.5, "after": 5},
        "batch": {"batch_size": 20},
    },
}


def texts(trees: Sequence[Tree]) -> list[str]:
    return [" ".join(words) for words in sentences(trees)]


def pcfg(trees: Sequence[Tree], options: dict[str, Any], orders: tuple[int, int]) -> LanguageModel:
    vertical, horizontal = orders
    model = LanguageModel("pcfg", vertical=vertical, horizontal=horizontal, **options)
    return model.fit(trees)


def trigram(train: list[str], options: dict[str, Any], order: int = 3) -> LanguageModel:
    return LanguageModel("ngram", order=order, **options).fit(train)


def timed(name: str, model: LanguageModel, test: list[str], fitting: float) -> None:
    began = time.monotonic()
    found = model.evaluate(test)
    seconds = (time.monotonic() - began) / len(test)
    print(
        f"| {name} | {found['perplexity']:.1f} | {fitting:.1f} | {1000 * seconds:.2f} |", flush=True
    )


def choose(
    trees: list[Tree], options: dict[str, Any], number: int | None
) -> tuple[tuple[int, int], tuple[float, ...]]:
    """The orders that are best on the last tenth of the training part, and a mixture's weights."""
    cut = len(trees) * 9 // 10
    held_out = texts(trees[cut:])[:number]
    print(f"\nChosen on {len(held_out)} sentences\n\n| vertical | horizontal | perplexity |")
    print("|---|---|---|")
    found = {}
    for orders in ORDERS:
        found[orders] = pcfg(trees[:cut], options, orders)
        value = found[orders].evaluate(held_out)["perplexity"]
        found[orders].metrics_["held_out"] = value
        print(f"| {orders[0]} | {orders[1]} | {value:.1f} |", flush=True)
    best = min(ORDERS, key=lambda orders: found[orders].metrics_["held_out"])
    counted = trigram(texts(trees[:cut]), options)
    print("\n| model | perplexity of known words | of unknown words |\n|---|---|---|")
    apart("trigram", counted, held_out)
    apart("pcfg, vertical 2, horizontal 1", found[2, 1], held_out)
    mixed = mix([counted, found[best]], held_out)
    return best, tuple(mixed.engine_.config()["weights"])


def apart(name: str, model: LanguageModel, held_out: list[str]) -> None:
    """How likely a model finds known words, ends included, and how likely unknown ones."""
    logs: dict[bool, list[float]] = {False: [], True: []}
    for score in model.score(held_out):
        for value, is_unknown in zip(score.log_probs, score.unknown, strict=True):
            logs[is_unknown].append(value)
    known, unknown = (math.exp(-sum(each) / len(each)) for each in logs.values())
    print(f"| {name} | {known:.1f} | {unknown:.1f} |", flush=True)


def parse_times(model: LanguageModel, test: list[str]) -> None:
    grammar = model.model_
    print("\n| words | score, seconds | best tree, seconds |\n|---|---|---|")
    for length in (10, 20, 40):
        words = next(text.split() for text in test if len(text.split()) >= length)[:length]
        ids = model.vocabulary_.encode(words).tolist()
        row = []
        for work in (lambda ids=ids: grammar.score_ids(ids), lambda w=words: grammar.best_tree(w)):
            work()
            took = []
            for _ in range(5):
                began = time.monotonic()
                work()
                took.append(time.monotonic() - began)
            row.append(min(took))
        print(f"| {length} | {row[0]:.3f} | {row[1]:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choose", type=int, help="sentences to choose on; all if not given")
    parser.add_argument("--min-count", type=int, default=2)
    parser.add_argument("--no-lstm", action="store_true")
    given = parser.parse_args()
    trees = list(open_dataset("treebank-sample", "all"))
    cut = len(trees) * 9 // 10
    train, test = texts(trees[:cut]), texts(trees[cut:])
    options: dict[str, Any] = {
        "text": {"unit": "space"},
        "vocabulary": {"min_count": given.min_count},
    }
    orders, weights = choose(trees[:cut], options, given.choose)

    print(f"\n{len(train)} sentences for training, {len(test)} for the test\n")
    print("| model | test perplexity | fitting, seconds | test, milliseconds a sentence |")
    print("|---|---|---|---|")
    began = time.monotonic()
    timed("unigram", trigram(train, options, 1), test, time.monotonic() - began)
    began = time.monotonic()
    counted = trigram(train, options)
    timed("trigram, modified Kneser-Ney", counted, test, time.monotonic() - began)
    if not given.no_lstm:
        began = time.monotonic()
        network = LanguageModel("lstm", **LSTM, **options).fit(train)
        timed(
            f"LSTM of 200, {LSTM['training']['epochs']} epochs",
            network,
            test,
            time.monotonic() - began,
        )
    began = time.monotonic()
    grammar = pcfg(trees[:cut], options, orders)
    fitting = time.monotonic() - began
    assert grammar.vocabulary_ == counted.vocabulary_
    timed(f"pcfg, vertical {orders[0]}, horizontal {orders[1]}", grammar, test, fitting)
    shares = " and ".join(f"{weight:.2f}" for weight in weights)
    mixed = mix([counted, grammar], weights=weights)
    timed(f"trigram and pcfg, weights {shares}", mixed, test, 0.0)
    unknown = grammar.evaluate(test)["unknown"]
    print(f"\n{len(grammar.vocabulary_)} ids; {unknown:.1%} of the test tokens are unknown words")
    for own in {(2, 1), orders}:
        print(f"\nOne sentence at vertical {own[0]}, horizontal {own[1]}, the best of five")
        parse_times(grammar if own == orders else pcfg(trees[:cut], options, own), test)


if __name__ == "__main__":
    main()
