"""What a tagger says of one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seqloom.metrics.spans import read_spans
from seqloom.tasks.notebook import html_table


class FoundSpan(NamedTuple):
    """A span of a sentence.

    Args:
        text: Its words with a space between, or the text it was found in.
        type: What it is.
        start: Its first word.
        end: The word after its last.
        offsets: Where it begins and ends in the text, if a text was tagged.
    """

    text: str
    type: str
    start: int
    end: int
    offsets: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tagged:
    """A sentence with its tags.

    Args:
        words: Its words; none where vectors were tagged, which have spans of text "".
        tags: A tag each.
        spans: What the tags mark; none where they mark no spans.
        probabilities: How probable the tag of each word is, if that was asked for.
        alternatives: Further readings, the best first, as (tags, log-probability), if that was
            asked for; the first is `tags`.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[FoundSpan, ...] = ()
    probabilities: tuple[float, ...] | None = None
    alternatives: tuple[tuple[tuple[str, ...], float], ...] = ()

    def __iter__(self):  # type: ignore[no-untyped-def]
        """The pairs of word and tag; of vectors the word is ""."""
        return iter(zip(self.words or ("",) * len(self.tags), self.tags, strict=True))

    def _repr_html_(self) -> str:
        """What a notebook shows: the spans, or the tags of the words."""
        if self.spans:
            rows = {f"{span.start} {span.text}": span.type for span in self.spans}
            return html_table("spans", rows)
        return html_table("tags", {f"{i} {word}": tag for i, (word, tag) in enumerate(self)})


def found_spans(
    words: Sequence[str],
    tags: Sequence[str],
    text: str | None = None,
    offsets: Sequence[tuple[int, int]] | None = None,
) -> tuple[FoundSpan, ...]:
    """Return what the tags of words mark.

    Args:
        words: The words; none of vectors.
        tags: A tag each.
        text: The text they were read from, if there is one.
        offsets: Where each word stands in it.
    """
    found = []
    for start, end, kind in read_spans(tags):
        shown, place = " ".join(words[start:end]), None
        if text is not None and offsets is not None:
            place = offsets[start][0], offsets[end - 1][1]
            shown = text[slice(*place)]
        found.append(FoundSpan(shown, kind, start, end, place))
    return tuple(found)
