"""What a tagger knows of words: their ids, further features of them, their characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.data.batches import Batch, Padded
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError, one_of
from seqloom.tasks.classifier_sequences import SPECIALS
from seqloom.text import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.contextual import ContextReader

MAX_CHARACTERS = 24  # of a longer word the first and the last 12 are read
FEATURE_MIN_COUNT = 2
_DIGIT = re.compile(r"\d")
_RUNS = re.compile(r"(.)\1+")
Words = Sequence[str]


@lru_cache(1 << 16)
def shape_of(word: str) -> str:
    """Return what kinds of characters a word is made of, in order, each run of a kind once.

    >>> shape_of("McDonald's"), shape_of("U.S."), shape_of("1,200"), shape_of("北京")
    ("XxXx'x", 'X.X.', 'd,d', 'c')
    """

    def kind(c: str) -> str:
        if c.isdigit():
            return "d"
        if c.isupper():
            return "X"
        if c.islower():
            return "x"
        return "c" if c.isalpha() else c

    return _RUNS.sub(r"\1", "".join(map(kind, word[:MAX_CHARACTERS])))


FEATURES: dict[str, Callable[[Words], list[str]]] = {
    "shape": lambda words: [shape_of(word) for word in words],
    "prefix": lambda words: [word[:3].lower() for word in words],
    "suffix": lambda words: [word[-3:].lower() for word in words],
    "next": lambda words: [a + "\t" + b for a, b in zip(words, [*words[1:], ""], strict=True)],
    "last": lambda words: [a + "\t" + b for a, b in zip(["", *words[:-1]], words, strict=True)],
}
"""Name to what it says of each word: its shape, its first or last three letters, the pair it makes
with the next or the last word."""


def fold(word: str) -> str:
    """Return a word in lower case with 0 for each digit.

    >>> fold("Nov-1998")
    'nov-0000'
    """
    return _DIGIT.sub("0", word.lower())


def folded(sentences: Sequence[Words]) -> list[list[str]]:
    """Return sentences of folded words; each different word is folded once."""
    known: dict[str, str] = {}
    rows = []
    for words in sentences:
        rows.append([known.get(word) or known.setdefault(word, fold(word)) for word in words])
    return rows


class TokenReader:
    """How words become the numbers a tagger reads.

    Args:
        words: The words known.
        folds: Whether words are looked up in lower case with 0 for each digit; characters and
            further features see them as they are.
        features: The values known of each further feature, by its name.
        characters: The characters known, if they are read.
        context: What reads the context of words, if it is read; it sees them as they are.
    """

    def __init__(
        self,
        words: Vocabulary,
        *,
        folds: bool = False,
        features: Mapping[str, Vocabulary] | None = None,
        characters: Vocabulary | None = None,
        context: ContextReader | None = None,
    ) -> None:
        self.words, self.folds, self.characters = words, folds, characters
        self.context = context
        self.features = dict(features or {})

    @staticmethod
    def learn_features(sentences: Sequence[Words], names: Sequence[str]) -> dict[str, Vocabulary]:
        """Return the values of further features that occur more than once."""
        for name in names:
            if name not in FEATURES:
                raise ConfigError(one_of("feature", name, FEATURES))
        return {
            name: Vocabulary.build(
                (FEATURES[name](words) for words in sentences),
                min_count=FEATURE_MIN_COUNT,
                specials=SPECIALS,
            )
            for name in names
        }

    @staticmethod
    def learn_characters(sentences: Sequence[Words]) -> Vocabulary:
        """Return the characters of sentences."""
        return Vocabulary.build((word for words in sentences for word in words), specials=SPECIALS)

    def __call__(self, sentences: Sequence[Words]) -> TokenSequences:
        """Return the sentences as numbers."""
        looked_up = folded(sentences) if self.folds else sentences
        items = Ragged.of([self.words.encode(words) for words in looked_up], np.int32)
        features = [
            Ragged.of([known.encode(FEATURES[name](words)) for words in sentences], np.int32)
            for name, known in self.features.items()
        ]
        context = None if self.context is None else self.context(sentences)
        if self.characters is None:
            return TokenSequences(items, features, context=context)
        numbers: dict[str, int] = {}
        which = [[numbers.setdefault(w, len(numbers)) for w in words] for words in sentences]
        spelled = Ragged.of([self.characters.encode(_read(word)) for word in numbers], np.int32)
        return TokenSequences(items, features, Ragged.of(which, np.int32), spelled, context)


def _read(word: str) -> str:
    half = MAX_CHARACTERS // 2
    return word if len(word) <= MAX_CHARACTERS else word[:half] + word[-half:]


class TokenSequences:
    """Sentences as a tagger reads them.

    Args:
        items: Ids of words, or vectors.
        features: Ids of further features.
        which: The place of each word among the different ones.
        spellings: The characters of those.
        context: What there is of the context of words, if anything.
    """

    def __init__(
        self,
        items: Ragged,
        features: Sequence[Ragged] = (),
        which: Ragged | None = None,
        spellings: Ragged | None = None,
        context: Ragged | None = None,
    ) -> None:
        self.items, self.features = items, list(features)
        self.which, self.spellings, self.context = which, spellings, context

    def __len__(self) -> int:
        return len(self.items)

    def lengths(self, index: ArrayLike) -> NDArray[np.int64]:
        """(B, 1), the lengths of the sentences at these places."""
        return self.items.lengths(index)[:, None]

    def batch(self, index: NDArray[np.int64], tags: Ragged | None = None) -> Batch:
        """Return the sentences at these places, and their tags, as one padded batch."""
        sequences = {"items": Padded(*self.items.pad(index))}
        for number, feature in enumerate(self.features):
            sequences[f"feature{number}"] = Padded(*feature.pad(index))
        if tags is not None:
            sequences["tags"] = Padded(*tags.pad(index))
        if self.context is not None:
            sequences["context"] = Padded(*self.context.pad(index))
        values: dict[str, Any] = {}
        if self.which is not None and self.spellings is not None:
            padded, lengths = self.which.pad(index, fill=-1)
            used, places = np.unique(padded, return_inverse=True)
            places = places.reshape(padded.shape)
            if used[0] < 0:  # padding is read as the first word; it is not looked at
                used, places = used[1:], np.maximum(places - 1, 0)
            sequences["which"] = Padded(places, lengths)
            values["spellings"], values["spelling_lengths"] = self.spellings.pad(used)
        return Batch(index, sequences, values)
