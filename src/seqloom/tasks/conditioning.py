"""Coordinates in which linear models train well, whatever the features are measured in."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from seqloom.data.features import Features, Vectors
from seqloom.models.linear import Linear, diagonal_basis, whitening_basis

MOST_WORK = 1e10  # multiplications up to which correlations are taken out, not only scales
SIGMOID_CURVATURE = 0.25  # of the cross-entropy at a score of 0, where it is greatest


def feature_coordinates(features: Features, ridge: float) -> tuple[Tensor, Tensor]:
    """Return the means of features, and directions in which least squares curves alike.

    Args:
        features: Of the training examples.
        ridge: What the penalty adds to the variance of each.
    """
    moments = features.moments()
    mean = torch.from_numpy(moments.mean)
    if isinstance(features, Vectors) and _is_small(features, 1):
        rows = torch.from_numpy(features.x) - mean
        return mean, whitening_basis(rows.T @ rows / len(rows), ridge)
    return mean, diagonal_basis(torch.from_numpy(moments.variance), ridge)


def _is_small(features: Features, outputs: int) -> bool:
    return len(features) * features.width**2 * outputs <= MOST_WORK


class ClassCoordinates:
    """Chooses the coordinates of a linear classifier, anew before every epoch.

    A sum of cross-entropies curves by p (1 - p) an example and class, which changes while the model
    learns. With coordinates that follow it, L-BFGS begins every epoch like Newton's method on each
    class apart. For bags, and where it would be too much work, only the scales of the features are
    evened out, once.

    Args:
        model: The model.
        features: Of the training examples.
        link: How scores become probabilities.
    """

    def __init__(
        self, model: Linear, features: Features, link: Literal["softmax", "sigmoid"]
    ) -> None:
        self.model, self.features, self.link = model, features, link
        self.ridge = model.config.l2 / len(features)
        outputs = model.config.output_size
        self.follows = isinstance(features, Vectors) and _is_small(features, outputs)
        mean, basis = feature_coordinates(features, self.ridge / SIGMOID_CURVATURE)
        if self.follows:
            basis = basis.expand(outputs, -1, -1).contiguous()
        flat = torch.zeros_like(model.bias.detach())
        model.condition(mean, basis, flat, torch.ones_like(flat))

    @torch.no_grad()
    def __call__(self) -> None:
        """Choose coordinates by how the loss curves now."""
        if not self.follows:
            return
        assert isinstance(self.features, Vectors) and self.model.mean is not None
        mean = self.model.mean
        x = torch.from_numpy(self.features.x).to(mean.device)
        scores = self.model(x).scores  # (N, C)
        share = scores.softmax(dim=1) if self.link == "softmax" else scores.sigmoid()
        curvature = (share * (1 - share)).clamp(min=1e-12)  # (N, C)
        total = curvature.sum(dim=0)
        rows = x - mean
        shift = (rows.T @ curvature / total).T  # (C, D)
        scale = (total / len(rows)).rsqrt()  # (C,)
        bases = []
        for c in range(len(total)):
            own = (rows - shift[c]) * curvature[:, c, None].sqrt()
            bases.append(whitening_basis(own.T @ own / len(rows), self.ridge) / scale[c])
        self.model.recondition(torch.stack(bases), shift, scale)
