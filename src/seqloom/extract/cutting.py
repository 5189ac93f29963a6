"""Text cut into pieces and units, in compiled code over its code points.

`reference.english_units` says the same in Python.
"""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled
from seqloom.extract.characters import (
    ALPHA,
    BREAK,
    BULLET,
    CLOSER,
    COUNTER,
    DECIMAL,
    LOWER,
    MARKUP,
    NEW_LINE,
    SPACE,
    STOP,
    skip,
    trimmed,
)
from seqloom.extract.english import write_sentences

LONGEST_HEADING = 100  # characters
LONGEST_UNIT = 2000  # characters; what is longer is no sentence and is cut
NARROW = 0.6  # of the widest line: a line below it that ends without a stop ends what it says
HASH, COMMA, DOT, GREATER = map(ord, "#,.>")
OPEN, CLOSE, WIDE_OPEN, WIDE_CLOSE, LIST_COMMA, WIDE_DOT = map(ord, "()（）、．")


@compiled
def _after_marker(codes, begin, end, classes):  # type: ignore[no-untyped-def]
    """Where a line goes on after the mark of a list, a heading or a quotation at `begin`, or -1.

    Marks are bullets, up to six #, >, "1." or "(1)" or "(a)" before a blank, and Chinese counters.
    """
    first = codes[begin]
    after = -1  # a mark that needs a blank after it
    if classes[first] & BULLET:
        after = begin + 1
    elif first == HASH:
        after = begin
        while after < end and codes[after] == HASH and after - begin < 6:
            after += 1
    elif first == GREATER:
        return skip(codes, begin + 1, end, classes, SPACE)
    if after >= 0:
        goes_on = skip(codes, after, end, classes, SPACE)
        return goes_on if goes_on > after else -1

    at = begin + 1 if first in (OPEN, WIDE_OPEN) else begin
    number, digits = at, True
    while at < end and at - number < 3 and classes[codes[at]] & (DECIMAL | COUNTER):
        digits &= classes[codes[at]] & DECIMAL != 0
        at += 1
    if at == end:
        return -1
    goes_on = skip(codes, at + 1, end, classes, SPACE)
    has_blank = goes_on > at + 1
    if at > number:
        last = codes[at]
        if last in (CLOSE, WIDE_CLOSE, LIST_COMMA, WIDE_DOT):
            return goes_on
        return goes_on if last == DOT and digits and has_blank and first != WIDE_OPEN else -1
    if first == OPEN and codes[at] < 128 and classes[codes[at]] & ALPHA and at + 1 < end:
        goes_on = skip(codes, at + 2, end, classes, SPACE)
        return goes_on if codes[at + 1] == CLOSE and goes_on > at + 2 else -1
    return -1


@compiled
def find_pieces(codes, start, end, classes):  # type: ignore[no-untyped-def]
    """Cut a text where its lines say that something new begins (m, 2).

    A mark at the beginning of a line says so, or a narrow line before it that ends without a stop.
    """
    breaks, widest, at = 0, 0, start
    for i in range(start, end):
        if codes[i] == NEW_LINE:
            widest = max(widest, i - at)
            breaks, at = breaks + 1, i + 1
    widest = max(widest, end - at)
    found = np.empty((breaks + 1, 2), np.int64)
    count, begin, at = 0, start, start if breaks else end + 1
    stands_alone = False  # whether the line before would, but for a small letter after it
    while at <= end:
        close = at
        while close < end and codes[close] != NEW_LINE:
            close += 1
        first, last = trimmed(codes, at, close, classes)
        if first == last:
            stands_alone = False
        else:
            own, goes_on = classes[codes[first]], -1
            if not own & ALPHA or own & COUNTER:
                goes_on = _after_marker(codes, first, close, classes)
            if goes_on >= 0 or (stands_alone and not own & LOWER):
                if begin < at:
                    found[count, 0], found[count, 1] = begin, at
                    count += 1
                begin = goes_on if goes_on >= 0 else at
            stands_alone = (
                last - first < NARROW * widest
                and not classes[codes[last - 1]] & STOP
                and codes[last - 1] != COMMA
            )
        at = close + 1
    if begin < end:
        found[count, 0], found[count, 1] = begin, end
        count += 1
    return found[:count]


@compiled
def _is_heading(codes, start, end, last, classes):  # type: ignore[no-untyped-def]
    """Whether it is a heading: short, without a stop, and a line of its own before others.

    The text's last visible character is before `last`.
    """
    k = end - 1
    while k > start and classes[codes[k]] & (CLOSER | MARKUP):
        k -= 1
    if end - start > LONGEST_HEADING or classes[codes[k]] & STOP:
        return False
    near = max(start - LONGEST_HEADING, 0)
    line = start
    while line > near and codes[line - 1] != NEW_LINE:
        line -= 1
    if line == near > 0:
        return False
    a, b = trimmed(codes, line, start, classes)
    while a < b and codes[a] == HASH:
        a += 1
    if a < b:
        return False  # an item of a list, or the rest of a line
    after = end
    while after < last and codes[after] != NEW_LINE and classes[codes[after]] & SPACE:
        after += 1
    return after < last and codes[after] == NEW_LINE and after < end + LONGEST_HEADING


@compiled
def as_units(codes, spans, classes):  # type: ignore[no-untyped-def]
    """Sentences without blanks around them, those far too long cut: start, end, heading (n, 3)."""
    room = len(spans)
    for i in range(len(spans)):
        room += 2 * (spans[i, 1] - spans[i, 0]) // LONGEST_UNIT
    _, last = trimmed(codes, 0, len(codes), classes)
    found = np.empty((room, 3), np.int64)
    count = 0
    for i in range(len(spans)):
        start, end = spans[i, 0], spans[i, 1]
        while start < end:
            cut = end
            if end - start > LONGEST_UNIT:
                cut = start + LONGEST_UNIT
                while cut > start + LONGEST_UNIT // 2 and not classes[codes[cut - 1]] & BREAK:
                    cut -= 1
                if cut == start + LONGEST_UNIT // 2:
                    cut = start + LONGEST_UNIT
            a, b = trimmed(codes, start, cut, classes)
            if a < b:
                found[count, 0], found[count, 1] = a, b
                found[count, 2] = _is_heading(codes, a, b, last, classes)
                count += 1
            start = cut
    return found[:count].copy()


@compiled
def cut_english(codes, start, end, classes, words):  # type: ignore[no-untyped-def]
    """The units of a part of a text by the rules for English (n, 3)."""
    pieces = find_pieces(codes, start, end, classes)
    found = np.empty((end - start, 2), np.int64)  # what is not written to takes no room
    count = 0
    for i in range(len(pieces)):
        count = write_sentences(codes, pieces[i, 0], pieces[i, 1], classes, words, found, count)
    return as_units(codes, found[:count], classes)
