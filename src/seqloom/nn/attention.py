"""Attention: of many heads over whole sequences, and by one of several scores for decoders."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.positions import rotate
from seqloom.nn.scores import SCORES


def attention_weights(
    scores: Float[Tensor, "*B T S"], mask: Bool[Tensor, "*M T S"] | None
) -> Float[Tensor, "*B T S"]:
    """The softmax of scores over the keys that may be seen; all 0 where there is none."""
    if mask is None:
        return scores.softmax(dim=-1)
    # Not minus infinity: a row without a key would be 0 / 0, and have NaN for its gradient.
    least = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, least).softmax(dim=-1) * mask


# -- many heads ----------------------------------------------------------------------------------


def whole(scores: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Scores in at least 32 bits, whatever the products before were made in."""
    return scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores


class KeyValues(NamedTuple):
    """What attention remembers of the positions it has read, the latest last.

    Args:
        keys: Projected, not yet turned by their positions.
        values: Projected.
    """

    keys: Float[Tensor, "B S D"]
    values: Float[Tensor, "B S D"]


class MultiHeadOutput(NamedTuple):
    """What `MultiHeadAttention` gives.

    Args:
        outputs: By row and query.
        memory: Keys and values of all positions, those of `past` first; the next call's `past`.
        weights: By head, if they were asked for.
    """

    outputs: Float[Tensor, "B T D"]
    memory: KeyValues
    weights: Float[Tensor, "B N T S"] | None


class MultiHeadAttention(nn.Module):
    r"""Scaled dot-product attention of several heads.

    $$\mathrm{head}_n = \mathrm{softmax}\left(\frac{(Q W^Q_n)(K W^K_n)^\top}{\sqrt{K}}\right)
    V W^V_n, \quad Y = [\mathrm{head}_1; \ldots; \mathrm{head}_N] W^O$$

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS, section 3.2; Su et al.
    (2021) for `rotary`.
    Parameters: as in torch.nn.MultiheadAttention, so its weights load unchanged: $W^Q, W^K, W^V$
    stacked in in_proj_weight (or apart, where keys or values are of another width), $W^O$ =
    out_proj.

    Args:
        input_size: Width D of queries and outputs; the heads share it.
        num_heads: Heads N, each of size D / N.
        key_size: Width of the keys; 0 for D.
        value_size: Width of the values; 0 for D.
        dropout: Share of attention weights dropped in training.
        bias: Whether there are biases.
        rotary: Whether queries and keys are turned by their positions.

    Examples:
        >>> layer = MultiHeadAttention(8, 2)
        >>> layer(torch.zeros(3, 5, 8), causal=True).outputs.shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        input_size: int,
        num_heads: int,
        *,
        key_size: int = 0,
        value_size: int = 0,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.num_heads, self.dropout = input_size, num_heads, dropout
        self.key_size, self.value_size = key_size or input_size, value_size or input_size
        self.rotary = rotary
        self._check()
        if self.key_size == self.value_size == input_size:
            self.in_proj_weight = nn.Parameter(torch.empty(3 * input_size, input_size))
        else:
            self.q_proj_weight = nn.Parameter(torch.empty(input_size, input_size))
            self.k_proj_weight = nn.Parameter(torch.empty(input_size, self.key_size))
            self.v_proj_weight = nn.Parameter(torch.empty(input_size, self.value_size))
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * input_size)) if bias else None
        self.out_proj = nn.Linear(input_size, input_size, bias=bias)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def _check(self) -> None:
        sizes = (self.input_size, self.num_heads, self.key_size, self.value_size)
        if min(sizes) < 1 or self.input_size % self.num_heads:
            raise ConfigError(
                "input_size must be a positive multiple of num_heads and no size negative, got "
                f"{self.input_size} and {self.num_heads} (keys {self.key_size}, values "
                f"{self.value_size})"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")

    @property
    def head_size(self) -> int:
        """Width K of a head."""
        return self.input_size // self.num_heads

    def forward(
        self,
        query: Float[Tensor, "B T D"],
        key: Float[Tensor, "B S _"] | None = None,
        value: Float[Tensor, "B S _"] | None = None,
        *,
        lengths: Int[Tensor, " B"] | None = None,
        mask: Bool[Tensor, "M T S"] | None = None,
        causal: bool = False,
        past: KeyValues | None = None,
        return_weights: bool = False,
    ) -> MultiHeadOutput:
        """Attend; a query that may see no key gets the output of nothing, the bias alone.

        Args:
            query: What asks.
            key: What is compared with; the queries themselves if not given.
            value: What is averaged; the keys if not given.
            lengths: How many of the keys of this call are real; all if not given.
            mask: True where a query may see a key, those of `past` first; M is B or 1.
            causal: Whether a query sees the keys up to its own place only, the last query being at
                the last key.
            past: Keys and values of an earlier call, seen before those of this one.
            return_weights: Whether to return the weights, which takes their memory.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._check_input(query, key, value, past)
        B, T, D = query.shape
        q, k, v = self._projected(query, key, value)
        if past is not None:
            before = past.keys.to(k.dtype), past.values.to(v.dtype)
            if k.shape[1]:
                k, v = (torch.cat(pair, dim=1) for pair in zip(before, (k, v), strict=True))
            else:  # all keys are of the past, and are not copied
                k, v = before
        S, memory = k.shape[1], KeyValues(k, v)
        q, k, v = (
            x.view(B, -1, self.num_heads, self.head_size).transpose(1, 2) for x in (q, k, v)
        )  # (B, N, T or S, K)
        if self.rotary:
            places = torch.arange(S, device=q.device)
            q, k = rotate(q, places[S - T :]), rotate(k, places)

        dropout, weights = self.dropout if self.training else 0.0, None
        if lengths is not None:
            lengths = lengths + (S - key.shape[1])  # those of `past` are real
        is_plain = causal and T == S and lengths is None and mask is None
        if is_plain and not return_weights:
            attended = functional.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout, is_causal=True
            )
        else:
            seen = visible_keys(T, S, lengths=lengths, mask=mask, causal=causal, device=q.device)
            if return_weights:
                weights = attention_weights(q @ k.mT / math.sqrt(self.head_size), seen)
                attended = functional.dropout(weights, dropout) @ v
            elif seen is None:
                attended = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
            else:
                any_key = seen.any(dim=-1, keepdim=True)
                attended = any_key * functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=seen | ~any_key, dropout_p=dropout
                )
        together = attended.transpose(1, 2).reshape(B, T, D)
        return MultiHeadOutput(self.out_proj(together), memory, weights)

    def remember(
        self, key: Float[Tensor, "B S _"], value: Float[Tensor, "B S _"] | None = None
    ) -> KeyValues:
        """Keys and values as `past` takes them, for queries that come later."""
        value = key if value is None else value
        query = key.new_zeros(len(key), 0, self.input_size)
        return KeyValues(*self._projected(query, key, value)[1:])

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        bias = self.in_proj_bias
        if self.key_size == self.value_size == self.input_size:
            if key is query and value is query:
                return list(functional.linear(query, self.in_proj_weight, bias).chunk(3, dim=-1))
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if bias is None else bias.chunk(3)
        given = zip((query, key, value), weights, biases, strict=True)
        return [functional.linear(x, weight, b) for x, weight, b in given]

    def _check_input(
        self, query: Tensor, key: Tensor, value: Tensor, past: KeyValues | None
    ) -> None:
        widths = (self.input_size, self.key_size, self.value_size)
        named = zip(("query", "key", "value"), (query, key, value), widths, strict=True)
        for name, x, width in named:
            if x.ndim != 3 or x.shape[-1] != width or x.shape[0] != query.shape[0]:
                raise ShapeError(
                    f"{name} must have shape ({len(query)}, steps, {width}), got {tuple(x.shape)}"
                )
        if key.shape[1] != value.shape[1]:
            raise ShapeError(
                f"there must be a value a key, got {value.shape[1]} and {key.shape[1]}"
            )
        if self.rotary and key.shape[1] != query.shape[1]:
            raise ShapeError(
                "rotary positions need a key a query, as in self-attention, got "
                f"{key.shape[1]} keys and {query.shape[1]} queries; build with rotary=False"
            )
        for part in past or ():
            if part.ndim != 3 or part.shape[::2] != (query.shape[0], self.input_size):
                raise ShapeError(
                    f"past must hold tensors of shape ({len(query)}, steps, {self.input_size}), "
                    f"got {tuple(part.shape)}"
                )


def visible_keys(
    queries: int,
    keys: int,
    *,
    lengths: Int[Tensor, " B"] | None,
    mask: Bool[Tensor, "M T S"] | None,
    causal: bool,
    device: torch.device,
) -> Bool[Tensor, "M 1 T S"] | None:
    """Which keys each query may see, for all heads; None for all of them."""
    seen = mask
    if lengths is not None:
        real = lengths_to_mask(lengths, keys)[:, None]  # (B, 1, S)
        seen = real if seen is None else seen & real
    if causal:
        lower = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
        seen = lower[None] if seen is None else seen & lower
    return None if seen is None else seen[:, None]


# -- one head, any score ---------------------------------------------------------------------------


class AttentionOutput(NamedTuple):
    """What `Attention` gives: the averages of the values and the weights they were taken with."""

    outputs: Float[Tensor, "*B T D"]
    weights: Float[Tensor, "*B T S"]


class Attention(nn.Module):
    r"""A weighted mean of values, by how well their keys fit a query.

    $$\alpha_{ts} = \mathrm{softmax}_s \, s(q_t, k_s), \quad c_t = \sum_s \alpha_{ts} v_s$$

    Paper: Bahdanau et al. (2015), "Neural Machine Translation by Jointly Learning to Align and
    Translate", ICLR, section 3.1; Luong et al. (2015), "Effective Approaches to Attention-based
    Neural Machine Translation", EMNLP, section 3.1; Vaswani et al. (2017), section 3.2.1; Graves
    et al. (2014), "Neural Turing Machines", arXiv:1410.5401, equations 5 and 6.

    Args:
        query_size: Width Q of the queries.
        key_size: Width K of the keys.
        score: One of `SCORES`.
        hidden_size: Width A inside the scores "additive" and "concat"; 0 for that of the keys.

    Examples:
        >>> layer = Attention(3, 4, score="additive")
        >>> layer(torch.zeros(2, 1, 3), torch.zeros(2, 7, 4)).weights.shape
        torch.Size([2, 1, 7])
    """

    def __init__(
        self, query_size: int, key_size: int, *, score: str = "additive", hidden_size: int = 0
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise ConfigError(one_of("score", score, SCORES))
        if min(query_size, key_size) < 1 or hidden_size < 0:
            raise ConfigError(
                "query_size and key_size must be positive and hidden_size not negative, got "
                f"{query_size}, {key_size} and {hidden_size}"
            )
        self.query_size, self.key_size = query_size, key_size
        self.score = SCORES[score](query_size, key_size, hidden_size or key_size)

    def prepare(self, keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B S A"]:
        """What a score needs of the keys alone; a decoder computes it once for all its steps."""
        return self.score.prepare(keys)  # type: ignore[operator, no-any-return]

    def forward(
        self,
        query: Float[Tensor, "*B T Q"],
        keys: Float[Tensor, "*B S K"],
        values: Float[Tensor, "*B S D"] | None = None,
        *,
        lengths: Int[Tensor, " B"] | None = None,
        mask: Bool[Tensor, "*M T S"] | None = None,
        prepared: Float[Tensor, "*B S A"] | None = None,
    ) -> AttentionOutput:
        """Attend; a query that may see no key gets zeros.

        Args:
            query: What asks.
            keys: What is compared with.
            values: What is averaged; the keys if not given.
            lengths: How many keys of each row are real; all if not given.
            mask: True where a query may see a key.
            prepared: `prepare(keys)`, if it is at hand.
        """
        if query.shape[-1] != self.query_size or keys.shape[-1] != self.key_size:
            raise ShapeError(
                f"query and keys must end in {self.query_size} and {self.key_size}, "
                f"got shapes {tuple(query.shape)} and {tuple(keys.shape)}"
            )
        if lengths is not None:
            real = lengths_to_mask(lengths, keys.shape[-2])[:, None]  # (B, 1, S)
            mask = real if mask is None else mask & real
        scores = self.score(query, self.prepare(keys) if prepared is None else prepared)
        weights = attention_weights(scores, mask)
        return AttentionOutput(weights @ (keys if values is None else values), weights)
