"""Scoring with a back-off model: a whole batch order by order, not word by word.

The name of the n-gram of some order that ends at a position follows from the names of the order
below alone, so the look-ups of one order do not wait for each other, and their ways to memory
overlap.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from seqloom.compiled import INNER, compiled, compiled_with_gil, inner, prefetch
from seqloom.ngram.counting import key_of
from seqloom.ngram.eights import scan_word_fast
from seqloom.ngram.hashed import (
    AHEAD,
    BUCKET,
    Hashed,
    bucket_of,
    cell_size,
    find_hashed,
    hashed_backoff,
    hashed_extends,
    hashed_prob,
    look_in_buckets,
    value_at,
)
from seqloom.ngram.known import PADDING
from seqloom.ngram.trie import find_packed, packed_backoff, packed_extends, packed_prob
from seqloom.ngram.words import BOS, EOS, NONE, UNK, find_word, is_blank

_NONE = np.uint32(NONE)
_LN10 = math.log(10)
_U = np.uint64
_1, _32, _LOW = _U(1), _U(32), _U(0xFFFFFFFF)


# Names that compiled code calls; which function each means is chosen by the kind of store below.


def _find(tables: Any, order: Any, context: Any, word: Any) -> Any:
    raise NotImplementedError


def _prob(tables: Any, order: Any, name: Any) -> Any:
    raise NotImplementedError


def _backoff(tables: Any, order: Any, name: Any) -> Any:
    raise NotImplementedError


def _extends(tables: Any, order: Any, name: Any) -> Any:
    raise NotImplementedError


@overload(_find, jit_options=INNER, strict=False)
def _find_by_kind(tables, order, context, word):  # type: ignore[no-untyped-def]
    del order, context, word
    return (find_hashed if tables.instance_class is Hashed else find_packed).py_func


@overload(_prob, jit_options=INNER, strict=False)
def _prob_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    return (hashed_prob if tables.instance_class is Hashed else packed_prob).py_func


@overload(_backoff, jit_options=INNER, strict=False)
def _backoff_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    return (hashed_backoff if tables.instance_class is Hashed else packed_backoff).py_func


@overload(_extends, jit_options=INNER, strict=False)
def _extends_by_kind(tables, order, name):  # type: ignore[no-untyped-def]
    del order, name
    return (hashed_extends if tables.instance_class is Hashed else packed_extends).py_func


@inner
def _score(  # type: ignore[no-untyped-def]
    tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
):
    """log10 p of each word of sentences that each begin with BOS, and the order it used.

    `<s>` gets 0 and order 0. `below` to `keys` are room to work in, as long as `ids`.

    A word that goes on from its context takes the longer n-gram's probability; one that does not
    pays the context's back-off on top of what the shorter one gave.
    """
    for i in range(len(ids)):
        below[i] = ids[i]
        paid[i] = _backoff(tables, 0, ids[i])
        values[i] = 0.0 if ids[i] == BOS else _prob(tables, 0, ids[i])
        orders[i] = 0 if ids[i] == BOS else 1
    for o in range(1, order):
        top = o + 1 == order
        if o & 1:  # what was filled in one turn is read in the next
            _fill(tables, o, top, missing, suffixes, ids, below, here, paid, pays, values, orders)
        else:
            _fill(tables, o, top, missing, suffixes, ids, here, below, pays, paid, values, orders)


@inner
def _fill(  # type: ignore[no-untyped-def]
    tables, order, top, missing, suffixes, ids, below, here, paid, pays, values, orders
):
    """One order: `below` and `paid` have names and back-offs of the order below, the rest get."""
    for i in range(len(ids)):
        here[i] = _NONE
        if ids[i] == BOS:
            continue
        context = below[i - 1]
        if context == _NONE:
            if missing != 0 and _reaches(ids, i, order):
                values[i] += missing
            continue
        if not suffixes or below[i] != _NONE:
            here[i] = _find(tables, order, context, ids[i])
        if here[i] == _NONE:
            values[i] += paid[i - 1]
        else:
            values[i] = _prob(tables, order, here[i])
            orders[i] = order + 1
            pays[i] = 0.0 if top else _backoff(tables, order, here[i])


@inner
def _reaches(ids, i, words):  # type: ignore[no-untyped-def]
    """Whether so many words of context, `<s>` among them, stand before position i."""
    first = i - words
    while i > first + 1:
        i -= 1
        if ids[i] == BOS:
            return False
    return True


@inner
def _score_hashed(  # type: ignore[no-untyped-def]
    tables, order, suffixes, ids, below, live, paid, slots, keys, values, orders
):
    """The same for a hashed store, quicker: only positions that can go on are looked at again.

    `live[first:]` lists the positions at which an n-gram of the order below ends, which are those
    where `orders` says so. They are taken some at a time: what is needed from the table is called
    for before it is looked at, and words are sorted into lists by what was found and not branched
    on, as it cannot be foreseen. The last ones go first, since a look-up writes what those of later
    positions read. `keys` and `slots` hold twice AHEAD at least.
    """
    cells, stored, size = tables.cells, tables.values, _U(cell_size(tables))
    n, ahead = _U(len(ids)), _U(AHEAD)
    for k in range(n):
        at = value_at(size, _U(ids[k]))
        below[k] = ids[k]
        live[k] = k
        paid[k] = stored[at + _1]
        values[k] = 0.0 if ids[k] == BOS else stored[at]
        orders[k] = 0 if ids[k] == BOS else 1
    first = _U(0)
    for o in range(1, order):
        start, buckets = _U(tables.starts[o]), _U(tables.homes[o] // BUCKET)
        left, upto, first = first, n, n
        while upto > left:
            begin = max(left + ahead, upto) - ahead
            asked, due, hits = _U(0), ahead, _U(0)  # due: those that pay for leaving the context
            for k in range(begin, upto):
                i = _U(live[k]) + _1
                if i >= n or ids[i] == BOS:
                    continue
                can_go_on = not suffixes or orders[i] == o
                keys[asked] = keys[due] = i
                asked += _U(can_go_on)
                due += _U(not can_go_on)
            for k in range(asked):
                i = keys[k]
                keys[k] = key_of(below[i - _1], ids[i])
                slot = start + bucket_of(keys[k], buckets)
                slots[k] = i << _32 | slot
                prefetch(cells, size * slot)
                prefetch(cells, size * slot + _U(BUCKET))
            for k in range(asked):
                i = slots[k] >> _32
                slot, is_found = look_in_buckets(cells, size, slots[k] & _LOW, keys[k])
                slots[hits] = i << _32 | slot
                keys[due] = i
                hits += _U(is_found)
                due += _U(not is_found)
            for k in range(ahead, due):
                values[keys[k]] += paid[keys[k] - _1]
            while hits > 0:
                hits -= _1
                i, slot = slots[hits] >> _32, slots[hits] & _LOW
                at = value_at(size, slot)
                values[i], paid[i] = stored[at], stored[at + _1]
                orders[i] = o + 1
                below[i] = slot
                first -= _1
                live[first] = i
            upto = begin


def _score_by(*arguments: Any) -> Any:
    raise NotImplementedError


@overload(_score_by, jit_options=INNER, strict=False)
def _score_by_kind(  # type: ignore[no-untyped-def]
    tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
):
    def any_store(  # type: ignore[no-untyped-def]
        tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
    ):
        _score(
            tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys,
            values, orders,
        )  # fmt: skip

    def hashed(  # type: ignore[no-untyped-def]
        tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
    ):
        if missing == 0:
            _score_hashed(
                tables, order, suffixes, ids, below, here, paid, slots, keys, values, orders
            )
        else:
            _score(
                tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys,
                values, orders,
            )  # fmt: skip

    return hashed if tables.instance_class is Hashed else any_store


@compiled
def score_ids(  # type: ignore[no-untyped-def]
    tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
):
    """The natural log-probability of each word of a block of sentences, and the order it used."""
    _score_by(
        tables, order, suffixes, missing, ids, below, here, paid, pays, slots, keys, values, orders
    )
    for i in range(len(ids)):
        values[i] *= _LN10


@compiled
def sum_sentences(ids, values, totals, counts, unknown, known_totals):  # type: ignore[no-untyped-def]
    """By sentence: the sum of log-probabilities, how many words, and of these the unknown ones."""
    s = -1
    for i in range(len(ids)):
        if ids[i] == BOS:
            s += 1
            totals[s] = 0.0
            counts[s] = 0
            unknown[s] = 0
            known_totals[s] = 0.0
        else:
            totals[s] += values[i]
            counts[s] += 1
            if ids[i] == UNK:
                unknown[s] += 1
            else:
                known_totals[s] += values[i]
    return s + 1


@inner
def _is_end(tables, order, name):  # type: ignore[no-untyped-def]
    """Whether nothing goes on from an n-gram and leaving it costs nothing."""
    return not _extends(tables, order, name) and _backoff(tables, order, name) == 0


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
        if missing == 0 and after[c] != _NONE and _is_end(tables, c, after[c]):
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


def _pointer(kind: Any, bits: Any) -> Any:
    @intrinsic
    def pointer(typing_context, address):  # type: ignore[no-untyped-def]
        del typing_context

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            del context, signature
            return builder.inttoptr(arguments[0], bits.as_pointer())

        return types.CPointer(kind)(address), generate  # type: ignore[attr-defined]

    return pointer


_u8 = _pointer(types.uint8, ir.IntType(8))
_u32 = _pointer(types.uint32, ir.IntType(32))
_u64 = _pointer(types.uint64, ir.IntType(64))
_i64 = _pointer(types.int64, ir.IntType(64))
_f32 = _pointer(types.float32, ir.FloatType())
_f64 = _pointer(types.float64, ir.DoubleType())


# A handle is a model's addresses in one array, since one number is quick to hand over: its fields.
CELLS, CELLS_SIZE, STARTS, HOMES, ORDER, TABLE, TABLE_SIZE, POOL, POOL_SIZE = range(9)
OFFSETS, OFFSETS_SIZE, SUFFIXES, WORK, FIELDS = range(9, 14)
LONGEST = 1 << 12  # bytes of a sentence that is scored through a handle, its padding included
_ROOM = LONGEST // 2 + 8  # words of it, with its marks
WORK_BYTES = _ROOM * (8 * 5 + 4 * 3 + 4)


@numba.njit(error_model="numpy")
def _sentence(tables, h, missing, text):  # type: ignore[no-untyped-def]
    """The natural log-probability of one sentence: tokenized and scored without leaving here.

    PADDING stands behind it.
    """
    table, pool = (
        numba.carray(_u64(h[TABLE]), h[TABLE_SIZE]),
        numba.carray(_u8(h[POOL]), h[POOL_SIZE]),
    )
    offsets, work = numba.carray(_i64(h[OFFSETS]), h[OFFSETS_SIZE]), h[WORK]
    ids = numba.carray(_u32(work + 40 * _ROOM), _ROOM)
    ids[0] = BOS
    n, at = 1, 0
    while at < len(text) - len(PADDING):
        if is_blank(text[at]):
            at += 1
            continue
        end, key, is_long = scan_word_fast(text, at)
        entry = table[find_word(text, at, end, key, is_long, table, pool, offsets) + _1]
        number = np.uint32((entry & _LOW) - _1) if entry != 0 else np.uint32(UNK)
        at = end
        if number != BOS and number != EOS:
            ids[n] = number
            n += 1
    ids[n] = EOS
    n += 1
    values = numba.carray(_f64(work), n)
    _score_by(
        tables, h[ORDER], h[SUFFIXES] != 0, missing, numba.carray(_u32(work + 40 * _ROOM), n),
        numba.carray(_u32(work + 44 * _ROOM), n), numba.carray(_u32(work + 48 * _ROOM), n),
        numba.carray(_f64(work + 8 * _ROOM), n), numba.carray(_f64(work + 16 * _ROOM), n),
        numba.carray(_u64(work + 24 * _ROOM), _ROOM), numba.carray(_u64(work + 32 * _ROOM), _ROOM),
        values, numba.carray(_u8(work + 52 * _ROOM), n),
    )  # fmt: skip
    total = 0.0
    for i in range(n):
        total += values[i]
    return total * _LN10


@compiled_with_gil
def score_text(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in single precision; the handle's room to work in is one."""
    h = numba.carray(_i64(handle), FIELDS)
    cells, values = numba.carray(_u64(h[CELLS]), h[CELLS_SIZE]), _f32(h[CELLS])
    starts, homes = (
        numba.carray(_i64(h[STARTS]), h[ORDER] + 1),
        numba.carray(_i64(h[HOMES]), h[ORDER]),
    )
    tables = Hashed(cells, numba.carray(values, 2 * h[CELLS_SIZE]), starts, homes)
    return _sentence(tables, h, missing, text)


@compiled_with_gil
def score_text_exactly(handle, missing, text):  # type: ignore[no-untyped-def]
    """One sentence by a hashed store in double precision."""
    h = numba.carray(_i64(handle), FIELDS)
    cells, values = numba.carray(_u64(h[CELLS]), h[CELLS_SIZE]), _f64(h[CELLS])
    starts, homes = (
        numba.carray(_i64(h[STARTS]), h[ORDER] + 1),
        numba.carray(_i64(h[HOMES]), h[ORDER]),
    )
    tables = Hashed(cells, numba.carray(values, h[CELLS_SIZE]), starts, homes)
    return _sentence(tables, h, missing, text)
