"""Scoring with a back-off model: a whole batch order by order, not word by word.

Row o of `found` holds, for every position, the name of the n-gram of order o + 1 that ends there.
It follows from row o - 1 alone, so the look-ups of one order do not wait for each other and the
processor overlaps their ways to memory.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from seqloom.compiled import compiled, inner
from seqloom.ngram.hashed import Hashed, find_hashed, hashed_backoff, hashed_extends, hashed_prob
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


@inner
def _find_all(tables, order, suffixes, ids, found):  # type: ignore[no-untyped-def]
    """Fill `found`, order by order, for sentences that each begin with BOS."""
    n = len(ids)
    for i in range(n):
        found[0, i] = ids[i]
    for o in range(1, order):
        below, here = found[o - 1], found[o]
        here[0] = _NONE
        for i in range(1, n):
            if below[i - 1] == _NONE or ids[i] == BOS or (suffixes and below[i] == _NONE):
                here[i] = _NONE
            else:
                here[i] = _find(tables, o, below[i - 1], ids[i])


@inner
def _combine(tables, order, missing, found, i, reach):  # type: ignore[no-untyped-def]
    """log10 p of the word at i, and the order used; `reach` words of context are at hand."""
    top = min(order - 1, reach)
    o = top
    while o > 0 and found[o, i] == _NONE:
        o -= 1
    value = np.float64(_prob(tables, o, found[o, i]))
    for c in range(o, top):  # the contexts that did not go on to this word
        name = found[c, i - 1]
        value += missing if name == _NONE else np.float64(_backoff(tables, c, name))
    return value, o + 1


@compiled
def score_ids(tables, order, suffixes, missing, ids, values, orders):  # type: ignore[no-untyped-def]
    """The natural log-probability of each word of a block of sentences, and the order it used.

    `<s>` gets 0 and order 0.
    """
    found = np.empty((order, len(ids)), np.uint32)
    _find_all(tables, order, suffixes, ids, found)
    reach = 0
    for i in range(len(ids)):
        if ids[i] == BOS:
            values[i] = 0.0
            orders[i] = 0
            reach = 0
        else:
            reach += 1
            value, used = _combine(tables, order, missing, found, i, reach)
            values[i] = value * _LN10
            orders[i] = used


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
    found = np.empty((order, n + 1), np.uint32)
    _find_all(tables, order, suffixes, ids[: n + 1], found)
    total = 0.0
    for i in range(1, n + 1):
        total += _combine(tables, order, missing, found, i, i)[0]
    return total * _LN10


# The fields of a handle: a model's arrays by address, since handing over one number is quick.
HANDLE = (
    "keys", "keys_size", "values", "values_size", "last", "last_size", "starts", "homes", "order",
    "table", "table_size", "pool", "pool_size", "offsets", "offsets_size", "suffixes",
)  # fmt: skip


@compiled
def score_text(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in single precision."""
    h = numba.carray(_i64(handle), 16)
    tables = Hashed(
        numba.carray(_u64(h[0]), h[1]), numba.carray(_f32(h[2]), (h[3], 2)),
        numba.carray(_f32(h[4]), h[5]),
        numba.carray(_i64(h[6]), h[8] + 1), numba.carray(_i64(h[7]), h[8]),
    )  # fmt: skip
    table, pool = numba.carray(_u64(h[9]), h[10]), numba.carray(_u8(h[11]), h[12])
    offsets = numba.carray(_i64(h[13]), h[14])
    return _sentence(tables, table, pool, offsets, h[8], h[15] != 0, missing, text)


@compiled
def score_text_exactly(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in double precision."""
    h = numba.carray(_i64(handle), 16)
    tables = Hashed(
        numba.carray(_u64(h[0]), h[1]), numba.carray(_f64(h[2]), (h[3], 2)),
        numba.carray(_f64(h[4]), h[5]),
        numba.carray(_i64(h[6]), h[8] + 1), numba.carray(_i64(h[7]), h[8]),
    )  # fmt: skip
    table, pool = numba.carray(_u64(h[9]), h[10]), numba.carray(_u8(h[11]), h[12])
    offsets = numba.carray(_i64(h[13]), h[14])
    return _sentence(tables, table, pool, offsets, h[8], h[15] != 0, missing, text)
