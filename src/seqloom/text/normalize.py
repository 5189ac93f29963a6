"""Unicode normalization that remembers where every character came from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, one_of

UnicodeForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
Form = Literal["none", UnicodeForm]

_QUOTES = str.maketrans("‘’‚‛“”„‟′″«»", '\'\'\'\'""""\'"""')
# Control characters that are no white space, zero-width blanks, byte-order marks, soft hyphens.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff]+")
_BLANKS = re.compile(r"\s+")


class Normalized:
    """A normalized text and, for each of its characters, the place in the original.

    Args:
        source: The text as given.
        text: The normalized text.
        starts: For each character of `text`, where its original begins; None if nothing moved.
        ends: And where it ends.
    """

    __slots__ = ("_ends", "_starts", "source", "text")

    def __init__(
        self,
        source: str,
        text: str,
        starts: NDArray[np.int64] | None = None,
        ends: NDArray[np.int64] | None = None,
    ) -> None:
        self.source, self.text, self._starts, self._ends = source, text, starts, ends

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` was read in `source`."""
        if self._starts is None or self._ends is None:
            return start, end
        if start >= end:
            place = int(self._starts[start]) if start < len(self.text) else len(self.source)
            return place, place
        return int(self._starts[start]), int(self._ends[end - 1])

    def then(self, pieces: Iterator[tuple[str, int, int]]) -> Normalized:
        """Apply one more step, given as (new text, start, end in the present text) pieces."""
        texts, starts, ends = [], [], []
        for text, start, end in pieces:
            texts.append(text)
            if text == self.text[start:end]:
                starts.append(np.arange(start, end))
                ends.append(np.arange(start + 1, end + 1))
            else:
                starts.append(np.full(len(text), start))
                ends.append(np.full(len(text), end))
        first = np.concatenate(starts) if starts else np.zeros(0, np.int64)
        last = np.concatenate(ends) if ends else np.zeros(0, np.int64)
        if self._starts is not None and self._ends is not None:
            first, last = self._starts[first], self._ends[last - 1]
        return Normalized(self.source, "".join(texts), first, last)

    def __repr__(self) -> str:
        return f"Normalized({self.text!r})"


@dataclass(frozen=True, kw_only=True)
class Normalizer:
    """Brings spellings that mean the same to one form; every step is an option.

    Args:
        form: The Unicode normalization form. NFC joins letters and accents and changes nothing one
            sees; NFKC also folds full-width letters and ligatures (and Chinese punctuation: "，"
            becomes ","). See Unicode Standard Annex 15.
        lowercase: Whether to put letters into lower case.
        straight_quotes: Whether curly quotes become straight ones.
        drop_controls: Whether zero-width characters and controls other than white space go.
        single_blanks: Whether runs of white space become one space and those at the ends go.

    Examples:
        >>> result = Normalizer(form="NFKC", lowercase=True)("Ｈｅ said ﬁne")
        >>> result.text, result.source[slice(*result.span(8, 12))]
        ('he said fine', 'ﬁne')
    """

    form: Form = "NFC"
    lowercase: bool = False
    straight_quotes: bool = False
    drop_controls: bool = False
    single_blanks: bool = False

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise ConfigError(one_of("Unicode form", self.form, get_args(Form)))

    def __call__(self, text: str) -> Normalized:
        """Return the normalized text with its places."""
        result = Normalized(text, text)
        if self.drop_controls and _CONTROLS.search(text):
            result = result.then(_substitute(_CONTROLS, lambda _: "", text))
        result = self._bring_to_form(result)
        if self.straight_quotes:
            result.text = result.text.translate(_QUOTES)
        if self.lowercase:  # the form again: ǰ is one character, its capital is two
            result = self._bring_to_form(_lowercase(result))
        if self.single_blanks:
            result = result.then(_blank_pieces(result.text))
        return result

    def _bring_to_form(self, result: Normalized) -> Normalized:
        if self.form == "none" or unicodedata.is_normalized(self.form, result.text):
            return result
        return result.then(_unicode_pieces(result.text, self.form))


def _substitute(
    pattern: re.Pattern[str], new: Callable[[str], str], text: str
) -> Iterator[tuple[str, int, int]]:
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], end, match.start()
        yield new(match.group()), match.start(), match.end()
        end = match.end()
    if end < len(text):
        yield text[end:], end, len(text)


def _blank_pieces(text: str) -> Iterator[tuple[str, int, int]]:
    for piece, start, end in _substitute(_BLANKS, lambda _: " ", text):
        if piece == " " and (start == 0 or end == len(text)):
            continue
        yield piece, start, end


def _lowercase(result: Normalized) -> Normalized:
    lowered = result.text.lower()
    if len(lowered) == len(result.text):
        result.text = lowered
        return result
    # A few capitals become two characters (İ). The whole is lowered at once, because the form of a
    # final sigma depends on its neighbours; only the lengths come from single characters.
    sizes = [len(character.lower()) for character in result.text]
    ends = np.cumsum(sizes).tolist()
    pieces = (
        (lowered[end - size : end], i, i + 1)
        for i, (size, end) in enumerate(zip(sizes, ends, strict=True))
    )
    return result.then(pieces)


@cache
def _joiners() -> frozenset[str]:
    """Characters of combining class 0 that may still join the one before them."""
    second = set()
    for code in range(0x30000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            second.add(chr(int(parts[1], 16)))
    vowels = {chr(code) for code in range(0x1161, 0x1176)}
    finals = {chr(code) for code in range(0x11A8, 0x11C3)}
    return frozenset(second | vowels | finals)


@lru_cache(maxsize=1 << 16)
def _starts_cluster(character: str) -> bool:
    """Whether normalization never looks across the boundary before this character."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) == 0 and first not in _joiners()


def _unicode_pieces(text: str, form: UnicodeForm) -> Iterator[tuple[str, int, int]]:
    """Normalize cluster by cluster; unchanged stretches pass as one piece."""
    kept = start = 0  # text[kept:start] is unchanged and not yet given out
    for end in range(1, len(text) + 1):
        if end < len(text) and not (text[end] < "\u0300" or _starts_cluster(text[end])):
            continue
        cluster = text[start:end]
        if not (len(cluster) == 1 and cluster < "\x80"):
            new = unicodedata.normalize(form, cluster)
            if new != cluster:
                if kept < start:
                    yield text[kept:start], kept, start
                yield new, start, end
                kept = end
        start = end
    if kept < len(text):
        yield text[kept:], kept, len(text)
