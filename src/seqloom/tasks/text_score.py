"""What a language model says of a text, word by word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.metrics import perplexity
from seqloom.tasks.language_engine import LanguageEngine
from seqloom.tasks.measuring import TextReader
from seqloom.tasks.notebook import html_words

SURPRISE = 12.0  # nats at which a word is shown in full red


@dataclass(frozen=True)
class TextScore:
    """What a language model thinks of a text; it ends with the end-of-sentence word.

    Args:
        text: The text.
        words: Its words.
        log_probs: The natural logarithm of each word's probability, given those before it; by a
            model that reads from right to left, given those after it.
        unknown: Which words the model does not know and scored as the unknown word.
    """

    text: str
    words: tuple[str, ...]
    log_probs: tuple[float, ...]
    unknown: tuple[bool, ...]

    @property
    def total(self) -> float:
        """The log-probability of the text."""
        return math.fsum(self.log_probs)

    @property
    def perplexity(self) -> float:
        """The perplexity a word, the end of the sentence counted as one."""
        return perplexity(-self.total, len(self.log_probs))

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, the more surprising the redder."""
        notes = [f"log-probability {value:.3f}" for value in self.log_probs]
        shades = [min(1.0, -value / SURPRISE) for value in self.log_probs]
        return html_words(self.words, shades, notes)


def scored(engine: LanguageEngine, reader: TextReader, texts: Sequence[str]) -> list[TextScore]:
    """Score texts, each on its own; the words of each are in the order of the text."""
    vocabulary = reader.vocabulary
    words = [[*reader.words(text), vocabulary.specials.eos] for text in texts]
    ids = [vocabulary.encode(each) for each in words]
    unk = vocabulary[vocabulary.specials.unk]
    found = []
    for text, own, row, each in zip(texts, words, engine.log_probs(ids), ids, strict=True):
        columns: tuple[list[Any], ...] = (own, list(row), (each == unk).tolist())
        if reader.reverse:
            columns = tuple([*column[-2::-1], column[-1]] for column in columns)
        found.append(TextScore(text, *map(tuple, columns)))
    return found
