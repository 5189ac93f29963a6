"""How many sentences a second a classifier labels: all at once, and one call a sentence.

    python benchmarks/prediction_speed.py --threads 2

The networks have the sizes of the recipes and one short pass of training behind them; what they say
does not matter here. The sentences are those of SST, read again until there are enough. Every call
goes the whole way from text to label. On a machine that others use, `--clock cpu` counts the time
the processor spent here.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from statistics import median

import torch

from seqloom import Classifier, RelationClassifier
from seqloom.data import open_dataset
from seqloom.data.inputs import read_input
from seqloom.data.relations import mark

SIZES = {"cnn": {"num_maps": 100}, "brnn": {}, "blstm": {}, "att-blstm": {}, "joint-attention": {}}
ALONE = 500  # calls of one sentence that are timed


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def row(
    name: str,
    predict: Callable[[list[str]], object],
    texts: list[str],
    options: argparse.Namespace,
) -> None:
    """Time both ways and print them."""
    clock = CLOCKS[options.clock]

    def seconds(given: list[str]) -> float:
        began = clock()
        predict(given)
        return clock() - began

    predict(texts[:64])  # what is compiled or cached at first is not timed
    together = median(seconds(texts) for _ in range(options.repeats))
    alone = [seconds([text]) for text in texts[:ALONE]]
    one = sum(alone) / len(alone)
    print(
        f"| {name} | {len(texts) / together:,.0f} | {1 / one:,.0f} | "
        f"{len(texts) * one / together:.1f} | {1000 * median(alone):.2f} | "
        f"{1000 * sorted(alone)[int(0.99 * len(alone))]:.2f} |",
        flush=True,
    )


def main() -> None:
    """Print a row a network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--arch", nargs="*", default=list(SIZES), choices=list(SIZES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    examples = list(read_input("sst:train", "labeled"))
    texts = list(itertools.islice(itertools.cycle(e.text for e in examples), options.sentences))
    training = {"epochs": 1, "max_steps": 20, "device": "cpu"}
    print(f"{options.sentences:,} sentences, {options.threads} threads, {options.clock} time")
    print(
        "| network | all at once, sentences a second | one a call | ratio | one sentence, ms "
        "(median) | (99 of 100) |\n|---|---|---|---|---|---|"
    )
    for arch in options.arch:
        model = Classifier(arch, text={"unit": "space"}, training=training, **SIZES[arch])
        model.fit([e.text for e in examples], [e.label for e in examples])
        row(arch, model.predict, texts, options)
    relations = list(open_dataset("semeval2010-task8", "train"))
    related = RelationClassifier("att-blstm", training=training).fit(relations)
    marked = [mark(each.text, each.first, each.second) for each in relations]
    texts = list(itertools.islice(itertools.cycle(marked), options.sentences))
    row("att-blstm, relations", related.predict, texts, options)


if __name__ == "__main__":
    main()
