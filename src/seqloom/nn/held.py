"""Rows of a table of vectors that training must not move."""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from seqloom.errors import ConfigError, ShapeError


class _Held(nn.Module):
    """The rows as they were given where `held`, as they are trained elsewhere."""

    given: Tensor
    held: Tensor

    def __init__(self, given: Float[Tensor, "V D"], held: Bool[Tensor, " V"]) -> None:
        super().__init__()
        self.register_buffer("given", given[held].clone())
        self.register_buffer("held", held.clone())

    def forward(self, trained: Float[Tensor, "V D"]) -> Float[Tensor, "V D"]:
        return trained.masked_scatter(self.held[:, None], self.given.to(trained.dtype))


def hold_rows(embedding: nn.Embedding, held: Bool[Tensor, " V"]) -> None:
    r"""Keep some rows of a table of vectors as they are now; the others stay trainable.

    $$E_i = \begin{cases} G_i & i \text{ is held} \\ W_i & \text{else} \end{cases}$$

    G is the table now, W what the optimizer changes. A held row has no gradient, and neither
    momentum nor weight decay reaches it. `release_rows` makes a plain table of it again, which is
    what a model directory stores.

    Args:
        embedding: The table.
        held: Which rows to keep.

    Raises:
        ShapeError: If `held` is not one flag a row.
        ConfigError: If rows of this table are held already.

    Examples:
        >>> table = nn.Embedding(3, 2)
        >>> hold_rows(table, torch.tensor([True, False, True]))
        >>> table.weight.sum().backward()
        >>> table.parametrizations.weight.original.grad.sum(dim=1).tolist()
        [0.0, 2.0, 0.0]
    """
    if tuple(held.shape) != (embedding.num_embeddings,):
        raise ShapeError(
            f"held must be one flag a row, ({embedding.num_embeddings},), got {tuple(held.shape)}"
        )
    if parametrize.is_parametrized(embedding, "weight"):
        raise ConfigError("rows of this table are held already; call release_rows first")
    held = held.to(embedding.weight.device)
    parametrize.register_parametrization(
        embedding, "weight", _Held(embedding.weight.detach(), held)
    )


def release_rows(embedding: nn.Embedding) -> None:
    """Make a plain table of one with held rows, its values unchanged; do nothing to others."""
    if not parametrize.is_parametrized(embedding, "weight"):
        return
    with torch.no_grad():
        values = embedding.weight.detach().clone()
        parametrize.remove_parametrizations(embedding, "weight", leave_parametrized=False)
        cast(nn.Parameter, embedding.weight).copy_(values)
