"""Linear models: softmax regression, logistic regression and least squares share one network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError, TrainingError
from seqloom.models.outputs import ScoreOutput
from seqloom.nn.bag import Bag, linear

CONVEX_TRAINING: Mapping[str, Any] = {
    "epochs": 12,
    "optimizer": {"name": "lbfgs", "rate": 1.0, "iterations": 100},
}
COORDINATES = ("mean", "shift", "basis", "anchor", "center", "scale")
NEGLIGIBLE = 1e-12  # share of the variance below which a direction is rounding noise


@dataclass(frozen=True, kw_only=True)
class LinearClassifierConfig:
    """Settings of softmax and logistic regression.

    Args:
        input_size: Features D.
        output_size: Scores C: one a class, or a single one for logistic regression of two classes.
        l2: Strength of the penalty: the sum of losses plus l2 / 2 times the squared weights, the
            intercept left out; 1 / C in scikit-learn's terms.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = CONVEX_TRAINING

    input_size: int
    output_size: int
    l2: float = 1.0

    def __post_init__(self) -> None:
        _check(self.input_size, self.output_size, self.l2)


@dataclass(frozen=True, kw_only=True)
class LeastSquaresConfig:
    """Settings of linear regression.

    Args:
        input_size: Features D.
        output_size: Numbers to predict, C.
        l2: Strength of the penalty: the sum of squared errors plus l2 times the squared weights,
            the intercept left out; `alpha` of scikit-learn's `Ridge`.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = CONVEX_TRAINING

    input_size: int
    output_size: int
    l2: float = 0.0

    def __post_init__(self) -> None:
        _check(self.input_size, self.output_size, self.l2)


def _check(input_size: int, output_size: int, l2: float) -> None:
    if input_size < 1 or output_size < 1:
        raise ConfigError(
            f"input_size and output_size must be positive, got {input_size} and {output_size}"
        )
    if not 0 <= l2 < float("inf"):
        raise ConfigError(f"l2 must be a number not below 0, got {l2}")


class Linear(nn.Module):
    r"""One linear layer, in float64, trained in well-conditioned coordinates.

    $$s = W^\top x + b$$

    Softmax regression reads s as $p_c = e^{s_c} / \sum_j e^{s_j}$, logistic regression as
    $p_c = 1 / (1 + e^{-s_c})$, linear regression as the prediction itself.

    While it trains, $W_c = A_c + \sigma_c B_c V_c$ and $b_c = m + \sigma_c v_c - \mu_c \cdot W_c$:
    V and v are learned; the rest is chosen from the data so that the loss curves alike in all
    directions, whatever the features are measured in. A penalty is on W.

    Papers: Cox (1958), "The Regression Analysis of Binary Sequences"; Theil (1969), "A Multinomial
    Extension of the Linear Logit Model"; Hoerl and Kennard (1970), "Ridge Regression".
    Parameters: V = weight, v = bias, A = anchor, B = basis, $\mu$ = mean + shift, m = center,
    $\sigma$ = scale; after `settle` W = weight and b = bias, and the others are gone.

    Args:
        config: The settings.
    """

    mean: Tensor | None
    shift: Tensor
    basis: Tensor
    anchor: Tensor
    center: Tensor
    scale: Tensor

    def __init__(self, config: LinearClassifierConfig | LeastSquaresConfig) -> None:
        super().__init__()
        self.config = config
        D, C = config.input_size, config.output_size
        self.weight = nn.Parameter(torch.zeros(D, C, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(C, dtype=torch.float64))
        for name in COORDINATES:
            self.register_buffer(name, None)

    def condition(
        self, mean: Float[Tensor, " D"], basis: Tensor, center: Tensor, scale: Tensor
    ) -> None:
        """Choose the coordinates to train in; the weights are 0 then.

        Args:
            mean: Of the features, (D,).
            basis: The directions to move in: a factor for each feature (D,), or a matrix with a
                direction a column, for all outputs (D, D) or for each (C, D, D).
            center: Where the scores begin, (C,).
            scale: How far they spread, (C,).
        """
        self.mean, self.basis, self.center, self.scale = mean, basis, center, scale
        self.shift = torch.zeros_like(self.weight.T)
        self.anchor = torch.zeros_like(self.weight)

    @torch.no_grad()
    def recondition(
        self, basis: Float[Tensor, "C D D"], shift: Float[Tensor, "C D"], scale: Float[Tensor, " C"]
    ) -> None:
        """Choose other coordinates to go on in; the scores do not change."""
        W = self.original_weight()
        middle = self._middle(W) + (shift * W.T).sum(dim=1)
        self.basis, self.shift, self.scale, self.anchor = basis, shift, scale, W
        self.weight.zero_()
        self.bias.copy_((middle - self.center) / scale)

    @torch.no_grad()
    def settle(self, *, relative: bool = False) -> None:
        """Go back to plain coordinates, where `weight` is W and `bias` is b.

        Args:
            relative: Whether only differences of scores matter, as for a softmax; then those of
                each example are made to sum to 0.
        """
        W = self.original_weight()
        if self.mean is not None:
            self.bias.copy_(self._middle(W) - self.mean @ W)
        self.weight.copy_(W)
        if relative:
            self.weight.sub_(self.weight.mean(dim=1, keepdim=True))
            self.bias.sub_(self.bias.mean())
        for name in COORDINATES:
            setattr(self, name, None)

    def original_weight(self) -> Float[Tensor, "D C"]:
        """W, as the features were given."""
        if self.mean is None:
            return self.weight
        if self.basis.dim() == 3:
            moved = torch.einsum("cij,jc->ic", self.basis, self.weight)
        elif self.basis.dim() == 2:
            moved = self.basis @ self.weight
        else:
            moved = self.basis[:, None] * self.weight
        return self.anchor + moved * self.scale

    def _middle(self, W: Float[Tensor, "D C"]) -> Float[Tensor, " C"]:
        """The scores at the mean of the features."""
        return self.center + self.scale * self.bias - (self.shift * W.T).sum(dim=1)

    def forward(self, x: Float[Tensor, "B D"] | Bag) -> ScoreOutput:
        """Return one score a class, or one number a target."""
        if not isinstance(x, Bag) and x.shape[-1] != self.config.input_size:
            raise ShapeError(
                f"x must end in input_size={self.config.input_size}, got shape {tuple(x.shape)}"
            )
        if self.mean is None:
            return ScoreOutput(linear(x, self.weight) + self.bias)
        W = self.original_weight()
        if isinstance(x, Bag):
            return ScoreOutput(linear(x, W) + (self._middle(W) - self.mean @ W))
        return ScoreOutput((x.to(W.dtype) - self.mean) @ W + self._middle(W))


def diagonal_basis(variance: Float[Tensor, " D"], ridge: float) -> Float[Tensor, " D"]:
    """A factor for each feature that makes the loss curve alike along all of them.

    Args:
        variance: Of each feature.
        ridge: What the penalty adds to each.
    """
    spread = variance + ridge
    return torch.where(spread > 0, spread, 1.0).rsqrt()


def whitening_basis(curvature: Float[Tensor, "D D"], ridge: float) -> Float[Tensor, "D D"]:
    """Directions, a column each, along which a quadratic curves alike.

    Directions along which it is flat are left out, so that weights there stay 0.

    Args:
        curvature: Of the quadratic, such as the covariance of the features.
        ridge: What a penalty adds to its diagonal.

    Raises:
        TrainingError: If it is not finite, as that of numbers beyond the root of the greatest.
    """
    if not curvature.isfinite().all():
        raise TrainingError(
            "squares of features must be finite, got infinity; divide X by a number, its greatest "
            "value for one"
        )
    scale = diagonal_basis(curvature.diagonal(), ridge)  # (D,)
    scaled = curvature * scale[:, None] * scale + torch.diag(ridge * scale.square())
    values, directions = torch.linalg.eigh(scaled)
    kept = values > NEGLIGIBLE * values.max().clamp(min=NEGLIGIBLE)
    stretch = torch.where(kept, values, 1.0).rsqrt() * kept
    basis: Tensor = scale[:, None] * directions * stretch
    return basis
