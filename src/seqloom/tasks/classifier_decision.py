"""From scores to labels and probabilities, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.tasks.class_scores import Link, chosen, class_metrics, find_link
from seqloom.tasks.classifier_calibration import calibration_error, fit_temperature
from seqloom.tasks.classifier_multilabel import (
    LabelSets,
    check_columns,
    fixed_thresholds,
    multilabel_metrics,
    tuned_thresholds,
)
from seqloom.tasks.classifier_results import Classification, Explanation
from seqloom.tasks.labels import check_kind, labels_from_dict, labels_to_dict

Floats = NDArray[np.float64]


class Decision:
    """How the scores of a fitted classifier are read.

    Args:
        arch: The architecture, which decides what scores mean.
        classes: The labels.
        multilabel: Whether an example has a set of labels.
        columns: Whether labels came as a table of 0 and 1, and are given back as one.
        thresholds: With `multilabel`, how probable each label must be, (C,).
        temperature: What scores are divided by before they become probabilities.
        calibrated: Whether the temperature was fitted.
        tuned: Whether the thresholds were.
    """

    def __init__(
        self,
        arch: str,
        classes: NDArray[Any],
        *,
        multilabel: bool = False,
        columns: bool = False,
        thresholds: Floats | None = None,
        temperature: float = 1.0,
        calibrated: bool = False,
        tuned: bool = False,
    ) -> None:
        self.arch, self.classes, self.multilabel, self.columns = arch, classes, multilabel, columns
        self.thresholds, self.temperature = thresholds, temperature
        self.calibrated, self.tuned = calibrated, tuned
        self.link: Link | None = find_link(arch, multilabel=multilabel)

    def fit(
        self,
        scores: Floats | None,
        targets: NDArray[Any] | None,
        *,
        calibrate: bool,
        threshold: Any,
    ) -> None:
        """Choose temperature and thresholds.

        Args:
            scores: Of the validation examples; None where there are none, and nothing to choose.
            targets: What is true of them.
            calibrate: Whether to fit the temperature.
            threshold: Of each label, "tune", or one for all.
        """
        self.calibrated, self.tuned = calibrate, isinstance(threshold, str)
        if calibrate:
            assert scores is not None and targets is not None and self.link is not None
            self.temperature = fit_temperature(scores, targets, self.link.probabilities)
        if not self.multilabel:
            return
        self.thresholds = fixed_thresholds(threshold, self.classes)
        if isinstance(threshold, str):
            assert scores is not None and targets is not None
            self.thresholds = tuned_thresholds(self.probabilities(scores), targets)

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each class, or of each label on its own."""
        assert self.link is not None
        return self.link.probabilities(scores / self.temperature)

    def predict(self, scores: Floats) -> NDArray[Any] | list[set[Any]]:
        """Return the label of each row; with several, sets of them, or a table of 0 and 1."""
        if not self.multilabel:
            labels: NDArray[Any] = self.classes[chosen(scores)]
            return labels
        table = self._table(scores)
        if self.columns:
            return table.astype(np.int64)
        return [set(row) for row in self._sets(table)]

    def _table(self, scores: Floats) -> NDArray[np.bool_]:
        assert self.thresholds is not None
        found: NDArray[np.bool_] = self.probabilities(scores) >= self.thresholds
        return found

    def _sets(self, table: NDArray[np.bool_]) -> list[frozenset[Any]]:
        return [frozenset(self.classes[row].tolist()) for row in table]

    def classify(
        self, scores: Floats, explanations: Sequence[Explanation | None]
    ) -> list[Classification]:
        """Return what there is to say of each row."""
        labels = self.classes.tolist()
        numbers = scores.argmax(axis=1) if self.multilabel else chosen(scores)
        if self.link is None:
            return [Classification(labels[i], None, {}, (labels[i],)) for i in numbers]
        table = self._table(scores) if self.multilabel else None
        found = []
        chances = self.probabilities(scores)
        for row, (i, shares) in enumerate(zip(numbers, chances, strict=True)):
            order = np.argsort(-shares, kind="stable")
            named = {labels[j]: float(shares[j]) for j in order}
            several = (labels[i],)
            if table is not None:
                several = tuple(labels[j] for j in order if table[row, j])
            found.append(
                Classification(labels[i], float(shares[i]), named, several, explanations[row])
            )
        return found

    def measure(self, scores: Floats, y: NDArray[Any] | LabelSets) -> dict[str, float]:
        """Return how well examples are classified; see `Classifier.evaluate`."""
        if isinstance(y, LabelSets):
            check_columns(y, self.classes)
            check_kind((label for row in y.sets for label in row), self.classes)
            found = multilabel_metrics(self._sets(self._table(scores)), y.sets)
            return {**found, "examples": float(len(y.sets))}
        check_kind(y.tolist(), self.classes)
        predicted = self.classes[chosen(scores)]
        found = class_metrics(predicted, y)
        if self.link is not None:
            correct = np.array(
                [a == b for a, b in zip(predicted.tolist(), y.tolist(), strict=True)]
            )
            found["ece"] = calibration_error(self.probabilities(scores).max(axis=1), correct)
        return {**found, "examples": float(len(y))}

    def named_thresholds(self) -> dict[Any, float]:
        """Return the threshold of each label."""
        assert self.thresholds is not None
        return dict(zip(self.classes.tolist(), self.thresholds.tolist(), strict=True))

    # -- saving ----------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """What a model directory keeps of it."""
        return {
            "classes": labels_to_dict(self.classes),
            "multilabel": self.multilabel,
            "columns": self.columns,
            "thresholds": None if self.thresholds is None else self.thresholds.tolist(),
            "temperature": self.temperature,
            "calibrate": self.calibrated,
            "tuned": self.tuned,
        }

    @classmethod
    def from_settings(cls, arch: str, settings: Mapping[str, Any]) -> Decision:
        """Return what `settings` wrote."""
        thresholds = settings.get("thresholds")
        return cls(
            arch,
            labels_from_dict(settings["classes"]),
            multilabel=settings.get("multilabel", False),
            columns=settings.get("columns", False),
            thresholds=None if thresholds is None else np.array(thresholds, np.float64),
            temperature=settings.get("temperature", 1.0),
            calibrated=settings.get("calibrate", False),
            tuned=settings.get("tuned", False),
        )
