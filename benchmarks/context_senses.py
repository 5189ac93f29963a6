"""Words in context, looked at: senses of `bank`, neighbours of words never seen, linear probes."""

from __future__ import annotations

import argparse
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom import Embedder
from seqloom.data.inputs import read_input
from seqloom.explain.context import linear_probe, nearest_in_context, sense_accuracy
from seqloom.figures import grouped_bars, save
from seqloom.tasks.corpus import text_examples
from seqloom.tasks.pretrained import open_vectors
from seqloom.text.pipeline import TextConfig, TextPipeline
from seqloom.text.sentences import split_sentences

SOURCES = ("brown:all:text", "squad-v1.1:valid:passages", "wikitext-2:valid:known",
           "squad-v1.1:train:passages", "wikitext-2:train:known")  # fmt: skip
WORD = ("bank", "banks")
RIVER = re.compile(
    r"\b(rivers?|streams?|creeks?|canals?|bridges?|shore|downstream|upstream|flood\w*|boats?|water|"
    r"opposite|muddy|swam|Rhine|Seine|Thames|Danube|Nile|Tiber|Yangtze|Meuse|Vistula|Elbe)\b",
    re.IGNORECASE,
)
MONEY = re.compile(
    r"\b(money|loans?|deposits?|accounts?|credit|mortgages?|investment|financ\w*|capital|debt|"
    r"interest|savings|commercial|investors?|cash|checks?|dollars?|securities|fund\w*|robb\w*)\b",
    re.IGNORECASE,
)
WINDOW = 5  # words on each side for the mean of static vectors
UNSEEN = ("books", "booked", "bookish", "unbookable", "recieve", "goverment", "Portugese",
          "coöperation", "googled", "tokenizer")  # fmt: skip


class Occurrence(NamedTuple):
    """A word in a sentence, and which sense the rule gives it."""

    words: list[str]
    place: int
    sense: str


def occurrences(pipeline: TextPipeline, most: int) -> list[Occurrence]:
    """Occurrences of the word, in the order of the sources, as many of each sense.

    The rule: a sentence with one of the words of a river and none of money is "river", one with a
    word of money and none of a river is "money"; others are left out, and so are sentences that
    have the word twice.
    """
    found: dict[str, list[Occurrence]] = {"river": [], "money": []}
    for source in SOURCES:
        for example in text_examples(source):
            if "bank" not in example.text:
                continue
            for sentence in split_sentences(example.text, "en"):
                words = pipeline.words(sentence.text)
                places = [i for i, word in enumerate(words) if word in WORD]
                senses = [bool(RIVER.search(sentence.text)), bool(MONEY.search(sentence.text))]
                if len(places) == 1 and sum(senses) == 1:
                    sense = "river" if senses[0] else "money"
                    found[sense].append(Occurrence(words, places[0], sense))
    count = min(most // 2, *map(len, found.values()))
    return [one for rows in found.values() for one in rows[:count]]


def senses(options: argparse.Namespace) -> None:
    """How often the nearest occurrence of `bank` has the same sense, by layer and by statics."""
    embedder = Embedder.load(options.model)
    given = occurrences(TextPipeline(TextConfig(language="en")), 120)
    labels = [one.sense for one in given]
    read = list(embedder.embed_sentences(one.words for one in given))
    layers = np.stack([r.layers[:, o.place] for r, o in zip(read, given, strict=True)], axis=1)
    scores = {f"layer {k}": sense_accuracy(each, labels) for k, each in enumerate(layers)}
    scores["mean of the layers"] = sense_accuracy(layers.mean(axis=0), labels)
    static = open_vectors(options.vectors)
    own = static.select([one.words[one.place] for one in given])[0]
    scores["static vector of the word"] = sense_accuracy(own, labels)
    around = np.stack([_around(static, one) for one in given])
    scores[f"mean of {2 * WINDOW} static vectors around it"] = sense_accuracy(around, labels)
    print(f"{len(given)} occurrences of {' or '.join(WORD)}, {labels.count('river')} of a river")
    print("| vectors | accuracy of the nearest |\n|---|---|")
    for name, value in scores.items():
        print(f"| {name} | {value:.1%} |")
    best = layers[-1]
    for place in (0, len(given) - 1):
        print(f"\n{_shown(given[place])} ({given[place].sense})")
        for near, cosine in nearest_in_context(best, place, 3):
            print(f"  {cosine:.3f} {_shown(given[near])} ({given[near].sense})")
    if options.picture is not None:
        save(grouped_bars({"accuracy": scores}, horizontal=True, label="share"), options.picture)


def _around(static: Any, one: Occurrence) -> NDArray[np.float64]:
    begin = max(0, one.place - WINDOW)
    near = one.words[begin : one.place] + one.words[one.place + 1 : one.place + 1 + WINDOW]
    rows, found = static.select(near, lowercase=True)
    mean: NDArray[np.float64] = rows[found].mean(axis=0) if found.any() else rows.sum(axis=0)
    return mean


def _shown(one: Occurrence) -> str:
    left, right = one.words[max(0, one.place - 7) : one.place], one.words[one.place + 1 :][:6]
    return f"... {' '.join(left)} [{one.words[one.place]}] {' '.join(right)} ..."


def neighbours(options: argparse.Namespace) -> None:
    """The nearest words by characters alone; words that were never seen have some too."""
    embedder = Embedder.load(options.model)
    print("| word | listed | nearest by its characters |\n|---|---|---|")
    for word in UNSEEN:
        near = ", ".join(f"{other} {cosine:.2f}" for other, cosine in embedder.nearest(word, 6))
        print(f"| {word} | {'yes' if word in embedder.vocabulary_ else 'no'} | {near} |")


def probe(options: argparse.Namespace) -> None:
    """How well one linear map reads parts of speech off each layer, and off static vectors."""
    embedder = Embedder.load(options.model)
    static = open_vectors(options.vectors)
    parts: list[tuple[list[NDArray[np.float32]], list[str], NDArray[np.float32]]] = []
    for split, most in (("train", options.sentences), ("test", 500)):
        tagged = list(read_input(f"ud-english-ewt:{split}:upos", "tagged"))[:most]
        read = list(embedder.embed_sentences(list(one.tokens) for one in tagged))
        layers = np.concatenate([each.layers for each in read], axis=1)
        tags = [tag for one in tagged for tag in one.tags]
        words = [word for one in tagged for word in one.tokens]
        parts.append((list(layers), tags, static.select(words, lowercase=True)[0]))
    (train, tags, words), (test, actual, others) = parts
    print(f"parts of speech: {len(tags):,} words to learn from, {len(actual):,} of the test set")
    print("| vectors | accuracy |\n|---|---|")
    for k, (x, z) in enumerate(zip(train, test, strict=True)):
        found = linear_probe(x, tags, z, actual)
        print(f"| layer {k} | {found.accuracy:.1%} |")
    print(f"| static | {linear_probe(words, tags, others, actual).accuracy:.1%} |")
    print(f"| most frequent | {found.majority:.1%} |")
