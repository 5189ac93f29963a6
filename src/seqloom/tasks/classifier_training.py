"""How a classifier's model learns: by the one loop, or by the perceptron's own rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.config import to_dict
from seqloom.data.batches import Batch
from seqloom.data.features import Vectors
from seqloom.errors import ConfigError
from seqloom.models.linear import Linear, diagonal_basis
from seqloom.models.mlp import MLP
from seqloom.models.perceptron import Perceptron
from seqloom.tasks.class_scores import LINKS, chosen, class_metrics
from seqloom.tasks.conditioning import ClassCoordinates
from seqloom.tasks.fitting import Learned, RunSettings, run_training
from seqloom.tasks.supervised_objective import Examples, Goal, all_scores, model_input

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


def hold_out(train: Examples, share: float, seed: int) -> tuple[Examples, Examples | None]:
    """Set a share of every class apart for validation, the same one for the same seed."""
    order = np.random.default_rng([seed, 1]).permutation(len(train.targets))
    labels = train.targets[order]
    apart = np.zeros(len(order), bool)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        apart[mine[: int(share * len(mine))]] = True
    if not apart.any():
        return train, None
    return _part(train, np.sort(order[~apart])), _part(train, np.sort(order[apart]))


def _part(examples: Examples, index: NDArray[np.int64]) -> Examples:
    return Examples(examples.features.part(index), examples.targets[index])


def check_perceptron(training: TrainConfig) -> None:
    """Refuse settings of the loop, which the perceptron does not run in."""
    from seqloom.training import TrainConfig

    plain = to_dict(TrainConfig(epochs=training.epochs, seed=training.seed, device=training.device))
    for name, value in to_dict(training).items():
        if value != plain[name]:
            raise ConfigError(
                "the perceptron follows its own rule and knows training.epochs and training.seed "
                f"alone, got training.{name}={value!r}"
            )


def learn_classes(
    model: nn.Module, arch: str, train: Examples, valid: Examples | None, settings: RunSettings
) -> Learned:
    """Train a new model; it ends on the CPU, in plain coordinates."""
    if isinstance(model, Perceptron):
        return _learn_from_mistakes(model, train, valid, settings.training)
    before_epoch, features = None, train.features
    if isinstance(model, Linear):
        link: Any = "softmax" if arch == "softmax" else "sigmoid"
        before_epoch = ClassCoordinates(model, features, link)
    elif isinstance(model, MLP) and isinstance(features, Vectors):
        mean, variance = (torch.from_numpy(part) for part in features.moments())
        model.standardize(mean, diagonal_basis(variance, 0.0))
    goal = _goal(arch, getattr(model.config, "l2", 0.0))
    learned = run_training(model, train, valid, goal, settings, before_epoch=before_epoch)
    if isinstance(model, Linear):
        model.settle(relative=arch == "softmax")
    return learned


def _goal(arch: str, l2: float) -> Goal:
    def penalty(weight: Tensor) -> Tensor:
        return l2 / 2 * weight.square().sum()

    def metrics(scores: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
        return class_metrics(chosen(scores), labels)

    return Goal(LINKS[arch].loss, penalty if l2 else None, metrics)


def _learn_from_mistakes(
    model: Perceptron, train: Examples, valid: Examples | None, training: TrainConfig
) -> Learned:
    index = np.arange(len(train.features))
    batch = Batch(index, {}, train.features.arrays(index)).tensors()
    mistakes = model.learn(
        model_input(batch),
        torch.from_numpy(train.targets),
        epochs=training.epochs,
        seed=training.seed,
    )
    metrics: dict[str, Any] = {"mistakes": mistakes[-1]}
    if valid is not None:
        found = class_metrics(chosen(all_scores(model, valid.features)), valid.targets)
        metrics |= {f"valid_{name}": value for name, value in found.items()}
    return Learned(metrics, {"epochs": len(mistakes)})
