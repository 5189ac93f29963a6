"""Word vectors shifted against a model, for a second pass of training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

SMALLEST = 1e-12  # length of a slope that is divided by


@contextmanager
def noted(module: nn.Module) -> Iterator[list[Tensor]]:
    """What a module gives while the block runs."""
    found: list[Tensor] = []
    hook = module.register_forward_hook(lambda _module, _given, output: found.append(output))
    try:
        yield found
    finally:
        hook.remove()


@contextmanager
def shifted(module: nn.Module, shift: Tensor) -> Iterator[None]:
    """A module that gives as much more while the block runs."""
    hook = module.register_forward_hook(lambda _module, _given, output: output + shift)
    try:
        yield
    finally:
        hook.remove()


def worst_shift(loss: Tensor, vectors: Tensor, length: float) -> Tensor:
    r"""Return the shift of the vectors of each text that raises a loss most, to the first order.

    $$r = \epsilon \frac{g}{\lVert g \rVert_2}, \quad g = \nabla_e L$$

    Paper: Miyato et al. (2017), "Adversarial Training Methods for Semi-Supervised Text
    Classification", ICLR, equation 5.
    Differs from the paper: word vectors are not normalized beforehand.

    Args:
        loss: The summed loss of the texts.
        vectors: What it was computed of, (B, T, D).
        length: $\epsilon$, of the shift of all vectors of a text together.
    """
    (slope,) = torch.autograd.grad(loss, vectors, retain_graph=True)
    size = torch.linalg.vector_norm(slope, dim=(1, 2), keepdim=True)
    found: Tensor = length * slope / size.clamp(min=SMALLEST)
    return found
