"""From text to what is scored: sentences, and the terms of each as numbers."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, InputError, InputTypeError
from seqloom.extract.config import ReadingConfig
from seqloom.extract.stemming import stem
from seqloom.extract.stop_words import CHINESE, ENGLISH
from seqloom.extract.units import Unit, split_units
from seqloom.text.scripts import has_cjk
from seqloom.text.words import Segmenter, WordTokenizer

Tagger = Callable[[Sequence[str]], Sequence[str]]
"""Gives each word of a sentence its part of speech."""

MOST_KEPT = 500_000  # words whose terms are remembered
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d_]")
# Of text in ASCII: letters in lower case and digits stay, all else becomes a blank.
_PLAIN = "".join(
    chr(i).lower() if chr(i) in string.ascii_letters + string.digits else " " for i in range(128)
)
_PLAIN_TABLE = str.maketrans({i: _PLAIN[i] for i in range(128)})


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


class _Terms(dict[str, str]):
    """The term of each word met so far; "" for a word that is none."""

    def __init__(self, config: ReadingConfig) -> None:
        super().__init__()
        self.numbers, self.stem = config.numbers, config.stem
        self.left_out = frozenset(config.more_stop_words) | (
            ENGLISH | CHINESE if config.stop_words else frozenset()
        )

    def __missing__(self, word: str) -> str:
        lower = word.lower()
        term = "" if lower in self.left_out else self._form(lower)
        if len(self) >= MOST_KEPT:
            self.clear()
        self[word] = term
        return term

    def _form(self, word: str) -> str:
        if _WORD.search(word) is None:
            return ""  # punctuation
        if _LETTER.search(word) is None:
            return word if self.numbers else ""
        if word.isascii():
            if len(word) == 1:
                return ""
            return stem(word) if self.stem else word
        return word


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
        self._terms = _Terms(self.config)

    def read(self, texts: str | Sequence[str]) -> Document:
        """Read one text, or several as one document.

        Raises:
            InputError: If there is no text at all in it, or it is no text.
        """
        given = (texts,) if isinstance(texts, str) else tuple(texts)
        units: list[Unit] = []
        sources: list[int] = []
        flat: list[str] = []
        ends = [0]
        headings: list[tuple[int, Unit, list[str]]] = []
        for source, text in enumerate(given):
            check_text(text)
            found, language = split_units(text, self.config.language)
            for unit, terms in zip(found, self._terms_of(text, found, language), strict=True):
                if unit.is_heading and not self.config.headings:
                    headings.append((source, unit, terms))
                    continue
                units.append(unit)
                sources.append(source)
                flat += terms
                ends.append(len(flat))
        if not units:  # nothing but short lines: they are all there is
            for source, unit, terms in headings:
                units.append(unit)
                sources.append(source)
                flat += terms
                ends.append(len(flat))
            headings = []
        if not units:
            raise InputError(f"a text must hold a sentence to choose from, got {_shown(given)}")
        of_headings = [term for _, _, terms in headings for term in terms]
        numbers = {term: i for i, term in enumerate(dict.fromkeys(flat + of_headings))}
        return Document(
            texts=given,
            units=units,
            sources=sources,
            ids=np.fromiter(map(numbers.__getitem__, flat), np.int32, len(flat)),
            offsets=np.array(ends, np.int64),
            terms=list(numbers),
            headings=frozenset(map(numbers.__getitem__, of_headings)),
        )

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order: of a query, say."""
        check_text(text)
        language = "zh" if self.config.language == "zh" or has_cjk(text) else "en"
        (found,) = self._terms_of(text, [Unit(0, len(text), False)], language)
        return found

    def words(self, text: str) -> list[str]:
        """The words of a text that are no punctuation, as they stand in it."""
        if has_cjk(text):
            return [word for word in self._chinese.words(text) if _WORD.search(word)]
        return _WORD.findall(text)

    def _terms_of(self, text: str, units: Sequence[Unit], language: str) -> Iterable[list[str]]:
        form = self._terms.__getitem__
        if self.tagger is not None:
            for start, end, _ in units:
                yield list(filter(None, map(form, self._tagged(text[start:end], self.tagger))))
        elif text.isascii():
            plain = text.translate(_PLAIN_TABLE)
            for start, end, _ in units:
                yield list(filter(None, map(form, plain[start:end].split())))
        elif language == "zh" or has_cjk(text):
            for start, end, _ in units:
                piece = text[start:end]
                words = self._chinese.words(piece) if has_cjk(piece) else _WORD.findall(piece)
                yield list(filter(None, map(form, words)))
        else:
            words_of = _WORD.findall
            for start, end, _ in units:
                yield list(filter(None, map(form, words_of(text, start, end))))

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
