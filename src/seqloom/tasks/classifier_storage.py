"""What a model directory keeps of a classifier, and reading it back."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seqloom.config import to_dict
from seqloom.tasks.classifier_decision import Decision
from seqloom.tasks.classifier_sequences import VectorSequences, WordSequences
from seqloom.tasks.classifier_text import TextSide, read_text_side
from seqloom.tasks.contextual import saved_context, stored_context
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model

if TYPE_CHECKING:
    from seqloom.tasks.classifier import Classifier


def save_classifier(model: Classifier, directory: str | PathLike[str]) -> Path:
    """Write a model directory."""
    is_list = isinstance(model.terms_, VectorSequences)
    settings = model.decision_.settings() | {
        "input": "sequences" if is_list else "vectors",
        "max_length": getattr(model.terms_, "max_length", None),
    }
    files: dict[str, Any] = {}
    context = model.terms_.context if isinstance(model.terms_, WordSequences) else None
    if context is not None:
        settings["contextual"] = context.stored()
    if hasattr(model, "features_"):
        side = TextSide(model.pipeline_, model.features_)
        settings |= {"input": "text", **side.settings()}
        files = side.files()
    header = ModelHeader(
        task=model.task,
        architecture=model.arch_,
        config=to_dict(model.model_.config),
        settings=settings,
        metrics=model.metrics_,
        provenance=model.provenance_,
    )
    with saved_context(context) as models:
        return write_model(directory, header, model.model_.state_dict(), files, models)


class Stored(NamedTuple):
    """What there was: settings by name, and learned attributes by name."""

    settings: dict[str, Any]
    fitted: dict[str, Any]


def read_classifier(stored: StoredModel) -> Stored:
    """Read what `save_classifier` wrote, but the network."""
    header, settings = stored.header, stored.header.settings
    decision = Decision.from_settings(header.architecture, settings)
    most = settings.get("max_length")
    values: dict[str, Any] = {
        "multilabel": decision.multilabel,
        "calibrate": decision.calibrated,
        "max_length": most,
    }
    fitted: dict[str, Any] = {"decision_": decision, "classes_": decision.classes}
    if decision.multilabel:
        values["threshold"] = "tune" if decision.tuned else decision.named_thresholds()
    if settings["input"] == "text":
        side = read_text_side(stored)
        values |= {"text": side.pipeline.config, **settings.get("features", {})}
        if isinstance(side.features, WordSequences):
            side.features.context = context = stored_context(stored)
            values["contextual"] = context and context.settings
        fitted |= {"pipeline_": side.pipeline, "features_": side.features, "terms_": side.features}
        return Stored(values, fitted)
    width = header.config["input_size"]
    is_list = settings["input"] == "sequences"
    fitted["terms_"] = VectorSequences(width, most) if is_list else None
    fitted["n_features_in_"] = width
    return Stored(values, fitted)
