"""Recipes: data, task, architecture, settings and the figure to reach, in one TOML file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from seqloom.architectures import find_architecture
from seqloom.config import apply_overrides, differences, from_dict, load_toml, to_dict
from seqloom.data.fields import read_numbers
from seqloom.data.inputs import FieldNames, read_input
from seqloom.data.prepared import Kind
from seqloom.data.series import read_series
from seqloom.data.vector_sequences import open_labeled_sequences
from seqloom.errors import ConfigError, one_of
from seqloom.tasks.corpus import TextSources
from seqloom.tasks.directory import HEADER, TRAINING
from seqloom.tasks.estimator import merge
from seqloom.tasks.loading import load, task_class
from seqloom.tasks.relation_text import open_relations


@dataclass(frozen=True, kw_only=True)
class DataPlan:
    """Which data a recipe uses: files, or "NAME:SPLIT" of named data sets.

    Args:
        train: To fit on; of a language model there may be several.
        valid: To choose on.
        test: To report on, once.
        judged_on: Test sets of other tasks that the model will serve; `seqloom train` and
            `seqloom reproduce` print how much of them the training text has.
        sentences: Whether the texts of a language model are cut into sentences.
        fields: Where a table holds what, as `FieldNames` has it.
    """

    train: str | tuple[str, ...]
    valid: str | None = None
    test: str | None = None
    judged_on: tuple[str, ...] = ()
    sentences: bool = False
    fields: dict[str, Any] = field(default_factory=dict)

    def open(self, task: str, source: str | tuple[str, ...]) -> tuple[Any, ...]:
        """Return what `fit` and `evaluate` of a task take for one of its sources: X, or X and y."""
        if isinstance(source, str) and not self.sentences:
            return open_data(task, source, self.fields)
        if task not in TEXT_TASKS or self.fields:
            raise ConfigError(
                "several sources and data.sentences are for texts without fields, tasks "
                f"{' and '.join(TEXT_TASKS)}; got task {task!r} with {source!r}"
            )
        several = (source,) if isinstance(source, str) else source
        return (TextSources(several, sentences=self.sentences),)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The figure a recipe is to reach.

    Args:
        metric: Which metric on the test data.
        value: The figure.
        source: Where the figure is from: paper and table, or what we ask of ourselves.
        at_least: Whether more is better.
        within: How far from the figure on the wrong side still counts.
    """

    metric: str
    value: float
    source: str
    at_least: bool = False
    within: float = 0.0

    def is_met(self, reached: float) -> bool:
        """Whether a figure is as good as this one."""
        if self.at_least:
            return reached >= self.value - self.within
        return reached <= self.value + self.within


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole experiment.

    Args:
        task: The task, as the command line spells it.
        arch: The architecture.
        data: The data.
        title: What it is, in a line.
        model: Options of the architecture.
        settings: Settings of the task (text, vocabulary, ...), each a top-level key of the file.
        training: Settings of the loop.
        target: The figure to reach.
    """

    task: str
    arch: str
    data: DataPlan
    title: str = ""
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    target: Target | None = None

    def estimator(self, **training: Any) -> Any:
        """Return the estimator the recipe describes, some training settings replaced.

        A counted model has no training to replace settings of: each run is the same.
        """
        if find_architecture(self.task, self.arch).is_counted:
            training = {}
        return task_class(self.task)(
            self.arch, **self.settings, training=merge(self.training, training), **self.model
        )

    def for_one_update(self) -> Any:
        """Return the estimator for one update; the perceptron, which has none, as it is."""
        return self.estimator(**({} if self.arch == "perceptron" else {"max_steps": 1}))

    def fit(self, model: Any, out: Path | None = None, *, resume: bool = False) -> None:
        """Fit an estimator to the data of the recipe; see its own `fit`."""
        valid: Any = None
        if self.data.valid is not None:
            opened = self.data.open(self.task, self.data.valid)
            valid = opened if len(opened) > 1 else opened[0]
        train = self.data.open(self.task, self.data.train)
        model.fit(*train, valid=valid, out=out, resume=resume)

    def needs(self) -> list[str]:
        """Return the recipes whose models it learns from: settings that are "recipe:NAME".

        Settings of that recipe that are changed may follow, as "recipe:NAME model.dropout=0.1".
        """
        found = []

        def look(value: Any) -> Any:
            if isinstance(value, str) and value.startswith(OF_RECIPE):
                found.append(value.removeprefix(OF_RECIPE))
                if not found[-1]:
                    raise ConfigError(f"{OF_RECIPE!r} must be followed by the name of a recipe")
            return value

        _everywhere(self.settings, look)
        return list(dict.fromkeys(found))

    def with_models(self, models: Mapping[str, Any]) -> Recipe:
        """Return the recipe with models in place of "recipe:NAME".

        Args:
            models: A fitted model, or its directory, for each of `needs`.
        """

        def put(value: Any) -> Any:
            if isinstance(value, str) and value.startswith(OF_RECIPE):
                return models[value.removeprefix(OF_RECIPE)]
            return value

        return replace(self, settings=_everywhere(self.settings, put))


def with_needed(
    plan: Recipe,
    folder: Path | None = None,
    say: Callable[[str], object] = lambda _: None,
    make: Callable[[Recipe], Any] = Recipe.estimator,
    *,
    asked: tuple[str, ...] = (),
) -> Recipe:
    """Return a recipe with the models of others that it learns from; missing ones are fitted.

    Args:
        plan: The recipe.
        folder: Where they lie, each under the name of its recipe, and a mark of the settings that
            are changed; by default they are not kept.
        say: Told which is fitted, or found.
        make: What makes an estimator of one of them.
        asked: The recipes that this one is needed by.

    Raises:
        ConfigError: If recipes need each other, or another model lies in the place of one.
    """
    models = {}
    for name in plan.needs():
        if name in asked:
            raise ConfigError(f"recipes must not need each other: {', '.join([*asked, name])}")
        recipe = load_needed(name)
        place = None if folder is None else folder / _folder_name(name)
        if place is not None and (place / HEADER).exists():
            say(f"recipe {name}: its model is in {place}")
            models[name] = _found(recipe, place)
            continue
        say(f"recipe {name} first, whose model this one learns from")
        needed = with_needed(recipe, folder, say, make, asked=(*asked, name))
        models[name] = make(needed)
        needed.fit(models[name], place, resume=place is not None and (place / TRAINING).is_dir())
    return plan.with_models(models)


def load_needed(needed: str) -> Recipe:
    """Load a recipe that another one learns from, by one of its `needs`."""
    name, changes = _name_and_changes(needed)
    return load_recipe(name, changes)


def _name_and_changes(needed: str) -> tuple[str, list[str]]:
    name, *changes = re.split(r"\s+(?=[\w.]+=)", needed.strip())
    return name, changes


def _folder_name(needed: str) -> str:
    name, changes = _name_and_changes(needed)
    mark = hashlib.sha256(" ".join(changes).encode()).hexdigest()[:6]
    return f"{Path(name).stem}-{mark}" if changes else Path(name).stem


def _found(recipe: Recipe, place: Path) -> Any:
    """The model in a place, if it is what a recipe gives."""
    model = load(place)
    wanted, had = {"task": recipe.task, "arch": recipe.arch}, {"task": model.task}
    had["arch"] = model.arch
    if isinstance(recipe.data.train, str) and not recipe.data.fields:
        wanted["train"], had["train"] = recipe.data.train, model.provenance_.get("train")
    config = to_dict(model.model_.config) if hasattr(model.model_, "config") else {}
    for name in recipe.model.keys() & config.keys():
        wanted[name], had[name] = _as_listed(recipe.model[name]), _as_listed(config[name])
    changed = list(differences(wanted, had))
    if changed:
        raise ConfigError(
            f"{place} holds another model than its recipe gives: {'; '.join(changed)}; move it, or "
            "choose another place"
        )
    return model


def _as_listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


OF_RECIPE = "recipe:"


def _everywhere(value: Any, change: Callable[[Any], Any]) -> Any:
    """Nested settings with every plain value changed."""
    if isinstance(value, Mapping):
        return {name: _everywhere(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_everywhere(each, change) for each in value]
    return change(value)


TEXT_TASKS = ("lm", "embed")
KINDS: dict[str, Kind] = {  # what a task reads, else text
    "classify": "labeled",
    "tag": "tagged",
    "summarize": "pairs",
    "translate": "pairs",
}


def open_data(task: str, source: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what `fit` and `evaluate` of a task take for a source: X, or X and y."""
    names = from_dict(FieldNames, fields, where="data.fields")
    if task == "regress":
        return read_numbers(source, target=names.target)
    if task == "recognize":
        return tuple(open_labeled_sequences(source))
    if task == "forecast":
        return (read_series(source),)
    if not fields:
        return (source,)
    if task == "relate":
        return (open_relations(source, names),)
    return (read_input(source, KINDS.get(task, "text"), names=names),)


OWN_KEYS = ("task", "arch", "data", "title", "model", "training", "target")


def read_recipe(values: Mapping[str, Any], overrides: list[str] | None = None) -> Recipe:
    """Build a recipe from nested values; unknown keys are refused with the nearest known one."""
    values = apply_overrides(values, overrides or [])
    for needed in ("task", "arch"):
        if needed not in values:
            raise ConfigError(f"setting '{needed}' must be given")
    known = [name for name in task_class(values["task"]).settings if name != "training"]
    for key in values:
        if key not in (*OWN_KEYS, *known):
            raise ConfigError(one_of("setting", key, (*OWN_KEYS, *known)))
    own = {key: value for key, value in values.items() if key in OWN_KEYS}
    settings = {key: value for key, value in values.items() if key in known}
    return from_dict(Recipe, {**own, "settings": settings})


def load_recipe(name: str | PathLike[str], overrides: list[str] | None = None) -> Recipe:
    """Load a recipe: a TOML file, or the name of one that comes with the package."""
    text = fspath(name)
    shipped = shipped_recipes()
    path = Path(text) if Path(text).suffix == ".toml" or text not in shipped else shipped[text]
    if not path.exists() and len(Path(text).parts) == 1 and not Path(text).suffix:
        raise ConfigError(one_of("recipe", text, shipped))
    return read_recipe(load_toml(path), overrides)


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with the package, by name."""
    folder = Path(str(resources.files("seqloom").joinpath("recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}
