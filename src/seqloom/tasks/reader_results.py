"""What a reader answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FoundAnswer:
    """A stretch of a passage that answers a question.

    Args:
        text: The answer, exactly as it stands in the passage: `passage[start:end]`; "" where the
            reader says that there is none.
        start: Where it begins in the passage, in characters.
        end: Where it ends.
        probability: Of its beginning times of its end, among all words that were read, added up
            over the spans that say the same by the reader's `rules`.
        passage: The place of the passage among those given.
    """

    text: str
    start: int
    end: int
    probability: float
    passage: int = 0


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Which words of a question each word of a passage looked at.

    `seqloom.figures.heatmap(found.weights, found.passage, found.question)` draws it.

    Args:
        passage: The words of the passage.
        question: The words of the question.
        weights: (passage, question), each row sums to 1.
    """

    passage: tuple[str, ...]
    question: tuple[str, ...]
    weights: NDArray[np.float64]

    def most(self) -> list[tuple[str, str, float]]:
        """Each word of the passage, the question word it looked at most, and how much."""
        best = self.weights.argmax(axis=1)
        return [
            (word, self.question[j], float(row[j]))
            for word, j, row in zip(self.passage, best.tolist(), self.weights, strict=True)
        ]
