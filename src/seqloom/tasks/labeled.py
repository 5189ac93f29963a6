"""What a classifier may be given: vectors, sequences of them, texts, or labeled texts."""

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
from seqloom.data.rows import is_missing
from seqloom.errors import DataError, InputError
from seqloom.tasks.classifier_multilabel import LabelSets, as_label_sets
from seqloom.tasks.classifier_sequences import as_sequences, is_sequence_list
from seqloom.tasks.label_shares import LabelShares, as_label_shares, has_shares
from seqloom.tasks.vectors import Floats, as_labels, as_vectors
from seqloom.text import TextPipeline

Words = list[list[str]]
VectorLists = list[NDArray[np.float32]]


class Labeled(NamedTuple):
    """Examples as they were given.

    Args:
        x: Vectors (N, D), tokenized texts, or sequences of vectors.
        y: Their labels, if they were asked for: one each, sets of them, or probabilities.
        pipeline: What the texts were read by.
    """

    x: Floats | Words | VectorLists
    y: NDArray[Any] | LabelSets | LabelShares | None
    pipeline: TextPipeline | None

    @property
    def is_text(self) -> bool:
        """Whether these are texts."""
        return self.pipeline is not None


def read_examples(
    x: Any,
    y: Any,
    pipeline: Callable[[], TextPipeline],
    owner: str,
    *,
    width: int | None = None,
    labeled: bool = True,
    sequences: bool = False,
    multilabel: bool = False,
) -> Labeled:
    """Return examples as vectors, sequences of them or tokenized texts, and their labels.

    Args:
        x: A table of numbers; sequences of vectors; texts; labeled texts; a file, "NAME:SPLIT" or
            prepared data.
        y: The labels, unless `x` brings them.
        pipeline: What makes the text pipeline, if there is text.
        owner: The estimator's name, for messages.
        width: The number of features it was fitted to, if it was.
        labeled: Whether labels are needed.
        sequences: Whether the model reads sequences of vectors, not vectors.
        multilabel: Whether an example has a set of labels.
    """
    x = opened(x)
    if isinstance(x, PreparedData):
        _refuse_labels(y)
        return _from_prepared(x, multilabel=multilabel)

    def labels_of(count: int) -> NDArray[Any] | LabelSets | LabelShares | None:
        if not labeled:
            return None
        if multilabel:
            return as_label_sets(y, count)
        return as_label_shares(y, count) if has_shares(y) else as_labels(y, count)

    if sequences and is_sequence_list(x):
        lists = as_sequences(x, owner, width)
        return Labeled(lists, labels_of(len(lists)), None)
    if not is_text(x):
        vectors = as_vectors(x, owner, width)
        if sequences:
            raise InputError(
                "X must be texts or sequences of vectors, (steps, features) each, got one vector "
                f"an example (shape {vectors.shape}); use arch='softmax' or 'mlp' for those"
            )
        return Labeled(vectors, labels_of(len(vectors)), None)
    texts, labels = texts_and_labels(x, multilabel=multilabel)
    if not texts:
        raise InputError("there must be at least one text, got none")
    read = pipeline()
    words = [read.words(text) for text in texts]
    if labels is not None:
        _refuse_labels(y)
        if multilabel:
            return Labeled(words, LabelSets([frozenset(each) for each in labels], None), read)
        return Labeled(words, np.array([each[0] for each in labels]), read)
    return Labeled(words, labels_of(len(words)), read)


def is_pair(data: Any) -> bool:
    """Whether these are features and labels, not two examples."""
    return isinstance(data, tuple) and len(data) == 2 and not is_text(data)


def opened(x: Any) -> Any:
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


def is_text(x: Any) -> bool:
    """Whether these are texts: a flat list or column whose first item is one, or an empty one.

    What is missing at its beginning, such as None, is passed over, and refused where it is read.
    """
    if getattr(x, "ndim", 1) != 1 or not hasattr(x, "__len__") or hasattr(x, "nnz"):
        return False
    if len(x) == 0:
        kind = getattr(getattr(x, "dtype", None), "kind", "")
        return isinstance(x, list | tuple) or kind in ("O", "U", "T")
    if isinstance(x, dict):
        return False
    first = next((item for item in x if not is_missing(item)), None)
    return isinstance(first, str | Text | LabeledText)


def texts_and_labels(
    x: Iterable[Any], *, multilabel: bool
) -> tuple[list[str], list[tuple[str, ...]] | None]:
    """Return the texts and, if all of them have some, their labels."""
    texts: list[str] = []
    labels: list[tuple[str, ...]] = []
    for number, item in enumerate(x):
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, Text):
            texts.append(item.text)
        elif isinstance(item, LabeledText):
            if len(item.labels) != 1 and not multilabel:
                raise InputError(
                    f"every text must have one label, got {item.labels!r} for text {number}; set "
                    "multilabel=True for sets of labels"
                )
            texts.append(item.text)
            labels.append(item.labels)
        else:
            raise InputError(f"text {number} must be a string or a LabeledText, got {item!r}")
    if labels and len(labels) != len(texts):
        raise InputError(
            f"all texts must be labeled or none, got {len(labels)} labels for {len(texts)} texts"
        )
    return texts, labels or None


def _from_prepared(data: PreparedData, *, multilabel: bool) -> Labeled:
    """Return the words of prepared text, without the special ones, and the labels."""
    if data.kind != "labeled":
        raise DataError(f"a classifier needs prepared labeled text, got kind {data.kind!r}")
    rows = np.asarray(data.data.values["labels"])
    if (rows.sum(axis=1) != 1).any() and not multilabel:
        raise DataError("every text must have one label, got none or several; set multilabel=True")
    vocabulary = data.vocabularies["words"]
    special = set(vocabulary.specials.names())
    words = [
        [word for word in vocabulary.decode(ids) if word not in special]
        for ids in data.data.sequences["ids"]
    ]
    names = np.array(data.vocabularies["labels"].words)
    if multilabel:
        sets = [frozenset(names[row.astype(bool)].tolist()) for row in rows]
        return Labeled(words, LabelSets(sets, None), data.pipeline)
    return Labeled(words, names[rows.argmax(axis=1)], data.pipeline)
