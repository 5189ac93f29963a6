"""Words found by a tagger of characters: B M E for the characters of a word, S for one alone.

Paper: Xue (2003), "Chinese Word Segmentation as Character Tagging", CLCLP 8(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged
from seqloom.errors import InputError
from seqloom.models.tagger import CNNTagger
from seqloom.nn.tag_windows import CompiledWindows
from seqloom.tasks.tagger_words import TokenReader, TokenSequences
from seqloom.text import Vocabulary

_PIECES = re.compile(r"\s+|\S+")
PAIRS = ("next", "last")  # the features that are pairs of characters
BITS = 21  # of a character's number
EDGE = (1 << BITS) - 1  # in place of a character before the first or after the last


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


class CharacterIndex:
    """The characters and pairs of characters a tagger knows, looked up for whole texts at once.

    It gives the numbers that the reader gives, an array at a time.

    Args:
        reader: How words are read; its words are characters, its features pairs of them.
    """

    def __init__(self, reader: TokenReader) -> None:
        self.unknown = reader.words[reader.words.specials.unk]
        codes = {ord(word): i for i, word in enumerate(reader.words) if len(word) == 1}
        self.table = np.full(max(codes, default=0) + 2, self.unknown, np.int32)
        self.table[[*codes]] = [*codes.values()]
        self.pairs = {name: _pairs(known) for name, known in reader.features.items()}

    @staticmethod
    def fits(reader: TokenReader) -> bool:
        """Whether this reader's numbers can be looked up so."""
        return not reader.folds and reader.characters is None and {*reader.features} <= {*PAIRS}

    def __call__(self, texts: Sequence[str]) -> TokenSequences:
        """Return the characters of texts, none of them empty, as a tagger reads them."""
        joined = "".join(texts).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(joined, np.uint32).astype(np.int64)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        ids = self.table[np.minimum(codes, len(self.table) - 1)]
        features = []
        for name, (keys, numbers) in self.pairs.items():
            if name == "next":
                wanted = (codes << BITS) | np.append(codes[1:], EDGE)
                wanted[offsets[1:] - 1] = (codes[offsets[1:] - 1] << BITS) | EDGE
            else:
                wanted = (np.append(EDGE, codes[:-1]) << BITS) | codes
                wanted[offsets[:-1]] = (EDGE << BITS) | codes[offsets[:-1]]
            places = np.searchsorted(keys, wanted)
            found = np.where(keys[places] == wanted, numbers[places], self.unknown)
            features.append(Ragged(found.astype(np.int32), offsets))
        return TokenSequences(Ragged(ids, offsets), features)


class CompiledCutter:
    """A tagger of windows over characters as one compiled loop, for texts of any length.

    Args:
        model: The network, in the processor's memory.
        reader: How characters are read.
    """

    def __init__(self, model: CNNTagger, reader: TokenReader) -> None:
        self.index = CharacterIndex(reader)
        tables: list[Any] = [model.input.embedding, *model.tokens.tables]
        layers: list[Any] = [*model.layers]
        parts = tables, layers, model.config.widths, model.scores, model.output
        self.windows = CompiledWindows(*parts)

    @staticmethod
    def fits(model: Any, reader: TokenReader) -> bool:
        """Whether this tagger can be run so."""
        if not isinstance(model, CNNTagger) or model.scores.weight.device.type != "cpu":
            return False
        return CharacterIndex.fits(reader) and model.input.embedding is not None

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the numbers of the tags of the characters of texts, none of them empty."""
        read = self.index(texts)
        columns = [each.flat for each in (read.items, *read.features)]
        return np.split(self.windows(columns, read.items.offsets), read.items.offsets[1:-1])


def _pairs(known: Vocabulary) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of characters of a vocabulary as sorted numbers, and the id of each."""
    rows = []
    for number, word in enumerate(known):
        first, tab, second = word.partition("\t")
        if tab and len(first) <= 1 and len(second) <= 1:
            codes = [ord(each) if each else EDGE for each in (first, second)]
            rows.append(((codes[0] << BITS) | codes[1], number))
    rows.append((1 << 62, 0))  # so that every search ends inside
    table = np.array(sorted(rows), np.int64)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])


def cut_texts(
    texts: Sequence[str],
    names: Sequence[str],
    tags_of: Callable[[list[str]], Sequence[NDArray[np.int64]]],
) -> list[list[str]]:
    """Cut texts into words whose concatenation is the text, blanks being words of their own.

    Args:
        texts: The texts.
        names: The tags by number.
        tags_of: Gives the numbers of the tags of the characters of pieces without blanks.
    """
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"what is cut must be a text, got {type(text).__name__}")
    pieces = [_PIECES.findall(text) for text in texts]
    visible = [piece for row in pieces for piece in row if not piece.isspace()]
    if not visible:
        return pieces
    closes = np.array([name in ("E", "S") for name in names])
    opens = np.array([name in ("B", "S") for name in names])
    tags = np.concatenate(tags_of(visible))
    last = np.cumsum([len(piece) for piece in visible]) - 1
    is_end = closes[tags] | np.append(opens[tags[1:]], True)
    is_end[last] = True
    ends = np.flatnonzero(is_end) + 1
    joined = "".join(visible)
    words = [joined[a:b] for a, b in pairwise([0, *ends.tolist()])]
    counts = np.searchsorted(ends, last + 1, side="right").tolist()
    found = iter([words[a:b] for a, b in pairwise([0, *counts])])
    return [
        [word for piece in row for word in ([piece] if piece.isspace() else next(found))]
        for row in pieces
    ]
