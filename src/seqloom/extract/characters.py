"""What compiled code knows of a character: its classes and its small letter, as Python has them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled
from seqloom.text.scripts import CJK as CJK_RANGES

Codes = NDArray[np.uint32]

# The classes, each a bit.
KNOWN = 1 << 0  # the character was looked up
SPACE = 1 << 1
WORD = 1 << 2  # a letter or number: it belongs to a word
LETTER = 1 << 3  # of a word, but no digit
LOWER = 1 << 4
UPPER = 1 << 5
DIGIT = 1 << 6
DECIMAL = 1 << 7
ALPHA = 1 << 8
CJK = 1 << 9
ODD = 1 << 10  # its small letter is two, or depends on its neighbors
STOP = 1 << 11  # after it a line need not go on
END = 1 << 12  # ends a sentence if a blank follows
FULL_END = 1 << 13  # ends a sentence
CLOSER = 1 << 14  # belongs to the sentence that ends before it
MARKUP = 1 << 15  # closes too, in Markdown
OPENER = 1 << 16  # may come before a first word
BREAK = 1 << 17  # where a sentence that is too long is cut
BULLET = 1 << 18
COUNTER = 1 << 19  # a Chinese numeral

_PROPERTIES: dict[int, Callable[[str], object]] = {
    SPACE: str.isspace,
    WORD: str.isalnum,
    LETTER: lambda c: c.isalnum() and not c.isdecimal(),
    LOWER: str.islower,
    UPPER: str.isupper,
    DIGIT: str.isdigit,
    DECIMAL: str.isdecimal,
    ALPHA: str.isalpha,
    CJK: re.compile(f"[{CJK_RANGES}]").match,
    ODD: lambda c: c == "Σ" or len(c.lower()) > 1,
    BREAK: str.isspace,
}
_MARKS = {
    STOP: ".!?…。！？；;:：",
    END: ".!?…",
    FULL_END: "。！？",
    CLOSER: "\"'”’)]}»」』）】》〉",
    MARKUP: "*_`",
    OPENER: "\"'“‘([«",
    BREAK: ",;，、；：",
    BULLET: "-*+•·▪‣◦–—",
    COUNTER: "一二三四五六七八九十",
}
PAGE = 256  # characters that are looked up together, when one of them is met
_ENCODING = f"utf-32-{sys.byteorder[0]}e"

NEW_LINE = ord("\n")

# By code points; memory that was never written to takes no room.
CLASSES = np.zeros(sys.maxunicode + 1, np.uint32)
SMALL = np.zeros(sys.maxunicode + 1, np.uint32)


def codes_of(text: str) -> tuple[Codes, int]:
    """The code points of a text, and the classes that any of its characters has.

    `CLASSES` and `SMALL` hold all of its characters afterwards.
    """
    codes = np.frombuffer(text.encode(_ENCODING, "surrogatepass"), np.uint32)
    while (found := _all_classes(codes, CLASSES)) < 0:
        _look_up(-1 - found)
    return codes, found


def text_of(codes: Codes) -> str:
    """The way back."""
    return codes.tobytes().decode(_ENCODING, "surrogatepass")


def _look_up(code: int) -> None:
    """Fill the tables for a character and the others of its page."""
    first = code - code % PAGE
    page = [chr(c) for c in range(first, first + PAGE)]
    classes = np.full(PAGE, KNOWN, np.uint32)
    for bit, has in _PROPERTIES.items():
        classes[[bool(has(c)) for c in page]] |= bit
    for bit, marks in _MARKS.items():
        classes[[c in marks for c in page]] |= bit
    SMALL[first : first + PAGE] = [ord(c.lower()[0]) for c in page]
    CLASSES[first : first + PAGE] = classes  # last, as it says that the others are there


@compiled
def _all_classes(codes, classes):  # type: ignore[no-untyped-def]
    """All classes together, or -1 less the first character that was not looked up."""
    found = 0
    for i in range(len(codes)):
        own = classes[codes[i]]
        if own == 0:
            return -1 - np.int64(codes[i])
        found |= own
    return np.int64(found)


@compiled
def skip(codes, begin, end, classes, wanted):  # type: ignore[no-untyped-def]
    """The first place from `begin` on whose character is of no wanted class."""
    while begin < end and classes[codes[begin]] & wanted:
        begin += 1
    return begin


@compiled
def trimmed(codes, begin, end, classes):  # type: ignore[no-untyped-def]
    """Where what stands from `begin` to `end` begins and ends without white space around it."""
    begin = skip(codes, begin, end, classes, SPACE)
    while end > begin and classes[codes[end - 1]] & SPACE:
        end -= 1
    return begin, end
