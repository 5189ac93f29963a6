"""GloVe's subset beside word vectors learned from the English texts at hand, as one table.

    python benchmarks/joined_vectors.py --out joined.npz
    python benchmarks/relations.py --arch att-blstm --vectors joined.npz
    python benchmarks/joined_vectors.py --reader --out reader.npz
    python benchmarks/reading.py --rows "rnet, gated in parallel, pointer" --set vectors=reader.npz
    python benchmarks/joined_vectors.py --reader --fill --out filled.npz

The texts are training parts alone: reviews, encyclopedia, news, package descriptions, captions. A
word learned occurs at least four times. The table is written as float16. With `--reader` the texts
are the openly licensed ones alone, SQuAD's questions are among them, words are cut as a reader cuts
them, and the table has only those that occur in SQuAD, so that it is small enough to carry. With
`--fill` the table has GloVe's numbers alone, of its own words as they are, of the others that were
learned what is linear in the learned ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from seqloom import Embedder, Reader
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
OPEN_TEXTS = ("squad-v1.1:train", "debian-synopsis:train", "wikitext-2:train:plain")
SHORTEST = 3  # words of a sentence


def texts(data_sets: Sequence[str] = TEXTS, *, questions: bool = False) -> Iterator[str]:
    """The texts of data sets, each once; questions about them only where they are wanted."""
    seen = set()
    for name in data_sets:
        for example in read_input(name, "text"):
            names = ("text", "passage", "source")
            found = [next(getattr(example, each) for each in names if hasattr(example, each))]
            if questions and hasattr(example, "question"):
                found.append(example.question)
            for text in found:
                if text not in seen:
                    seen.add(text)
                    yield text.replace("<br />", "\n").replace("<unk>", "")


def sentences() -> Iterator[str]:
    """Their sentences, words with blanks between."""
    pipeline = TextPipeline(TextConfig(unit="word", language="en"))
    for text in texts():
        for sentence in split_sentences(text, "en"):
            words = pipeline.words(sentence.text)
            if len(words) >= SHORTEST:
                yield " ".join(words)


def read_sentences() -> Iterator[str]:
    """Sentences of the open texts and of questions about them, cut as a reader cuts them."""
    splitter = Reader().make_splitter()
    for text in texts(OPEN_TEXTS, questions=True):
        for sentence in split_sentences(text, "en"):
            words = splitter(sentence.text).words
            if len(words) >= SHORTEST:
                yield " ".join(words)


def read_words() -> set[str]:
    """The words of SQuAD as a reader looks them up."""
    splitter, found = Reader().make_splitter(), set()
    for text in texts(("squad-v1.1:train", "squad-v1.1:valid"), questions=True):
        found.update(word.lower() for word in splitter(text).words)
    return found


def main() -> None:
    """Learn, join and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="an .npz file")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--reader", action="store_true", help="for readers, of open texts alone")
    parser.add_argument("--fill", action="store_true", help="only what GloVe lacks is new")
    options = parser.parse_args()
    began = time.perf_counter()
    lines = [line.lower() for line in (read_sentences() if options.reader else sentences())]
    count = sum(line.count(" ") + 1 for line in lines)
    print(f"{len(lines):,} sentences, {count:,} words, {time.perf_counter() - began:.0f} s")
    own = Embedder(text={"unit": "space"}, vocabulary={"min_count": 4}, epochs=options.epochs)
    own.fit(lines)
    given = open_vectors(GIVEN)
    both = join_vectors(given, own.vectors)
    if options.reader:
        wanted = read_words() | ({*given.words} if options.fill else set())
        kept = [place for place, word in enumerate(both.words) if word in wanted]
        both = WordVectors([both.words[place] for place in kept], both.matrix[kept])
    size = given.size if options.fill else both.size
    half = WordVectors(both.words, both.matrix[:, :size].astype(np.float16))
    write_vectors(half, options.out)
    print(
        f"{len(half):,} words x {half.size}, "
        f"{sum(word not in given for word in half.words):,} of them not in {GIVEN}; "
        f"{time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
