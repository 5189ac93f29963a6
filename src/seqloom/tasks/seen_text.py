"""What of test texts a training text has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seqloom.data.inputs import read_input
from seqloom.data.overlap import Overlap, overlap
from seqloom.text.pipeline import TextPipeline

RUN = 8
"""How many words in a row count as seen."""


def seen_text(
    train: Iterable[Any], tests: Sequence[str], pipeline: TextPipeline, n: int = RUN
) -> Iterator[tuple[str, Overlap]]:
    """Yield each test text with how many of its runs of n words occur in a training text.

    Args:
        train: Training examples: texts, or words with tags.
        tests: Files or "NAME:SPLIT".
        pipeline: How texts become words.
        n: How long a run is.
    """

    def words(examples: Iterable[Any]) -> Iterator[list[str]]:
        for example in examples:
            given = getattr(example, "tokens", None)
            yield pipeline.words(example.text) if given is None else list(given)

    held = list(words(train)) if len(tests) > 1 else words(train)
    for source in tests:
        yield source, overlap(held, words(read_input(source, "text")), n)


def overlap_rows(source: str, found: Overlap) -> list[dict[str, Any]]:
    """Return what was counted as the rows of a table."""
    pairs = {
        f"running {found.n}-grams": (found.ngrams, found.ngrams_seen),
        f"different {found.n}-grams": (found.distinct, found.distinct_seen),
        "whole sentences": (found.sentences, found.sentences_seen),
    }
    return [
        {"test": source, "what": what, "in test": there, "also in train": seen,
         "share": seen / max(1, there)}
        for what, (there, seen) in pairs.items()
    ]  # fmt: skip
