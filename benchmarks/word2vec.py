"""Word vectors against gensim: words a second, similarities and analogies, in the same run.

    python benchmarks/word2vec.py --gensim PYTHON [--parts speed,quality] [--save FILE]

PYTHON is an interpreter of an environment that has gensim, which is no dependency of Seqloom. The
text is WikiText-2's training part in lower case without `<unk>`, words that occur at least five
times, 100 numbers a vector, a window of 5, 5 negative words, a sample of 1e-3, two threads on
either side. Speed is of training alone, vocabularies ready and code compiled, in turn; gensim reads
its fastest way, `corpus_file`. Quality is after five epochs, by the same evaluation of both.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import statistics
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from seqloom import Embedder
from seqloom.data.prepared import PrepareConfig
from seqloom.tasks.corpus import prepared_text
from seqloom.tasks.word_tables import most_frequent
from seqloom.tasks.word_tests import evaluate_vectors
from seqloom.text import TextConfig, WordVectors, read_vectors
from seqloom.word2vec.config import Word2VecConfig
from seqloom.word2vec.model import Word2Vec

THREADS = 2
KINDS = ("skip-gram", "cbow")
TESTS = {"wordsim353": "spearman", "simlex999": "spearman", "analogies": "accuracy"}

PEER = """
import json, sys, time
from gensim.models import Word2Vec
text, kind, epochs, seed, out = sys.argv[1:]
model = Word2Vec(
    vector_size=100, window=5, negative=5, sample=1e-3, min_count=5, workers=2, seed=int(seed),
    sg=int(kind == "skip-gram"), alpha=0.025 if kind == "skip-gram" else 0.05,
)
model.build_vocab(corpus_file=text)
began = time.perf_counter()
_, words = model.train(
    corpus_file=text, total_words=model.corpus_total_words, total_examples=model.corpus_count,
    epochs=int(epochs),
)
print(json.dumps({"words": words, "seconds": time.perf_counter() - began}))
if out:
    model.wv.save_word2vec_format(out, binary=True)
"""


def make_text(folder: Path) -> Path:
    data = Path(os.environ.get("SEQLOOM_DATA", "../shared/data"))
    path = folder / "text"
    with (
        lzma.open(data / "wikitext-2/wiki.train.tokens.xz", "rt", encoding="utf-8") as lines,
        path.open("w", encoding="utf-8") as out,
    ):
        for line in lines:
            words = [word for word in line.lower().split() if word != "<unk>"]
            if words:
                out.write(" ".join(words) + "\n")
    return path


def peer(python: str, text: Path, kind: str, *, epochs: int, seed: int, out: str = "") -> Any:
    command = [python, "-c", PEER, str(text), kind, str(epochs), str(seed), out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


class Ours:
    """The text as numbers, and training on it."""

    def __init__(self, text: Path, folder: Path) -> None:
        config = PrepareConfig(text=TextConfig(unit="space"), min_count=5, ends=False)
        data = prepared_text(text, folder / "prepared", config)
        self.known, self.rows = most_frequent(data, config)
        self.text = data.data.sequences["ids"]

    def train(self, kind: str, epochs: int, seed: int) -> tuple[Word2Vec, float]:
        """The vectors, and the seconds it took."""
        config = Word2VecConfig(model=kind, epochs=epochs, threads=THREADS, seed=seed)
        counts = np.array(self.known.counts)
        began = time.perf_counter()
        model = Word2Vec.fit(config, self.text.flat, self.text.offsets, self.rows, counts)
        return model, time.perf_counter() - began


def speed(python: str, text: Path, ours: Ours, repeats: int) -> list[str]:
    lines = [
        "| model | gensim, words/s | Seqloom, words/s | ratio, median (least to most) |",
        "|---|---|---|---|",
    ]
    Embedder(vector_size=16, sample=0).fit(["a b"] * 9)  # compiles
    for kind in KINDS:
        theirs, own = [], []
        for repeat in range(repeats):
            found = peer(python, text, kind, epochs=1, seed=repeat)
            theirs.append(found["words"] / found["seconds"])
            own.append(len(ours.text.flat) / ours.train(kind, 1, repeat)[1])
        ratios = [a / b for a, b in zip(own, theirs, strict=True)]
        lines.append(
            f"| {kind} | {statistics.median(theirs):,.0f} | {statistics.median(own):,.0f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )
    return lines


def figures(vectors: WordVectors) -> dict[str, float]:
    return {
        test: evaluate_vectors(vectors, f"word-similarity:{test}")[figure]
        for test, figure in TESTS.items()
    }


def quality(python: str, text: Path, ours: Ours, seeds: range, kinds: list[str]) -> list[str]:
    lines = [f"| model | | {' | '.join(TESTS)} |", "|---|---|---|---|---|"]
    for kind in kinds:
        found: dict[str, list[dict[str, float]]] = {"gensim": [], "Seqloom": []}
        for seed in seeds:
            out = text.with_name("gensim.bin")
            peer(python, text, kind, epochs=5, seed=seed, out=str(out))
            found["gensim"].append(figures(read_vectors(out)))
            model, _ = ours.train(kind, 5, seed)
            found["Seqloom"].append(figures(WordVectors(ours.known.words, model.vectors)))
        for name, runs in found.items():
            cells = [_cell([run[test] for run in runs]) for test in TESTS]
            lines.append(f"| {kind} | {name} | {' | '.join(cells)} |")
    return lines


def _cell(values: list[float]) -> str:
    values = [100 * value for value in values]
    return f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gensim", required=True, help="a Python that has gensim")
    parser.add_argument("--parts", default="speed,quality")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of the quality part")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    report = [
        f"{date.today()}, {platform.machine()}, {THREADS} threads, Python "
        f"{platform.python_version()}",
        "",
    ]
    with tempfile.TemporaryDirectory() as name:
        text = make_text(Path(name))
        ours = Ours(text, Path(name))
        report += [f"{len(ours.text.flat):,} words, {len(ours.known):,} different ones", ""]
        if "speed" in options.parts:
            report += [*speed(options.gensim, text, ours, options.repeats), ""]
        if "quality" in options.parts:
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            kinds = options.kinds.split(",")
            report += [f"Mean (least to most) of {options.seeds} seeds, times 100", ""]
            report += quality(options.gensim, text, ours, seeds, kinds)
    print("\n".join(report))
    if options.save:
        options.save.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
