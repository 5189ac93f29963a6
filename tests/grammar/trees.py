"""A small treebank, drawn from a grammar written here."""

from __future__ import annotations

import numpy as np

from seqloom.data.examples import Tree

GRAMMAR = {
    "S": [("NP", "VP"), ("NP", "VP", "ADVP"), ("S", "CC", "S"), ("VP",)],
    "NP": [("DT", "NN"), ("DT", "JJ", "NN"), ("NNP",), ("NP", "PP"), ("NN",)],
    "VP": [("VB", "NP"), ("VB",), ("VB", "NP", "PP"), ("VB", "S")],
    "PP": [("IN", "NP")],
    "ADVP": [("RB",)],
}
WORDS = {
    "DT": "the a".split(),
    "NN": "cat dog telescope garden walking idea".split(),
    "JJ": "old big 1990s".split(),
    "NNP": "Ann Bob Smith".split(),
    "VB": "sees hears likes walks".split(),
    "IN": "with in".split(),
    "RB": "quickly slowly".split(),
    "CC": "and or".split(),
}


def treebank(number: int, seed: int = 0) -> list[Tree]:
    rng = np.random.default_rng(seed)

    def draw(label: str, depth: int) -> Tree:
        if label in WORDS:
            ranks = np.arange(1, len(WORDS[label]) + 1)
            weights = 1 / ranks**1.5
            return Tree(label, (), str(rng.choice(WORDS[label], p=weights / weights.sum())))
        options = GRAMMAR[label]
        first = 1 / (1 + depth)  # deeper trees end sooner
        place = 0 if rng.random() > first else int(rng.integers(len(options)))
        return Tree(label, tuple(draw(child, depth + 1) for child in options[place]))

    return [Tree("", (draw("S", 1),)) for _ in range(number)]
