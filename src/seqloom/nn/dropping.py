"""Coordinates of sequences dropped: each by itself, or at all steps alike."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def dropped(
    x: Float[Tensor, "B T D"], share: float, *, training: bool, variational: bool = False
) -> Float[Tensor, "B T D"]:
    r"""Return a sequence without a share of its coordinates, the others made larger.

    $$y_{td} = \frac{m_{td}}{1 - p} x_{td}, \quad m_{td} \sim \mathrm{Bernoulli}(1 - p)$$

    Paper: Gal and Ghahramani (2016), "A Theoretically Grounded Application of Dropout in Recurrent
    Neural Networks", NeurIPS, for one mask of all steps, $m_{td} = m_d$.

    Args:
        x: The sequence.
        share: p.
        training: Whether anything is dropped.
        variational: Whether the same coordinates are dropped at every step of a row.
    """
    if variational:
        return x * functional.dropout(x.new_ones(len(x), 1, x.shape[2]), share, training)
    return functional.dropout(x, share, training)
