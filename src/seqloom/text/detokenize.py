"""Words back to text: where English and Chinese put blanks."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CLITIC = re.compile(r"(?i:n['’]t|['’](?:s|m|d|re|ve|ll))")
_NO_BLANK_BEFORE = frozenset(",.;:!?%)]}…/’”»") | {"''"}
_NO_BLANK_AFTER = frozenset("([{$£€¥/#‘“«") | {"``"}
_LATIN_END = re.compile(r"[A-Za-z0-9]$")
_LATIN_START = re.compile(r"[A-Za-z0-9]")


def detokenize_english(words: Sequence[str]) -> str:
    r"""Write English words as they would be typed; straight double quotes open and close in turn.

    >>> detokenize_english(["He", "said", ",", '"', "do", "n't", "!", '"'])
    'He said, "don\'t!"'
    """
    pieces: list[str] = []
    quoted, glue = False, True  # glue: no blank before the next word
    for word in words:
        closing = word == '"' and quoted
        attached = (
            word in _NO_BLANK_BEFORE
            or closing
            or (word.startswith("..") and not word.strip("."))
            or _CLITIC.fullmatch(word) is not None
        )
        if pieces and not attached and not glue:
            pieces.append(" ")
        pieces.append(word)
        opening = word == '"' and not quoted
        if word == '"':
            quoted = not quoted
        glue = word in _NO_BLANK_AFTER or opening or word.endswith("$")
    return "".join(pieces)


def detokenize_chinese(words: Sequence[str]) -> str:
    """Put Chinese words together, with a blank only between two words of Latin letters or digits.

    >>> detokenize_chinese(["我", "用", "Visual", "Studio", "编程"])
    '我用Visual Studio编程'
    """
    pieces: list[str] = []
    for word in words:
        if pieces and _LATIN_START.match(word) and _LATIN_END.search(pieces[-1]):
            pieces.append(" ")
        pieces.append(word)
    return "".join(pieces)
