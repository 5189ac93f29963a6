"""Words in context, looked at: senses of a word, neighbours of words never seen, linear probes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom import Embedder
from seqloom.data.inputs import read_input
from seqloom.explain.context import linear_probe, nearest_in_context, sense_accuracy
from seqloom.figures import grouped_bars, save
from seqloom.tasks.corpus import text_examples
from seqloom.tasks.pretrained import open_vectors
from seqloom.tasks.seq2seq_text import read_pairs
from seqloom.text.pipeline import TextConfig, TextPipeline
from seqloom.text.sentences import split_sentences

WINDOW = 5  # words on each side for the mean of static vectors


class Rule(NamedTuple):
    """How occurrences of a word are found, and which of its two senses they have.

    Args:
        words: The word, in all its forms.
        language: Of the texts.
        sources: Where it is looked for, in this order.
        senses: A pattern for each sense; a sentence has it if one pattern matches and one does not.
        vectors: Static ones.
    """

    words: tuple[str, ...]
    language: Literal["en", "zh"]
    sources: tuple[str, ...]
    senses: dict[str, re.Pattern[str]]
    vectors: str


RULES = {
    "bank": Rule(
        ("bank", "banks"),
        "en",
        ("brown:all:text", "squad-v1.1:valid:passages", "wikitext-2:valid:known",
         "squad-v1.1:train:passages", "wikitext-2:train:known"),
        {
            "river": re.compile(
                r"\b(rivers?|streams?|creeks?|canals?|bridges?|shore|downstream|upstream|flood\w*|"
                r"boats?|water|opposite|muddy|swam|Rhine|Seine|Thames|Danube|Nile|Tiber|Yangtze|"
                r"Meuse|Vistula|Elbe)\b",
                re.IGNORECASE,
            ),
            "money": re.compile(
                r"\b(money|loans?|deposits?|accounts?|credit|mortgages?|investment|financ\w*|capital|"
                r"debt|interest|savings|commercial|investors?|cash|checks?|dollars?|securities|"
                r"fund\w*|robb\w*)\b",
                re.IGNORECASE,
            ),
        },
        "glove-6b-100d-subset",
    ),
    "苹果": Rule(
        ("苹果",),
        "zh",
        ("pd199801:train:text", "pd199801:valid:text", "chnsenticorp:train", "chnsenticorp:valid",
         "tatoeba-cmn-eng:train:zh-en", "thucnews-headlines-20k:valid",
         "thucnews-headlines-20k:test"),
        {
            "fruit": re.compile(
                "吃|喝|树|水果|果农|果园|香蕉|梨|橘|柑|葡萄|桃|红|甜|饼|汁|咬|削|篮|斤"
            ),
            "maker": re.compile(
                "手机|电脑|公司|平板|软件|乔布斯|惠普|微软|谷歌|三星|诺基亚|黑莓|商店|笔记本|系统|游戏|"
                "专利|产品|设计|平台|股|新款|[iI][pP](od|ad|hone)|[mM]ac|ThinkPad|Windows"
            ),
        },
        "zh-word2vec-100d",
    ),
}  # fmt: skip
UNSEEN = ("books", "booked", "bookish", "unbookable", "recieve", "goverment", "Portugese",
          "coöperation", "googled", "tokenizer")  # fmt: skip


class Occurrence(NamedTuple):
    """A word in a sentence, and which sense the rule gives it."""

    words: list[str]
    place: int
    sense: str


def occurrences(rule: Rule, most: int) -> list[Occurrence]:
    """Occurrences of the word, in the order of the sources, as many of each sense.

    A sentence that matches both patterns or none is left out, and so is one that has the word
    twice or that came before.
    """
    pipeline = TextPipeline(TextConfig(language=rule.language))
    found: dict[str, list[Occurrence]] = {sense: [] for sense in rule.senses}
    seen: set[tuple[str, ...]] = set()
    for text in _texts(rule):
        for sentence in split_sentences(text, rule.language):
            words = pipeline.words(sentence.text)
            places = [i for i, word in enumerate(words) if word in rule.words]
            senses = [name for name, shape in rule.senses.items() if shape.search(sentence.text)]
            if len(places) == 1 and len(senses) == 1 and tuple(words) not in seen:
                seen.add(tuple(words))
                found[senses[0]].append(Occurrence(words, places[0], senses[0]))
    count = min(most // 2, *map(len, found.values()))
    return [one for rows in found.values() for one in rows[:count]]


def _texts(rule: Rule) -> Iterator[str]:
    """The texts that have the word, without the blanks between Chinese words."""
    for source in rule.sources:
        if source.endswith(":zh-en"):
            texts: Iterable[str] = (str(pair.source) for pair in read_pairs(source))
        else:
            texts = (example.text for example in text_examples(source))
        for text in texts:
            whole = text.replace(" ", "") if source.startswith("pd199801") else text
            if rule.words[0] in whole:
                yield whole


def senses(options: argparse.Namespace) -> None:
    """How often the nearest occurrence of a word has the same sense, by layer and by statics."""
    embedder, rule = Embedder.load(options.model), RULES[options.word]
    given = occurrences(rule, 120)
    labels = [one.sense for one in given]
    read = list(embedder.embed_sentences(one.words for one in given))
    layers = np.stack([r.layers[:, o.place] for r, o in zip(read, given, strict=True)], axis=1)
    vectors = {f"layer {k}": each for k, each in enumerate(layers)}
    vectors["mean of the layers"] = layers.mean(axis=0)
    static = open_vectors(rule.vectors)
    own = static.select([one.words[one.place] for one in given])[0]
    vectors["static vector of the word"] = own
    around = np.stack([_around(static, one) for one in given])
    vectors[f"mean of {2 * WINDOW} static vectors around it"] = around
    scores = {name: sense_accuracy(each, labels) for name, each in vectors.items()}
    print(f"{len(given)} occurrences of {' or '.join(rule.words)}, as many of each sense")
    print("| vectors | accuracy of the nearest | of a linear map |\n|---|---|---|")
    for name, value in scores.items():
        print(f"| {name} | {value:.1%} | {_mapped(vectors[name], labels):.1%} |")
    best = layers[-1]
    for place in (0, len(given) - 1):
        print(f"\n{_shown(given[place])} ({given[place].sense})")
        for near, cosine in nearest_in_context(best, place, 3):
            print(f"  {cosine:.3f} {_shown(given[near])} ({given[near].sense})")
    if options.picture is not None:
        label = "share whose nearest occurrence has the same sense"
        save(grouped_bars({"accuracy": scores}, horizontal=True, label=label), options.picture)


def _mapped(vectors: NDArray[Any], labels: list[str]) -> float:
    """How often a linear map learned from every other occurrence tells the sense of the rest."""
    parts = [slice(first, None, 2) for first in (0, 1)]
    found = [
        linear_probe(vectors[a], labels[a], vectors[b], labels[b]).accuracy
        for a, b in (parts, parts[::-1])
    ]
    return float(np.mean(found))


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
