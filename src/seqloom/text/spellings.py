"""Words as rows of symbols: the bytes of their UTF-8, so that no character is ever unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError

PADDING, BYTES, BEGIN, END, SENTENCE_END, UNKNOWN = 0, 1, 257, 258, 259, 260
SYMBOLS = 261
"""How many symbols there are: padding, the bytes from 1 on, and the four marks."""


def spell_words(
    words: Collection[str], size: int, marks: Mapping[str, int] | None = None
) -> NDArray[np.int16]:
    """Return the spelling of each word (N, size): a mark, its bytes, a mark, padding.

    A word of more bytes than there is room for keeps the first half and the last half of as many
    as fit. A word without characters is the two marks alone.

    Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL; their models
    read bytes too, at most 48 of a word, of which they keep the first.

    Args:
        words: The words.
        size: Symbols a row, at least 4.
        marks: Words that are not spelled but have a symbol of their own, such as the end of a
            sentence.

    Examples:
        >>> spell_words(["an", "</s>"], 6, {"</s>": SENTENCE_END}).tolist()
        [[257, 98, 111, 258, 0, 0], [257, 259, 258, 0, 0, 0]]
    """
    if size < 4:
        raise ConfigError(f"a spelling must have room for 4 symbols at least, got size={size}")
    found = np.zeros((len(words), size), np.int16)
    room, known = size - 2, marks or {}
    for row, word in zip(found, words, strict=True):
        if word in known:
            row[:3] = (BEGIN, known[word], END)
            continue
        data = word.encode("utf-8", "surrogatepass")
        if len(data) > room:
            data = data[: (room + 1) // 2] + data[len(data) - room // 2 :]
        row[0], row[len(data) + 1] = BEGIN, END
        row[1 : len(data) + 1] = np.frombuffer(data, np.uint8)
        row[1 : len(data) + 1] += BYTES
    return found
