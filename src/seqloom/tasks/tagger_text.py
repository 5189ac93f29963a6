"""Tagged sentences from anywhere: files, named data sets, lists; what is wrong with one is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.examples import TaggedTokens
from seqloom.data.inputs import read_input
from seqloom.data.problems import Records
from seqloom.errors import DataError, InputError
from seqloom.metrics.spans import (
    PREFIXES,
    Scheme,
    belongs,
    convert_tags,
    first_illegal,
)
from seqloom.tasks.classifier_sequences import as_sequences, is_sequence_list
from seqloom.tasks.segmenter import as_characters


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences, and their tags if they have some.

    Args:
        items: The words of each sentence, or vectors (T, D).
        tags: A tag a word.
        lines: The line each begins at, 0 where that is not known.
        source: The file or data set they come from, if they do.
    """

    items: list[Any]
    tags: list[list[str]] | None
    lines: list[int]
    source: str | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def are_vectors(self) -> bool:
        """Whether these are sequences of vectors."""
        return isinstance(self.items[0], np.ndarray)

    def part(self, index: NDArray[np.int64]) -> TaggedSentences:
        """Return the sentences at these places."""
        tags = None if self.tags is None else [self.tags[i] for i in index]
        chosen = [self.items[i] for i in index], tags, [self.lines[i] for i in index]
        return TaggedSentences(*chosen, self.source)


def read_sentences(
    x: Any, y: Any = None, *, width: int | None = None, owner: str = "Tagger"
) -> TaggedSentences:
    """Read sentences from anywhere.

    Args:
        x: A file in columns or CoNLL-U, "NAME:SPLIT", `TaggedTokens`, lists of words, or sequences
            of vectors.
        y: A list of tags a sentence, unless `x` brings them.
        width: The width of vectors it must have, if that is known.
        owner: The name of the estimator, for messages.

    Raises:
        InputError: If something of it is no sentence, or the tags do not fit.
    """
    source = None
    if isinstance(x, str | PathLike):
        source = fspath(x)
        x = read_input(source, "tagged")
    elif isinstance(x, Records):
        source = x.name
    if is_sequence_list(x):
        vectors = as_sequences(x, owner, width)
        return TaggedSentences([*vectors], _given(y, [*vectors]), [0] * len(vectors))
    items = list(x)
    if not items:
        raise InputError("there must be at least one sentence, got none")
    if all(isinstance(item, TaggedTokens) for item in items):
        if y is not None:
            raise InputError("tags must be given once, got TaggedTokens and y as well")
        for number, item in enumerate(items):
            if len(item.tokens) != len(item.tags):
                raise InputError(_uneven(number, len(item.tokens), len(item.tags)))
        words = [list(item.tokens) for item in items]
        tags = [list(item.tags) for item in items]
        return TaggedSentences(words, tags, [item.line for item in items], source)
    if source is not None:
        raise DataError(f"must hold tagged sentences, got {type(items[0]).__name__}", source)
    words = [_words(item, number) for number, item in enumerate(items)]
    return TaggedSentences(words, _given(y, words), [0] * len(words))


def _words(item: Any, number: int) -> list[str]:
    if isinstance(item, str) or not isinstance(item, Sequence):
        raise InputError(
            f"sentence {number} must be a list of words, got {type(item).__name__}: {item!r}"[:200]
        )
    words = list(item)
    if not all(isinstance(word, str) and word for word in words):
        raise InputError(f"sentence {number} must hold words only, got {words!r}"[:200])
    return words


def _given(y: Any, items: Sequence[Any]) -> list[list[str]] | None:
    if y is None:
        return None
    tags = [list(row) for row in y]
    if len(tags) != len(items):
        raise InputError(
            f"y must be a list of tags a sentence, got {len(tags)} for {len(items)} sentences"
        )
    for number, (row, item) in enumerate(zip(tags, items, strict=True)):
        if len(row) != len(item):
            raise InputError(_uneven(number, len(item), len(row)))
        if not all(isinstance(tag, str) and tag for tag in row):
            raise InputError(f"tags must be names, got {row!r} of sentence {number}"[:200])
    return tags


def _uneven(number: int, words: int, tags: int) -> str:
    return f"sentence {number} must have a tag a word, got {words} words and {tags} tags"


def read_tagged_sentences(
    x: Any, y: Any, what: str, *, segment: bool, width: int | None = None
) -> TaggedSentences:
    """Read sentences that must have tags.

    Args:
        x: As `read_sentences` takes them.
        y: The tags, unless `x` brings them.
        what: What the data is for, for messages.
        segment: Whether the words are what is to be found: the sentences then are their characters,
            and the tags say where words begin and end.
        width: The width of vectors it must have, if that is known.

    Raises:
        InputError: If there are no tags or a sentence is empty.
    """
    given = read_sentences(x, y, width=width)
    if segment:
        if given.are_vectors:
            raise InputError("segment=True needs sentences of words, got vectors")
        pairs = [as_characters(words) for words in given.items]
        characters, tags = [each[0] for each in pairs], [each[1] for each in pairs]
        given = replace(given, items=characters, tags=tags, lines=[0] * len(pairs))
    if given.tags is None:
        raise InputError(f"the {what} data must have a tag a word, got none; give y")
    for number, item in enumerate(given.items):
        if not len(item):
            raise InputError(f"sentence {number} of the {what} data must have a word, got none")
    return given


def legal(given: TaggedSentences, scheme: Scheme, *, repair: bool) -> TaggedSentences:
    """Return sentences whose tags are legal in their scheme.

    Args:
        given: The sentences.
        scheme: The scheme.
        repair: Whether illegal tags are read as conlleval reads them, those of other schemes among
            them; else they are refused. What is a tag of no scheme is refused in any case.

    Raises:
        InputError: Naming file, line and tag.
    """
    assert given.tags is not None
    tags = []
    for number, row in enumerate(given.tags):
        place = first_illegal(row, scheme)
        if place is None:
            tags.append(row)
            continue
        foreign = [i for i, tag in enumerate(row) if not any(belongs(tag, s) for s in PREFIXES)]
        if repair and not foreign:
            tags.append(convert_tags(row, scheme))
            continue
        if repair:
            place = foreign[0]
        line = given.lines[number] + place if given.lines[number] else None
        where = f"(sentence {number}, word {place})"
        raise InputError(_complaint(row, place, scheme, where), given.source, line)
    return replace(given, tags=tags)


def _complaint(row: list[str], place: int, scheme: Scheme, where: str) -> str:
    """What is wrong with the tag at a place."""
    tag = row[place]
    if not belongs(tag, scheme):
        known = ", ".join(PREFIXES[scheme])
        return (
            f"tags of scheme {scheme!r} must be O or begin with one of {known}, got {tag!r} "
            f"{where}; correct it or name another scheme"
        )
    before = repr(row[place - 1]) if place else "the beginning"
    after = "" if place + 1 < len(row) else " at the end"
    return (
        f"tags must be legal in scheme {scheme!r}, got {tag!r} after {before}{after} {where}; "
        "correct it, or set illegal='repair' to read it as conlleval does"
    )
