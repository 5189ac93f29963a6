"""Small grammars and what they say, found by writing every tree down."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import numpy as np

from seqloom.grammar.chart import PrefixChart
from seqloom.grammar.rules import Rules
from seqloom.grammar.tables import make_tables

WORDS = "xyz"


@dataclass
class Toy:
    """A grammar by name, with p(word | preterminal)."""

    rules: dict[str, dict[tuple[str, ...], float]]
    words: dict[str, dict[str, float]]
    root: str = "S"

    def built(self) -> Rules:
        return Rules.build(self.rules, list(self.words), self.root)

    def emission(self, word: str) -> np.ndarray:
        return np.array([under.get(word, 0.0) for under in self.words.values()])

    def chart(self) -> PrefixChart:
        return PrefixChart(make_tables(self.built().tight()), room=1)


def shares(rng, keys):
    values = rng.dirichlet(np.ones(len(keys)))
    return dict(zip(keys, values.tolist(), strict=True))


def finite(seed: int) -> Toy:
    """A random grammar in which a symbol becomes later ones only: finitely many trees, not few."""
    rng = np.random.default_rng(seed)
    while True:
        toy = _finite(rng)
        if 200 < number_of_trees(toy) < 3000:
            return toy


def _finite(rng) -> Toy:
    names, tags = ["S", "A", "B", "C"], ["a", "b", "c"]
    rules = {}
    for place, name in enumerate(names):
        later = [*names[place + 1 :], *tags]
        options = [(one,) for one in later] + list(itertools.product(later, later))
        chosen = rng.permutation(len(options))[:3]
        rules[name] = shares(rng, [options[i] for i in sorted(chosen)])
    return Toy(rules, {tag: shares(rng, list(WORDS)) for tag in tags})


def number_of_trees(toy: Toy) -> int:
    @cache
    def below(symbol):
        if symbol in toy.words:
            return len(toy.words[symbol])
        return sum(math.prod(below(child) for child in option) for option in toy.rules[symbol])

    return below(toy.root)


def recursive(seed: int) -> Toy:
    """A random grammar with chains of unary rules that come back, and recursion on both sides."""
    rng = np.random.default_rng(seed)
    names, tags = ["S", "A", "B"], ["a", "b"]
    every = [*names, *tags]
    rules = {}
    for name in names:
        others = [one for one in names if one != name]
        options = [(one,) for one in [*others, *tags]] + list(itertools.product(every, every))
        rules[name] = shares(rng, options)
        for option in rules[name]:  # mostly short sentences
            rules[name][option] *= 4.0 if len(option) == 1 else 1.0
        total = sum(rules[name].values())
        rules[name] = {option: p / total for option, p in rules[name].items()}
    return Toy(rules, {tag: shares(rng, list(WORDS)) for tag in tags})


def all_trees(toy: Toy):
    """Every tree of a finite grammar: its words, its probability and itself."""

    @cache
    def below(symbol):
        if symbol in toy.words:
            return [((w,), p, (symbol, w)) for w, p in toy.words[symbol].items()]
        found = []
        for option, p in toy.rules[symbol].items():
            for parts in itertools.product(*(below(child) for child in option)):
                words = tuple(w for part in parts for w in part[0])
                chance = p * np.prod([part[1] for part in parts])
                found.append((words, chance, (symbol, *(part[2] for part in parts))))
        return found

    return below(toy.root)


def all_sentences(toy: Toy) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for words, chance, _ in all_trees(toy):
        found[words] += chance
    return found


def slow_inside(toy: Toy, words) -> float:
    """The inside probability by iterating its equation until it stands still."""
    n = len(words)
    inside = defaultdict(float)
    for i, word in enumerate(words):
        for tag, under in toy.words.items():
            inside[i, i + 1, tag] = under.get(word, 0.0)
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            for _ in range(400):
                for symbol, options in toy.rules.items():
                    total = 0.0
                    for option, p in options.items():
                        if len(option) == 1:
                            total += p * inside[i, j, option[0]]
                        else:
                            for k in range(i + 1, j):
                                total += p * inside[i, k, option[0]] * inside[k, j, option[1]]
                    inside[i, j, symbol] = total
    return inside[0, n, toy.root]
