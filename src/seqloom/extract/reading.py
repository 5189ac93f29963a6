"""From text to what is scored: sentences, and the terms of each as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, InputError, InputTypeError
from seqloom.extract.arrangement import arranged
from seqloom.extract.characters import CJK, ODD, Codes, codes_of
from seqloom.extract.config import ReadingConfig
from seqloom.extract.terms import WORD, Numbers, Offsets, Terms
from seqloom.extract.units import UnitTable, unit_table
from seqloom.text.scripts import has_cjk
from seqloom.text.words import Segmenter, WordTokenizer

Tagger = Callable[[Sequence[str]], Sequence[str]]
"""Gives each word of a sentence its part of speech."""


@dataclass(frozen=True)
class Document:
    """One text, or several on one subject, read.

    Args:
        texts: The texts as they were given.
        units: The sentences to choose from, in order: where in its text each begins and ends, and
            whether it is a heading (n, 3).
        sources: For each of them, which of the texts it stands in.
        ids: The terms of all sentences, one after the other, as numbers (N,).
        offsets: Where in `ids` each sentence begins, and the end (n + 1,).
        vocab_size: How many different terms there are; the numbers of those of headings come last.
        headings: The numbers of the terms of headings.
        find_terms: Lists the terms by their numbers.
    """

    texts: tuple[str, ...]
    units: UnitTable
    sources: list[int]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    vocab_size: int
    headings: frozenset[int]
    find_terms: Callable[[], list[str]]

    def __len__(self) -> int:
        return len(self.units)

    def span(self, index: int) -> tuple[int, int]:
        """Where in its text a sentence begins and ends."""
        start, end, _ = self.units[index].tolist()
        return start, end

    def text(self, index: int) -> str:
        """The text of a sentence."""
        start, end = self.span(index)
        return self.texts[self.sources[index]][start:end]

    @cached_property
    def terms(self) -> list[str]:
        """The terms by their numbers."""
        return self.find_terms()

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many terms each sentence has, repeated ones counted as often (n,)."""
        return np.diff(self.offsets)


class _Part(NamedTuple):
    """One text read: its units, their words as numbers of terms, where each unit begins there."""

    units: UnitTable
    ids: Numbers
    offsets: Offsets


class Reader:
    """Reads texts into documents.

    English words are runs of letters and digits; contractions fall apart, which loses nothing, as
    their parts are stop words. Chinese words are those of `WordTokenizer`.

    Args:
        config: The settings.
        segmenter: What cuts Chinese text; rjieba if left out.
        tagger: Gives words their parts of speech, for `keep_tags`. Words are then those of
            `WordTokenizer` in English too.
    """

    def __init__(
        self,
        config: ReadingConfig | None = None,
        *,
        segmenter: Segmenter | None = None,
        tagger: Tagger | None = None,
    ) -> None:
        self.config = config or ReadingConfig()
        if self.config.keep_tags and tagger is None:
            raise ConfigError(
                f"keep_tags needs a tagger, got keep_tags={self.config.keep_tags!r} and none; "
                "hand one in as tagger="
            )
        self.tagger = tagger if self.config.keep_tags else None
        self._chinese = WordTokenizer("zh", segmenter)
        self._english = WordTokenizer("en")
        self._terms = Terms(self.config)

    def read(self, texts: str | Sequence[str]) -> Document:
        """Read one text, or several as one document.

        Raises:
            InputError: If there is no text at all in it, or it is no text.
        """
        given = (texts,) if isinstance(texts, str) else tuple(texts)
        if self._terms.is_full:
            self._terms = Terms(self.config)
        terms = self._terms
        parts = [self._read(text, terms) for text in given]
        counts = [len(part.units) for part in parts]
        if not any(counts):
            raise InputError(f"a text must hold a sentence to choose from, got {_shown(given)}")
        units, ids, offsets = parts[0] if len(parts) == 1 else _chained(parts)
        own, begins, kinds, kept = arranged(ids, offsets, units, self.config.headings)
        sources = [0] * len(kept)
        if len(parts) > 1:
            sources = np.repeat(np.arange(len(parts)), counts)[kept].tolist()
        return Document(
            texts=given,
            units=units[kept],
            sources=sources,
            ids=own[: begins[-1]],
            offsets=begins,
            vocab_size=len(kinds),
            headings=frozenset(own[begins[-1] :].tolist()),
            find_terms=lambda: terms.names(kinds.tolist()),
        )

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order: of a query, say."""
        check_text(text)
        codes, classes = codes_of(text)
        whole = np.array([[0, len(text), 0]])
        ids, _ = self._numbers(self._terms, text, codes, classes, whole)
        return self._terms.names(ids.tolist())

    def words(self, text: str) -> list[str]:
        """The words of a text that are no punctuation, as they stand in it."""
        if has_cjk(text):
            return [word for word in self._chinese.words(text) if WORD.search(word)]
        return WORD.findall(text)

    def _read(self, text: str, terms: Terms) -> _Part:
        """Read one text."""
        check_text(text)
        codes, classes = codes_of(text)
        units, _ = unit_table(text, codes, classes, self.config.language)
        return _Part(units, *self._numbers(terms, text, codes, classes, units))

    def _numbers(
        self, terms: Terms, text: str, codes: Codes, classes: int, units: UnitTable
    ) -> tuple[Numbers, Offsets]:
        """The words of units as numbers of terms, and where each unit begins, with the end."""
        if self.tagger is not None or classes & (CJK | ODD):
            return terms.of_words([self._words_of(text[a:b]) for a, b, _ in units.tolist()])
        return terms.of_text(codes, units)

    def _words_of(self, piece: str) -> list[str]:
        """The words of a sentence that terms are made of."""
        if self.tagger is not None:
            return self._tagged(piece, self.tagger)
        return self._chinese.words(piece) if has_cjk(piece) else WORD.findall(piece)

    def _tagged(self, piece: str, tagger: Tagger) -> list[str]:
        words = (self._chinese if has_cjk(piece) else self._english).words(piece)
        tags = list(tagger(words))
        if len(tags) != len(words):
            raise InputError(
                f"a tagger must give a tag a word, got {len(tags)} tags for {len(words)} words"
            )
        pairs = zip(words, tags, strict=True)
        return [word for word, tag in pairs if tag.startswith(self.config.keep_tags)]


def _chained(parts: Sequence[_Part]) -> _Part:
    """Several texts read, as if they were one."""
    offsets, total = [np.zeros(1, np.int64)], 0
    for part in parts:
        offsets.append(part.offsets[1:] + total)
        total += len(part.ids)
    return _Part(
        np.concatenate([part.units for part in parts]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate(offsets),
    )


def check_text(text: object) -> None:
    """Refuse what is no text: another type, or bytes read as if they were characters."""
    if not isinstance(text, str):
        raise InputTypeError(f"a text must be a str, got {type(text).__name__}: {_shown(text)}")
    if "\0" in text:
        raise InputError(
            f"a text must hold no NUL character, got one at {text.index(chr(0)):,}; is it binary?"
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
