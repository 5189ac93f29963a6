"""Writing a model directory anew with its weights in few bytes."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.data.datasets.catalog import Dataset, find_dataset
from seqloom.errors import ConfigError
from seqloom.tasks.counted_language import STORE
from seqloom.tasks.directory import CARD, HEADER, WEIGHTS, find_model, read_model, write_model
from seqloom.tasks.loading import load
from seqloom.tasks.packed_weights import Kind, pack_weights
from seqloom.tasks.recipe import Recipe, load_needed, load_recipe

if TYPE_CHECKING:
    from torch import Tensor


def pack_model(
    model: str | PathLike[str],
    out: str | PathLike[str],
    weights: Kind = "int8",
    data: Any = None,
    *,
    recipe: str | None = None,
    also_read: Sequence[str] = (),
) -> Path:
    """Write a model with its weights as halves or whole numbers of 8 bits.

    A counted model is written as a trie with 8 bits a value.

    Args:
        model: A model directory, or the name of a shipped model.
        out: A new directory.
        weights: "half", "int8" or "full".
        data: What to measure the packed model on, so that its card says what it reaches.
        recipe: The recipe it was trained by, so that its card says what it is, what it read and
            under which terms.
        also_read: Named data sets that were read beside what the recipe says, for vectors it began
            with, say.

    Returns:
        The new directory.
    """
    if also_read and recipe is None:
        raise ConfigError("also_read adds to what a recipe says was read, got no recipe")
    stored = read_model(find_model(model))
    names = json.loads((stored.place / HEADER).read_text(encoding="utf-8"))["files"]
    files: dict[str, Any] = {
        name: (stored.place / name).read_bytes() for name in names if name not in (WEIGHTS, CARD)
    }
    facts = dict(stored.header.provenance) | (
        {} if recipe is None else trained_by(recipe, also_read)
    )
    tensors: dict[str, Tensor] | None = None
    if WEIGHTS in names:
        tensors, count = _packed(stored.weights(), weights, of_words=bool(files))
        facts["weights"] = weights
    elif STORE in files:
        files[STORE] = partial(_write_trie, stored.place / STORE)
        count = sum(math.prod(shape) for shape in load(stored.place).shapes().values())
    else:
        raise ConfigError(f"{stored.place} has no weights to pack")
    header = replace(stored.header, provenance=facts)
    place = write_model(out, header, tensors, files, stored.models, numbers=count)
    if data is None:
        return place
    try:
        measured = load(place).evaluate(*data if isinstance(data, tuple) else (data,))
    finally:  # with what was measured it is written anew
        shutil.rmtree(place)
    metrics = {**header.metrics, **{f"packed_{name}": value for name, value in measured.items()}}
    if isinstance(data, str):
        facts["packed_measured_on"] = data
    header = replace(header, metrics=metrics, provenance=facts)
    return write_model(out, header, tensors, files, stored.models, numbers=count)


def _packed(
    loaded: dict[str, Tensor], weights: Kind, *, of_words: bool
) -> tuple[dict[str, Tensor], int]:
    """Return weights in few bytes, those that are one tensor still one, and how many there are."""
    first: dict[int, str] = {}
    names_of = {name: first.setdefault(id(tensor), name) for name, tensor in loaded.items()}
    once = {name: loaded[name] for name in first.values()}
    packed = pack_weights(once, weights, of_words=of_words)
    tensors = packed | {name: packed[own] for name, own in names_of.items()}
    return tensors, sum(loaded[name].numel() for name in first.values())


def _write_trie(source: Path, path: Path) -> None:
    from seqloom.ngram.stores import write_store
    from seqloom.ngram.unpack import read_ngrams
    from seqloom.ngram.workspace import Workspace

    place = Workspace(None, str(path.parent))
    write_store(read_ngrams(source, place), path, "trie", place)


def trained_by(name: str, also_read: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a recipe says of a model: its title, and what was read under which terms.

    Recipes whose models it learns from are read of as well.

    Args:
        name: The recipe.
        also_read: More named data sets that were read.
    """
    recipe = load_recipe(name)
    read = _terms(recipe) | _terms_of(map(find_dataset, also_read))
    return {"title": recipe.title, "recipe": name, "read": read}


def _terms(recipe: Recipe) -> dict[str, str]:
    """What is read for a recipe, by name."""
    train = recipe.data.train
    teaching = recipe.settings.get("teaching", {})
    sources = [
        *([train] if isinstance(train, str) else train),
        recipe.settings.get("vectors"),
        teaching.get("texts"),
    ]
    text = _terms_of(find_dataset(source.partition(":")[0]) for source in sources if source)
    for needed in recipe.needs():
        text |= _terms(load_needed(needed))
    return text


def _terms_of(sets: Iterable[Dataset]) -> dict[str, str]:
    return {each.name: f"{each.title}; {each.license}; {each.citation}" for each in sets}
