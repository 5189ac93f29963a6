"""How windows of long documents are weighed: the most probable weights, and what they are worth.

    python benchmarks/reading_ranking.py english-reader --questions 2400

The passages of questions about held-out articles are hidden in documents of 20,000 words, as
`reading.py --long MODEL --held-out` does. The weights of `RankingConfig` are fitted to which of the
windows that are read holds the right passage, on all articles but a fifth; that fifth is answered,
and so on. The weights printed last are of all articles. Which windows are read is decided by the
weights the model has.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from reading_use import documents, questions_around
from seqloom import Reader
from seqloom.metrics.reading import bare_answer
from seqloom.tasks.reader_answering import read_windows
from seqloom.tasks.reader_ranking import RankingConfig
from seqloom.tasks.reader_training import article

FOLDS = 5
NAMES = ("terms", "reading", "likeness", "log_length")
PENALTY = 1e-3  # of weights of features that vary by 1


class Read(NamedTuple):
    """The windows that were read for a question: features, which are right, what they answer."""

    title: str
    features: NDArray[np.float64]
    right: NDArray[np.bool_]
    exact: NDArray[np.bool_]


def read(reader: Reader, each: Any, document: str) -> Read:
    """Read a question's document."""
    found = read_windows(reader, [([document], each.question)], window=reader.window, spans=1)
    rows = found.rows(0)
    columns = np.stack([getattr(found.features, name)[rows] for name in NAMES], axis=1)
    columns[:, NAMES.index("log_length")] *= -1
    spans, begin = found.passages[0].spans, document.index(each.passage)
    end, gold = begin + len(each.passage), {bare_answer(a.text, "squad") for a in each.answers}
    right, exact = [], []
    for row in rows.tolist():
        first, size = int(found.data.first[row]), int(found.data.sizes[row])
        shared = min(end, spans[first + size - 1][1]) - max(begin, spans[first][0])
        right.append(shared > (end - begin) / 2)
        a, b = (spans[first + int(one[row, 0])] for one in (found.found.first, found.found.last))
        exact.append(bare_answer(document[a[0] : b[1]], "squad") in gold)
    return Read(article(each), columns, np.array(right), np.array(exact))


def fit(reads: list[Read]) -> NDArray[np.float64]:
    """The most probable weights; questions whose passage was not read say nothing of them."""
    known = [each for each in reads if each.right.any() and len(each.right) > 1]
    every = np.concatenate([each.features for each in known])
    spread = every.std(axis=0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = 0.0, np.zeros(len(NAMES))
        for each in known:
            scaled = each.features / spread
            scores = scaled @ weights
            chances = np.exp(scores - np.logaddexp.reduce(scores))
            true = each.right / each.right.sum()
            total -= float(true @ (scores - np.logaddexp.reduce(scores)))
            slope += (chances - true) @ scaled
        count = len(known)
        return total / count + PENALTY * weights @ weights, slope / count + 2 * PENALTY * weights

    found: NDArray[np.float64] = minimize(loss, np.zeros(len(NAMES)), jac=True).x / spread
    return found


def measure(reads: list[Read], weights: NDArray[np.float64]) -> tuple[float, float]:
    """The shares of questions whose best window answers exactly, and is the right one."""
    best = [int((each.features @ weights).argmax()) for each in reads]
    exact = [each.exact[i] for each, i in zip(reads, best, strict=True)]
    right = [each.right[i] for each, i in zip(reads, best, strict=True)]
    return 100 * float(np.mean(exact)), 100 * float(np.mean(right))


def main() -> None:
    """Read, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--questions", type=int, default=2400)
    options = parser.parse_args()
    reader, began = Reader.load(options.model), time.perf_counter()
    asked, others = questions_around(reader, held_out=True)
    chosen = random.Random(0).sample(asked, min(options.questions, len(asked)))
    reads = [read(reader, each, document) for each, document in documents(chosen, asked, others)]
    print(f"{len(reads)} questions read in {time.perf_counter() - began:.0f} s")
    titles = sorted({each.title for each in reads})
    fold = {t: i % FOLDS for i, t in enumerate(random.Random(0).sample(titles, len(titles)))}
    parts = [[each for each in reads if fold[each.title] == i] for i in range(FOLDS)]
    rest = [[each for each in reads if fold[each.title] != i] for i in range(FOLDS)]
    there = 100 * np.mean([each.right.any() for each in reads])
    alone = 100 * np.mean([(each.exact & each.right).any() for each in reads])
    print(f"were the right window always taken: EM {alone:.2f}, {there:.2f}%")
    now = np.array([getattr(RankingConfig(), name) for name in NAMES])
    rows = {"common words alone, 3 times": np.array([3.0, 1.0, 0.0, 0.0]), "the defaults": now}
    for name, weights in rows.items():
        print(f"{name}: EM {measure(reads, weights)[0]:.2f}, {measure(reads, weights)[1]:.2f}%")
    found = [measure(part, fit(other)) for part, other in zip(parts, rest, strict=True)]
    shares = np.array([len(part) for part in parts]) / len(reads)
    exact, right = shares @ np.array(found)
    print(f"fitted to the other articles: EM {exact:.2f}, {right:.2f}% in the right window")
    best = dict(zip(NAMES, fit(reads).round(3).tolist(), strict=True))
    print(f"most probable for all: {best}")


if __name__ == "__main__":
    main()
