"""The sentences a summary may choose from: sentences, list items and headings, with offsets."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.extract import characters, cutting
from seqloom.extract.characters import CLASSES, Codes, codes_of
from seqloom.extract.english import WORDS
from seqloom.text.language import detect_language
from seqloom.text.scripts import HAN
from seqloom.text.sentences import split_sentences

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
# A full stop typed as in English ends a Chinese sentence after a character, a bracket or a per cent
# sign, or between a letter or digit and a character.
_HALF_STOP = re.compile(rf"(?<=[{HAN}%％)）\]”》])\.(?![.\d])|(?<=[A-Za-z\d])\.(?=[{HAN}])")

UnitTable = NDArray[np.int64]
"""Units a row: where it begins and ends, and 1 if it is a heading (n, 3)."""


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
    found, language = unit_table(text, *codes_of(text), language)
    return [Unit(start, end, bool(heading)) for start, end, heading in found.tolist()], language


def unit_table(text: str, codes: Codes, classes: int, language: str) -> tuple[UnitTable, str]:
    """The same as a table, of a text whose code points and their classes are at hand."""
    if language == "auto" and not classes & characters.CJK:
        language = "en"  # whatever it is, the rules for English are the nearest
    if language != "auto":
        return _cut(text, codes, 0, len(text), language), language
    whole = "zh" if detect_language(text) == "zh" else "en"
    gaps = [*_PARAGRAPH.finditer(text)]
    if not gaps:
        return _cut(text, codes, 0, len(text), whole), whole
    found, start = [], 0
    for gap in [*gaps, None]:
        end = gap.start() if gap else len(text)
        own = detect_language(text[start:end])
        found.append(_cut(text, codes, start, end, own if own in ("en", "zh") else whole))
        start = gap.end() if gap else end
    return np.concatenate(found), whole


def _cut(text: str, codes: Codes, start: int, end: int, language: str) -> UnitTable:
    """The units of a part of a text by the rules for its language."""
    found: UnitTable
    if language != "zh":
        found = cutting.cut_english(codes, start, end, CLASSES, WORDS)
        return found
    sentences: list[tuple[int, int]] = []
    for begin, close in cutting.find_pieces(codes, start, end, CLASSES).tolist():
        for sentence in split_sentences(text[begin:close], language):
            sentences += _half_stops(text, begin + sentence.start, begin + sentence.end)
    spans = np.array(sentences, np.int64).reshape(-1, 2)
    found = cutting.as_units(codes, spans, CLASSES)
    return found


def _half_stops(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a Chinese sentence at the full stops that are typed as in English."""
    if text.find(".", start, end) < 0:
        return [(start, end)]
    cuts = [match.end() for match in _HALF_STOP.finditer(text, start, end)]
    return [*zip([start, *cuts], [*cuts, end], strict=True)]
