"""What every tokenizer returns: words, and where each of them stands in the original text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol, overload, runtime_checkable


class Span(NamedTuple):
    """A piece of a text: `source[start:end]` is where it was read."""

    text: str
    start: int
    end: int


class Tokens(Sequence[str]):
    """The words of a text with their character offsets into it.

    Indexing and iterating give the words. `spans[i]` is (start, end) in `source`. Without a
    normalizer `source[start:end] == words[i]`; with one, it is the original spelling of `words[i]`.

    Args:
        source: The text as the caller gave it.
        words: The words read from it, in order.
        spans: Their places. Left out, they are found on first use: every tokenizer of ours reads
            each visible character into exactly one word, so a word begins at its next occurrence.
    """

    __slots__ = ("_spans", "source", "words")

    def __init__(
        self, source: str, words: list[str], spans: list[tuple[int, int]] | None = None
    ) -> None:
        self.source, self.words, self._spans = source, words, spans

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(start, end) of each word in `source`."""
        if self._spans is None:
            self._spans = locate(self.source, self.words)
        return self._spans

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.words[index]

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokens):
            return NotImplemented
        return (self.source, self.words, self.spans) == (other.source, other.words, other.spans)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Tokens({self.words!r})"


def locate(source: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find words that were read from `source` left to right with only blanks between them."""
    ends = [*accumulate(map(len, words))]
    if ends and ends[-1] == len(source):  # no blanks at all, as in most Chinese text
        return [*pairwise([0, *ends])]
    spans, end, find = [], 0, source.find
    for word in words:
        start = find(word, end)
        end = start + len(word)
        spans.append((start, end))
    return spans


@runtime_checkable
class Tokenizer(Protocol):
    """Reads a text into words, and writes words as text."""

    def words(self, text: str) -> list[str]:
        """The words alone: the quick way when no offsets are needed."""
        ...

    def __call__(self, text: str) -> Tokens:
        """The words with their offsets into `text`."""
        ...

    def detokenize(self, words: Sequence[str]) -> str:
        """The text these words would be typed as."""
        ...
