"""The weights of a mixture of orders, found on held-out text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.compiled import compiled
from seqloom.ngram.levels import CountLevel, Reals, Rows
from seqloom.ngram.words import BOS, NONE, mix
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _32 = _U(1), _U(32)
_ROUNDS, _STILL = 1000, 1e-7  # EM ends when no weight moves more than this


def fit_weights(
    levels: Sequence[CountLevel], text: Rows, vocabulary: int, place: Workspace
) -> tuple[float, ...]:
    r"""The weights that make a text most probable, from order 1 on, by expectation maximization.

    $$p_o = \lambda_o f_o + (1 - \lambda_o) p_{o-1}$$

    where $f_o$ is the relative frequency of a word after its o - 1 predecessors in the counts and
    $p_0 = 1 / V$. A round asks for each word how probable it is that order o gave it, if no higher
    order did, and makes the mean of that the new weight.

    Args:
        levels: The counts, by order.
        text: The held-out text as word numbers, each sentence between `<s>` and `</s>`.
        vocabulary: V, the number of words without `<s>`.
        place: Where columns go.
    """
    frequencies = _frequencies(levels, text, place)
    seen = ~np.isnan(frequencies)
    frequencies[~seen] = 0
    weights = np.full(len(levels), 0.5)
    for _ in range(_ROUNDS):
        below = np.full(frequencies.shape[1], 1 / vocabulary)
        here = []
        for weight, f, s in zip(weights, frequencies, seen, strict=True):
            here.append(below)
            below = np.where(s, weight * f + (1 - weight) * below, below)
        reached = np.ones(len(below))  # how probable it is that no higher order gave the word
        moved = weights.copy()
        for o in reversed(range(len(levels))):
            total = weights[o] * frequencies[o] + (1 - weights[o]) * here[o]
            gave = np.divide(weights[o] * frequencies[o], total, where=total > 0, out=0 * total)
            if (reach := reached[seen[o]].sum()) > 0:
                moved[o] = (reached * gave)[seen[o]].sum() / reach
            reached = np.where(seen[o], reached * (1 - gave), reached)
        still = np.abs(moved - weights).max() < _STILL
        weights = moved
        if still:
            break
    return tuple(weights.tolist())


def _frequencies(levels: Sequence[CountLevel], text: Rows, place: Workspace) -> Reals:
    """By order and word of the text, its relative frequency; NaN after an unseen history."""
    frequencies = np.full((len(levels), len(text)), np.nan)
    unigrams = levels[0].count
    frequencies[0] = unigrams[text] / max(int(unigrams.sum(dtype=np.int64)), 1)
    rows = text  # by position, the n-gram that ends there
    for order, level in enumerate(levels[1:], 2):
        at = np.flatnonzero((text[1:] != BOS) & (rows[:-1] != NONE)) + 1
        keys = rows[at - 1].astype(np.uint64) << _32 | text[at]
        distinct, which = np.unique(keys, return_inverse=True)
        found = np.full(len(distinct), NONE, np.uint32)
        totals = place.zeros(len(levels[order - 2]), np.float64)
        table = np.zeros(1 << (2 * len(distinct) + 1).bit_length(), np.uint32)
        _enter(distinct, table)
        for start, end in place.chunks(len(level)):
            _look(
                start, end, level.context, level.word, level.count, distinct, table, found, totals
            )
        known = found[which] != NONE
        count = np.zeros(len(at))
        count[known] = level.count[found[which][known]]
        total = totals[rows[at - 1]]
        frequencies[order - 1, at] = np.divide(
            count, total, where=total > 0, out=np.full(len(at), np.nan)
        )
        rows = np.full(len(text), NONE, np.uint32)
        rows[at] = found[which]
    return frequencies[:, text != BOS]


@compiled
def _enter(keys, table):  # type: ignore[no-untyped-def]
    """Put the numbers, plus one, of distinct keys into a hash table."""
    mask = _U(len(table) - 1)
    for i in range(len(keys)):
        slot = mix(keys[i]) & mask
        while table[slot] != 0:
            slot = (slot + _1) & mask
        table[slot] = i + 1


@compiled
def _look(start, end, context, word, count, keys, table, rows, totals):  # type: ignore[no-untyped-def]
    """Note the rows of those n-grams whose keys are in the table; add up counts by context."""
    mask = _U(len(table) - 1)
    for i in range(start, end):
        totals[context[i]] += count[i]
        key = _U(context[i]) << _32 | _U(word[i])
        slot = mix(key) & mask
        while table[slot] != 0:
            if keys[table[slot] - 1] == key:
                rows[table[slot] - 1] = i
                break
            slot = (slot + _1) & mask
