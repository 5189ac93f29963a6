"""Words as counted models hold them: set apart by blanks, one sentence a line.

A counted model reads bytes between blanks, so a blank inside a word (a character model has the
blank itself for a word) is written "␣", the open box. What else would be misread is written by its
number in base 16, between "␛" and ";": the other blanks (tab, line's end, carriage return, the
character 0), the two signs themselves, surrogates that stand alone, and the first character of a
plain word spelled like `<s>`. So "a b" is "a␣b", and a "␣" of the text is "␛2423;".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError
from seqloom.text.vocabulary import Vocabulary

MARKS = ("<unk>", "<s>", "</s>")
BLOCK = 1 << 18  # ids spelled at once
_MISREAD = re.compile("[ \0\t\n\r␣␛\ud800-\udfff]")
_ESCAPED = re.compile("␛([0-9a-f]+);|␣")


def spell(word: str) -> str:
    r"""A word without blanks.

    >>> spell("a b"), spell("\t"), spell("rose")
    ('a␣b', '␛9;', 'rose')
    """
    if word in MARKS:
        return f"␛{ord(word[0]):x};{word[1:]}"
    return _MISREAD.sub(lambda m: "␣" if m[0] == " " else f"␛{ord(m[0]):x};", word)


def unspell(word: str) -> str:
    r"""The word that `spell` wrote so.

    >>> unspell(spell("a\t␣ b")) == "a\t␣ b"
    True
    """
    return _ESCAPED.sub(lambda m: " " if m[0] == "␣" else chr(int(m[1], 16)), word)


class Spelling:
    """The words of a vocabulary as a counted model has them, by id.

    The unknown word is `<unk>`, and the end of a sentence is the end of a line. Other special words
    that stand in a text (`<s>`, `<pad>`) are unknown words: a counted model predicts neither.

    Args:
        vocabulary: The vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        specials = vocabulary.specials
        names = specials.names()
        self.unknown, self.end = vocabulary[specials.unk], vocabulary[specials.eos]
        self.plain = [spell(word) for word in vocabulary.words[len(names) :]]
        """The words that are not special, in the order of their ids."""
        self.by_id = [*(MARKS[0] for _ in names), *self.plain]
        self.by_id[self.end] = "\n"

    def lines(self, ids: NDArray[np.int32]) -> Iterator[str]:
        """The sentences of a text, its ids read piece by piece.

        Raises:
            DataError: If the text does not end with the end of a sentence.
        """
        rest = ""
        for begin in range(0, len(ids), BLOCK):
            piece = map(self.by_id.__getitem__, ids[begin : begin + BLOCK].tolist())
            *whole, rest = f"{rest}{' '.join(piece)} ".split("\n")
            yield from whole
        if rest.strip(" "):
            raise DataError(
                "a counted model reads sentences, each closed by the end-of-sentence word, got a "
                "text that goes on; prepare it with ends=true"
            )
