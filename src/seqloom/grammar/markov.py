r"""Rules from plain trees: the children of a node are a Markov chain.

A node of label A whose parent has label P has the children $B_1 \dots B_n$ with probability

$$\prod_{i=1}^{n+1} p(B_i \mid A, P, B_{i-h} \dots B_{i-1}), \qquad B_{n+1} = \text{stop}$$

so that horizontal order h says how many elder sisters a child depends on, and vertical order 1
leaves P out. As rules of one or two symbols on the right: A becomes $B_1$ and a symbol that knows
the last h children, which becomes $B_2$ and the next such symbol, and so on.

Each distribution gives a discount of its counts to one that knows less: first the parent is
forgotten, then the sisters but the last, the eldest first.

$$p(B \mid c) = \frac{\max(n_{cB} - D, 0)}{n_c} + \frac{D\,T_c}{n_c}\, p(B \mid c'), \qquad
D = \frac{N_1 + 1}{N_1 + 2 N_2 + 2}$$

$n$ are counts in the treebank, $T_c$ how many different B were seen after c, $N_1$ and $N_2$ how
many pairs (c, B) of this order occurred once and twice. The last distribution, which knows A and
the sister before (with h = 0, whether there is one), is the relative frequency. So a node may have
all children of which each pair of neighbours was seen below its label.

Papers: Klein and Manning (2003), "Accurate Unlexicalized Parsing", section 2 (orders); Ney, Essen
and Kneser (1994), "On Structuring Probabilistic Dependences in Stochastic Language Modelling"
(discounts).
Differs from the papers: a node that was never seen with this parent and these sisters goes on with
a symbol that has forgotten the parent; there is no count below which an order is dropped.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from seqloom.data.examples import Tree
from seqloom.grammar.rules import Expansion, Rules
from seqloom.grammar.treebank import TOP


class Child(NamedTuple):
    """A symbol below a node."""

    label: str
    is_tag: bool


class Node(NamedTuple):
    """What is known of a node: its label, and its parent's if that matters."""

    label: str
    parent: str | None = None


class Context(NamedTuple):
    """What a child depends on: the node above it and the last of its elder sisters."""

    node: Node
    sisters: tuple[Child, ...]
    is_first: bool


STOP = Child("", is_tag=False)
NOTHING = Child("", is_tag=True)  # before the first child
Distribution = dict[Child, float]


def discount(counts: Iterable[int]) -> float:
    """D: what is taken off each count; between 0 and 1 whatever the counts."""
    how_often = Counter(counts)
    return (how_often[1] + 1) / (how_often[1] + 2 * how_often[2] + 2)


class MarkovGrammar:
    """Counts children in plain trees and makes rules of them.

    Args:
        trees: Trees as `plain_tree` makes them.
        horizontal: h.
        vertical: 1 or 2.
        split_tags: Whether a tag knows the label above it.
    """

    def __init__(
        self, trees: Iterable[Tree], *, horizontal: int, vertical: int, split_tags: bool
    ) -> None:
        self.horizontal, self.vertical, self.split_tags = horizontal, vertical, split_tags
        self.words: dict[str, Counter[str]] = defaultdict(Counter)
        """How often each preterminal stands over each word."""
        self.tags: dict[str, str] = {}
        """The tag of each preterminal."""
        self._counts: dict[Context, Counter[Child]] = defaultdict(Counter)
        self._known: dict[Context, Distribution] = {}
        for tree in trees:
            self._count(tree)
        orders: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for context, found in self._counts.items():
            orders[self._order(context)] += found.values()
        self._discounts = {order: discount(found) for order, found in orders.items()}

    def _count(self, tree: Tree) -> None:
        waiting: list[tuple[Tree, str | None]] = [(tree, None)]
        while waiting:
            node, parent = waiting.pop()
            if node.word is not None:
                self.words[self._tag_name(node.label, parent)][node.word] += 1
                continue
            sisters = self._no_sisters()
            symbols = [Child(child.label, child.word is not None) for child in node.children]
            for place, child in enumerate([*symbols, STOP]):
                context = Context(self._node(node.label, parent), sisters, place == 0)
                for each in [context, *_forgetting(context)]:
                    self._counts[each][child] += 1
                sisters = self._after(sisters, child)
            waiting += [(child, node.label) for child in node.children]

    def _no_sisters(self) -> tuple[Child, ...]:
        return (NOTHING,) * self.horizontal

    def _after(self, sisters: tuple[Child, ...], child: Child) -> tuple[Child, ...]:
        return (*sisters, child)[-self.horizontal :] if self.horizontal else ()

    def _node(self, label: str, parent: str | None) -> Node:
        return Node(label, parent if self.vertical > 1 else None)

    def _tag_name(self, tag: str, parent: str | None) -> str:
        name = f"/ {tag} ^ {parent}" if self.split_tags else f"/ {tag}"
        self.tags[name] = tag
        return name

    @staticmethod
    def _order(context: Context) -> tuple[bool, int]:
        return context.node.parent is not None, len(context.sisters)

    def distribution(self, context: Context) -> Distribution:
        """p(B | context) for each B it may be; the context was seen."""
        if context in self._known:
            return self._known[context]
        counts = self._counts[context]
        total = counts.total()
        less = next(_forgetting(context), None)
        if less is None:
            found = {child: n / total for child, n in counts.items()}
        else:
            taken = self._discounts[self._order(context)]
            given = taken * len(counts) / total
            found = {child: given * p for child, p in self.distribution(less).items()}
            for child, n in counts.items():
                found[child] += (n - taken) / total
        self._known[context] = found
        return found

    def _next(self, context: Context, child: Child) -> Context:
        """The context after a child: the fullest of those seen."""
        full = Context(context.node, self._after(context.sisters, child), is_first=False)
        return next(c for c in (full, *_forgetting(full)) if c in self._counts)

    def rules(self) -> Rules:
        """The grammar, of all symbols that can be reached from TOP."""
        rules: dict[str, dict[Expansion, float]] = {}
        labels: dict[str, str | None] = {}
        start = Context(self._node(TOP, None), self._no_sisters(), is_first=True)
        waiting = [start]
        while waiting:
            context = waiting.pop()
            name = _name(context)
            if name in rules:
                continue
            labels[name] = context.node.label if context.is_first else None
            rules[name], reached = self._expand(context)
            waiting += reached
        labels |= self.tags
        return Rules.build(rules, list(self.tags), _name(start), labels)

    def _expand(self, context: Context) -> tuple[dict[Expansion, float], list[Context]]:
        """The rules of a symbol, and the contexts of the symbols they lead to."""
        found: dict[Expansion, float] = {}
        reached: list[Context] = []
        known = self.distribution(context)
        here = self._goes_on(context)
        for child, chance in known.items():
            if child == STOP:
                continue
            if child.is_tag:
                name = self._tag_name(child.label, context.node.label)
            else:
                node = self._node(child.label, context.node.label)
                below = Context(node, self._no_sisters(), is_first=True)
                reached.append(below)
                name = _name(below)
            after = self._next(context, child)
            goes_on, stops = self._goes_on(after), self.distribution(after).get(STOP, 0.0)
            if stops > 0:
                found[(name,)] = chance / here * stops
            if goes_on > 0:
                found[(name, _name(after))] = chance / here * goes_on
                reached.append(after)
        return found, reached

    def _goes_on(self, context: Context) -> float:
        return math.fsum(p for child, p in self.distribution(context).items() if child != STOP)


def _forgetting(context: Context) -> Iterator[Context]:
    """The contexts that know less and less."""
    node, sisters, is_first = context
    if node.parent is not None:
        node = Node(node.label)
        yield Context(node, sisters, is_first)
    while len(sisters) > 1:
        sisters = sisters[1:]
        yield Context(node, sisters, is_first)


def _name(context: Context) -> str:
    """The symbol of a context; blanks set its parts apart, as no label holds one."""
    node, sisters, is_first = context
    above = node.label if node.parent is None else f"{node.label} ^ {node.parent}"
    if is_first:
        return above
    return " ".join(["@", above, "<", *(("/" * s.is_tag) + s.label for s in sisters)])
