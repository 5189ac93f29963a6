"""Sentences with two marked entities as words: the markers are words among the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.datasets import dataset_names
from seqloom.data.examples import Relation
from seqloom.data.inputs import FieldNames, read_input
from seqloom.data.problems import shown
from seqloom.data.relations import (
    MARKERS,
    Marked,
    check_spans,
    is_numbered,
    parse_marked,
    read_marked,
    read_relations,
    read_unlabeled,
)
from seqloom.data.rows import COMPRESSED, FORMATS
from seqloom.errors import DataError, InputError
from seqloom.tasks.classifier_sequences import CutTextWarning
from seqloom.text import TextPipeline


class MarkedWords(NamedTuple):
    """A sentence as a model reads it.

    Args:
        words: Its words, with <e1>, </e1>, <e2> and </e2> among them.
        spans: Where each word stands in the text without markers, as (start, end); of a marker,
            the place it stood at, twice.
    """

    words: list[str]
    spans: list[tuple[int, int]]

    def near(self, around: int) -> MarkedWords:
        """The entities, what stands between them, and so many words before and after.

        Examples:
            >>> sentence = parse_marked("He made a <e1>cup</e1> of <e2>tea</e2> with milk.")
            >>> marked_words(TextPipeline(), sentence).near(1).words
            ['a', '<e1>', 'cup', '</e1>', 'of', '<e2>', 'tea', '</e2>', 'with']
        """
        places = [place for place, word in enumerate(self.words) if word in MARKERS]
        part = slice(max(0, places[0] - around), places[-1] + 1 + around)
        return MarkedWords(self.words[part], self.spans[part])

    def within(self, most: int) -> MarkedWords:
        """The entities, what stands between them, and words around them: `most` in all at most.

        Raises:
            InputError: If the entities and what stands between them are more.

        Examples:
            >>> sentence = parse_marked("He made a <e1>cup</e1> of <e2>tea</e2> with milk.")
            >>> marked_words(TextPipeline(), sentence).within(10).words
            ['a', '<e1>', 'cup', '</e1>', 'of', '<e2>', 'tea', '</e2>', 'with']
        """
        if len(self.words) <= most:
            return self
        places = [place for place, word in enumerate(self.words) if word in MARKERS]
        inside = places[-1] + 1 - places[0]
        if inside > most:
            raise InputError(
                f"two entities and the words between them must be at most {most} words, got "
                f"{inside}; shorten the text between them, or use an architecture without a limit "
                "such as 'blstm'"
            )
        fewer, room = min(places[0], len(self.words) - 1 - places[-1]), most - inside
        return self.near(max(room // 2, room - fewer))


def marked_words(pipeline: TextPipeline, sentence: Marked) -> MarkedWords:
    """Tokenize a sentence around its entities, so that no word crosses the edge of one.

    Args:
        pipeline: How text becomes words.
        sentence: The text and the spans of its entities.

    Raises:
        InputError: If the text has a marker for a word.

    Examples:
        >>> sentence = parse_marked("A <e1>tea</e1><e2>pot</e2>.")
        >>> marked_words(TextPipeline(), sentence).words
        ['A', '<e1>', 'tea', '</e1>', '<e2>', 'pot', '</e2>', '.']
    """
    text, first, second = sentence
    edges = sorted([(*first, MARKERS[0], MARKERS[1]), (*second, MARKERS[2], MARKERS[3])])
    words: list[str] = []
    spans: list[tuple[int, int]] = []

    def read(start: int, end: int) -> None:
        piece = text[start:end]
        if not piece.strip():
            return
        found = pipeline(piece)
        for word in found.words:
            if word in MARKERS:
                raise InputError(f"a text must not have a marker for a word, got {word!r}")
        words.extend(found.words)
        spans.extend((start + a, start + b) for a, b in found.spans)

    end = 0
    for start, stop, opening, closing in edges:
        read(end, start)
        words.append(opening)
        spans.append((start, start))
        read(start, stop)
        words.append(closing)
        spans.append((stop, stop))
        end = stop
    read(end, len(text))
    return MarkedWords(words, spans)


def near_entities(
    sentences: Iterable[MarkedWords], around: int | None, most: int | None
) -> list[MarkedWords]:
    """Return what is read of sentences.

    Args:
        sentences: Their words.
        around: How many words before the first entity and after the second; all if None.
        most: How many words in all at most; any number if None.

    Raises:
        InputError: If the entities of one and the words between them are more.
    """
    found = [each if around is None else each.near(around) for each in sentences]
    if most is None:
        return found
    lengths = [len(each.words) for each in found]
    for number, each in enumerate(found):
        try:
            found[number] = each.within(most)
        except InputError as problem:
            raise InputError(f"sentence {number}: {problem.message}") from None
    cut = sum(length > most for length in lengths)
    if cut:
        warnings.warn(
            f"{cut} of {len(found)} sentences have more than the {most} words that are read (the "
            f"longest has {max(lengths)}); only those near the entities count: set around=, or "
            "split them",
            CutTextWarning,
            stacklevel=2,
        )
    return found


def sentence_reader(
    pipeline: TextPipeline, around: int | None, most: int | None
) -> Callable[[list[Marked]], list[list[str]]]:
    """Return what makes of sentences the words that are read of them; see `near_entities`."""

    def read(sentences: list[Marked]) -> list[list[str]]:
        found = [marked_words(pipeline, sentence) for sentence in sentences]
        return [each.words for each in near_entities(found, around, most)]

    return read


def as_marked(item: Any, number: int = 0) -> Marked:
    """Return a sentence given as a marked text, a `Relation` or (text, first, second)."""
    try:
        if isinstance(item, str):
            return parse_marked(item)
        if isinstance(item, Relation):
            item = (item.text, item.first, item.second)
        if isinstance(item, tuple) and len(item) == 3 and isinstance(item[0], str):
            check_spans(*item)
            return Marked(*item)
    except InputError as problem:
        raise InputError(f"sentence {number}: {problem.message}") from None
    raise InputError(
        f"sentence {number} must be a text with <e1> </e1> <e2> </e2>, a Relation or (text, first, "
        f"second), got {item!r}"
    )


def marked_line(line: str, number: int, path: str | None = None) -> Marked:
    """Return the sentence of a line of a file.

    Raises:
        DataError: With the number of the line, if there are no two entities in it.
    """
    try:
        return parse_marked(line)
    except InputError as problem:
        raise DataError(problem.message, path, number) from None


def read_sentences(x: Any, y: Any = None) -> tuple[list[Marked], list[str] | None]:
    """Return sentences from anywhere, and their labels if they have some.

    Args:
        x: A file (SemEval's format, or a table with columns text and label), "NAME:SPLIT", or a
            list of `Relation`s, of marked texts or of (text, first, second).
        y: Their labels, unless `x` brings them.

    Raises:
        InputError: If something of it is no sentence with two entities, or the labels do not fit.
    """
    if isinstance(x, str) and any(marker in x for marker in MARKERS):
        raise InputError(f"sentences must be a list, got one sentence, {shown(x)}")
    if isinstance(x, str | PathLike):
        x = open_relations(x)
    items = list(x) if isinstance(x, Iterable) else [x]
    if not items:
        raise InputError("there must be at least one sentence, got none")
    labels = [item.label for item in items if isinstance(item, Relation)]
    sentences = [as_marked(item, number) for number, item in enumerate(items)]
    if labels and y is not None:
        raise InputError("labels must be given once, got Relations and y as well")
    if labels and len(labels) != len(items):
        raise InputError(
            f"all sentences must be Relations or none, got {len(labels)} of {len(items)}"
        )
    return sentences, (labels or None) if y is None else _labels(y, len(items))


def _labels(y: Any, count: int) -> list[str]:
    """Labels as they were given beside sentences, checked."""
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise InputError(f"y must be a list of one text a sentence, got {y!r}")
    given = list(y)
    if len(given) != count:
        raise InputError(
            f"y must be one text a sentence, got {len(given)} labels for {count} sentences"
        )
    for number, label in enumerate(given):
        _check_label(label, number)
    return given


def _check_label(label: Any, number: int) -> None:
    if not isinstance(label, str):
        raise InputError(f"the label of sentence {number} must be a text, got {label!r}")


def open_relations(source: str | PathLike[str], names: FieldNames | None = None) -> Iterable[Any]:
    """Open a file of relations or a named data set.

    Args:
        source: A table (.csv, .tsv, .jsonl, .parquet) with columns text and label, a file in the
            format of SemEval-2010 Task 8, or "NAME:SPLIT".
        names: How the columns of a table are called.

    Raises:
        DataError: If the data set holds no relations.
    """
    names = names or FieldNames()
    name = fspath(source)
    if _is_dataset(name):
        found = list(read_input(name, "text"))
        if not isinstance(found[0], Relation):
            raise DataError(
                f"must hold sentences with two entities, got {type(found[0]).__name__}", name
            )
        return found
    if _is_table(name):
        return read_marked(name, text=names.text, label=names.label)
    return read_relations(name)


def open_unlabeled(source: str | PathLike[str]) -> Iterable[Any]:
    """Open sentences whose labels, if they have some, do not count.

    Args:
        source: A table with a column text, a file in the format of SemEval-2010 Task 8 or with a
            sentence a line, or "NAME:SPLIT".
    """
    name = fspath(source)
    if _is_dataset(name):
        return open_relations(name)
    if _is_table(name):
        return read_unlabeled(name, column=FieldNames().text)
    return read_relations(name) if is_numbered(name) else read_unlabeled(name)


def _is_dataset(name: str) -> bool:
    return not Path(name).exists() and name.partition(":")[0] in dataset_names()


def _is_table(name: str) -> bool:
    suffixes = [s.lower() for s in Path(name).suffixes if s.lower() not in COMPRESSED]
    return bool(suffixes) and any(suffixes[-1] in known for known in FORMATS.values())


@dataclass(frozen=True)
class LabeledSentences:
    """Tokenized sentences, markers among their words, their labels, and what was tokenized."""

    words: list[list[str]]
    labels: list[str]
    sentences: list[Marked]

    def part(self, index: NDArray[np.int64]) -> LabeledSentences:
        """Return the sentences at these places."""
        columns = (self.words, self.labels, self.sentences)
        return LabeledSentences(*([column[i] for i in index] for column in columns))  # type: ignore[arg-type]


def read_labeled_sentences(
    x: Any, y: Any, read: Callable[[list[Marked]], list[list[str]]], what: str
) -> LabeledSentences:
    """Read sentences from anywhere, with their labels.

    Args:
        x: As `read_sentences` takes them.
        y: Their labels, unless `x` brings them.
        read: How sentences become words.
        what: What the data is for, for messages.

    Raises:
        InputError: If they have no labels, or as `read_sentences`.
    """
    sentences, labels = read_sentences(x, y)
    if labels is None:
        raise InputError(f"the {what} data must have a label a sentence, got none; give y")
    for number, label in enumerate(labels):
        _check_label(label, number)
    return LabeledSentences(read(sentences), labels, sentences)
