"""Texts with their summaries, however they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

from seqloom.data.examples import Text, TextPair
from seqloom.data.inputs import read_input
from seqloom.errors import InputError

Documents = str | Sequence[str]


def summary_examples(
    data: Any, references: Sequence[str | Sequence[str]] | None
) -> Iterator[tuple[Documents, list[str]]]:
    """Yield each text with its summaries, however they are given."""
    if isinstance(data, (str, PathLike)):
        data = read_input(data, "pairs")
    if references is not None:
        texts = list(data)
        if len(texts) != len(references):
            raise InputError(
                f"there must be a summary a text, got {len(references)} for {len(texts)} texts"
            )
        data = zip(texts, references, strict=True)
    for item in data:
        if isinstance(item, TextPair):
            yield item.source, [item.target]
        elif isinstance(item, Text):
            yield item.text, []
        elif isinstance(item, str):
            yield item, []
        elif isinstance(item, tuple) and len(item) == 2:
            text, summaries = item
            yield text, [summaries] if isinstance(summaries, str) else list(summaries)
        else:
            raise InputError(
                "examples must be texts or pairs of a text and its summary, got "
                f"{type(item).__name__}"
            )
