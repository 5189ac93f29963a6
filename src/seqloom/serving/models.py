"""Which models are served: those named at the start, checked there, and no others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seqloom.errors import ConfigError, DataError
from seqloom.serving.jobs import endpoints
from seqloom.tasks.directory import HEADER, find_model, read_model, shipped_models

BUILT_IN = ("textrank", "lexrank", "tfidf", "lead", "features")
"""Summarizers that choose sentences and need no fitting, by the names of their architectures."""


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A model that is served.

    Args:
        name: What a request calls it.
        task: Its task.
        architecture: Its architecture.
        place: Its directory; None of a built-in.
        digest: What its header closed with when the server started.
        metrics: What it reached, by name.
    """

    name: str
    task: str
    architecture: str
    place: str | None
    digest: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> ServedModel:
        """From plain values."""
        return ServedModel(**values)


def find_served(names: Sequence[str]) -> list[ServedModel]:
    """Return the models of directories and names, each found whole.

    Args:
        names: A directory, `NAME=DIRECTORY`, the name of a shipped model or of a built-in; none
            for all shipped models and "textrank".

    Raises:
        DataError: If a directory is missing, cut, altered or not a model's, in one line.
        ConfigError: If two have one name, or nothing can be asked of a model over HTTP.
    """
    given = list(names) or [BUILT_IN[0], *sorted(shipped_models())]  # who comes first answers
    found = [_find(name) for name in given]
    seen: set[str] = set()
    for model in found:
        if model.name in seen:
            raise ConfigError(
                f"each model must have a name of its own, got {model.name!r} twice; "
                "write NAME=DIRECTORY"
            )
        seen.add(model.name)
        if not endpoints(model.task):
            raise ConfigError(
                f"models of task {model.task!r} have no endpoint, got {model.name!r}; leave it out"
            )
    return found


def _find(given: str) -> ServedModel:
    name, separator, rest = given.partition("=")
    source = rest if separator and name and not Path(given).exists() else given
    if source in BUILT_IN and not Path(source).exists() and source not in shipped_models():
        own = name if source != given else source
        return ServedModel(name=own, task="summarize", architecture=source, place=None)
    place = find_model(source)
    header = read_model(place).header
    return ServedModel(
        name=name if source != given else place.resolve().name,
        task=header.task,
        architecture=header.architecture,
        place=str(place.resolve()),
        digest=_digest(place),
        metrics={k: v for k, v in header.metrics.items() if isinstance(v, int | float | str)},
    )


def _digest(place: Path) -> str:
    return str(json.loads((place / HEADER).read_text(encoding="utf-8"))["digest"])


def check_unchanged(model: ServedModel) -> None:
    """Refuse a directory that holds another model than when the server started."""
    assert model.place is not None
    try:
        digest = _digest(Path(model.place))
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError("its header cannot be read any more", model.place) from None
    if digest != model.digest:
        raise DataError("holds another model than when the server started", model.place)
