"""Rosenblatt's perceptron: learns from its mistakes, one example at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.outputs import ScoreOutput
from seqloom.nn.bag import Bag, linear

Floats = NDArray[np.float64]
FIRST_LOOK = 4  # examples scored at once after a mistake; doubled while all goes well


@dataclass(frozen=True, kw_only=True)
class PerceptronConfig:
    """Settings of `Perceptron`.

    Args:
        input_size: Features D.
        output_size: Classes C.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {"epochs": 100}

    input_size: int
    output_size: int

    def __post_init__(self) -> None:
        if self.input_size < 1 or self.output_size < 2:
            raise ConfigError(
                "there must be a feature and two classes, got "
                f"{self.input_size} and {self.output_size}"
            )


class Perceptron(nn.Module):
    r"""A linear layer whose weights `learn` moves by Rosenblatt's rule.

    $$s = W^\top x + b; \quad \text{if } s_y \le s_c = \max_{j \ne y} s_j:\quad
    W_y \mathrel{+}= x,\ b_y \mathrel{+}= 1,\ W_c \mathrel{-}= x,\ b_c \mathrel{-}= 1$$

    If some W and b get all examples right, this finds such ones after a finite number of mistakes
    (Novikoff 1962, "On Convergence Proofs for Perceptrons").
    Paper: Rosenblatt (1958), "The Perceptron: A Probabilistic Model for Information Storage and
    Organization in the Brain"; for several classes Duda and Hart (1973), section 5.12.
    Differs from the paper: vectors are standardized first, which moves no example to another side
    and makes the mistakes fewer; the order of the examples changes from epoch to epoch.

    Args:
        config: The settings.
    """

    def __init__(self, config: PerceptronConfig) -> None:
        super().__init__()
        self.config = config
        D, C = config.input_size, config.output_size
        self.weight = nn.Parameter(torch.zeros(D, C, dtype=torch.float64), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(C, dtype=torch.float64), requires_grad=False)

    def learn(
        self,
        x: Float[Tensor, "B D"] | Bag,
        labels: Int[Tensor, " B"],
        *,
        epochs: int,
        seed: int,
    ) -> list[int]:
        """Learn until an epoch goes by without a mistake, or the epochs are over.

        Args:
            x: The examples.
            labels: The class of each.
            epochs: How often to go through them at most.
            seed: Of their order.

        Returns:
            How many mistakes each epoch made; the last is 0 if the classes were set apart.
        """
        W, b = np.zeros(self.weight.shape), np.zeros(self.bias.shape)
        mean, scale, y = np.zeros(len(W)), np.ones(len(W)), labels.numpy()
        if not isinstance(x, Bag):
            vectors = x.numpy()
            mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
            scale = 1 / np.where(deviation > 0, deviation, 1.0)
            vectors = (vectors - mean) * scale
        mistakes: list[int] = []
        while len(mistakes) < epochs and (not mistakes or mistakes[-1]):
            order = np.random.default_rng([seed, len(mistakes)]).permutation(len(y))
            if isinstance(x, Bag):
                mistakes.append(_learn_bags(W, b, x, y, order))
            else:
                mistakes.append(_learn_vectors(W, b, vectors[order], y[order]))
        W *= scale[:, None]
        self.weight.copy_(torch.from_numpy(W))
        self.bias.copy_(torch.from_numpy(b - mean @ W))
        return mistakes

    def forward(self, x: Float[Tensor, "B D"] | Bag) -> ScoreOutput:
        """Return one score a class."""
        if not isinstance(x, Bag) and x.shape[-1] != self.config.input_size:
            raise ShapeError(
                f"x must end in input_size={self.config.input_size}, got shape {tuple(x.shape)}"
            )
        return ScoreOutput(linear(x, self.weight) + self.bias)


def _learn_vectors(W: Floats, b: Floats, x: Floats, labels: NDArray[np.int64]) -> int:
    """Go through vectors once; return the mistakes.

    Weights change at mistakes only, so all examples up to the next one are scored at once.
    """
    mistakes, begin, ahead = 0, 0, FIRST_LOOK
    while begin < len(x):
        y = labels[begin : begin + ahead]
        scores = x[begin : begin + ahead] @ W + b
        wrong, rivals = _mistaken(scores, y)
        if not wrong.any():
            begin, ahead = begin + len(y), 2 * ahead
            continue
        first = int(np.argmax(wrong))
        own, rival, seen = y[first], rivals[first], x[begin + first]
        W[:, own] += seen
        W[:, rival] -= seen
        b[own] += 1
        b[rival] -= 1
        mistakes, begin, ahead = mistakes + 1, begin + first + 1, FIRST_LOOK
    return mistakes


def _learn_bags(
    W: Floats, b: Floats, bag: Bag, labels: NDArray[np.int64], order: NDArray[np.int64]
) -> int:
    """Go through the rows of a bag once, in this order; return the mistakes."""
    assert bag.starts is not None
    all_ids, all_weights = bag.ids.numpy(), bag.weights.numpy()
    edges = [*bag.starts.tolist(), len(all_ids)]
    mistakes = 0
    for i in order:
        inside = slice(edges[i], edges[i + 1])
        ids, weights = all_ids[inside], all_weights[inside]
        wrong, rivals = _mistaken((weights @ W[ids] + b)[None], labels[i : i + 1])
        if wrong[0]:
            own, rival = labels[i], rivals[0]
            W[ids, own] += weights
            W[ids, rival] -= weights
            b[own] += 1
            b[rival] -= 1
            mistakes += 1
    return mistakes


def _mistaken(
    scores: Floats, labels: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which examples do not score highest in their own class, and the best other class of each."""
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    others = scores.copy()
    others[rows, labels] = -np.inf
    rivals = others.argmax(axis=1)
    return own <= others[rows, rivals], rivals
