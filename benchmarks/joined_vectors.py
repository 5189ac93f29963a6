"""GloVe's subset beside word vectors learned from the English texts at hand, as one table.

    python benchmarks/joined_vectors.py --out joined.npz
    python benchmarks/relations.py --arch att-blstm --vectors joined.npz

The texts are training parts alone: reviews, encyclopedia, news, package descriptions, captions. A
word learned occurs at least four times. The table is written as float16.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from seqloom import Embedder
from seqloom.data.inputs import read_input
from seqloom.tasks.pretrained import open_vectors
from seqloom.text import TextConfig, TextPipeline, WordVectors, join_vectors, write_vectors
from seqloom.text.sentences import split_sentences

GIVEN = "glove-6b-100d-subset"
TEXTS = (
    "imdb:train",
    "squad-v1.1:train",
    "debian-synopsis:train",
    "bbc-news-summary:all",
    "multi30k-en-de:train:en-de",
    "wikitext-2:train:plain",
)
SHORTEST = 3  # words of a sentence


def texts() -> Iterator[str]:
    """The texts of all data sets, each once."""
    seen = set()
    for name in TEXTS:
        for example in read_input(name, "text"):
            names = ("text", "passage", "source")
            text = next(getattr(example, each) for each in names if hasattr(example, each))
            if text not in seen:
                seen.add(text)
                yield text.replace("<br />", "\n").replace("<unk>", "")


def sentences() -> Iterator[str]:
    """Their sentences in lower case, words with blanks between."""
    pipeline = TextPipeline(TextConfig(unit="word", language="en"))
    for text in texts():
        for sentence in split_sentences(text, "en"):
            words = pipeline.words(sentence.text.lower())
            if len(words) >= SHORTEST:
                yield " ".join(words)


def main() -> None:
    """Learn, join and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="an .npz file")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    began = time.perf_counter()
    lines = list(sentences())
    count = sum(line.count(" ") + 1 for line in lines)
    print(f"{len(lines):,} sentences, {count:,} words, {time.perf_counter() - began:.0f} s")
    own = Embedder(text={"unit": "space"}, vocabulary={"min_count": 4}, epochs=options.epochs)
    own.fit(lines)
    given = open_vectors(GIVEN)
    both = join_vectors(given, own.vectors)
    half = WordVectors(both.words, both.matrix.astype(np.float16))
    write_vectors(half, options.out)
    print(
        f"{len(half):,} words x {half.size}, {len(half) - len(given):,} of them not in {GIVEN}; "
        f"{time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
