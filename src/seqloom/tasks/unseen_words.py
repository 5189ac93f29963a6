"""Words that have a vector and do not occur in the training data: known by it all the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from seqloom.errors import ConfigError
from seqloom.text import Vocabulary
from seqloom.text.vectors import WordVectors


def check_unseen(most: int | bool) -> None:
    """Refuse what is no number of words that are known by their vectors.

    Raises:
        ConfigError: If it is negative, or no whole number.
    """
    if not isinstance(most, int) or most < 0:
        raise ConfigError(f"unseen_vectors must be true, false or a number of words, got {most!r}")


def know_by_vector(
    vocabulary: Vocabulary, texts: Iterable[Sequence[str]], vectors: WordVectors
) -> Vocabulary:
    """Return a vocabulary with the words of further texts that have a vector.

    Args:
        vocabulary: The words of the training data.
        texts: Tokenized texts, such as the validation data.
        vectors: Word vectors.
    """
    new = dict.fromkeys(
        word for words in texts for word in words if word not in vocabulary and word in vectors
    )
    return _with_words(vocabulary, [*new])


def extend_words(
    model: Any, vocabulary: Vocabulary, vectors: WordVectors, most: int | bool = True
) -> Vocabulary:
    """Let a trained model know words by their vectors; return its new vocabulary.

    What it says of texts of words it knew does not change. It is as if all vectors had been in
    its table from the beginning: a word that does not occur in training is not moved by it.

    Args:
        model: A trained network.
        vocabulary: Its words.
        vectors: Word vectors, frequent words first, as they are stored by custom.
        most: How many words are added at most; True for all.
    """
    new = [word for word in vectors.words if word not in vocabulary]
    if most is not True:
        new = new[:most]
    extended = _with_words(vocabulary, new)
    old = model.input.embedding.weight.detach()
    rows = torch.from_numpy(vectors.select(new)[0].astype("float32"))
    weight = torch.cat([old, rows.to(old)])
    model.input.embedding = nn.Embedding.from_pretrained(weight, freeze=False)
    model.config = replace(model.config, vocab_size=len(extended))
    return extended


def _with_words(vocabulary: Vocabulary, new: list[str]) -> Vocabulary:
    if not new:
        return vocabulary
    specials = vocabulary.specials
    known = vocabulary.words[len(specials.names()) :]
    return Vocabulary([*known, *new], specials=specials)
