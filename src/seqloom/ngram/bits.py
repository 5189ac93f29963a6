"""Bits in 64-bit words: numbers of any width side by side, and sets that count and find members.

A set is a row of bits in blocks of 512. `ranks` says how many members come before each block,
`hints` in which block every 512th member lies, so finding the i-th looks at two or three blocks.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from seqloom.compiled import compiled, inner

BLOCK = 512  # bits of a set that have one entry in `ranks`; members that have one in `hints`
WORDS = BLOCK // 64
_U = np.uint64
_1, _63 = _U(1), _U(63)
_SHIFT = 9  # the logarithm of BLOCK
_MASK = BLOCK - 1


@intrinsic
def popcount(typing_context, value):  # type: ignore[no-untyped-def]
    """Inside compiled code: how many bits of a 64-bit word are set."""
    del typing_context, value

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@inner
def read_bits(stream, at, width):  # type: ignore[no-untyped-def]
    """The number of `width` bits, 63 at most, that begins at bit `at`; one more word follows it."""
    shift = _U(at & 63)
    low = stream[at >> 6] >> shift
    high = (stream[(at >> 6) + 1] << _1) << (_63 - shift)
    return (low | high) & ((_1 << _U(width)) - _1)


@inner
def write_bits(stream, at, value):  # type: ignore[no-untyped-def]
    """Write a number where the stream is still zero."""
    shift = _U(at & 63)
    stream[at >> 6] |= value << shift
    high = (value >> _1) >> (_63 - shift)
    if high != 0:
        stream[(at >> 6) + 1] |= high


@inner
def first_bit(word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set."""
    return popcount(~word & (word - _1))


@inner
def _find_in_word(word, index):  # type: ignore[no-untyped-def]
    """The place of the bit that has `index` set ones below it."""
    at, width = 0, 32
    while width > 0:
        below = popcount(word & ((_1 << _U(width)) - _1))
        if index >= below:
            index -= below
            at += width
            word >>= _U(width)
        width >>= 1
    return at


@inner
def find_member(bits, ranks, hints, block, hint, index):  # type: ignore[no-untyped-def]
    """The bit of member `index` of the set that begins at a block and has its hints at `hint`."""
    low = np.int64(hints[hint + (index >> _SHIFT)])
    high = np.int64(hints[hint + (index >> _SHIFT) + 1])
    while low < high:
        middle = (low + high + 1) >> 1
        if np.int64(ranks[block + middle]) <= index:
            low = middle
        else:
            high = middle - 1
    left = index - np.int64(ranks[block + low])
    at = (block + low) * WORDS
    here = popcount(bits[at])
    while left >= here:
        left -= here
        at += 1
        here = popcount(bits[at])
    return ((at - block * WORDS) << 6) + _find_in_word(bits[at], left)


@inner
def is_member(bits, block, at):  # type: ignore[no-untyped-def]
    """Whether bit `at` of the set that begins at a block is set."""
    return (bits[block * WORDS + (at >> 6)] >> _U(at & 63)) & _1 != 0


@inner
def members_before(bits, ranks, block, at):  # type: ignore[no-untyped-def]
    """How many members of the set that begins at a block come before bit `at`."""
    count = np.int64(ranks[block + (at >> _SHIFT)])
    word = (block + (at >> _SHIFT)) * WORDS
    for i in range((at & _MASK) >> 6):
        count += popcount(bits[word + i])
    return count + popcount(bits[block * WORDS + (at >> 6)] & ((_1 << _U(at & 63)) - _1))


@compiled
def fill_ranks(bits, ranks, hints):  # type: ignore[no-untyped-def]
    """Fill the directories of one set, `hints` only so far as it goes; returns its size.

    The last of the hints is the last block, after the last member.
    """
    count, filled = 0, 0
    for block in range(len(ranks)):
        ranks[block] = count
        for i in range(block * WORDS, (block + 1) * WORDS):
            count += popcount(bits[i])
        while filled + 1 < len(hints) and filled << _SHIFT < count:
            hints[filled] = block
            filled += 1
    while filled < len(hints):
        hints[filled] = len(ranks) - 1
        filled += 1
    return count


def blocks(bits: int) -> int:
    """How many blocks a set over so many bits takes."""
    return -(-bits // BLOCK)


def hints_for(members: int) -> int:
    """How many hints a set of so many members has."""
    return blocks(members) + 1
