r"""Probabilities of beginnings of sentences, word by word.

After the words $w_1 \dots w_j$, let $F_j(C)$ be the probability that they came and the symbol C
comes next, in any tree. Left to right there is one such symbol, unless the sentence is over, and
what stands behind it adds up to 1. So with G, which adds the chains of left corners,

$$P(w_1 \dots w_j \dots) = \sum_C F_j(C) + I_{0j}(\text{root}), \qquad
P(w_1 \dots w_j\, t \dots) = G_j(t)$$

for a preterminal t, and the probability of the next word is a ratio of two of these.

Papers: Jelinek and Lafferty (1991), "Computation of the Probability of Initial Substring Generation
by Stochastic Context-Free Grammars"; Stolcke (1995), "An Efficient Probabilistic Context-Free
Parsing Algorithm that Computes Prefix Probabilities", whose forward probabilities these are.
Differs from the papers: inside probabilities come from a chart of spans, not from Earley items.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from seqloom.grammar.loops import complete, inside_column, predict
from seqloom.grammar.rules import Floats
from seqloom.grammar.tables import Tables


class PrefixChart:
    """Reads a sentence from left to right.

    Each word's probabilities are divided by the word's own, so that nothing grows too small: all
    sums here are relative to the probability of the words read so far.

    Args:
        tables: The grammar.
        room: How many words to make room for; it grows when needed.

    Attributes:
        length: How many words were read.
        log_prob: The log-probability that a sentence begins so; -inf if none does.
        expected: The probability of each preterminal to come next, given the words read.
        end: The probability that the sentence ends here, given the words read.
    """

    def __init__(self, tables: Tables, room: int = 16) -> None:
        self.tables, self.length, self.log_prob, self.end = tables, 0, 0.0, 0.0
        self.expected: Floats = np.zeros(tables.preterminals)
        self._waiting = np.zeros(tables.size)
        self._waiting[tables.root] = 1.0
        self.emission, self._begun, self._chart, self._column = self._arrays(max(1, room))
        predict(tables, self._waiting, self.expected, self._begun[0])

    def _arrays(self, room: int) -> tuple[Floats, Floats, Floats, Floats]:
        t = self.tables
        return (
            np.zeros((room, t.preterminals)),
            np.zeros((room + 1, len(t.left))),
            np.zeros((room, room + 1, len(t.kept))),
            np.zeros((room, t.size)),
        )

    def copy(self) -> PrefixChart:
        """Another one that has read the same words."""
        other = copy(self)
        other.emission, other._begun = self.emission.copy(), self._begun.copy()
        other._chart, other._waiting = self._chart.copy(), self._waiting.copy()
        return other  # the column is made anew with each word, the expected tags too

    def _grow(self) -> None:
        old, n = (self.emission, self._begun, self._chart), self.length
        self.emission, self._begun, self._chart, self._column = self._arrays(2 * n)
        self.emission[:n], self._begun[: n + 1] = old[0], old[1]
        self._chart[:n, : n + 1] = old[2]

    @property
    def is_dead(self) -> bool:
        """Whether no sentence of the grammar begins so."""
        return self.log_prob == -math.inf

    def _die(self) -> float:
        self.log_prob, self.end = -math.inf, 0.0
        self.expected = np.zeros_like(self.expected)
        return -math.inf

    def word_prob(self, emission: Floats) -> float:
        """The probability of a next word, given its probability under each preterminal."""
        return float(self.expected @ emission)

    def advance(self, emission: Floats) -> float:
        """Read a word; its log-probability given those before, -inf if no tree goes on with it."""
        chance = self.word_prob(emission)
        if self.is_dead or not chance > 0:
            return self._die()
        if self.length == len(self.emission):
            self._grow()
        self.emission[self.length] = emission / chance
        self.length += 1
        end = self.length
        inside_column(self.tables, self.emission, self._chart, end, self._column)
        complete(self.tables, self.emission, self._chart, self._begun, end, self._waiting)
        self.end = float(self._column[0, self.tables.root])
        # Exactly 1 but for rounding, which would add up from word to word.
        whole = float(self._waiting.sum()) + self.end
        if not 0 < whole < math.inf:
            return self._die()
        self.end /= whole
        self.emission[end - 1] /= whole
        self._chart[:end, end] /= whole
        self._waiting /= whole
        self.expected = np.zeros_like(self.expected)
        predict(self.tables, self._waiting, self.expected, self._begun[end])
        log_prob = math.log(chance)
        self.log_prob += log_prob
        return log_prob
