"""The best tree of a sentence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqloom.data.examples import Tree
from seqloom.grammar.loops import best_column
from seqloom.grammar.rules import Floats, Rules
from seqloom.grammar.tables import Tables


class Span(NamedTuple):
    """A symbol over the words from `begin` to before `end`."""

    begin: int
    end: int
    symbol: int


class Derivation(NamedTuple):
    """The best tree of a sentence, in the grammar's own symbols.

    Args:
        root: Its topmost span.
        below: The spans below each.
        prob: The product of its probabilities.
    """

    root: Span
    below: dict[Span, tuple[Span, ...]]
    prob: float


def best_derivation(t: Tables, emission: Floats) -> Derivation | None:
    r"""The likeliest derivation of a sentence, None if there is none.

    $$V_{ij}(A) = \max\left( \max_{A \to BC,\,k} p\, V_{ik}(B)\, V_{kj}(C),\;
    \max_{A \to B} p\, V_{ij}(B) \right)$$

    No pointers are kept: what the best one was is asked again where it matters, from the end of the
    sentence to its beginning.

    Args:
        t: The grammar.
        emission: p(word | preterminal), word by word.
    """
    n = len(emission)
    chart, column = np.zeros((n, n + 1, len(t.kept))), np.zeros((n, t.size))
    for end in range(1, n + 1):
        best_column(t, emission, chart, end, column)
    prob = float(column[0, t.root])
    if not prob > 0:
        return None
    root = Span(0, n, t.root)
    below: dict[Span, tuple[Span, ...]] = {}
    ends: list[list[Span]] = [[] for _ in range(n + 1)]
    ends[n].append(root)
    for end in range(n, 0, -1):
        if ends[end] and end < n:
            best_column(t, emission, chart, end, column)
        while ends[end]:
            span = ends[end].pop()
            if span.symbol < t.preterminals:
                continue
            below[span] = _children(t, emission, chart, column, span)
            for child in below[span]:
                ends[child.end].append(child)
    return Derivation(root, below, prob)


def _children(
    t: Tables, emission: Floats, chart: Floats, column: Floats, span: Span
) -> tuple[Span, ...]:
    """What the best tree over a span has below its topmost symbol."""
    begin, end, symbol = span
    best, found = 0.0, tuple[Span, ...]()
    rows = [t.unary, t.unary_tags] if end - begin == 1 else [t.unary]
    for starts, columns, values in rows:
        here = slice(starts[symbol], starts[symbol + 1])
        chances = values[here] * column[begin, columns[here]]
        if len(chances) and chances.max() > best:
            best = float(chances.max())
            found = (Span(begin, end, int(columns[here][chances.argmax()])),)
    here = slice(t.binary.starts[symbol], t.binary.starts[symbol + 1])
    for pair, prob in zip(t.binary.columns[here], t.binary.values[here], strict=True):
        left, right = int(t.left[pair]), int(t.right[pair])
        if pair < t.tag_pairs:
            middles = np.arange(begin + 1, min(begin + 2, end))
            first = emission[begin, left]
        else:
            middles = np.arange(begin + 1, end)
            first = chart[begin, begin + 1 : end, t.slot[pair - t.tag_pairs]]
        chances = prob * (first * column[middles, right])
        if len(chances) and chances.max() > best:
            best = float(chances.max())
            middle = int(middles[chances.argmax()])
            found = (Span(begin, middle, left), Span(middle, end, right))
    return found


def as_tree(found: Derivation, rules: Rules, words: list[str]) -> Tree:
    """The derivation as a tree: symbols by their labels, those of binarization dissolved."""
    made: dict[Span, tuple[Tree, ...]] = {}
    waiting = [found.root]
    while waiting:
        span = waiting[-1]
        children = found.below.get(span, ())
        missing = [child for child in children if child not in made]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        label = rules.labels[span.symbol]
        below = tuple(tree for child in children for tree in made[child])
        if label is None:
            made[span] = below
        elif children:
            made[span] = (Tree(label, below),)
        else:
            made[span] = (Tree(label, (), words[span.begin]),)
    (tree,) = made[found.root]
    return tree
