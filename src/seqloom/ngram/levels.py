"""N-grams as columns: one row an n-gram, its context and its suffix named by their rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.ngram.words import Words

Rows = NDArray[np.uint32]
Reals = NDArray[np.float64]


@dataclass
class CountLevel:
    """The n-grams of one order as a text has them.

    Args:
        context: The row, one order below, of the n-gram without its last word (order 1: empty).
        suffix: The row, one order below, of the n-gram without its first word (order 1: empty).
        word: The last word.
        count: How often it occurs.
        begins: Whether its first word is `<s>`.
    """

    context: Rows
    suffix: Rows
    word: Rows
    count: NDArray[np.uint32]
    begins: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.word)


@dataclass
class Counts:
    """What a text holds: its words and, by order, its n-grams. Row i of order 1 is word i."""

    words: Words
    levels: list[CountLevel]
    tokens: int

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)


@dataclass
class Level:
    """The n-grams of one order of a back-off model, all logarithms to base 10.

    Args:
        context: The row, one order below, of the n-gram without its last word (order 1: empty).
        word: The last word.
        prob: The log-probability of the word after its context.
        backoff: What a word not seen after this n-gram pays; empty at the highest order.
    """

    context: Rows
    word: Rows
    prob: Reals
    backoff: Reals

    def __len__(self) -> int:
        return len(self.word)


@dataclass
class Ngrams:
    r"""A back-off model as plain columns: what estimation gives, ARPA files hold, stores pack.

    $$\log p(w | h) = \mathrm{prob}(h w) \text{ if it is there, else }
    \mathrm{backoff}(h) + \log p(w | h')$$

    where h' is h without its first word. The context of every n-gram is an n-gram too.

    Args:
        words: The vocabulary; row i of order 1 is word i.
        levels: By order, the unigrams first.
        missing_backoff: What a context pays that is not there: 0 but for stupid back-off.
        suffixes: Whether the suffix of every n-gram is one too, which makes looking up faster.
        about: How it was made: smoothing, discounts, size of the text.
    """

    words: Words
    levels: list[Level]
    missing_backoff: float = 0.0
    suffixes: bool = True
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)

    @property
    def sizes(self) -> list[int]:
        """How many n-grams there are of each order."""
        return [len(level) for level in self.levels]
