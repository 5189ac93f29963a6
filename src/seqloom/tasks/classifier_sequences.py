"""Texts and lists of vectors as the sequences a classifier reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged
from seqloom.errors import InputError
from seqloom.models.sentence_encoder import UNKNOWN
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.text_features import TermLimits
from seqloom.text import Specials, Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.contextual import ContextReader

SPECIALS = Specials(bos="", eos="")  # padding is 0 and the unknown word 1


class CutTextWarning(UserWarning):
    """A text was longer than the model reads; its beginning counted, or what is near entities."""


class WordSequences:
    """The words a classifier knows, and how a text becomes their ids.

    A text without a word is read as one unknown word.

    Args:
        vocabulary: The words; others are the unknown word.
        max_length: How many words of a text are read; None for all.
        context: What reads the context of words, if it is read.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        max_length: int | None,
        context: ContextReader | None = None,
    ) -> None:
        self.vocabulary, self.max_length, self.context = vocabulary, max_length, context
        assert vocabulary[vocabulary.specials.unk] == UNKNOWN

    @classmethod
    def learn(
        cls,
        texts: Iterable[Sequence[str]],
        limits: TermLimits,
        max_length: int | None,
        context: ContextReader | None = None,
    ) -> WordSequences:
        """Choose the words of tokenized texts."""
        texts = [*texts]
        vocabulary = Vocabulary.build(
            texts, min_count=limits.min_count, max_size=limits.max_size, specials=SPECIALS
        )
        if len(vocabulary) == len(SPECIALS.names()):
            raise InputError(
                "the texts must hold at least one word that occurs often enough, got none among "
                f"{len(texts)} texts (min_count={limits.min_count})"
            )
        return cls(vocabulary, max_length, context)

    def knowing(self, vocabulary: Vocabulary) -> WordSequences:
        """The same with other words."""
        return WordSequences(vocabulary, self.max_length, self.context)

    def words(self, text: Sequence[str]) -> list[str]:
        """Return the words of a tokenized text that are read."""
        return list(text[: self.max_length]) or [self.vocabulary.specials.unk]

    def __call__(self, texts: Sequence[Sequence[str]]) -> Sequences:
        """Return the ids of tokenized texts."""
        warn_of_cuts([len(text) for text in texts], self.max_length, "words")
        words = [self.words(text) for text in texts]
        rows = [self.vocabulary.encode(each) for each in words]
        context = None if self.context is None else self.context(words)
        return Sequences(Ragged.of(rows, np.int32), len(self.vocabulary), context)


class VectorSequences:
    """How lists of vectors are read.

    Args:
        width: Width of the vectors.
        max_length: How many vectors of a sequence are read; None for all.
    """

    def __init__(self, width: int, max_length: int | None) -> None:
        self.width, self.max_length = width, max_length

    def __call__(self, sequences: Sequence[NDArray[np.float32]]) -> Sequences:
        """Return the sequences as far as they are read."""
        warn_of_cuts([len(one) for one in sequences], self.max_length, "vectors")
        rows = [one[: self.max_length] for one in sequences]
        return Sequences(Ragged.of(rows, np.float32), self.width)


def warn_of_cuts(lengths: Sequence[int], most: int | None, what: str) -> None:
    """Warn of sequences that are longer than is read."""
    if most is None or max(lengths, default=0) <= most:
        return
    cut = sum(length > most for length in lengths)
    warnings.warn(
        f"{cut} of {len(lengths)} sequences are longer than max_length={most} {what} (the longest "
        f"has {max(lengths)}); only their beginnings are read: raise max_length, or split them",
        CutTextWarning,
        stacklevel=2,
    )


def is_sequence_list(x: Any) -> bool:
    """Whether this is a list of sequences of vectors: an array of 3 axes, or a list of tables."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x.ndim == 3
    if not hasattr(x, "__len__") or not hasattr(x, "__getitem__") or not len(x):
        return False
    if isinstance(x, dict) or hasattr(x, "columns"):
        return False
    first = next(iter(x))
    if hasattr(first, "ndim"):  # an array, a tensor, a data frame
        return bool(first.ndim == 2)
    is_rows = isinstance(first, list | tuple) and len(first) and not isinstance(first[0], str)
    return bool(is_rows) and (np.ndim(first[0]) == 1)


def as_sequences(x: Any, owner: str, width: int | None) -> list[NDArray[np.float32]]:
    """Return sequences of vectors as arrays (T, D) of one D.

    Args:
        x: A list of tables, or an array of 3 axes.
        owner: The name of the estimator, for messages.
        width: The D it was fitted to, if it was.

    Raises:
        InputError: If one of them is empty, of another width or not of numbers.
    """
    found = []
    for number, one in enumerate(x):
        try:
            array = np.asarray(one, np.float32)
        except (TypeError, ValueError):
            raise InputError(
                f"sequence {number} must be a table of numbers, got {type(one).__name__}"
            ) from None
        if array.ndim != 2 or not len(array):
            raise InputError(
                f"sequence {number} must be (steps, features) with at least one step, got shape "
                f"{array.shape}"
            )
        width = array.shape[1] if width is None else width
        if array.shape[1] != width:
            raise InputError(
                f"X has {array.shape[1]} features in sequence {number}, but {owner} is expecting "
                f"{width} features as input"
            )
        if not np.isfinite(array).all():
            raise InputError(f"sequence {number} of X contains NaN or infinity; replace it")
        found.append(array)
    return found
