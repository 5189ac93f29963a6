"""The block transformers are stacked of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.nn.attention import KeyValues, MultiHeadAttention

Norm = Literal["pre", "post"]
NORMS = ("pre", "post")
Activation = Literal["gelu", "relu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
}


def check_positions(positions: str, known: Sequence[str], width: int) -> None:
    """Refuse positions that a model does not know, or whose waves do not fit its width.

    Raises:
        ConfigError: Saying which.
    """
    if positions not in known:
        raise ConfigError(one_of("positions", positions, known))
    if positions == "sinusoidal" and width % 2:
        raise ConfigError(f"sinusoidal positions need an even hidden_size, got {width}")


class BlockOutput(NamedTuple):
    """What a block gives: its outputs, and the keys and values it may be handed again."""

    outputs: Float[Tensor, "B T D"]
    memory: KeyValues


class TransformerBlock(nn.Module):
    r"""Self-attention and a network of two layers, each with a residual and a normalization.

    $$\text{post: } y = N_1(x + A(x)), \; z = N_2(y + F(y)) \qquad
    \text{pre: } y = x + A(N_1(x)), \; z = y + F(N_2(y))$$
    $$F(x) = W_2 f(W_1 x + b_1) + b_2$$

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS, section 3.1 ("post"); Xiong
    et al. (2020), "On Layer Normalization in the Transformer Architecture", ICML ("pre").
    Parameters: as in torch.nn.TransformerEncoderLayer, so its weights load unchanged: A =
    self_attn, W_1 and b_1 = linear1, W_2 and b_2 = linear2, N_1 and N_2 = norm1 and norm2.

    Args:
        input_size: Width D of inputs and outputs.
        num_heads: Heads of the attention.
        hidden_size: Width inside F; 0 for four times D.
        norm: "pre" or "post": where the normalization stands.
        activation: f, "gelu" (Hendrycks and Gimpel 2016) or "relu".
        dropout: Share dropped before each residual sum.
        inner_dropout: Share dropped of attention weights and inside F; as `dropout` if None.
        rotary: Whether queries and keys are turned by their positions.
    """

    def __init__(
        self,
        input_size: int,
        num_heads: int,
        *,
        hidden_size: int = 0,
        norm: Norm = "pre",
        activation: Activation = "gelu",
        dropout: float = 0.0,
        inner_dropout: float | None = None,
        rotary: bool = False,
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ConfigError(one_of("norm", norm, NORMS))
        if activation not in ACTIVATIONS:
            raise ConfigError(one_of("activation", activation, ACTIVATIONS))
        if hidden_size < 0:
            raise ConfigError(f"hidden_size must not be negative, got {hidden_size}")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {dropout}")
        self.norm, self.activation, self.share = norm, ACTIVATIONS[activation], dropout
        self.inner_share = inner = dropout if inner_dropout is None else inner_dropout
        self.self_attn = MultiHeadAttention(input_size, num_heads, dropout=inner, rotary=rotary)
        self.linear1 = nn.Linear(input_size, hidden_size or 4 * input_size)
        self.linear2 = nn.Linear(hidden_size or 4 * input_size, input_size)
        self.norm1, self.norm2 = nn.LayerNorm(input_size), nn.LayerNorm(input_size)
        for layer in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        *,
        lengths: Int[Tensor, " B"] | None = None,
        mask: Bool[Tensor, "M T S"] | None = None,
        causal: bool = False,
        past: KeyValues | None = None,
    ) -> BlockOutput:
        """Run; the arguments are those of `MultiHeadAttention`."""
        is_pre = self.norm == "pre"
        attended, memory, _ = self.self_attn(
            self.norm1(x) if is_pre else x, lengths=lengths, mask=mask, causal=causal, past=past
        )
        y = x + self._dropped(attended)
        y = y if is_pre else self.norm1(y)
        inner = self.activation(self.linear1(self.norm2(y) if is_pre else y))
        inner = functional.dropout(inner, self.inner_share, self.training)
        z = y + self._dropped(self.linear2(inner))
        return BlockOutput(z if is_pre else self.norm2(z), memory)

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.share, self.training)
