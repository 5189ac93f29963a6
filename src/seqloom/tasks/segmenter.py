"""Words found by a tagger of characters: B M E for the characters of a word, S for one alone.

Paper: Xue (2003), "Chinese Word Segmentation as Character Tagging", CLCLP 8(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from seqloom.errors import InputError

_PIECES = re.compile(r"\s+|\S+")


def as_characters(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the characters of a sentence and the tags that say where its words are.

    >>> as_characters(["我", "来到", "天安门"])
    (['我', '来', '到', '天', '安', '门'], ['S', 'B', 'E', 'B', 'M', 'E'])
    """
    tags: list[str] = []
    for word in words:
        inside = len(word) - 2
        tags += ["S"] if len(word) == 1 else ["B", *["M"] * inside, "E"]
    return list("".join(words)), tags


def as_words(text: str, tags: Sequence[str]) -> list[str]:
    """Return the words of a text whose characters have these tags.

    A word ends at E and S, and before B and S; so any tags make words.

    >>> as_words("我来到", ["S", "B", "E"]), as_words("我来到", ["M", "B", "B"])
    (['我', '来到'], ['我', '来', '到'])
    """
    words, begin = [], 0
    for place in range(1, len(text)):
        if tags[place - 1] in ("E", "S") or tags[place] in ("B", "S"):
            words.append(text[begin:place])
            begin = place
    return [*words, text[begin:]] if text else []


def cut_texts(
    texts: Sequence[str], tags_of: Callable[[list[str]], Sequence[Sequence[str]]]
) -> list[list[str]]:
    """Cut texts into words whose concatenation is the text, blanks being words of their own.

    Args:
        texts: The texts.
        tags_of: Tags the characters of pieces without blanks.
    """
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"what is cut must be a text, got {type(text).__name__}")
    pieces = [_PIECES.findall(text) for text in texts]
    found = iter(tags_of([piece for row in pieces for piece in row if not piece.isspace()]))
    return [
        [
            word
            for piece in row
            for word in ([piece] if piece.isspace() else as_words(piece, next(found)))
        ]
        for row in pieces
    ]
