"""Teaching a relation classifier by others, also by pairs of entities that nobody labeled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.relations import Marked
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.labels import class_labels, numbered
from seqloom.tasks.relation_text import LabeledSentences, open_unlabeled, read_sentences
from seqloom.tasks.teaching import TeachingConfig, mean_shares, open_teacher


class TaughtRelations(NamedTuple):
    """What a relation classifier learns when it is taught.

    Args:
        words: The labeled sentences, then the further ones.
        shares: The probability of each label, (N, C), as the sorted labels stand.
        facts: Where it comes from, for the model directory.
    """

    words: list[list[str]]
    shares: NDArray[np.float32]
    facts: dict[str, Any]


def taught_relations(
    kind: type[Any],
    config: TeachingConfig,
    train: LabeledSentences,
    read: Callable[[list[Marked]], list[list[str]]],
) -> TaughtRelations:
    """Return what a relation classifier learns from, as `TeachingConfig` has it.

    Args:
        kind: The class of the estimator.
        config: How it is taught; `texts` are sentences with two marked entities.
        train: The labeled sentences, without those that validate.
        read: How sentences become words.

    Raises:
        ConfigError: If a teacher is none, or a prior is wanted: further sentences have no labels.
        InputError: If a further sentence has no two entities.
    """
    if config.prior:
        raise ConfigError(
            f"further sentences of relations have no label of their own, got prior={config.prior}"
        )
    teachers = [open_teacher(kind, each) for each in config.teachers]
    labels = np.array(train.labels)
    classes = class_labels(labels)
    table = np.eye(len(classes))[numbered(labels, classes, "training")]
    if config.share:
        said = mean_shares(teachers, train.sentences, classes)
        table = (1 - config.share) * table + config.share * said
    words, more = train.words, _further(config.texts)
    if more:
        with _told_apart():
            words = [*words, *read(more)]
        table = np.concatenate([table, mean_shares(teachers, more, classes)])
    facts: dict[str, Any] = {
        "teachers": [teacher.arch_ for teacher in teachers],
        "share": config.share,
        "further": len(more),
    }
    if isinstance(config.texts, str | PathLike):
        facts["texts"] = fspath(config.texts)
    return TaughtRelations(words, table.astype(np.float32), facts)


def _further(source: Any) -> list[Marked]:
    """The sentences that were not labeled for this."""
    if source is None:
        return []
    if isinstance(source, str | PathLike):
        return read_sentences(open_unlabeled(source))[0]
    if not isinstance(source, Iterable) or isinstance(source, Iterator):
        raise ConfigError(
            f"teaching.texts must be a list, a file or NAME:SPLIT, got {type(source).__name__}"
        )
    items = list(source)
    with _told_apart():
        return read_sentences(items)[0] if items else []


@contextmanager
def _told_apart() -> Iterator[None]:
    """Let messages say that a sentence is one of the further ones, not of the training data."""
    try:
        yield
    except InputError as problem:
        raise InputError(f"teaching.texts: {problem.message}") from None
