"""Bags: rows of a wide sparse matrix, and a linear layer that reads them or plain vectors."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


class Bag(NamedTuple):
    """B sparse vectors end to end: row b holds `weights[i]` at place `ids[i]`, from `starts[b]` on.

    Nothing is padded; a row may be empty. Without `starts` the rows lie side by side, (B, M), and
    what pads one weighs 0.
    """

    ids: Int[Tensor, " M"] | Int[Tensor, "B M"]
    weights: Float[Tensor, " M"] | Float[Tensor, "B M"]
    starts: Int[Tensor, " B"] | None


def linear(x: Float[Tensor, "B D"] | Bag, weight: Float[Tensor, "D C"]) -> Float[Tensor, "B C"]:
    r"""Return $x W$; a bag picks the rows of W it has and never becomes a dense vector."""
    if isinstance(x, Bag) and x.starts is None:
        return (x.weights.to(weight.dtype)[:, None] @ functional.embedding(x.ids, weight))[:, 0]
    if isinstance(x, Bag):
        return functional.embedding_bag(
            x.ids, weight, x.starts, mode="sum", per_sample_weights=x.weights.to(weight.dtype)
        )
    return x.to(weight.dtype) @ weight
