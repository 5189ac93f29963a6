"""What an encoder-decoder returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Written:
    """A text that a model wrote: a translation, a summary, a caption.

    `seqloom.figures.heatmap(w.attention, w.words, w.source)` draws where it looked.

    Args:
        text: The text.
        words: Its words, or pieces of words, blanks included.
        score: What it was ranked by; where it was drawn by chance, `log_prob`.
        log_prob: The sum of the log-probabilities of its words, and of its end if it ended, by the
            model, before temperature, `top_k` and `top_p`; with a language model fused in, that of
            both, by its weight.
        ended: Whether it ended by itself; if not, it was as long as allowed, or no word could come
            next.
        source: The words the model read, the end of the text last; empty of vectors.
        cut: Whether the source was longer than the model reads, and cut.
        attention: How much each word (row) looked at each item of the source (column), if asked.
        others: Further texts for the same source, best first, if asked.
    """

    text: str
    words: tuple[str, ...]
    score: float
    log_prob: float
    ended: bool
    source: tuple[str, ...]
    cut: bool = False
    attention: NDArray[np.float64] | None = None
    others: tuple[Written, ...] = ()

    def __str__(self) -> str:
        return self.text

    def as_row(self) -> dict[str, Any]:
        """Everything but the attention as plain values."""
        row: dict[str, Any] = {
            "text": self.text,
            "score": self.score,
            "log_prob": self.log_prob,
            "ended": self.ended,
            "cut": self.cut,
        }
        if self.others:
            row["others"] = [other.as_row() for other in self.others]
        return row
