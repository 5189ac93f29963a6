"""What a classifier says of one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.tasks.notebook import html_table, html_words

SHOWN = 10  # classes in a notebook


@dataclass(frozen=True)
class Explanation:
    """Where a classifier looked; `seqloom.figures.word_weights(e.words, e.weights)` draws it.

    Args:
        words: The words that were read; of vectors their numbers.
        weights: How much each counted; they sum to 1.
        matrix: Of an architecture with self-attention: by head, how much each word (row) looked
            at each other (column), for `seqloom.figures.heatmap`.
    """

    words: tuple[str, ...]
    weights: tuple[float, ...]
    matrix: NDArray[np.float32] | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, the more they counted the redder."""
        most = max(self.weights) or 1.0
        notes = [f"weight {weight:.3f}" for weight in self.weights]
        return html_words(self.words, [weight / most for weight in self.weights], notes)


@dataclass(frozen=True)
class Classification:
    """The class of one text, vector or sequence.

    Args:
        label: The most probable class.
        probability: How probable it is; None where the architecture gives no probabilities.
        probabilities: Of every class, the most probable first.
        labels: With `multilabel`, those that are probable enough, the most probable first; else
            `label` alone.
        explanation: Which words counted, if it was asked for.
    """

    label: Any
    probability: float | None
    probabilities: Mapping[Any, float]
    labels: tuple[Any, ...] = ()
    explanation: Explanation | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows: the probabilities, and the words if they were asked for."""
        rows = {str(label): share for label, share in [*self.probabilities.items()][:SHOWN]}
        chosen = ", ".join(str(label) for label in self.labels) or "no label"
        words = "" if self.explanation is None else self.explanation._repr_html_()
        return html_table(chosen, rows) + words if rows else f"<p>{escape(chosen)}</p>{words}"
