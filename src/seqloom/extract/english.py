"""English sentences in compiled code over code points: those of `seqloom.text.split_sentences`."""

# ruff: noqa: PLR0917
# Compiled loops take columns.

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled
from seqloom.extract.characters import (
    CLOSER,
    DIGIT,
    END,
    FULL_END,
    LETTER,
    LOWER,
    NEW_LINE,
    OPENER,
    SPACE,
    UPPER,
    skip,
    trimmed,
)
from seqloom.text.abbreviations import CAPITALIZED, OTHERS, TITLES
from seqloom.text.sentences import LOWER_WORDS, STARTERS

LONGEST_NUMBER = 9  # characters of the number of a list, with blanks before it
LONGEST_ABBREVIATION = 40
COMMA, DOT, EXCLAIM, QUESTION, LETTER_I = map(ord, ",.!?I")
SEMICOLON, COLON, QUOTE, APOSTROPHE = map(ord, ";:'’")

# Kinds of words, each a bit.
TITLE, OTHER, MEANS_MORE, CAPITAL, STARTER, NUMBER = (1 << bit for bit in range(6))
PACKED = 8  # letters of the longest of them


def _packed(kinds: dict[int, Iterable[str]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Words as numbers, a byte a letter, in order, and the kinds of each."""
    found: dict[int, int] = {}
    for kind, words in kinds.items():
        for word in words:
            assert len(word) <= PACKED
            key = int.from_bytes(word.encode("ascii"))
            found[key] = found.get(key, 0) | kind
    keys = sorted(found)
    return np.array(keys, np.uint64), np.array([found[key] for key in keys], np.int64)


WORDS = _packed(
    {
        TITLE: TITLES,
        OTHER: OTHERS,
        MEANS_MORE: LOWER_WORDS,
        CAPITAL: CAPITALIZED,
        STARTER: STARTERS,
        NUMBER: ("No", "Nos"),
    }
)


@compiled
def _kinds(codes, begin, end, words, lower):  # type: ignore[no-untyped-def]
    """The kinds of a word as it is spelled, or of it in small letters."""
    if end - begin > PACKED:
        return 0
    key = np.uint64(0)
    for i in range(begin, end):
        code = np.uint64(codes[i])
        if code > 127:
            return 0
        if lower and 65 <= code <= 90:
            code += np.uint64(32)
        key = (key << np.uint64(8)) | code
    keys, kinds = words
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return kinds[low] if low < len(keys) and keys[low] == key else 0


@compiled
def _next_gap(codes, begin, end, classes):  # type: ignore[no-untyped-def]
    """Where the next blank lines begin and end; both the end if there are none."""
    for i in range(begin, end):
        if codes[i] == NEW_LINE:
            k = i + 1
            while k < end and codes[k] != NEW_LINE and classes[codes[k]] & SPACE:
                k += 1
            if k < end and codes[k] == NEW_LINE:
                return i, skip(codes, k, end, classes, SPACE)
    return end, end


@compiled
def _ends_after_word(codes, low, stop, first, end, classes, words):  # type: ignore[no-untyped-def]
    """Whether a full stop ends a sentence, by the word before it and the one from `first` on.

    No letter before `low` counts.
    """
    begin, part, longest = stop, 0, 0
    while begin > low:
        if classes[codes[begin - 1]] & LETTER:
            part += 1
            longest = max(longest, part)
        elif (
            part
            and codes[begin - 1] == DOT
            and begin - 1 > low
            and (classes[codes[begin - 2]] & LETTER)
        ):
            part = 0
        else:
            break
        begin -= 1
    size = stop - begin
    if size == 0:
        return True
    exact, lower = _kinds(codes, begin, stop, words, False), _kinds(codes, begin, stop, words, True)
    if exact & NUMBER and classes[codes[first]] & DIGIT:
        return False
    if lower & TITLE and (classes[codes[begin]] & UPPER or not lower & MEANS_MORE):
        return False
    dotted = size > longest and longest <= 2  # U.S, e.g, Ph.D
    if dotted or size == 1 or lower & OTHER or exact & CAPITAL:
        # U.S., J., Inc., etc.: the stop has two jobs if a likely first word follows.
        if size == 1 and classes[codes[begin]] & UPPER and codes[begin] != LETTER_I:
            return False
        last = first
        while last < end and not classes[codes[last]] & SPACE:
            last += 1
        while last > first and codes[last - 1] in (COMMA, SEMICOLON, COLON, QUOTE, APOSTROPHE):
            last -= 1
        return _kinds(codes, first, last, words, False) & STARTER != 0
    return True


@compiled
def _ends_sentence(codes, begin, stop, after, end, classes, words):  # type: ignore[no-untyped-def]
    """Whether what stands from `stop` to `after`, closing marks included, ends a sentence.

    The sentence began at `begin`, its paragraph ends at `end`.
    """
    if classes[codes[stop]] & FULL_END:
        return True
    if after == end or not classes[codes[after]] & SPACE:
        return False
    first = skip(codes, after, end, classes, SPACE)
    if first == end:
        return True
    opened = skip(codes, first, end, classes, OPENER)
    if opened > first and (opened == end or classes[codes[opened]] & SPACE):
        opened -= 1  # nothing but openers: the last of them is what follows
    first = opened
    if codes[stop] in (EXCLAIM, QUESTION):
        return not classes[codes[first]] & LOWER
    if classes[codes[first]] & LOWER or codes[first] == DOT:
        return False  # "approx. five", "… and so on", ". . ."
    if codes[stop] != DOT or after > stop + 1:
        return True  # an ellipsis, or a stop with a quote or bracket after it
    a, b = trimmed(codes, begin, stop, classes)
    if stop - begin < LONGEST_NUMBER and a < b and skip(codes, a, b, classes, DIGIT) == b:
        return False  # "1. The first of a list"
    low = max(begin, stop - LONGEST_ABBREVIATION)
    return _ends_after_word(codes, low, stop, first, end, classes, words)


@compiled
def write_sentences(codes, start, end, classes, words, found, count):  # type: ignore[no-untyped-def]
    """Write the English sentences of a piece to `found`, from `count` on; the new count."""
    while start < end:
        close, following = _next_gap(codes, start, end, classes)
        begin = i = start
        while i <= close:
            after = i
            if i < close:
                own = classes[codes[i]] & (END | FULL_END)
                if not own:
                    i += 1
                    continue
                after = skip(codes, i, close, classes, own)
                after = skip(codes, after, close, classes, CLOSER)
            if i == close or _ends_sentence(codes, begin, i, after, close, classes, words):
                a, b = trimmed(codes, begin, after, classes)
                if a < b:
                    found[count, 0], found[count, 1] = a, b
                    count += 1
                begin = after
            i = max(after, i + 1)
        start = following
    return count
