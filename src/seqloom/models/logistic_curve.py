"""Regression onto a logistic curve, which grows from nothing to a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.models.linear import CONVEX_TRAINING, LeastSquaresConfig, Linear
from seqloom.models.outputs import ScoreOutput


@dataclass(frozen=True, kw_only=True)
class LogisticCurveConfig:
    """Settings of `LogisticCurve`.

    Args:
        input_size: Features D.
        output_size: Numbers to predict, C; each has a curve of its own.
        limit: L, what the curve grows to; None to learn it.
        steepness: k. It is not learned, since a longer w does the same; with a penalty on w it
            decides how much steepness is free.
        midpoint: z0, the value of w.x + b at which half of L is reached. It is not learned, since
            b does the same.
        l2: Strength of the penalty: the sum of squared errors plus l2 times the squared w.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = CONVEX_TRAINING

    input_size: int
    output_size: int
    limit: float | None = None
    steepness: float = 1.0
    midpoint: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        if self.limit is not None and not 0 < self.limit < math.inf:
            raise ConfigError(f"limit must be positive, or None to learn it, got {self.limit}")
        if not 0 < self.steepness < math.inf:
            raise ConfigError(f"steepness must be positive, got {self.steepness}")
        if not math.isfinite(self.midpoint):
            raise ConfigError(f"midpoint must be a finite number, got {self.midpoint}")
        self.inner()

    def inner(self) -> LeastSquaresConfig:
        """The settings of the linear part."""
        return LeastSquaresConfig(
            input_size=self.input_size, output_size=self.output_size, l2=self.l2
        )


class LogisticCurve(nn.Module):
    r"""A linear layer squeezed into (0, L).

    $$y = \frac{L}{1 + e^{-k (z - z_0)}}, \quad z = w \cdot x + b$$

    With L = 1, k = 1 and z0 = 0 it is the sigmoid.
    Paper: Verhulst (1838), "Notice sur la loi que la population suit dans son accroissement".
    Parameters: w, b = linear.weight, linear.bias; L = exp(log_limit), learned or fixed; k, z0 =
    config.steepness, config.midpoint.

    Args:
        config: The settings.
    """

    def __init__(self, config: LogisticCurveConfig) -> None:
        super().__init__()
        self.config = config
        self.linear = Linear(config.inner())
        limit = torch.full((config.output_size,), config.limit or 1.0, dtype=torch.float64)
        self.log_limit = nn.Parameter(limit.log(), requires_grad=config.limit is None)

    @torch.no_grad()
    def condition(
        self,
        mean: Float[Tensor, " D"],
        basis: Tensor,
        height: Float[Tensor, " C"],
        highest: Float[Tensor, " C"],
    ) -> None:
        """Choose the coordinates to train in, and begin with a flat curve.

        Args:
            mean: Of the features.
            basis: As `Linear.condition` takes it.
            height: Where the curve begins: the mean of what is to be predicted.
            highest: The highest of that; a limit to be learned begins above it.
        """
        if self.config.limit is None:
            self.log_limit.copy_((1.1 * highest).log())
        share = (height / self.log_limit.exp()).clamp(0.01, 0.99)
        center = self.config.midpoint + share.logit() / self.config.steepness
        self.linear.condition(mean, basis, center, torch.ones_like(center))

    def settle(self) -> None:
        """Go back to plain coordinates."""
        self.linear.settle()

    def original_weight(self) -> Float[Tensor, "D C"]:
        """The w, as the features were given."""
        return self.linear.original_weight()

    def forward(self, x: Float[Tensor, "B D"]) -> ScoreOutput:
        """Return the height of the curve."""
        z = self.linear(x).scores
        height = torch.sigmoid(self.config.steepness * (z - self.config.midpoint))
        return ScoreOutput(self.log_limit.exp() * height)
