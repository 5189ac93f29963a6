"""What every task has in common: settings by name, scikit-learn's protocol, saving and loading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from seqloom.architectures import (
    Architecture,
    find_architecture,
    load_config_class,
    load_model_class,
)
from seqloom.config import from_dict, plain_scalar, to_dict
from seqloom.errors import ConfigError, one_of
from seqloom.tasks.directory import (
    StoredModel,
    blamed_on,
    check_task,
    find_model,
    load_weights,
    read_model,
)
from seqloom.tasks.notebook import html_table
from seqloom.tasks.scikit import not_fitted_error

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Estimator(ABC):
    """The interface of all tasks; a task is a final class below it.

    Args:
        arch: The architecture's name; `seqloom list` shows them.
        training: Settings of the training loop: a `TrainConfig`, or the part of one that differs
            from the architecture's own defaults, as a nested mapping.
        options: Settings of the architecture. Those the data decides (`vocab_size`) cannot be set.
    """

    task: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("training",)
    """The names of the settings that belong to the task, not to the architecture."""

    arch: str
    arch_: str
    """The architecture it was fitted with, which use and `save` go by."""
    training: TrainConfig | Mapping[str, Any] | None
    model_: Any
    metrics_: dict[str, Any]
    provenance_: dict[str, Any]

    def __init__(self, arch: str, options: Mapping[str, Any], **settings: Any) -> None:
        self.arch = arch
        for name in self.settings:
            setattr(self, name, plain_scalar(settings[name]))
        known = self._option_defaults()
        for name in options:
            if name not in known:
                raise ConfigError(
                    one_of(f"option of architecture {arch!r}", name, {*known, *self.settings})
                )
        self._options = {name: plain_scalar(value) for name, value in options.items()}

    # -- settings --------------------------------------------------------------------------------

    @property
    def architecture(self) -> Architecture:
        """The entry of the table."""
        return find_architecture(self.task, self.arch)

    @property
    def fitted_architecture(self) -> Architecture:
        """The entry it was fitted with; before that, the one that was set."""
        return find_architecture(self.task, getattr(self, "arch_", self.arch))

    def _option_defaults(self) -> dict[str, Any]:
        """The options of the architecture that a user may set, with their defaults."""
        entry = self.architecture
        found = {}
        for field in fields(load_config_class(entry)):
            if field.name in entry.preset or field.metadata.get("by_task"):
                continue
            if field.default is not MISSING:
                found[field.name] = field.default
            elif field.default_factory is not MISSING:
                found[field.name] = field.default_factory()
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name, as scikit-learn asks for them."""
        tables = {name: getattr(self, name) for name in self.settings}
        params = {"arch": self.arch, **self._option_defaults(), **self._options, **tables}
        if deep:
            for name, table in tables.items():
                if isinstance(table, Mapping) or is_dataclass(table):
                    own = _as_mapping(table, name)
                    params |= {f"{name}__{key}": v for key, v in own.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings; "training__epochs" reaches into a table. Options of the old
        architecture that the new one lacks, or that were its defaults, are dropped.
        """  # noqa: D205
        params = {name: plain_scalar(value) for name, value in params.items()}
        if "arch" in params:
            arch = params.pop("arch")
            find_architecture(self.task, arch)  # refused before anything changes
            # A default of the old architecture is no wish: scikit-learn's clone sets them all.
            old = self._option_defaults()
            self.arch = arch
            known = self._option_defaults()
            self._options = {
                k: v for k, v in self._options.items() if k in known and v != old.get(k)
            }
        known = self._option_defaults()
        for name, value in params.items():
            table, _, path = name.partition("__")
            if table in self.settings and path:
                changed = _as_mapping(getattr(self, table), table)
                _set_inside(changed, path.split("__"), value)
                setattr(self, table, changed)
            elif name in self.settings:
                setattr(self, name, value)
            elif name in known:
                self._options[name] = value
            else:
                raise ConfigError(
                    one_of(f"option of architecture {self.arch!r}", name, {*known, *self.settings})
                )
        return self

    def sets(self, option: str) -> bool:
        """Whether the user chose an option of the architecture.

        Its default is no wish: scikit-learn's clone gives them all.
        """
        default = self._option_defaults()[option]
        return bool(self._options.get(option, default) != default)

    def given_options(self) -> dict[str, Any]:
        """Return the options of the architecture that were given, defaults among them."""
        return dict(self._options)

    def build_config(self, **from_data: Any) -> Any:
        """Return the architecture's configuration: options, preset, and what the data decides.

        Of `from_data` an architecture takes what it has a setting for.
        """
        entry = self.architecture
        config = load_config_class(entry)
        known = {field.name for field in fields(config)}
        decided = {name: value for name, value in from_data.items() if name in known}
        return from_dict(config, {**self._options, **entry.preset, **decided})

    def build_training(self) -> TrainConfig:
        """Return the settings of the loop: the architecture's defaults under the user's own."""
        from seqloom.training import TrainConfig

        if isinstance(self.training, TrainConfig):
            return self.training
        defaults = getattr(load_config_class(self.architecture), "TRAINING", {})
        return from_dict(TrainConfig, merge(defaults, self.training_table()), where="training")

    def training_table(self) -> dict[str, Any]:
        """Return the user's own settings of the loop, as a table."""
        return _as_mapping(self.training, "training")

    # -- state -----------------------------------------------------------------------------------

    def __sklearn_clone__(self) -> Self:
        """For scikit-learn's `clone`: a new estimator with the same settings.

        Fitted models among them, such as an `Embedder` as `vectors`, stay as they are: they are
        what it learns from, not parts of it that are fitted with it.
        """
        given = self.given_options() | {name: getattr(self, name) for name in self.settings}
        params: dict[str, Any] = {
            name: value if isinstance(value, Estimator) else deepcopy(value)
            for name, value in given.items()
        }
        return type(self)(arch=self.arch, **params)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "model_", None) is not None

    def require_fitted(self) -> None:
        """Refuse to be used before `fit` or `load`."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted_error()(
                f"this {type(self).__name__} has not been fitted; call fit or load first"
            )

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Self:
        """Load a model directory, or a model that comes with the package by its name."""
        stored = read_model(find_model(directory))
        check_task(stored, cls.task)
        with blamed_on(stored):
            return cls.from_stored(stored)

    @classmethod
    @abstractmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the estimator a model directory describes."""

    @abstractmethod
    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the parts of the fitted model by name, with their shapes."""

    def _take_over(self, stored: StoredModel) -> Any:
        """Take over the options, metrics and provenance of a model directory.

        Returns:
            The architecture's configuration.
        """
        self.arch_ = self.arch
        config = from_dict(load_config_class(self.architecture), stored.header.config)
        known = self._option_defaults()
        self._options = {k: v for k, v in to_dict(config).items() if k in known}
        self.metrics_ = dict(stored.header.metrics)
        self.provenance_ = dict(stored.header.provenance)
        return config

    def _restore(self, stored: StoredModel) -> None:
        """Take over the network, options, metrics and provenance of a model directory."""
        config = self._take_over(stored)
        self.model_ = load_model_class(self.architecture)(config)
        load_weights(self.model_, stored)
        self.model_.eval()

    def _repr_html_(self) -> str:
        """What a notebook shows: the settings, and the metrics once it was fitted."""
        own = {name: getattr(self, name) for name in self.settings}
        rows = {"arch": self.arch, **self._options, **own, **getattr(self, "metrics_", {})}
        return html_table(type(self).__name__, rows)

    def __repr__(self) -> str:
        own = {name: getattr(self, name) for name in self.settings}
        shown = self._options | {name: value for name, value in own.items() if value is not None}
        inside = "".join(f", {name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}(arch={self.arch!r}{inside})"


def tensor_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a network; of weights that are shared, of the first."""
    found: dict[tuple[int, ...], tuple[str, tuple[int, ...]]] = {}
    for name, tensor in model.state_dict().items():
        shape = tuple(tensor.shape)
        found.setdefault((tensor.data_ptr() or id(tensor), *shape), (name, shape))
    return dict(found.values())


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with those of `over` in place of those of `base`."""
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def _as_mapping(table: Any, name: str) -> dict[str, Any]:
    if table is None:
        return {}
    if is_dataclass(table):
        return to_dict(table)
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name} must be a table of settings, got {table!r}")
    return dict(table)


def _set_inside(table: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        table[part] = _as_mapping(table.get(part), part)
        table = table[part]
    table[path[-1]] = value
