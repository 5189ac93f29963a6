"""A grammar of unary and binary rules with probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Expansion = tuple[str, ...]

ENOUGH = 1e-9  # a symbol that loses less than this share to endless derivations loses none
ROUNDS = 20_000


def add_at(places: NDArray[Any], values: Floats, size: int) -> Floats:
    """A vector in which each value was added at its place."""
    return np.bincount(places, values, size).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """A probabilistic context-free grammar whose rules have one or two symbols on the right.

    Symbols are numbered, the preterminals (tags, which stand over one word) first; the others
    have rules, whose probabilities sum to 1 for each. Words are a `Lexicon`'s business.

    Args:
        names: The symbols, no name twice.
        labels: The label of each in a tree; None for one that binarization made.
        preterminals: How many of them are preterminals.
        root: The symbol every tree begins with.
        unary_parent: A of each rule A -> B.
        unary_child: B.
        unary_prob: Its probability.
        parent: A of each rule A -> B C.
        left: B.
        right: C.
        prob: Its probability.
    """

    names: tuple[str, ...]
    labels: tuple[str | None, ...]
    preterminals: int
    root: int
    unary_parent: Numbers
    unary_child: Numbers
    unary_prob: Floats
    parent: Numbers
    left: Numbers
    right: Numbers
    prob: Floats

    def __post_init__(self) -> None:
        size = len(self.names)
        columns = (self.unary_parent, self.unary_child, self.parent, self.left, self.right)
        if any(len(c) and not 0 <= c.min() <= c.max() < size for c in columns):
            raise ConfigError(f"symbols of rules must lie in 0..{size - 1}")
        if not self.preterminals <= self.root < size:
            raise ConfigError(f"the root must be a symbol with rules, got number {self.root}")
        parents = np.concatenate([self.unary_parent, self.parent])
        if len(parents) and parents.min() < self.preterminals:
            name = self.names[parents.min()]
            raise ConfigError(f"a preterminal must have no rules, got a rule of {name!r}")
        probs = np.concatenate([self.unary_prob, self.prob])
        if not ((probs > 0) & (probs <= 1 + ENOUGH)).all():
            raise ConfigError(f"probabilities of rules must lie in (0, 1], got {probs.min()}")
        sums = add_at(parents, probs, size)[self.preterminals :]
        if len(sums) and abs(sums - 1).max() > ENOUGH:
            worst = int(abs(sums - 1).argmax())
            raise ConfigError(
                f"the rules of a symbol must have probabilities that sum to 1, got {sums[worst]} "
                f"for {self.names[self.preterminals + worst]!r}"
            )

    @classmethod
    def build(
        cls,
        rules: Mapping[str, Mapping[Expansion, float]],
        preterminals: Sequence[str],
        root: str,
        labels: Mapping[str, str | None] | None = None,
    ) -> Rules:
        """A grammar from rules by name; names are labels unless `labels` says otherwise.

        Examples:
            >>> grammar = Rules.build({"S": {("S", "a"): 0.4, ("a",): 0.6}}, ["a"], "S")
            >>> len(grammar.prob), grammar.names[grammar.root]
            (1, 'S')
        """
        names = (*preterminals, *rules)
        number = {name: i for i, name in enumerate(names)}
        if len(number) != len(names):
            raise ConfigError("no symbol must be both a preterminal and have rules")
        unary: list[tuple[int, int, float]] = []
        binary: list[tuple[int, int, int, float]] = []
        for parent, expansions in rules.items():
            for expansion, prob in expansions.items():
                for symbol in expansion:
                    if symbol not in number:
                        raise ConfigError(f"{symbol!r}, in a rule of {parent!r}, has no rules")
                places = [number[symbol] for symbol in expansion]
                if len(places) == 1:
                    unary.append((number[parent], places[0], prob))
                elif len(places) == 2:
                    binary.append((number[parent], places[0], places[1], prob))
                else:
                    raise ConfigError(
                        f"a rule must have one or two symbols on its right, got {expansion}"
                    )
        if root not in rules:
            raise ConfigError(f"the root must be a symbol with rules, got {root!r}")
        ones = np.array([row[:2] for row in unary], np.int32).reshape(-1, 2)
        twos = np.array([row[:3] for row in binary], np.int32).reshape(-1, 3)
        return cls(
            names=names,
            labels=tuple((labels or {}).get(name, name) for name in names),
            preterminals=len(preterminals),
            root=number[root],
            unary_parent=ones[:, 0].copy(),
            unary_child=ones[:, 1].copy(),
            unary_prob=np.array([row[2] for row in unary], np.float64),
            parent=twos[:, 0].copy(),
            left=twos[:, 1].copy(),
            right=twos[:, 2].copy(),
            prob=np.array([row[3] for row in binary], np.float64),
        )

    def termination(self) -> Floats:
        r"""The probability that what a symbol begins ever ends.

        $$Z_A = \sum_{A \to BC} p\, Z_B Z_C + \sum_{A \to B} p\, Z_B$$

        the least solution, by iteration from 0; 1 for preterminals.
        """
        size = len(self.names)
        z = np.zeros(size)
        z[: self.preterminals] = 1
        for _ in range(ROUNDS):
            new = add_at(self.parent, self.prob * z[self.left] * z[self.right], size)
            new += add_at(self.unary_parent, self.unary_prob * z[self.unary_child], size)
            new[: self.preterminals] = 1
            change = abs(new - z).max()
            z = new
            if change < 1e-14:
                break
        return z

    def is_subcritical(self) -> bool:
        """Whether nodes die out: after some generations, fewer are left than there were.

        Then every derivation ends, with probability 1.
        """
        size = len(self.names)
        left = np.ones(size)
        left[: self.preterminals] = 0
        for _ in range(ROUNDS // 10):
            new = add_at(self.parent, self.prob * (left[self.left] + left[self.right]), size)
            new += add_at(self.unary_parent, self.unary_prob * left[self.unary_child], size)
            left = new
            if left.max() < 1:
                return True
        return False

    def tight(self) -> Rules:
        r"""The same trees with probabilities that sum to 1, if some are lost to endless ones.

        $$p'(A \to BC) = p\, Z_B Z_C / Z_A$$

        Paper: Chi (1999), "Statistical Properties of Probabilistic Context-Free Grammars".

        Raises:
            ConfigError: If a symbol can never end in words.
        """
        if self.is_subcritical():
            return self
        z = self.termination()
        if z.min() < 1e-12:
            name = self.names[int(z.argmin())]
            raise ConfigError(f"every symbol must end in words, got {name!r}, which never does")
        if z.min() > 1 - ENOUGH:
            return self
        unary = self.unary_prob * z[self.unary_child] / z[self.unary_parent]
        binary = self.prob * z[self.left] * z[self.right] / z[self.parent]
        size = len(self.names)
        sums = add_at(self.unary_parent, unary, size) + add_at(self.parent, binary, size)
        return replace(
            self,
            unary_prob=unary / sums[self.unary_parent],
            prob=binary / sums[self.parent],
        )
