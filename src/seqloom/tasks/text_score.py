"""What a language model says of a text, word by word."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqloom.metrics import perplexity
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
