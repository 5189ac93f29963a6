"""Strings to ids and back: normalize, split, tokenize, count."""

from seqloom.text.encoding import embed, one_hot
from seqloom.text.joined_vectors import join_vectors
from seqloom.text.language import detect_language
from seqloom.text.normalize import Normalized, Normalizer
from seqloom.text.pipeline import TextConfig, TextPipeline
from seqloom.text.sentences import split_sentences
from seqloom.text.subword import SubwordTokenizer
from seqloom.text.tokens import Span, Tokenizer, Tokens
from seqloom.text.vectors import WordVectors, read_vectors, write_vectors
from seqloom.text.vocabulary import Specials, Vocabulary
from seqloom.text.words import (
    CharacterTokenizer,
    Segmenter,
    WhitespaceTokenizer,
    WordTokenizer,
)

__all__ = [
    "CharacterTokenizer",
    "Normalized",
    "Normalizer",
    "Segmenter",
    "Span",
    "Specials",
    "SubwordTokenizer",
    "TextConfig",
    "TextPipeline",
    "Tokenizer",
    "Tokens",
    "Vocabulary",
    "WhitespaceTokenizer",
    "WordTokenizer",
    "WordVectors",
    "detect_language",
    "embed",
    "join_vectors",
    "one_hot",
    "read_vectors",
    "split_sentences",
    "write_vectors",
]
