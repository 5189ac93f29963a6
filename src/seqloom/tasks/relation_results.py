"""What a relation classifier says of one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.data.relations import Marked
from seqloom.metrics.relations import relation_name
from seqloom.tasks.classifier_results import SHOWN, Explanation
from seqloom.tasks.notebook import html_table


@dataclass(frozen=True)
class RelationFound:
    """What relates two entities.

    Args:
        label: The most probable label, with its direction: "Cause-Effect(e2,e1)".
        probability: How probable it is.
        probabilities: Of every label, the most probable first.
        first: The entity marked e1.
        second: The entity marked e2.
        explanation: Which words counted, if it was asked for.
    """

    label: str
    probability: float
    probabilities: Mapping[str, float]
    first: str
    second: str
    explanation: Explanation | None = None

    @property
    def relation(self) -> str:
        """The label without its direction."""
        return relation_name(self.label)

    @property
    def arguments(self) -> tuple[str, str]:
        """The entities in the order of the relation: the cause first, then the effect."""
        is_turned = self.label.endswith("(e2,e1)")
        return (self.second, self.first) if is_turned else (self.first, self.second)

    def _repr_html_(self) -> str:
        """What a notebook shows: the probabilities, and the words if they were asked for."""
        rows = dict([*self.probabilities.items()][:SHOWN])
        title = f"{self.relation}: {' → '.join(self.arguments)}"
        words = "" if self.explanation is None else self.explanation._repr_html_()
        return html_table(escape(title), rows) + words


def describe(
    sentence: Marked,
    labels: Sequence[str],
    shares: NDArray[np.float64],
    explanation: Explanation | None,
) -> RelationFound:
    """Put together what is known of a sentence: its entities and the probability of each label."""
    order: Any = np.argsort(-shares, kind="stable").tolist()
    return RelationFound(
        labels[order[0]],
        float(shares[order[0]]),
        {labels[j]: float(shares[j]) for j in order},
        sentence.text[slice(*sentence.first)],
        sentence.text[slice(*sentence.second)],
        explanation,
    )
