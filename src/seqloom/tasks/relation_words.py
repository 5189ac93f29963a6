"""The words of a relation classifier, and the vectors they come with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.relations import MARKERS
from seqloom.nn.held import release_rows
from seqloom.tasks.classifier_sequences import WordSequences
from seqloom.tasks.labels import numbered
from seqloom.tasks.pretrained import embedding_matrix, put_vectors
from seqloom.tasks.relation_text import LabeledSentences
from seqloom.tasks.supervised_objective import Examples
from seqloom.tasks.text_features import TermLimits
from seqloom.tasks.unseen_words import know_by_vector
from seqloom.text import Specials, Vocabulary
from seqloom.text.vectors import WordVectors

SPECIALS = Specials(bos="", eos="", more=MARKERS)  # padding 0, unknown word 1, markers 2 to 5
MARKER_IDS = (2, 3, 4, 5)


def choose_words(
    train: Iterable[Sequence[str]],
    limits: TermLimits,
    others: Iterable[Sequence[str]] = (),
    vectors: WordVectors | None = None,
    specials: Specials = SPECIALS,
) -> Vocabulary:
    """Return the words a model knows: those of the training data, and others that have a vector.

    Args:
        train: The tokenized training data.
        limits: Which of its words are kept.
        others: Further sentences, such as the validation data.
        vectors: Word vectors; a word of `others` that is among them is known by its vector, as it
            will be in use.
        specials: The special words.
    """
    vocabulary = Vocabulary.build(
        train, min_count=limits.min_count, max_size=limits.max_size, specials=specials
    )
    return vocabulary if vectors is None else know_by_vector(vocabulary, others, vectors)


def begin_with(
    model: Any, vocabulary: Vocabulary, vectors: WordVectors, *, tuned: bool, seed: int
) -> float:
    """Give a new model word vectors; return the share of its words that have one.

    Args:
        model: The model.
        vocabulary: Its words.
        vectors: The vectors.
        tuned: Whether they are trained; those of the markers and of words without one always are.
        seed: Of the vectors of words without one.
    """
    given = embedding_matrix(vocabulary, vectors, model.config.embed_size, seed)
    put_vectors(model.input.embedding, given, frozen=not tuned)
    return float(given.found.mean())


def finish(model: Any) -> None:
    """Make a plain table of word vectors of one that had some held."""
    release_rows(model.input.embedding)


def relation_examples(
    given: LabeledSentences, words: WordSequences, classes: NDArray[Any], what: str
) -> Examples:
    """Return labeled sentences as what a model learns from."""
    targets = numbered(np.array(given.labels), classes, what)
    return Examples(words(given.words), targets)
