"""What a summarizer is given: texts, and examples of summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

from seqloom.errors import InputError, InputTypeError
from seqloom.tasks.summary_examples import Documents, summary_examples

LONG = 50_000  # characters from which on a text is worth a thread


def is_long(text: Documents) -> bool:
    """Whether a text, or several taken together, are worth a thread."""
    return (len(text) if isinstance(text, str) else sum(map(len, text))) >= LONG


def checked_text(text: Any) -> Documents:
    """A text, or several on one subject.

    Raises:
        InputError: If it is neither.
    """
    if isinstance(text, str):
        return text
    if not isinstance(text, Iterable):
        raise InputError(f"a text or several must be given, got {type(text).__name__}")
    pieces = tuple(text)
    for piece in pieces:
        if not isinstance(piece, str):
            raise InputTypeError(f"a text must be a str, got {type(piece).__name__}: {piece!r:.60}")
    return pieces


def checked_texts(texts: Any) -> Iterator[Documents]:
    """A stream of texts.

    Raises:
        InputError: If it is none.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be several, one after the other, got {type(texts).__name__}")
    return map(checked_text, texts)


def checked_examples(
    data: Any, references: Sequence[str | Sequence[str]] | None
) -> Iterator[tuple[Documents, list[str]]]:
    """Each text with its summaries, however they are given.

    Raises:
        InputError: If there are none.
    """
    if not isinstance(data, str | PathLike | Iterable):
        raise InputError(
            "examples must be a file, the name of a data set, texts or pairs of a text and its "
            f"summary, got {type(data).__name__}"
        )
    for text, summaries in summary_examples(data, references):
        yield checked_text(text), summaries
