"""Scoring with a back-off model: a whole batch order by order, not word by word.

The name of the n-gram of some order that ends at a position follows from the names of the order
below alone, so the look-ups of one order do not wait for each other, and their ways to memory
overlap.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from seqloom.compiled import compiled, inner, prefetch
from seqloom.ngram.counting import key_of
from seqloom.ngram.hashed import (
    Hashed,
    cell_size,
    find_hashed,
    hashed_backoff,
    hashed_extends,
    hashed_prob,
    home_of,
    look_from,
    value_at,
)
from seqloom.ngram.trie import Packed, find_packed, packed_backoff, packed_extends, packed_prob
from seqloom.ngram.words import BOS, EOS, NONE, UNK, find_word, is_blank, scan_word

_NONE = np.uint32(NONE)
_LN10 = math.log(10)
_U = np.uint64
_1, _LOW = _U(1), _U(0xFFFFFFFF)


def _find(tables, order, context, word):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def _prob(tables, order, name):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def _backoff(tables, order, name):  # type: ignore[no-untyped-def]
    raise NotImplementedError


def _extends(tables, order, name):  # type: ignore[no-untyped-def]
    raise NotImplementedError


# Compiled code calls what belongs to the kind of store it is given.


@overload(_find)
def _find_by_kind(tables, order, context, word):  # type: ignore[no-untyped-def]
    del order, context, word
    if tables.instance_class is Hashed:
        return lambda tables, order, context, word: find_hashed(tables, order, context, word)
    return lambda tables, order, context, word: find_packed(tables, order, context, word)


@overload(_prob)
def _prob_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    if tables.instance_class is Hashed:
        return lambda tables, order, name: hashed_prob(tables, order, name)
    return lambda tables, order, name: packed_prob(tables, order, name)


@overload(_backoff)
def _backoff_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    if tables.instance_class is Hashed:
        return lambda tables, order, name: hashed_backoff(tables, order, name)
    return lambda tables, order, name: packed_backoff(tables, order, name)


@overload(_extends)
def _extends_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    if tables.instance_class is Hashed:
        return lambda tables, order, name: hashed_extends(tables, order, name)
    return lambda tables, order, name: packed_extends(tables, order, name)


def _fill(tables, order, missing, suffixes, ids, below, here, paid, pays, values, orders):  # type: ignore[no-untyped-def]
    raise NotImplementedError


@inner
def _fill_any(  # type: ignore[no-untyped-def]
    tables, order, missing, suffixes, ids, below, here, paid, pays, values, orders
):
    """One order, for sentences that each begin with BOS.

    `below` has the names of the order below and `paid` their back-offs; `here` and `pays` get those
    of this order. A word that goes on from its context takes this order's probability; one that
    does not pays the context's back-off on top of what the shorter ones gave.
    """
    for i in range(len(ids)):
        here[i] = _NONE
        if ids[i] == BOS:
            continue
        context = below[i - 1]
        if context == _NONE:
            if missing != 0:
                values[i] += missing if _reach(ids, i, order) else 0.0
            continue
        if not suffixes or below[i] != _NONE:
            here[i] = _find(tables, order, context, ids[i])
        if here[i] == _NONE:
            values[i] += paid[i - 1]
        else:
            values[i] = _prob(tables, order, here[i])
            orders[i] = order + 1
            if len(pays):
                pays[i] = _backoff(tables, order, here[i])


@inner
def _reach(ids, i, words):  # type: ignore[no-untyped-def]
    """Whether so many words of context stand before position i in its sentence."""
    for back in range(1, words + 1):
        if ids[i - back] == BOS:
            return back == words
    return True


@inner
def _fill_hashed(  # type: ignore[no-untyped-def]
    tables, order, missing, suffixes, ids, below, here, paid, pays, values, orders
):
    """The same for a hashed store: first every home is computed and called for, then looked at."""
    cells, stored, size = tables.cells, tables.values, cell_size(tables)
    start, homes = tables.starts[order], tables.homes[order]
    slots = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        slots[i] = -1
        if ids[i] != BOS and below[i - 1] != _NONE and (not suffixes or below[i] != _NONE):
            slots[i] = start + home_of(key_of(below[i - 1], ids[i]), homes)
            prefetch(cells, size * slots[i])
    for i in range(len(ids)):
        here[i] = _NONE
        if ids[i] == BOS:
            continue
        context = below[i - 1]
        if context == _NONE:
            if missing != 0:
                values[i] += missing if _reach(ids, i, order) else 0.0
            continue
        if slots[i] >= 0:
            here[i] = look_from(cells, size, slots[i], key_of(context, ids[i]))
        if here[i] == _NONE:
            values[i] += paid[i - 1]
        else:
            at = value_at(tables, size, np.int64(here[i]))
            values[i] = stored[at]
            orders[i] = order + 1
            if len(pays):
                pays[i] = stored[at + 1]


@overload(_fill)
def _fill_by_kind(  # type: ignore[no-untyped-def]
    tables, order, missing, suffixes, ids, below, here, paid, pays, values, orders
):
    if tables.instance_class is Hashed:
        return _fill_hashed.py_func
    return _fill_any.py_func


@inner
def _score(tables, order, suffixes, missing, ids, values, orders):  # type: ignore[no-untyped-def]
    """log10 p of each word, and the order it used; `<s>` gets 0 and order 0."""
    n = len(ids)
    below, here = np.empty(n, np.uint32), np.empty(n, np.uint32)
    paid, pays = np.empty(n), np.empty(n)
    for i in range(n):
        below[i] = ids[i]
        values[i] = 0.0 if ids[i] == BOS else _prob(tables, 0, ids[i])
        orders[i] = 0 if ids[i] == BOS else 1
        paid[i] = _backoff(tables, 0, ids[i])
    for o in range(1, order):
        kept = pays if o + 1 < order else pays[:0]
        _fill(tables, o, missing, suffixes, ids, below, here, paid, kept, values, orders)
        below, here = here, below
        paid, pays = pays, paid


@compiled
def score_ids(tables, order, suffixes, missing, ids, values, orders):  # type: ignore[no-untyped-def]
    """The natural log-probability of each word of a block of sentences, and the order it used."""
    _score(tables, order, suffixes, missing, ids, values, orders)
    for i in range(len(ids)):
        values[i] *= _LN10


@compiled
def sum_sentences(ids, values, totals, counts, unknown, unknown_totals):  # type: ignore[no-untyped-def]
    """By sentence: the sum of log-probabilities, how many words, and of these the unknown ones."""
    s = -1
    for i in range(len(ids)):
        if ids[i] == BOS:
            s += 1
            totals[s] = 0.0
            counts[s] = 0
            unknown[s] = 0
            unknown_totals[s] = 0.0
        else:
            totals[s] += values[i]
            counts[s] += 1
            if ids[i] == UNK:
                unknown[s] += 1
                unknown_totals[s] += values[i]
    return s + 1


@compiled
def advance(tables, order, missing, state, word, after):  # type: ignore[no-untyped-def]
    """One word further: log10 p after a state, and the state after it.

    A state is the names of the n-grams that end here, shortest first, NONE where there is none;
    `state[order - 1]` counts the words of context. Names from which nothing goes on and that cost
    nothing to leave are dropped, so that states with the same future are equal.
    """
    reach = np.int64(state[order - 1])
    top = min(order - 1, reach)
    names = np.empty(order, np.uint32)
    names[0] = word
    for o in range(1, order):
        before = state[o - 1]
        names[o] = _NONE if o > top or before == _NONE else _find(tables, o, before, word)
    o = top
    while o > 0 and names[o] == _NONE:
        o -= 1
    value = np.float64(_prob(tables, o, names[o]))
    for c in range(o, top):
        before = state[c]
        value += missing if before == _NONE else np.float64(_backoff(tables, c, before))
    longest = 0
    for c in range(order - 1):
        after[c] = names[c] if c <= top else _NONE
        if missing == 0 and after[c] != _NONE and not _extends(tables, c, after[c]):
            if _backoff(tables, c, after[c]) == 0:
                after[c] = _NONE
        if after[c] != _NONE:
            longest = c + 1
    after[order - 1] = min(reach + 1, order - 1) if missing != 0 else longest
    return value, o + 1


@compiled
def spread(tables, order, missing, state, values):  # type: ignore[no-untyped-def]
    """log10 p of every word after a state, by number: `values` gets them, `<s>` 0."""
    after = np.empty(order, np.uint32)
    for word in range(len(values)):
        values[word], _ = advance(tables, order, missing, state, word, after)


def _pointer(kind, bits):  # type: ignore[no-untyped-def]
    @intrinsic
    def pointer(typing_context, address):  # type: ignore[no-untyped-def]
        del typing_context

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            del context, signature
            return builder.inttoptr(arguments[0], bits.as_pointer())

        return types.CPointer(kind)(address), generate

    return pointer


_u8 = _pointer(types.uint8, ir.IntType(8))
_u64 = _pointer(types.uint64, ir.IntType(64))
_i64 = _pointer(types.int64, ir.IntType(64))
_f32 = _pointer(types.float32, ir.FloatType())
_f64 = _pointer(types.float64, ir.DoubleType())


@inner
def _sentence(tables, table, pool, offsets, order, suffixes, missing, text):  # type: ignore[no-untyped-def]
    """The natural log-probability of one sentence: tokenized and scored without leaving here."""
    ids = np.empty(len(text) // 2 + 3, np.uint32)
    ids[0] = BOS
    n, at = 1, 0
    while at < len(text):
        if is_blank(text[at]):
            at += 1
            continue
        end, key, is_long = scan_word(text, at)
        entry = table[find_word(text, at, end, key, is_long, table, pool, offsets) + _1]
        number = np.uint32((entry & _LOW) - _1) if entry != 0 else np.uint32(UNK)
        at = end
        if number != BOS and number != EOS:
            ids[n] = number
            n += 1
    ids[n] = EOS
    values, orders = np.empty(n + 1), np.empty(n + 1, np.uint8)
    _score(tables, order, suffixes, missing, ids[: n + 1], values, orders)
    return values.sum() * _LN10


@inner
def _unpack(handle):  # type: ignore[no-untyped-def]
    """The arrays behind a handle: a model's addresses in one array, as one number is quick to give.

    Its fields: cells, starts, homes, order, table, pool and offsets, arrays with their lengths.
    """
    h = numba.carray(_i64(handle), 12)
    cells, starts = numba.carray(_u64(h[0]), h[1]), numba.carray(_i64(h[2]), h[4] + 1)
    homes = numba.carray(_i64(h[3]), h[4])
    table, pool = numba.carray(_u64(h[5]), h[6]), numba.carray(_u8(h[7]), h[8])
    return h, cells, starts, homes, table, pool, numba.carray(_i64(h[9]), h[10])


@compiled
def score_text(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in single precision."""
    h, cells, starts, homes, table, pool, offsets = _unpack(handle)
    tables = Hashed(cells, numba.carray(_f32(h[0]), 2 * h[1]), starts, homes)
    return _sentence(tables, table, pool, offsets, h[4], h[11] != 0, missing, text)


@compiled
def score_text_exactly(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in double precision."""
    h, cells, starts, homes, table, pool, offsets = _unpack(handle)
    tables = Hashed(cells, numba.carray(_f64(h[0]), h[1]), starts, homes)
    return _sentence(tables, table, pool, offsets, h[4], h[11] != 0, missing, text)
