"""What a summarizer returns: sentences, where they stand, and why they were chosen."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from seqloom.text.scripts import has_cjk

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ChosenSentence:
    """A sentence of a summary.

    Args:
        text: The sentence, a slice of the original.
        start: Where it begins in the original, in characters.
        end: Where it ends: `original[start:end] == text`.
        index: Which sentence it is, counted from 0 over those there were to choose from.
        document: Which of several texts it is from, counted from 0.
        score: What it was chosen by.
        find_features: Computes the features by name.
    """

    text: str
    start: int
    end: int
    index: int
    document: int
    score: float
    find_features: Callable[[int], Mapping[str, float]] = field(repr=False, compare=False)

    @property
    def features(self) -> Mapping[str, float]:
        """The features of the sentence by name; see `feature_table`."""
        return self.find_features(self.index)

    def as_row(self) -> dict[str, Any]:
        """Everything about it as plain values."""
        return {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "index": self.index,
            "document": self.document,
            "score": self.score,
            "features": dict(self.features),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or a pickle has the features, and not what they are computed from."""
        known = KnownFeatures(dict(self.features))
        own = (self.text, self.start, self.end, self.index, self.document, self.score)
        return ChosenSentence, (*own, known)


@dataclass(frozen=True)
class KnownFeatures:
    """The features of one sentence, computed before."""

    values: Mapping[str, float]

    def __call__(self, _index: int) -> Mapping[str, float]:
        """The features."""
        return self.values


class Summary(Sequence[ChosenSentence]):
    """The chosen sentences of a text, in its order; `str` gives them as running text.

    Args:
        sentences: The sentences.
        total: How many there were to choose from.
        originals: The texts.

    Attributes:
        sentences: The sentences.
        total: How many there were.
    """

    def __init__(
        self, sentences: tuple[ChosenSentence, ...], total: int, originals: tuple[str, ...]
    ) -> None:
        self.sentences, self.total, self._originals = sentences, total, originals

    @overload
    def __getitem__(self, index: int) -> ChosenSentence: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ChosenSentence, ...]: ...
    def __getitem__(self, index: int | slice) -> ChosenSentence | tuple[ChosenSentence, ...]:
        return self.sentences[index]

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[ChosenSentence]:
        return iter(self.sentences)

    @property
    def text(self) -> str:
        """The sentences one after the other, line breaks inside them being blanks."""
        pieces: list[str] = []
        for sentence in self.sentences:
            piece = _SPACE.sub(" ", sentence.text)
            if pieces and not (has_cjk(pieces[-1][-2:]) or has_cjk(piece[:2])):
                pieces.append(" ")
            pieces.append(piece)
        return "".join(pieces)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Summary({len(self)} of {self.total} sentences: {self.text[:60]!r})"

    def highlight(self, before: str = "[[", after: str = "]]", document: int = 0) -> str:
        """Return an original text with marks around the chosen sentences."""
        original = self._originals[document]
        pieces, at = [], 0
        for sentence in self.sentences:
            if sentence.document == document:
                pieces += [original[at : sentence.start], before, sentence.text, after]
                at = sentence.end
        return "".join([*pieces, original[at:]])

    def _repr_html_(self) -> str:
        """What a notebook shows: the originals with the chosen sentences marked."""
        shown = []
        for number in range(len(self._originals)):
            marked = html.escape(self.highlight("\ue000", "\ue001", number))
            marked = marked.replace("\ue000", "<mark>").replace("\ue001", "</mark>")
            shown.append(f"<p style='white-space:pre-wrap'>{marked}</p>")
        return "".join(shown)
