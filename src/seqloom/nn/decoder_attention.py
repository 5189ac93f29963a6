"""Attention of a decoder to its source: any score, many heads, or with coverage."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, one_of
from seqloom.nn.attention import Attention, KeyValues, MultiHeadAttention, attention_weights
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.scores import SCORES, Additive

MULTI_HEAD = "multi-head"
ATTENTIONS = (*SCORES, MULTI_HEAD)


class Prepared(NamedTuple):
    """What attention needs of a source, computed once for all steps."""

    keys: Float[Tensor, "B S A"]
    values: Float[Tensor, "B S E"]


class SourceAttentionOutput(NamedTuple):
    """What `SourceAttention` gives.

    Args:
        outputs: By row and query.
        weights: How much each query looked at each item; None of many heads unless asked for.
        covered: The sum of the weights before each query, where there is coverage.
        coverage: The sum of all of them.
    """

    outputs: Float[Tensor, "B T E"]
    weights: Float[Tensor, "B T S"] | None
    covered: Float[Tensor, "B T S"] | None
    coverage: Float[Tensor, "B S"] | None


class SourceAttention(nn.Module):
    r"""What a decoder reads of the encoder's states.

    $$\alpha_t = \mathrm{softmax}(s(q_t, k_i)), \quad c_t = \sum_i \alpha_{ti} v_i$$

    With coverage the score also sees how much attention an item has had:

    $$s(q_t, k_i) = v^\top \tanh(W q_t + U k_i + w \sum_{t' < t} \alpha_{t'i})$$

    so that queries must come one after the other; without it all are answered at once.

    Paper: as `seqloom.nn.attention.Attention`; See et al. (2017), "Get To The Point: Summarization
    with Pointer-Generator Networks", ACL, equations 10 and 11, for coverage.
    Parameters: the score's; w = cover.

    Args:
        query_size: Width of the queries.
        key_size: Width E of the encoder's states.
        score: One of `ATTENTIONS`.
        num_heads: Of "multi-head".
        coverage: Whether the score sees the attention so far; of "additive" alone.
        dropout: Share of weights dropped in training; of "multi-head" alone.
    """

    cover: Tensor | None

    def __init__(
        self,
        query_size: int,
        key_size: int,
        *,
        score: str = "additive",
        num_heads: int = 1,
        coverage: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if score not in ATTENTIONS:
            raise ConfigError(one_of("attention", score, ("none", *ATTENTIONS)))
        if coverage and score != "additive":
            raise ConfigError(f"coverage needs attention='additive', got {score!r}")
        self.heads = self.single = None
        if score == MULTI_HEAD:
            self.heads = MultiHeadAttention(
                query_size, num_heads, key_size=key_size, value_size=key_size, dropout=dropout
            )
        else:
            self.single = Attention(query_size, key_size, score=score)
        self.output_size = key_size if self.heads is None else query_size
        self.register_parameter("cover", None)
        if coverage:
            self.cover = nn.Parameter(torch.zeros(key_size))
            nn.init.uniform_(self.cover, -(key_size**-0.5), key_size**-0.5)

    def prepare(self, states: Float[Tensor, "B S E"]) -> Prepared:
        """What does not depend on a query."""
        if self.heads is not None:
            return Prepared(*self.heads.remember(states))
        assert self.single is not None
        return Prepared(self.single.prepare(states), states)

    def forward(
        self,
        query: Float[Tensor, "B T Q"],
        prepared: Prepared,
        lengths: Int[Tensor, " B"],
        coverage: Float[Tensor, "B S"] | None = None,
        *,
        return_weights: bool = False,
    ) -> SourceAttentionOutput:
        """Attend.

        Args:
            query: What asks.
            prepared: Of the source.
            lengths: How many items of it are real.
            coverage: The attention each item has had, where there is coverage; none if not given.
            return_weights: Whether the weights of many heads are wanted, as their mean.
        """
        B, T, _ = query.shape
        S = prepared.keys.shape[1]
        real = lengths_to_mask(lengths, S)[:, None]  # (B, 1, S)
        if self.heads is not None:
            none = prepared.values.new_zeros(B, 0, self.heads.key_size)
            outputs, _, weights = self.heads(
                query,
                none,
                past=KeyValues(*prepared),
                mask=real.expand(B, T, S),
                return_weights=return_weights,
            )
            mean = None if weights is None else weights.mean(dim=1)
            return SourceAttentionOutput(outputs, mean, None, None)
        assert self.single is not None
        if self.cover is not None:
            if coverage is None:
                coverage = query.new_zeros(B, S)
            return self._covering(query, prepared, real, coverage)
        weights = attention_weights(self.single.score(query, prepared.keys), real)
        return SourceAttentionOutput(weights @ prepared.values.to(weights), weights, None, None)

    def _covering(
        self,
        query: Float[Tensor, "B T Q"],
        prepared: Prepared,
        real: Bool[Tensor, "B 1 S"],
        coverage: Float[Tensor, "B S"],
    ) -> SourceAttentionOutput:
        assert self.single is not None and isinstance(self.single.score, Additive)
        assert self.cover is not None
        score = self.single.score
        asked, rows, before = score.query(query), [], []  # (B, T, A)
        for t in range(query.shape[1]):
            inner = prepared.keys + asked[:, t, None] + coverage[:, :, None] * self.cover
            scores = score.out(torch.tanh(inner))[..., 0]  # (B, S)
            weights = attention_weights(scores[:, None], real)[:, 0]
            before.append(coverage.to(weights.dtype))
            rows.append(weights)
            coverage = before[-1] + weights
        found = torch.stack(rows, dim=1)
        outputs = found @ prepared.values.to(found)
        return SourceAttentionOutput(outputs, found, torch.stack(before, dim=1), coverage)
