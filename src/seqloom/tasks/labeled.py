"""What a classifier may be given: vectors, texts, or labeled texts from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.examples import LabeledText, Text
from seqloom.data.inputs import read_input
from seqloom.data.prepared import HEADER, PreparedData
from seqloom.errors import DataError, InputError
from seqloom.tasks.vectors import Floats, as_labels, as_vectors
from seqloom.text import TextPipeline

Words = list[list[str]]


class Labeled(NamedTuple):
    """Examples as they were given.

    Args:
        x: Vectors (N, D) or tokenized texts.
        y: Their labels, if they were asked for.
        pipeline: What the texts were read by.
    """

    x: Floats | Words
    y: NDArray[Any] | None
    pipeline: TextPipeline | None


def read_examples(
    x: Any,
    y: Any,
    pipeline: Callable[[], TextPipeline],
    owner: str,
    *,
    width: int | None = None,
    labeled: bool = True,
) -> Labeled:
    """Return examples as vectors or tokenized texts, and their labels.

    Args:
        x: A table of numbers; texts; labeled texts; a file, "NAME:SPLIT" or prepared data.
        y: The labels, unless `x` brings them.
        pipeline: What makes the text pipeline, if there is text.
        owner: The estimator's name, for messages.
        width: The number of features it was fitted to, if it was.
        labeled: Whether labels are needed.
    """
    x = _opened(x)
    if isinstance(x, PreparedData):
        _refuse_labels(y)
        return _from_prepared(x)
    if not _is_text(x):
        vectors = as_vectors(x, owner, width)
        return Labeled(vectors, as_labels(y, len(vectors)) if labeled else None, None)
    texts, labels = _texts(x)
    if not texts:
        raise InputError("there must be at least one text, got none")
    read = pipeline()
    words = [read.words(text) for text in texts]
    if labels is not None:
        _refuse_labels(y)
        return Labeled(words, np.array(labels), read)
    return Labeled(words, as_labels(y, len(words)) if labeled else None, read)


def is_pair(data: Any) -> bool:
    """Whether these are features and labels, not two examples."""
    return isinstance(data, tuple) and len(data) == 2 and not _is_text(data)


def _opened(x: Any) -> Any:
    """Open what is named by a path; give an iterator a length."""
    if isinstance(x, (str, PathLike)):
        if (Path(fspath(x)) / HEADER).is_file():
            return PreparedData.open(x)
        return list(read_input(x, "labeled"))
    if isinstance(x, Iterable) and not hasattr(x, "__len__"):
        return list(x)
    return x


def _refuse_labels(y: Any) -> None:
    if y is not None:
        raise InputError("labels must be given once, got labeled texts and y as well")


def _is_text(x: Any) -> bool:
    """Whether these are texts: a flat list or column whose first item is one, or an empty list."""
    if getattr(x, "ndim", 1) != 1 or not hasattr(x, "__len__") or hasattr(x, "nnz"):
        return False
    if len(x) == 0:
        return isinstance(x, list | tuple)
    first = next(iter(x)) if not isinstance(x, dict) else None
    return isinstance(first, str | Text | LabeledText)


def _texts(x: Iterable[Any]) -> tuple[list[str], list[str] | None]:
    """Return the texts and, if all of them have one, their labels."""
    texts: list[str] = []
    labels: list[str] = []
    for number, item in enumerate(x):
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, Text):
            texts.append(item.text)
        elif isinstance(item, LabeledText):
            if len(item.labels) != 1:
                raise InputError(
                    f"every text must have one label, got {item.labels!r} for text {number}: "
                    "multi-label classification is not supported yet"
                )
            texts.append(item.text)
            labels.append(item.label)
        else:
            raise InputError(f"text {number} must be a string or a LabeledText, got {item!r}")
    if labels and len(labels) != len(texts):
        raise InputError(
            f"all texts must be labeled or none, got {len(labels)} labels for {len(texts)} texts"
        )
    return texts, labels or None


def _from_prepared(data: PreparedData) -> Labeled:
    """Return the words of prepared text, without the special ones, and the labels."""
    if data.kind != "labeled":
        raise DataError(f"a classifier needs prepared labeled text, got kind {data.kind!r}")
    rows = np.asarray(data.data.values["labels"])
    if (rows.sum(axis=1) != 1).any():
        raise DataError("every text must have one label; multi-label is not supported yet")
    vocabulary = data.vocabularies["words"]
    special = set(vocabulary.specials.names())
    words = [
        [word for word in vocabulary.decode(ids) if word not in special]
        for ids in data.data.sequences["ids"]
    ]
    names = np.array(data.vocabularies["labels"].words)
    return Labeled(words, names[rows.argmax(axis=1)], data.pipeline)
