"""Inside compiled code: eight bytes at once, wherever they lie.

They are a number whose lowest byte comes first, on every machine. Nothing checks that eight bytes
are there: who calls keeps seven bytes of room behind the last one that counts.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from seqloom.compiled import inner
from seqloom.ngram.words import NONE, is_blank, mix, scan_word

_U = np.uint64
_3 = _U(3)
_DIGITS, _BEYOND_9 = _U(0x3030303030303030), _U(0x7676767676767676)
_BELOW_33, _HIGH = _U(0x2121212121212121), _U(0x8080808080808080)
_ONE, _TWO, _LONG = _U(1), _U(2), _U(1 << 63)
_ONE_32, _NONE = np.uint32(1), np.uint32(NONE)


def _place(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    view = context.make_array(kind)(context, builder, arguments[0])
    where = builder.gep(view.data, [arguments[1]])
    return builder.bitcast(where, ir.IntType(64).as_pointer())


def _first_lowest(builder: Any, number: Any) -> Any:
    return builder.bswap(number) if sys.byteorder == "big" else number


@intrinsic
def load8(typing_context, array, index):  # type: ignore[no-untyped-def]
    """The eight bytes from an index on."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        loaded = builder.load(_place(context, builder, signature.args[0], arguments))
        loaded.align = 1
        return _first_lowest(builder, loaded)

    return types.uint64(array, types.int64), generate


@intrinsic
def store8(typing_context, array, index, number):  # type: ignore[no-untyped-def]
    """Put eight bytes at an index."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature.args[0], arguments)
        stored = builder.store(_first_lowest(builder, arguments[2]), place)
        stored.align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


@intrinsic
def lowest_bit(typing_context, number):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; there must be one."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@intrinsic
def highest_bit(typing_context, number):  # type: ignore[no-untyped-def]
    """The place of the highest bit that is set; there must be one."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.sub(ir.IntType(64)(63), builder.ctlz(arguments[0], ir.IntType(1)(1)))

    return types.uint64(types.uint64), generate


@inner
def count_digits(eight):  # type: ignore[no-untyped-def]
    """How many of eight bytes are digits before the first that is none."""
    eight ^= _DIGITS
    others = ((eight & ~_HIGH) + _BEYOND_9 | eight) & _HIGH
    return np.int64(lowest_bit(others) >> _3) if others != 0 else 8


@inner
def read_digits(eight, size):  # type: ignore[no-untyped-def]
    """The number that the first digits of eight bytes are; `size` of them, at least one.

    Neighbours are joined, 1 digit and 1, then 2 and 2, then 4 and 4.
    """
    eight = (eight - _DIGITS) << _U(8 * (8 - size))
    eight = (eight * _U(10) + (eight >> _U(8))) & _U(0x00FF00FF00FF00FF)
    eight = (eight * _U(100) + (eight >> _U(16))) & _U(0x0000FFFF0000FFFF)
    return np.int64((eight * _U(10000) + (eight >> _U(32))) & _U(0xFFFFFFFF))


@inner
def split_digits(number):  # type: ignore[no-untyped-def]
    """The eight decimal digits of a number below 10**8 as bytes, the first lowest: the reverse."""
    fours = number // _U(10000) | (number % _U(10000)) << _U(32)
    upper = ((fours * _U(10486)) >> _U(20)) & _U(0x0000007F0000007F)  # divides by 100
    twos = upper | (fours - upper * _U(100)) << _U(16)
    tens = ((twos * _U(103)) >> _U(10)) & _U(0x000F000F000F000F)  # divides by 10
    return tens | (twos - tens * _U(10)) << _U(8)


@inner
def _low_bytes(eight):  # type: ignore[no-untyped-def]
    """A number that is 0 if no byte is below 33; its lowest bit is in the first such byte."""
    return (eight - _BELOW_33) & ~eight & _HIGH


@inner
def scan_word_fast(text, at):  # type: ignore[no-untyped-def]
    """What `words.scan_word` gives, for a text whose last word ends at a blank."""
    block = load8(text, at)
    low = _low_bytes(block)
    if low != 0:
        size = lowest_bit(low) >> _3
        end = at + np.int64(size)
        if not is_blank(text[end]):  # another control character, which is part of a word
            return scan_word(text, at)
        return end, block & ((_ONE << (size << _3)) - _ONE), False
    h, end = _U(0), at + 8
    while True:
        eight = load8(text, end)
        low = _low_bytes(eight)
        if low == 0:
            h, block = mix(h ^ block), eight
            end += 8
            continue
        size = lowest_bit(low) >> _3
        if not is_blank(text[end + np.int64(size)]):
            return scan_word(text, at)
        if size != 0:
            h, block = mix(h ^ block), eight & ((_ONE << (size << _3)) - _ONE)
            end += np.int64(size)
        is_long = end - at > 8
        return end, (mix(h ^ block) if is_long else block), is_long


@inner
def same_word(text, start, end, pool, at):  # type: ignore[no-untyped-def]
    """Whether a word of more than eight bytes stands in the pool as well, in as many bytes."""
    last = end - 8
    shift = at - start
    while start < last:
        if load8(text, start) != load8(pool, start + shift):
            return False
        start += 8
    return load8(text, last) == load8(pool, last + shift)


@inner
def find_number(text, start, end, key, table, pool, offsets):  # type: ignore[no-untyped-def]
    """The number of a word in the table of `words.find_word`; NONE if it is not there."""
    mask = _U(len(table) - 2)
    slot = (mix(key) << _ONE) & mask
    while True:
        entry = table[slot + _ONE]
        if entry == 0:
            return _NONE
        if table[slot] == key:
            number = np.uint32(entry) - _ONE_32
            if end - start <= 8:
                if entry < _LONG:
                    return number
            elif entry >= _LONG:
                at = offsets[number]
                same_size = offsets[number + _ONE_32] - at == end - start
                if same_size and same_word(text, start, end, pool, at):
                    return number
        slot = (slot + _TWO) & mask
