r"""Why an Elman cell's gradient vanishes or explodes: the product of its Jacobians, as matrices.

$$\frac{\partial h_T}{\partial h_{T-k}} = \prod_{i=T}^{T-k+1} \mathrm{diag}(1 - h_i^2) \, U, \qquad
\left\lVert \frac{\partial h_T}{\partial h_{T-k}} \right\rVert \le (\sigma_{\max}(U) \, \gamma)^k$$

with $h_t = \tanh(W x_t + b + U h_{t-1} + b')$ and $\gamma$ the largest $\tanh' = 1 - h^2$ that was
met, at most 1.

Paper: Pascanu et al. (2013), "On the Difficulty of Training Recurrent Neural Networks", section
2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.errors import ConfigError
from seqloom.nn.cells import Elman
from seqloom.nn.recurrent import Recurrent


@dataclass(frozen=True)
class StateProducts:
    """Products of Jacobians by distance.

    Args:
        matrices: The derivative of the last state by that k steps before (distance, rows, H, H).
        largest: Its largest singular value (distance, rows).
        bound: What none of them can exceed (distance,).
    """

    matrices: Tensor
    largest: Tensor
    bound: Tensor


def state_products(layer: Recurrent, inputs: Tensor) -> StateProducts:
    """Multiply an Elman layer's Jacobians, from the last step back to the state before the first.

    Args:
        layer: One layer of cell "rnn", in one direction and without options that change a state.
        inputs: Sequences (rows, steps, width); the steps are the distances.

    Raises:
        ConfigError: If the layer is another.

    Examples:
        >>> products = state_products(Recurrent("rnn", 2, 4), torch.randn(3, 6, 2))
        >>> products.matrices.shape
        torch.Size([6, 3, 4, 4])
        >>> bool((products.largest <= products.bound[:, None]).all())
        True
    """
    _check(layer)
    with torch.no_grad():
        h = layer(inputs).outputs  # (rows, steps, H)
        recurrent: Tensor = layer.weight_hh_l0  # type: ignore[assignment]
        slopes = 1 - h.square()
        jacobians = slopes[..., None] * recurrent  # (rows, steps, H, H)
        product = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device).expand(len(h), -1, -1)
        matrices = []
        for jacobian in reversed(jacobians.unbind(1)):
            product = product @ jacobian
            matrices.append(product)
        found = torch.stack(matrices)
        rate = torch.linalg.matrix_norm(recurrent, 2) * slopes.max()
        distances = torch.arange(1, len(found) + 1, device=h.device)
        return StateProducts(found, torch.linalg.matrix_norm(found, 2), rate**distances)


def _check(layer: Recurrent) -> None:
    changes = {
        "num_layers": layer.num_layers != 1,
        "bidirectional": layer.bidirectional,
        "projection_size": bool(layer.projection_size),
        "state_dropout": bool(layer.state_dropout),
        "weight_dropout": bool(layer.weight_dropout),
        "zoneout": bool(layer.zoneout),
        "clip": layer.clip is not None,
        "residual": layer.residual,
        "layer_norm": len(layer.norms) > 0,
    }
    if layer.cell is not Elman:
        raise ConfigError(f"the product formula is that of cell 'rnn', got {layer.cell.__name__}")
    for name, is_set in changes.items():
        if is_set:
            raise ConfigError(
                f"the product formula is that of one plain layer, got one with {name}"
            )
