"""Writing a model directory anew with its weights in few bytes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from seqloom.errors import ConfigError
from seqloom.tasks.directory import CARD, HEADER, WEIGHTS, find_model, read_model, write_model
from seqloom.tasks.loading import load
from seqloom.tasks.packed_weights import Kind, pack_weights


def pack_model(
    model: str | PathLike[str], out: str | PathLike[str], weights: Kind = "int8", data: Any = None
) -> Path:
    """Write a model with its weights as halves or whole numbers of 8 bits.

    Args:
        model: A model directory, or the name of a shipped model.
        out: A new directory.
        weights: "half", "int8" or "full".
        data: What to measure the packed model on, so that its card says what it reaches.

    Returns:
        The new directory.
    """
    stored = read_model(find_model(model))
    names = json.loads((stored.place / HEADER).read_text(encoding="utf-8"))["files"]
    if WEIGHTS not in names:
        raise ConfigError(f"{stored.place} has no weights to pack; counted models have stores")
    loaded = stored.weights()
    first: dict[int, str] = {}
    names_of = {name: first.setdefault(id(tensor), name) for name, tensor in loaded.items()}
    packed = pack_weights({name: loaded[name] for name in first.values()}, weights)
    tensors = packed | {name: packed[own] for name, own in names_of.items()}
    files = {n: (stored.place / n).read_bytes() for n in names if n not in (WEIGHTS, CARD)}
    settings = dict(stored.header.provenance) | {"weights": weights}
    header = replace(stored.header, provenance=settings)
    count = sum(loaded[name].numel() for name in first.values())
    place = write_model(out, header, tensors, files, stored.models, numbers=count)
    if data is None:
        return place
    measured = load(place).evaluate(*data if isinstance(data, tuple) else (data,))
    metrics = {**header.metrics, **{f"test_{name}": value for name, value in measured.items()}}
    shutil.rmtree(place)
    header = replace(header, metrics=metrics)
    return write_model(out, header, tensors, files, stored.models, numbers=count)
