"""SST-2's CNN taught by other models, with sentences of IMDb's reviews beside SST's phrases.

    python benchmarks/teaching.py --out teaching
    python benchmarks/teaching.py --out teaching --seeds 0 1 2 --test

A teacher is trained by its recipe, unless it lies in `--out` already; several are averaged. A
phrase of SST has half of its label and half of what the teacher says; a sentence of a review what
the teacher says, with the odds of its review's label multiplied by e: a sentence of a good review
is more likely to praise (Hinton et al. 2015; Tang et al. 2019). The student is the CNN of its
recipe, with one pass in place of two, and runs twice through all of it; students lie in `--out`
too. Validation is printed; the test set is read with `--test` alone.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom import Classifier
from seqloom.data.examples import LabeledText
from seqloom.data.inputs import read_input
from seqloom.tasks.recipe import load_recipe
from seqloom.text import TextConfig, TextPipeline
from seqloom.text.sentences import split_sentences

TEACHERS = ("joint-attention:0",)  # with its seed
CHANGES = (
    "training.epochs=2",
    "training.patience=100",
    "training.schedule.name=cosine",
    "model.consistency=0.0",
)
SHORTEST, LONGEST = 4, 30  # words of a sentence
PENN = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-"}


def teacher(name: str, out: Path, device: str) -> Classifier:
    """A model of SST's phrases, trained here unless it was."""
    arch, _, seed = name.partition(":")
    place = out / f"{arch}-{seed}"
    if (place / "seqloom.json").exists():
        return Classifier.load(place)
    plan = load_recipe(f"sst-{arch}", [])
    model = plan.estimator(seed=int(seed), device=device)
    model.fit(plan.data.train, valid=plan.data.valid, out=place)
    return model


def sentences(name: str) -> Iterator[tuple[str, str]]:
    """Different sentences of reviews as SST writes them, and the labels of their reviews."""
    pipeline = TextPipeline(TextConfig(unit="word", language="en"))
    seen = set()
    for review in read_input(name, "labeled"):
        assert isinstance(review, LabeledText)
        for sentence in split_sentences(review.text.replace("<br />", "\n"), "en"):
            words = pipeline.words(sentence.text)
            if not SHORTEST <= len(words) <= LONGEST:
                continue
            found = " ".join(_as_in_penn(words))
            if found not in seen:
                seen.add(found)
                yield found, review.labels[0]


def _as_in_penn(words: Sequence[str]) -> Iterator[str]:
    """Brackets and quotation marks as the treebank writes them."""
    is_open = False
    for word in words:
        if word == '"':
            is_open = not is_open
            yield "``" if is_open else "''"
        else:
            yield PENN.get(word, word)


def log_odds(teachers: Sequence[Classifier], texts: Sequence[str]) -> NDArray[np.float64]:
    """The log-odds of "1" by the mean probability of several models."""
    found = [
        model.predict_proba(texts)[:, model.classes_.tolist().index("1")] for model in teachers
    ]
    mean = np.clip(np.mean(found, axis=0), 1e-6, 1 - 1e-6)
    odds: NDArray[np.float64] = np.log(mean / (1 - mean))
    return odds


def shares(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of log-odds."""
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
    return chances


def examples(args: argparse.Namespace, train: str) -> tuple[list[str], list[dict[str, float]]]:
    """Phrases and sentences with the probabilities of their labels."""
    teachers = [teacher(name, args.out, args.device) for name in args.teachers]
    phrases = [each for each in read_input(train, "labeled") if isinstance(each, LabeledText)]
    texts = [each.text for each in phrases]
    said = shares(log_odds(teachers, texts))
    true = np.array([each.labels[0] == "1" for each in phrases])
    chances = (1 - args.share) * true + args.share * said
    more = list(sentences("imdb:train"))
    random.Random(0).shuffle(more)
    more = more[: args.sentences]
    print(f"{len(phrases):,} phrases, {len(more):,} sentences", flush=True)
    signs = np.array([1.0 if label == "1" else -1.0 for _, label in more])
    others = [text for text, _ in more]
    chances = np.concatenate(
        [chances, shares(log_odds(teachers, others) + args.prior * signs)]
    )  # fmt: skip
    return [*texts, *others], [{"1": p, "0": 1 - p} for p in chances.tolist()]


def main() -> None:
    """Teach and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="for teachers and results")
    parser.add_argument("--teachers", nargs="+", default=TEACHERS, help="as blstm:0")
    parser.add_argument("--sentences", type=int, default=240_000, help="of reviews, at most")
    parser.add_argument("--share", type=float, default=0.5, help="of the teachers in a phrase's")
    parser.add_argument("--prior", type=float, default=1.0, help="log-odds of a review's label")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", nargs="*", default=[], help="settings, as training.epochs=2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--test", action="store_true", help="measure on test as well")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    plan = load_recipe("sst-cnn", [*CHANGES, *args.set])
    data: tuple[list[str], list[dict[str, float]]] | None = None
    for seed in args.seeds:
        place = args.out / f"cnn-{seed}"
        if not (place / "seqloom.json").exists():
            data = examples(args, str(plan.data.train)) if data is None else data
            student: Any = plan.estimator(seed=seed, device=args.device)
            student.fit(*data, valid=plan.data.valid, out=place)
        model = Classifier.load(place)
        found = {
            "seed": seed,
            "valid": model.metrics_["valid_accuracy"],
            "valid_loss": model.metrics_["valid_loss"],
            "updates": model.provenance_["updates"],
            "seconds": model.provenance_["seconds"],
        }
        if args.test:
            found["test"] = model.evaluate(plan.data.test)["accuracy"]
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
