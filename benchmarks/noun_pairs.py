"""Sentences with two marked nouns that nobody labeled, to teach classifiers of relations by.

    python benchmarks/noun_pairs.py --out pairs.txt

The shipped tagger finds the nouns in the texts of `joined_vectors.py`, which are training parts
alone. A pair is the last words of two runs of nouns at most nine words apart, or the last two
nouns of one run. Most pairs of a text stand in no relation, so the shipped classifier says what
each seems to be, and of every relation as many are kept as there are, to `--most`; of the pairs
without one `--others`. Those it is surest of are not preferred: which ones, chance decides.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from joined_vectors import sentences
from seqloom import RelationClassifier, Tagger
from seqloom.metrics.relations import OTHER

NOUN = "NOUN"
FURTHEST = 9  # words from one noun to the other
SENTENCE = range(6, 41)  # words
PAIRS = 2  # of a sentence


def runs(tags: Sequence[str]) -> list[range]:
    """The places of nouns that stand side by side."""
    found: list[range] = []
    for place, tag in enumerate(tags):
        if tag != NOUN:
            continue
        if found and found[-1].stop == place:
            found[-1] = range(found[-1].start, place + 1)
        else:
            found.append(range(place, place + 1))
    return found


def pairs(tags: Sequence[str]) -> list[tuple[int, int]]:
    """The places of two nouns each that may stand in a relation."""
    nouns = runs(tags)
    found = [(run[-2], run[-1]) for run in nouns if len(run) > 1]
    for number, run in enumerate(nouns):
        for other in nouns[number + 1 :]:
            if other[-1] - run[-1] <= FURTHEST:
                found.append((run[-1], other[-1]))
    return found


def marked(words: Sequence[str], pair: tuple[int, int]) -> str:
    """The sentence with its two nouns marked."""
    shown = list(words)
    for number, place in enumerate(pair, start=1):
        shown[place] = f"<e{number}>{words[place]}</e{number}>"
    return " ".join(shown)


def marked_sentences(count: int, draw: random.Random) -> Iterator[str]:
    """Marked sentences from so many sentences, drawn from all."""
    read = [line.split(" ") for line in dict.fromkeys(sentences())]
    read = draw.sample([words for words in read if len(words) in SENTENCE], count)
    for words, tags in zip(read, Tagger.load("english-pos").predict(read), strict=True):
        found = pairs(tags)
        for pair in draw.sample(found, min(PAIRS, len(found))):
            yield marked(words, pair)


def main() -> None:
    """Find, choose and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a text file, one sentence a line")
    parser.add_argument("--sentences", type=int, default=150_000, help="how many are looked at")
    parser.add_argument("--most", type=int, default=1_500, help="kept of each relation")
    parser.add_argument("--others", type=int, default=4_000, help="kept without a relation")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began, draw = time.perf_counter(), random.Random(options.seed)
    found = [*marked_sentences(options.sentences, draw)]
    print(f"{len(found):,} pairs, {time.perf_counter() - began:.0f} s", flush=True)
    by_label: dict[str, list[str]] = defaultdict(list)
    labels = RelationClassifier.load("english-relations").predict(found)
    for sentence, label in zip(found, labels, strict=True):
        by_label[str(label)].append(sentence)
    kept: list[str] = []
    for label, of_label in sorted(by_label.items()):
        most = options.others if label == OTHER else options.most
        kept += islice(of_label, most)
        print(f"{label:28s} {len(of_label):7,}  {min(most, len(of_label)):6,} kept")
    draw.shuffle(kept)
    options.out.write_text("".join(f"{sentence}\n" for sentence in kept), encoding="utf-8")
    print(f"{len(kept):,} sentences, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
