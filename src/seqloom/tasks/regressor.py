"""Regressors: fit one to vectors and numbers, and ask it for the number of other vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.architectures import load_model_class
from seqloom.config import to_dict
from seqloom.data.features import Vectors
from seqloom.errors import ConfigError, InputError
from seqloom.metrics import mean_squared_error, r_squared
from seqloom.models.linear import Linear
from seqloom.tasks.conditioning import feature_coordinates
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import (
    Callbacks,
    Learned,
    RunSettings,
    fitting,
    origin,
    run_training,
)
from seqloom.tasks.scikit import estimator_tags
from seqloom.tasks.supervised_objective import Examples, Goal, all_scores
from seqloom.tasks.vectors import as_targets, as_vectors

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Regressor(Estimator):
    r"""Learns numbers from vectors.

    Linear regression minimizes $\lVert y - (X w + b) \rVert^2 + l2 \lVert w \rVert^2$; `l2` is the
    alpha of scikit-learn's `Ridge`. Logistic regression, in the sense of fitting the curve itself,
    puts $L / (1 + e^{-k (X w + b - z_0)})$ in place of $X w + b$; its numbers must not be negative,
    nor above L where that is fixed.

    Args:
        arch: "linear" or "logistic".
        training: Settings of the loop.
        options: Settings of the architecture: `l2`; for "logistic" also `limit` (L, learned unless
            it is given), `steepness` (k) and `midpoint` (z0).

    Attributes:
        n_features_in_: The width of the vectors.
        coef_, intercept_: w and b; a row each of several targets.
        limit_: L of "logistic", a number or one a target.

    Examples:
        >>> model = Regressor("linear").fit([[1], [2], [3], [4]], [2, 4, 6, 8])
        >>> model.predict([[5]]).round(6).tolist()
        [10.0]
    """

    task: ClassVar[str] = "regress"
    n_features_in_: int

    def __init__(
        self,
        arch: str = "linear",
        *,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(arch, options, training=training)

    # -- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803 (scikit-learn's name)
        y: Any = None,
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from examples. Progress is shown where there is an `out`.

        Args:
            X: A table of numbers (N, D).
            y: A number an example (N,), or several (N, C).
            valid: The pair (X, y) of other examples, to measure the result on.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        self.build_config(input_size=1, output_size=1)
        if self.build_training().needs_validation and valid is None:
            raise ConfigError(
                "training.patience and schedule 'plateau' need validation data, got valid=None"
            )
        with fitting(self, out, resume=resume, callbacks=callbacks) as run:
            train = self._examples(X, y)
            checked = None
            if valid is not None:
                checked = self._examples(*_pair(valid), width=train.features.width)
            model, learned = self._learn(train, checked, run)
            self.model_, self.metrics_ = model, learned.metrics
            self.n_features_in_ = train.features.width
            self._one = np.asarray(y).ndim == 1
            count = len(train.targets)
            self.provenance_ = origin(None, None, run.training, examples=count, **learned.history)
        return self

    def _examples(self, x: Any, y: Any, width: int | None = None) -> Examples:
        vectors = as_vectors(x, type(self).__name__, width)
        return Examples(Vectors(vectors), as_targets(y, len(vectors)))

    def _learn(
        self, train: Examples, valid: Examples | None, settings: RunSettings
    ) -> tuple[Any, Learned]:
        features, targets = train.features, torch.from_numpy(train.targets)
        config = self.build_config(input_size=features.width, output_size=targets.shape[1])
        spread = targets.std(dim=0, correction=0)
        spread = torch.where(spread > 0, spread, 1.0)
        mean, basis = feature_coordinates(features, config.l2 / len(features))
        model = load_model_class(self.architecture)(config)
        if isinstance(model, Linear):
            model.condition(mean, basis, targets.mean(dim=0), spread)
        else:
            _check_curve(train.targets, config.limit)
            model.condition(mean, basis, targets.mean(dim=0), targets.amax(dim=0))
        settings = replace(settings, facts={"model": to_dict(config), "examples": len(features)})
        with torch.random.fork_rng():
            learned = run_training(model, train, valid, squares(spread, config.l2), settings)
        model.settle()
        return model, learned

    # -- use -------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the number of each vector, (N,), or its numbers, (N, C)."""
        self.require_fitted()
        vectors = as_vectors(X, type(self).__name__, self.n_features_in_)
        scores = all_scores(self.model_, Vectors(vectors))
        return scores[:, 0] if self._one else scores

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the R squared of the predictions; of several targets the mean."""
        return self.evaluate(X, y)["r_squared"]

    def evaluate(self, data: Any, y: Any = None) -> dict[str, float]:
        """Return how close the predictions for examples come.

        Args:
            data: The vectors, or the pair (X, y).
            y: The numbers.

        Returns:
            `r_squared`, `mean_squared_error` and `examples`.
        """
        self.require_fitted()
        x, y = (data, y) if y is not None else _pair(data)
        examples = self._examples(x, y, self.n_features_in_)
        found = _closeness(all_scores(self.model_, examples.features), examples.targets)
        return {**found, "examples": float(len(examples.targets))}

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights w, (D,), or (C, D) of several targets."""
        weight = self._linear("coef_").weight.detach().numpy().T
        return weight[0] if self._one else weight

    @property
    def intercept_(self) -> Any:
        """The intercept b, or one a target."""
        bias = self._linear("intercept_").bias.detach().numpy()
        return bias[0] if self._one else bias

    @property
    def limit_(self) -> Any:
        """The limit L of a logistic curve, or one a target."""
        self._linear("limit_")
        if isinstance(self.model_, Linear):
            raise AttributeError("limit_ is there for arch='logistic', got 'linear'")
        limit = self.model_.log_limit.detach().exp().numpy()
        return limit[0] if self._one else limit

    def _linear(self, name: str) -> Linear:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} is there after fit or load")
        model = self.model_ if isinstance(self.model_, Linear) else self.model_.linear
        assert isinstance(model, Linear)
        return model

    def __sklearn_tags__(self) -> Any:
        return estimator_tags(
            "regressor", multi_output=True, positive_targets=self.arch == "logistic"
        )

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={"one": self._one},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        return write_model(directory, header, self.model_.state_dict(), {})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the regressor a directory describes."""
        header = stored.header
        model = cls(header.architecture)
        model.n_features_in_ = header.config["input_size"]
        model._one = header.settings["one"]
        model._restore(stored)
        return model


def squares(spread: Tensor, l2: float) -> Goal:
    """Return least squares with a ridge, each target in units of its own spread.

    The unit changes neither which weights are best nor which of them are better.
    """

    def loss(scores: Tensor, targets: Tensor) -> Tensor:
        unit = spread.to(scores.device)
        return ((scores - targets) / unit).square().sum()

    def penalty(weight: Tensor) -> Tensor:
        return l2 * (weight / spread.to(weight.device)).square().sum()

    return Goal(loss, penalty if l2 else None, _closeness)


def _closeness(predicted: NDArray[Any], actual: NDArray[Any]) -> dict[str, float]:
    return {
        "r_squared": r_squared(predicted, actual),
        "mean_squared_error": mean_squared_error(predicted, actual),
    }


def _pair(data: Any) -> tuple[Any, Any]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise InputError("examples must be given as the pair (X, y), got something else")
    return data


def _check_curve(targets: NDArray[np.float64], limit: float | None) -> None:
    """Refuse numbers that a curve from 0 to its limit never comes near."""
    if targets.min() < 0:
        raise InputError(f"y must not be negative for a logistic curve, got {targets.min():g}")
    if limit is not None and targets.max() > limit:
        raise InputError(
            f"y must not be above limit={limit:g}, got {targets.max():g}; raise limit, or set it "
            "to None to learn it"
        )
    if not targets.any(axis=0).all():
        raise InputError("y must hold a number above 0 for a logistic curve, got only 0")
