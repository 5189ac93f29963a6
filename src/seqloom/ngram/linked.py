"""A back-off model in columns that are linked, for working on it as a whole.

`Flat` has the rows of all orders one after another, each linked to the longest of its suffixes that
is an n-gram too. The links are found once, by a hash table; what a model says of an n-gram without
its first word then follows from them without looking anything up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, inner, prefetch
from seqloom.errors import ConfigError
from seqloom.ngram.counting import key_of
from seqloom.ngram.levels import Level, Ngrams, Reals, Rows
from seqloom.ngram.words import BOS, NONE, Words
from seqloom.ngram.words import mix as scatter
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _32 = _U(1), _U(32)
_NONE = np.uint32(NONE)
_LN10 = math.log(10)
_NONE_FREE = 1e-12  # less than this left by the words seen after a history: all words were
_AHEAD = 16  # rows ahead of a loop whose cells are on their way from memory
BYTES = 64  # what an n-gram takes at most, table and columns together


class Flat(NamedTuple):
    """The n-grams of all orders in one column each, order after order; row i is word i at first.

    Args:
        starts: The first row of each order, and the end.
        context: The row of the n-gram without its last word; NONE for words.
        suffix: The row of the longest proper suffix that is an n-gram; NONE for words.
        word: The last word.
        prob: log10 of the probability.
        backoff: log10 of the back-off, of all rows below the highest order.
    """

    starts: list[int]
    context: Rows
    suffix: Rows
    word: Rows
    prob: Reals
    backoff: Reals


def check_distribution(ngrams: Ngrams, what: str) -> None:
    """Refuse a model whose scores are no probabilities."""
    if ngrams.missing_backoff != 0 or not ngrams.about.get("distribution", True):
        name = ngrams.about.get("smoothing", "a fixed back-off")
        raise ConfigError(f"{what} needs a model that sums to 1, got one of {name}; use another")


def starts_of(sizes: Sequence[int]) -> list[int]:
    """The first row of each order, and the end."""
    starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
    if starts[-1] >= NONE:
        raise ConfigError(
            f"a model to prune or to mix holds 2^32 - 2 n-grams at most, got {starts[-1]:,}; "
            "leave out rare ones first"
        )
    return starts


def flatten(ngrams: Ngrams, place: Workspace) -> Flat:
    """A copy of a model as flat columns."""
    starts = starts_of(ngrams.sizes)
    size, below = starts[-1], starts[-2]
    place.spill_above(size * BYTES)
    context, suffix, word = (place.empty(size, np.uint32) for _ in range(3))
    prob, backoff = place.empty(size, np.float64), place.empty(below, np.float64)
    flat = Flat(starts, context, suffix, word, prob, backoff)
    context[: starts[1]] = NONE
    for o, level in enumerate(ngrams.levels):
        rows = slice(starts[o], starts[o + 1])
        word[rows], prob[rows] = level.word, level.prob
        if o:
            context[rows] = level.context
            context[rows] += np.uint32(starts[o - 1])
        if o + 1 < ngrams.order:
            backoff[rows] = level.backoff
        place.breathe()
    table = make_table(below)
    for start, end in place.chunks(below):
        _enter(max(start, starts[1]), end, context, word, table)
    link(flat, table, place)
    return flat


def to_ngrams(flat: Flat, words: Words, about: dict[str, Any], place: Workspace) -> Ngrams:
    """Flat columns as a model of their own."""
    starts, levels, suffixes = flat.starts, [], True

    def own(column: NDArray[Any], o: int) -> NDArray[Any]:
        copy = place.empty(starts[o + 1] - starts[o], column.dtype)
        copy[:] = column[starts[o] : starts[o + 1]]
        place.breathe()
        return copy

    for o in range(len(starts) - 1):
        context = own(flat.context, o) if o else np.empty(0, np.uint32)
        if o:
            context -= np.uint32(starts[o - 1])
            suffixes &= bool(np.all(flat.suffix[starts[o] : starts[o + 1]] >= starts[o - 1]))
        backoff = own(flat.backoff, o) if o + 2 < len(starts) else np.empty(0)
        levels.append(Level(context, own(flat.word, o), own(flat.prob, o), backoff))
    return Ngrams(words, levels, suffixes=suffixes, about=about)


def make_table(rows: int) -> NDArray[np.uint64]:
    """A hash table for so many n-grams, always in memory, at a load of two thirds.

    A slot is two numbers: the row of the context and the word, 32 bits each, plus one (0 if the
    slot is free), and the row of the n-gram.
    """
    return np.zeros(2 * (rows * 3 // 2 + 16), np.uint64)


def link(flat: Flat, table: NDArray[np.uint64], place: Workspace) -> None:
    """Fill `suffix`, order by order: an n-gram's follows from that of its context."""
    flat.suffix[: flat.starts[1]] = NONE
    for low, high in pairwise(flat.starts[1:]):
        place.in_pieces(_link, low, high, flat.context, flat.suffix, flat.word, table)


def renormalize(flat: Flat, place: Workspace) -> None:
    r"""Set the back-offs so that after every history all probabilities sum to 1, order by order.

    $$\alpha(h) = \frac{1 - \sum_{v: hv} p(v|h)}{1 - \sum_{v: hv} p(v|h')}$$

    and 0 where every word was seen. Where rounding (of an ARPA file's digits, say) leaves nothing
    above the line, the back-off stays what it was, so that no word becomes impossible by it.
    """
    for o, (low, high) in enumerate(pairwise(flat.starts[:-1]), 1):
        sums = sums_of(flat, o, place)
        for start, end in place.chunks(high - low):
            _set_backoffs(start, end, sums, flat.backoff[low:])


def sums_of(flat: Flat, o: int, place: Workspace) -> Reals:
    """By history: the sums of p(v|h) and of p(v|h') over the words v seen after it, in pairs."""
    low, first, last = flat.starts[o - 1 : o + 2]
    sums: Reals = place.zeros(2 * (first - low), np.float64)
    for start, end in place.chunks(last - first):
        _add_up(first + start, first + end, low, *flat[1:], sums)
    return sums


@inner
def home_of(table, key):  # type: ignore[no-untyped-def]
    """Where to look for a key first."""
    return np.int64(((scatter(key) >> _32) * _U(len(table) >> 1)) >> _32) << 1


@inner
def find_slot(table, key):  # type: ignore[no-untyped-def]
    """The slot that holds a key, or the free one where it would be."""
    slot = home_of(table, key)
    while table[slot] != 0 and table[slot] != key:
        slot += 2
        if slot == len(table):
            slot = 0
    return slot


@inner
def longest(table, suffix, context, word):  # type: ignore[no-untyped-def]
    """The row of the longest n-gram that a context, or a suffix of it, makes with a word."""
    while context != _NONE:
        slot = find_slot(table, key_of(context, word))
        if table[slot] != 0:
            return np.uint32(table[slot + 1])
        context = suffix[context]
    return np.uint32(word)


@inner
def backed_off(end, context, contexts, suffix, values, backoff):  # type: ignore[no-untyped-def]
    """log10 of the probability of a word after a context.

    `end` is the row of the longest n-gram that the context, or a suffix of it, makes with the
    word; what lies between pays. A context that is no n-gram pays nothing, so links jump over it.
    """
    value, stop = values[end], contexts[end]
    while context != stop:
        value += backoff[context]
        context = suffix[context]
    return value


@compiled
def _enter(start, end, context, word, table):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        if i + _AHEAD < end:
            prefetch(table, home_of(table, key_of(context[i + _AHEAD], word[i + _AHEAD])))
        key = key_of(context[i], word[i])
        slot = find_slot(table, key)
        table[slot], table[slot + 1] = key, i


@compiled
def _link(start, end, context, suffix, word, table):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        if i + 2 * _AHEAD < end:
            prefetch(suffix, np.int64(context[i + 2 * _AHEAD]))
            near = suffix[context[i + _AHEAD]]
            prefetch(table, home_of(table, key_of(near, word[i + _AHEAD])))
        suffix[i] = longest(table, suffix, suffix[context[i]], word[i])


@compiled
def _add_up(start, end, low, context, suffix, word, prob, backoff, sums):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        if i + _AHEAD < end:
            prefetch(sums, 2 * np.int64(context[i + _AHEAD] - low))
            prefetch(suffix, np.int64(context[i + _AHEAD]))
            prefetch(context, np.int64(suffix[i + _AHEAD]))
            prefetch(prob, np.int64(suffix[i + _AHEAD]))
        if word[i] != BOS:  # never predicted
            lower = backed_off(suffix[i], suffix[context[i]], context, suffix, prob, backoff)
            at = 2 * np.int64(context[i] - low)
            sums[at] += math.exp(prob[i] * _LN10)
            sums[at + 1] += math.exp(lower * _LN10)


@compiled
def _set_backoffs(start, end, sums, backoff):  # type: ignore[no-untyped-def]
    for i in range(start, end):
        left, free = 1 - sums[2 * i], 1 - sums[2 * i + 1]
        if free <= _NONE_FREE:
            backoff[i] = -np.inf
        elif left > 0:
            backoff[i] = math.log10(left / free)
