"""What workers do for the studio alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seqloom.serving import studio_cells, studio_training
from seqloom.serving.jobs import Job

Payload = Mapping[str, Any]


def _describe(_model: None, _payload: Payload) -> dict[str, Any]:
    return studio_cells.describe_cells()


def _cell(_model: None, payload: Payload) -> dict[str, Any]:
    return studio_cells.steps_of_cell(payload)


def _flow(_model: None, payload: Payload) -> dict[str, Any]:
    return studio_cells.gradient_distances(payload)


def _train(
    _model: None, payload: Payload, send: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    return studio_training.train_classifier(payload, send)


def _try(_model: None, payload: Payload) -> dict[str, Any]:
    return studio_training.classify_with(payload)


JOBS: dict[str, Job] = {
    "studio.cells": Job("", _describe),
    "studio.cell": Job("", _cell),
    "studio.steps": Job("lm", studio_cells.steps_of_model),
    "studio.flow": Job("", _flow),
    "studio.train": Job("", _train, stream=True),
    "studio.try": Job("", _try),
}
