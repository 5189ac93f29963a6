"""How well a key fits a query: the scores of attention, one small class each.

`prepare` is what depends on the keys alone; a decoder computes it once for all its steps. Axes
before the last two are broadcast.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.kernels.additive import run_additive, takes


def added_scores(
    own: Float[Tensor, "*B T A"],
    prepared: Float[Tensor, "*B S A"],
    out_weight: Float[Tensor, "1 A"],
) -> Float[Tensor, "*B T S"]:
    r"""$v^\top \tanh(q + k)$ of each query with each key; by kernels of its own on a card."""
    if takes(own, prepared, out_weight):
        return run_additive(own, prepared, out_weight)
    inner = torch.tanh(own[..., :, None, :] + prepared[..., None, :, :])
    return functional.linear(inner, out_weight)[..., 0]


class Additive(nn.Module):
    r"""$s(q, k) = v^\top \tanh(W q + U k)$: a small network (Bahdanau et al. 2015)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, hidden_size, bias=False)
        self.key = nn.Linear(key_size, hidden_size, bias=False)
        self.out = nn.Linear(hidden_size, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S A"]:
        """$U k$."""
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(
        self, query: Float[Tensor, "*B T Q"], prepared: Float[Tensor, "*B S A"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        return added_scores(self.query(query), prepared, self.out.weight)


class Concat(nn.Module):
    r"""$s(q, k) = v^\top \tanh(W [q; k])$: the same with one matrix (Luong et al. 2015)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.both = nn.Linear(query_size + key_size, hidden_size, bias=False)
        self.out = nn.Linear(hidden_size, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S A"]:
        """The part of $W [q; k]$ that the key has."""
        return functional.linear(keys, self.both.weight[:, self.query_size :])

    def forward(
        self, query: Float[Tensor, "*B T Q"], prepared: Float[Tensor, "*B S A"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        own = functional.linear(query, self.both.weight[:, : self.query_size])
        return added_scores(own, prepared, self.out.weight)


class General(nn.Module):
    r"""$s(q, k) = q^\top W k$ (Luong et al. 2015)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:  # noqa: ARG002
        super().__init__()
        self.key = nn.Linear(key_size, query_size, bias=False)

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S Q"]:
        """$W k$."""
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(
        self, query: Float[Tensor, "*B T Q"], prepared: Float[Tensor, "*B S Q"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        return query @ prepared.mT


class Dot(nn.Module):
    r"""$s(q, k) = q^\top k$ (Luong et al. 2015)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:  # noqa: ARG002
        super().__init__()
        if query_size != key_size:
            raise ConfigError(
                "a product of query and key needs both of one width, got "
                f"{query_size} and {key_size}; use score='general'"
            )

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S K"]:
        """The keys."""
        return keys

    def forward(
        self, query: Float[Tensor, "*B T K"], prepared: Float[Tensor, "*B S K"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        return query @ prepared.mT


class ScaledDot(nn.Module):
    r"""$s(q, k) = q^\top k / \sqrt{K}$ (Vaswani et al. 2017)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.dot = Dot(query_size, key_size, hidden_size)
        self.scale = 1 / math.sqrt(key_size)

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S K"]:
        r"""$k / \sqrt{K}$."""
        return keys * self.scale

    def forward(
        self, query: Float[Tensor, "*B T K"], prepared: Float[Tensor, "*B S K"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        return query @ prepared.mT


class Cosine(nn.Module):
    r"""$s(q, k) = \beta \, q^\top k / (|q| |k|)$ with a learned $\beta$ (Graves et al. 2014)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.dot = Dot(query_size, key_size, hidden_size)
        self.sharpness = nn.Parameter(torch.ones(()))

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S K"]:
        """$k / |k|$."""
        return functional.normalize(keys, dim=-1)

    def forward(
        self, query: Float[Tensor, "*B T K"], prepared: Float[Tensor, "*B S K"]
    ) -> Float[Tensor, "*B T S"]:
        """The score of each query with each key."""
        return self.sharpness * functional.normalize(query, dim=-1) @ prepared.mT


SCORES: dict[str, type[nn.Module]] = {
    "additive": Additive,
    "concat": Concat,
    "cosine": Cosine,
    "dot": Dot,
    "general": General,
    "scaled-dot": ScaledDot,
}
