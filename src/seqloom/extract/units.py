"""The sentences a summary may choose from: sentences, list items and headings, with offsets."""

from __future__ import annotations

import re
from typing import NamedTuple

from seqloom.text.abbreviations import OTHERS, TITLES
from seqloom.text.language import detect_language
from seqloom.text.scripts import HAN, has_cjk
from seqloom.text.sentences import split_sentences

LONGEST_HEADING = 100  # characters
LONGEST_UNIT = 2000  # characters; what is longer is no sentence and is cut
NARROW = 0.6  # of the widest line: a line below it that ends without a stop ends what it says

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_MARKER = re.compile(
    r"[^\S\n]*(?:[-*+•·▪‣◦–—]\s+|#{1,6}\s+|>\s*|\(?\d{1,3}[.)]\s+|\([a-zA-Z]\)\s+"
    r"|[（(]?[一二三四五六七八九十\d]{1,3}[)）、．]\s*)"
)
_STOPS = frozenset(".!?…。！？；;:：")
_CLOSERS = "\"'”’)]}»」』）】》〉*_`"
# A full stop typed as in English ends a Chinese sentence after a character, a bracket or a per cent
# sign, or between a letter or digit and a character.
_HALF_STOP = re.compile(rf"(?<=[{HAN}%％)）\]”》])\.(?![.\d])|(?<=[A-Za-z\d])\.(?=[{HAN}])")
_STOP = re.compile(r"[.!?…。！？]")
_BEGINS_NEXT = re.compile(r"""(["'”’)\]]*+)(?: ["'“‘(\[«]*+[A-Z]|(\n[^\S\n]*\n))""")
_ABBREVIATIONS = TITLES | OTHERS
_VISIBLE = re.compile(r"\S")
_BREAKS = re.compile(r"[\s,;，、；：]")


class Unit(NamedTuple):
    """A piece of a text that may be chosen: `source[start:end]`."""

    start: int
    end: int
    is_heading: bool


def split_units(text: str, language: str = "auto") -> tuple[list[Unit], str]:
    r"""Return the sentences, list items and headings of a text, and its language ("en" or "zh").

    Sentences are those of `split_sentences`. Besides, the marks of Markdown and of lists begin a
    piece, and so does the line after a narrow one that ends without a stop; a short paragraph that
    ends without a stop is a heading. A text without stops is cut at blanks after 2,000 characters.

    Args:
        text: Any text.
        language: "en", "zh" or "auto".

    Examples:
        >>> text = "Fish\n\n- Cod is white. It swims.\n- Eels are long."
        >>> units, _ = split_units(text)
        >>> [(text[start:end], is_heading) for start, end, is_heading in units]
        [('Fish', True), ('Cod is white.', False), ('It swims.', False), ('Eels are long.', False)]
    """
    found: list[Unit] = []
    if language != "auto":
        _split_part(text, 0, len(text), language, found)
        return found, language
    if text.isascii() or not has_cjk(
        text
    ):  # whatever language it is, the rules for English are the nearest
        _split_part(text, 0, len(text), "en", found)
        return found, "en"
    whole = "zh" if detect_language(text) == "zh" else "en"
    start = 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end = gap.start() if gap else len(text)
        own = detect_language(text[start:end])
        _split_part(text, start, end, own if own in ("en", "zh") else whole, found)
        start = gap.end() if gap else end
    return found, whole


def _split_part(text: str, start: int, end: int, language: str, out: list[Unit]) -> None:
    for begin, close in _pieces(text, start, end):
        piece = text if begin == 0 and close == len(text) else text[begin:close]
        if language == "zh":
            for sentence in split_sentences(piece, language):
                for c, d in _half_stops(text, begin + sentence.start, begin + sentence.end):
                    _add(text, c, d, out)
        else:
            for a, b in split_english(piece):
                if piece[b - 1] in _STOPS and b - a <= LONGEST_UNIT:  # as most are
                    out.append(Unit(begin + a, begin + b, False))
                else:
                    _add(text, begin + a, begin + b, out)


def split_english(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of English text are: those of `split_sentences`, found sooner.

    Most sentences end in a word that is no abbreviation, a stop and a blank before a capital. Text
    is cut there first, and only what holds another stop is looked at by all the rules.
    """
    found: list[tuple[int, int]] = []
    begin, sure = 0, True
    for match in _STOP.finditer(text):
        at = match.start()
        if text[at + 1 : at + 2].isalnum() and text[at] in ".!?…":
            continue  # inside a number or a name
        following = _BEGINS_NEXT.match(text, at + 1)
        is_late = sure and at - begin > 9 and "\n" not in text[at - 9 : at]
        if following and (following[2] or _ends_surely(text, at, following.end(1), is_late)):
            _cut(text, begin, following.end(1), sure, found)
            begin, sure = following.end(1), True
        else:
            sure = False
    _cut(text, begin, len(text), sure, found)
    return found


def _ends_surely(text: str, at: int, end: int, is_late: bool) -> bool:
    """Whether a stop before a blank and a capital ends a sentence without further thought."""
    before = text[at - 1 : at] if at else " "
    if before in _STOPS or before.isspace():
        return False
    if text[at] in "!?" or end > at + 1:
        return text[at] in ".!?"
    if text[at] != ".":
        return False
    if not before.isalpha():
        return is_late  # else it may be the number of a list
    word = text[max(at - 12, 0) : at].rpartition(" ")[2]
    is_plain = len(word) > 1 and word.isascii() and word.isalpha()
    return is_plain and word.lower() not in _ABBREVIATIONS


def _cut(text: str, begin: int, end: int, sure: bool, out: list[tuple[int, int]]) -> None:
    if sure:
        first = begin
        while first < end and text[first].isspace():
            first += 1
        if first < end and text.find("\n", first, end) < 0 and not text[end - 1].isspace():
            out.append((first, end))  # as most are
            return
    piece = text[begin:end]
    if not sure:
        out += [(begin + s.start, begin + s.end) for s in split_sentences(piece, "en")]
        return
    bare = piece.strip()
    first = start = begin + len(piece) - len(piece.lstrip())
    if "\n" in bare:
        for gap in _PARAGRAPH.finditer(bare):
            out.append((start, start + len(text[start : first + gap.start()].rstrip())))
            start = first + gap.end()
    if bare:
        out.append((start, first + len(bare)))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a text where its lines say that something new begins."""
    if text.find("\n", start, end) < 0:
        return [(start, end)]
    lines = text[start:end].split("\n")
    widest = max(map(len, lines))
    pieces, begin, at = [], start, start
    before = ""
    for line in lines:
        bare = line.strip()
        mark = None
        if bare and (not bare[0].isalpha() or bare[0] in "一二三四五六七八九十"):
            mark = _MARKER.match(line)
        if mark:
            pieces.append((begin, at))
            begin = at + mark.end()
        elif bare and before and _stands_alone(before, bare, widest):
            pieces.append((begin, at))
            begin = at
        before = bare
        at += len(line) + 1
    pieces.append((begin, end))
    return [(a, b) for a, b in pieces if a < b]


def _stands_alone(line: str, following: str, widest: int) -> bool:
    """Whether a line is not continued by the one that follows."""
    if line[-1] in _STOPS or line[-1] == ",":
        return False  # sentences are told apart by their stops
    return len(line) < NARROW * widest and not following[0].islower()


def _half_stops(text: str, start: int, end: int) -> list[tuple[int, int]]:
    if text.find(".", start, end) < 0:
        return [(start, end)]
    cuts = [match.end() for match in _HALF_STOP.finditer(text, start, end)]
    return [*zip([start, *cuts], [*cuts, end], strict=True)]


def _add(text: str, start: int, end: int, out: list[Unit]) -> None:
    """Add a sentence without the blanks around it, cut if it is far too long for one."""
    while end - start > LONGEST_UNIT:
        breaks = [
            m.end() for m in _BREAKS.finditer(text, start + LONGEST_UNIT // 2, start + LONGEST_UNIT)
        ]
        cut = breaks[-1] if breaks else start + LONGEST_UNIT
        _add(text, start, cut, out)
        start = cut
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        out.append(Unit(start, end, _is_heading(text, start, end)))


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether it is a heading: short, without a stop, and a line of its own before others."""
    if end - start > LONGEST_HEADING or text[end - 1] in _STOPS:
        return False
    last = end - 1
    while last > start and text[last] in _CLOSERS:
        last -= 1
    if text[last] in _STOPS:
        return False
    near = max(start - LONGEST_HEADING, 0)
    line = text.rfind("\n", near, start) + 1
    if line == 0 and near > 0:
        return False
    before = text[line:start].strip()
    if before and before.strip("#"):
        return False  # an item of a list, or the rest of a line
    after = text.find("\n", end, end + LONGEST_HEADING)
    if after < 0 or text[end:after].strip():
        return False
    return _VISIBLE.search(text, after) is not None
