"""From text to what is scored: sentences, and the terms of each as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, InputError, InputTypeError
from seqloom.extract.config import ReadingConfig
from seqloom.extract.terms import WORD, Terms
from seqloom.extract.units import Unit, split_units
from seqloom.extract.word_table import apart, numbered
from seqloom.text.scripts import has_cjk
from seqloom.text.words import Segmenter, WordTokenizer

Tagger = Callable[[Sequence[str]], Sequence[str]]
"""Gives each word of a sentence its part of speech."""


@dataclass(frozen=True)
class Document:
    """One text, or several on one subject, read.

    Args:
        texts: The texts as they were given.
        units: The sentences to choose from, in order.
        sources: For each of them, which of the texts it stands in.
        ids: The terms of all sentences, one after the other, as numbers (N,).
        offsets: Where in `ids` each sentence begins, and the end (n + 1,).
        terms: The terms by their numbers; those of headings come last.
        headings: The numbers of the terms of headings.
    """

    texts: tuple[str, ...]
    units: list[Unit]
    sources: list[int]
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    terms: list[str]
    headings: frozenset[int] = field(default_factory=frozenset)

    def __len__(self) -> int:
        return len(self.units)

    def text(self, index: int) -> str:
        """The text of a sentence."""
        unit = self.units[index]
        return self.texts[self.sources[index]][unit.start : unit.end]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many terms each sentence has, repeated ones counted as often (n,)."""
        return np.diff(self.offsets)


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
        units: list[Unit] = []
        sources: list[int] = []
        ids: list[NDArray[np.int32]] = []
        offsets, total = [np.zeros(1, np.int64)], 0
        for source, text in enumerate(given):
            check_text(text)
            found, language = split_units(text, self.config.language)
            numbers, ends = self._numbers(terms, text, found, language)
            units += found
            sources += [source] * len(found)
            ids.append(numbers)
            offsets.append(ends[1:] + total)
            total += len(numbers)
        if not units:
            raise InputError(f"a text must hold a sentence to choose from, got {_shown(given)}")
        left_out = np.array([unit.is_heading and not self.config.headings for unit in units])
        if left_out.all():  # nothing but short lines: they are all there is
            left_out[:] = False
        arranged, begins = apart(np.concatenate(ids), np.concatenate(offsets), left_out)
        own, kinds = numbered(arranged)
        if left_out.any():
            kept = np.flatnonzero(~left_out).tolist()
            units, sources = [units[i] for i in kept], [sources[i] for i in kept]
        return Document(
            texts=given,
            units=units,
            sources=sources,
            ids=own[: begins[-1]],
            offsets=begins,
            terms=[terms.names[kind] for kind in kinds.tolist()],
            headings=frozenset(own[begins[-1] :].tolist()),
        )

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order: of a query, say."""
        check_text(text)
        language = "zh" if self.config.language == "zh" or has_cjk(text) else "en"
        terms = self._terms
        ids, _ = self._numbers(terms, text, [Unit(0, len(text), False)], language)
        return [terms.names[number] for number in ids.tolist()]

    def words(self, text: str) -> list[str]:
        """The words of a text that are no punctuation, as they stand in it."""
        if has_cjk(text):
            return [word for word in self._chinese.words(text) if WORD.search(word)]
        return WORD.findall(text)

    def _numbers(
        self, terms: Terms, text: str, units: Sequence[Unit], language: str
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The terms of sentences as numbers, and where each begins, with the end."""
        found = None if self.tagger else terms.of_text(text, units)
        if found is None:
            found = terms.of_words(list(self._words_of(text, units, language)))
        return found

    def _words_of(self, text: str, units: Sequence[Unit], language: str) -> Iterable[list[str]]:
        some_chinese = language == "zh" or has_cjk(text)
        for start, end, _ in units:
            if self.tagger is not None:
                yield self._tagged(text[start:end], self.tagger)
            elif some_chinese and has_cjk(piece := text[start:end]):
                yield self._chinese.words(piece)
            else:
                yield WORD.findall(text, start, end)

    def _tagged(self, piece: str, tagger: Tagger) -> list[str]:
        words = (self._chinese if has_cjk(piece) else self._english).words(piece)
        tags = list(tagger(words))
        if len(tags) != len(words):
            raise InputError(
                f"a tagger must give a tag a word, got {len(tags)} tags for {len(words)} words"
            )
        pairs = zip(words, tags, strict=True)
        return [word for word, tag in pairs if tag.startswith(self.config.keep_tags)]


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
