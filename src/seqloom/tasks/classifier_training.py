"""How a classifier's model learns: by the one loop, or by the perceptron's own rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.config import plain_scalar, to_dict
from seqloom.data.batches import Batch
from seqloom.data.features import Vectors
from seqloom.errors import ConfigError, InputError
from seqloom.models.linear import Linear, diagonal_basis
from seqloom.models.mlp import MLP
from seqloom.models.outputs import ScoreOutput
from seqloom.models.perceptron import Perceptron
from seqloom.models.sentence_encoder import SequenceOptions
from seqloom.nn.masking import lengths_to_mask
from seqloom.tasks.class_scores import chosen, class_metrics, divergence, find_link
from seqloom.tasks.classifier_multilabel import multilabel_metrics
from seqloom.tasks.conditioning import ClassCoordinates
from seqloom.tasks.fitting import Learned, RunSettings, run_training
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.supervised_objective import Examples, Goal, Loss, all_scores, model_input

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


def hold_out(train: Examples, share: float, seed: int) -> tuple[Examples, Examples | None]:
    """Set a share of every class apart for validation, the same one for the same seed.

    With several labels an example, a share of all examples.
    """
    apart = set_apart(train.targets, share, seed)
    if not apart.any():
        return train, None
    return _part(train, np.flatnonzero(~apart)), _part(train, np.flatnonzero(apart))


def set_apart(targets: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Return which examples are set apart, a share of every class; see `hold_out`."""
    order = np.random.default_rng([seed, 1]).permutation(len(targets))
    labels = targets[order] if targets.ndim == 1 else np.zeros(len(order))
    apart = np.zeros(len(order), bool)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        apart[order[mine[: int(share * len(mine))]]] = True
    return apart


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


def class_weights(
    wanted: Any, classes: NDArray[Any], targets: NDArray[Any], *, multilabel: bool = False
) -> NDArray[np.float64] | None:
    r"""Return what a mistake on an example of each class weighs.

    "balanced" is $N / (C n_c)$, as in scikit-learn, where $n_c$ of N examples are of class c; with
    several labels an example it is $(N - n_c) / n_c$, for the examples that have the label.

    Args:
        wanted: None, "balanced", or a number a label; a label that is not named weighs 1.
        classes: The labels.
        targets: The numbers of the training examples' classes (N,), the probabilities of classes
            or 1 and 0 a label (N, C).
        multilabel: Whether it is the last.

    Raises:
        InputError: If a label is none of the classes, or none of them has a weight.
    """
    if wanted is None:
        return None
    if isinstance(wanted, Mapping):
        names = classes.tolist()
        for label in wanted:
            if label not in names:
                raise InputError(
                    f"class_weight must name labels of the training data, got {label!r}"
                )
        weights = np.array([float(wanted.get(label, 1.0)) for label in names])
        if not weights.any():
            raise InputError(
                f"class_weight must leave a label a weight above 0, got {dict(wanted)!r}"
            )
        return weights
    if not multilabel:
        whole = targets.ndim == 1
        counts = np.bincount(targets, minlength=len(classes)) if whole else targets.sum(axis=0)
        return len(targets) / (len(classes) * np.where(counts > 0, counts, 1.0))
    counts = targets.sum(axis=0)
    return np.where(counts > 0, (len(targets) - counts) / np.maximum(counts, 1.0), 1.0)


def check_class_weight(wanted: Any, arch: str) -> None:
    """Refuse weights of classes that are none.

    Raises:
        ConfigError: Naming the value.
    """
    if wanted is not None and arch == "perceptron":
        raise ConfigError(
            f"the perceptron follows its own rule and takes no class_weight, got {wanted!r}"
        )
    if wanted is None or (isinstance(wanted, str) and wanted == "balanced"):
        return
    values = list(wanted.values()) if isinstance(wanted, Mapping) else [wanted]
    for value in map(plain_scalar, values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(wanted, Mapping) or not is_number or not 0 <= value < np.inf:
            raise ConfigError(
                "class_weight must be None, 'balanced' or a number not below 0 a label, got "
                f"{value!r}"
            )


def learn_classes(
    model: nn.Module,
    arch: str,
    train: Examples,
    valid: Examples | None,
    settings: RunSettings,
    *,
    weights: NDArray[np.float64] | None = None,
    multilabel: bool = False,
) -> Learned:
    """Train a new model; it ends on the CPU, in plain coordinates.

    Args:
        model: The model.
        arch: Its architecture.
        train: The training examples.
        valid: The validation examples, if there are any.
        settings: Everything else.
        weights: Of the classes, (C,).
        multilabel: Whether an example has a set of labels.
    """
    if isinstance(model, Perceptron):
        return _learn_from_mistakes(model, train, valid, settings.training)
    before_epoch, features = None, train.features
    if isinstance(model, Linear):
        link: Any = "softmax" if arch == "softmax" else "sigmoid"
        before_epoch = ClassCoordinates(model, features, link)
    elif isinstance(model, MLP) and isinstance(features, Vectors):
        mean, variance = (torch.from_numpy(part) for part in features.moments())
        model.standardize(mean, diagonal_basis(variance, 0.0))
    elif isinstance(features, Sequences) and not features.are_ids:
        mean, variance = (torch.from_numpy(part) for part in features.moments())
        model.input.standardize(mean, diagonal_basis(variance, 0.0))  # type: ignore[union-attr, operator]
    goal = class_goal(model, arch, weights, multilabel=multilabel)
    learned = run_training(model, train, valid, goal, settings, before_epoch=before_epoch)
    if isinstance(model, Linear):
        model.settle(relative=arch == "softmax")
    elif goal.constrain is not None:
        goal.constrain(model)
    return learned


def class_goal(
    model: Any, arch: str, weights: NDArray[np.float64] | None, *, multilabel: bool
) -> Goal:
    """What a classifier is trained for: its loss, its metrics, and what its settings add."""
    link = find_link(arch, multilabel=multilabel)
    assert link is not None
    loss = partial(link.loss, weights=None if weights is None else torch.from_numpy(weights))

    def metrics(scores: NDArray[Any], targets: NDArray[Any]) -> dict[str, float]:
        if multilabel:
            return multilabel_metrics(_rows(scores > 0), _rows(targets > 0))
        return class_metrics(chosen(scores), targets)

    if isinstance(model.config, SequenceOptions):
        constrain = None if model.config.max_norm is None else _constrain
        twice = _apart(model.config.consistency, multilabel=multilabel)
        goal = Goal(loss, None, metrics, _extra(model.config), constrain, twice)
        return replace(goal, adversarial=model.config.adversarial)
    l2 = getattr(model.config, "l2", 0.0)

    def penalty(weight: Tensor) -> Tensor:
        return l2 / 2 * weight.square().sum()

    return Goal(loss, penalty if l2 else None, metrics)


def _apart(weight: float, *, multilabel: bool) -> Loss | None:
    if not weight:
        return None
    return lambda scores, others: weight * divergence(scores, others, multilabel=multilabel)


def _rows(table: NDArray[np.bool_]) -> list[frozenset[Any]]:
    return [frozenset(np.flatnonzero(row).tolist()) for row in table]


def _constrain(model: nn.Module) -> None:
    model.head.constrain()  # type: ignore[union-attr, operator]


def _extra(config: SequenceOptions) -> Any:
    """What a sequence model's configuration adds to the loss, if anything."""
    l2, identity = config.l2, getattr(config, "identity_weight", 0.0)
    if not l2 and not identity:
        return None

    def extra(model: nn.Module, output: ScoreOutput, lengths: Tensor | None) -> Tensor:
        total = output.scores.new_zeros(())
        if l2:
            squares = [w.square().sum() for w in model.parameters() if w.requires_grad]
            total = total + l2 * len(output.scores) * torch.stack(squares).sum()
        if identity and output.matrix is not None:
            total = total + identity * identity_distance(output.matrix, lengths).sum()
        return total

    return extra


def identity_distance(matrix: Tensor, lengths: Tensor | None = None) -> Tensor:
    r"""Return how far attention matrices are from the identity, a number an example.

    $$\frac{1}{N n} \sum_{h=1}^N \sum_{i=1}^n \sum_j |A^h_{ij} - \delta_{ij}|
    = \frac{1}{N n} \sum_h \sum_i 2 (1 - A^h_{ii})$$

    since a row of $A^h$ is not negative and sums to 1.

    Args:
        matrix: By head, (B, N, T, T).
        lengths: How many rows are real; all if not given.
    """
    off = 2 * (1 - matrix.diagonal(dim1=-2, dim2=-1)).mean(dim=1)  # (B, T)
    if lengths is None:
        return off.mean(dim=1)
    real = lengths_to_mask(lengths, off.shape[1])
    return (off * real).sum(dim=1) / lengths


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
