"""The way from a string to words that a model directory remembers: normalize, then tokenize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from seqloom.errors import ConfigError, one_of
from seqloom.text.normalize import Normalizer
from seqloom.text.subword import SubwordTokenizer
from seqloom.text.tokens import Tokenizer, Tokens
from seqloom.text.words import (
    CharacterTokenizer,
    Language,
    Segmenter,
    WhitespaceTokenizer,
    WordTokenizer,
)

Unit = Literal["word", "space", "character", "subword"]


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How text becomes words.

    Args:
        unit: "word" (English or Chinese words), "space" (words set apart by blanks already),
            "character", or "subword" (learned pieces).
        language: "en", "zh" or "auto"; used by "word" only.
        normalizer: What happens to the text before.
    """

    unit: Unit = "word"
    language: Language = "auto"
    normalizer: Normalizer = field(default_factory=Normalizer)

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise ConfigError(one_of("unit", self.unit, get_args(Unit)))
        if self.language not in get_args(Language):
            raise ConfigError(one_of("language", self.language, get_args(Language)))


class TextPipeline:
    """Reads text into words as a `TextConfig` says; offsets always lead into the original text.

    Args:
        config: The settings, which a model directory stores.
        subword: The trained pieces, for `unit="subword"`.
        segmenter: What cuts Chinese text instead of rjieba.

    Examples:
        >>> pipeline = TextPipeline(TextConfig(normalizer=Normalizer(lowercase=True)))
        >>> tokens = pipeline("The U.S.A.")
        >>> tokens.words, tokens.spans[1]
        (['the', 'u.s.a.'], (4, 10))
    """

    def __init__(
        self,
        config: TextConfig | None = None,
        *,
        subword: SubwordTokenizer | None = None,
        segmenter: Segmenter | None = None,
    ) -> None:
        self.config = config or TextConfig()
        if (self.config.unit == "subword") != (subword is not None):
            raise ConfigError(
                "a trained subword tokenizer must be given with unit='subword' and only then, "
                f"got unit={self.config.unit!r} and subword={subword!r}"
            )
        self.subword = subword
        self.tokenizer: Tokenizer = subword or _tokenizer(self.config, segmenter)

    def words(self, text: str) -> list[str]:
        """The words alone."""
        return self.tokenizer.words(self.config.normalizer(text).text)

    def __call__(self, text: str) -> Tokens:
        """The words with their offsets into `text` as it was given."""
        normalized = self.config.normalizer(text)
        tokens = self.tokenizer(normalized.text)
        if normalized.text is text:
            return tokens
        return Tokens(text, tokens.words, [normalized.span(*span) for span in tokens.spans])

    def detokenize(self, words: Sequence[str]) -> str:
        """The text these words would be typed as."""
        return self.tokenizer.detokenize(words)

    def shown(self, words: Sequence[str]) -> list[str]:
        """The words as people read them: as they are, but for pieces, whose bytes are decoded."""
        return list(words) if self.subword is None else self.subword.shown(words)


def _tokenizer(config: TextConfig, segmenter: Segmenter | None) -> Tokenizer:
    if config.unit == "space":
        return WhitespaceTokenizer()
    if config.unit == "character":
        return CharacterTokenizer()
    return WordTokenizer(config.language, segmenter)
