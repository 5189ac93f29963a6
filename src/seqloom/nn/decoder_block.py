"""The block that decoders of transformers are stacked of."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.nn.attention import KeyValues, MultiHeadAttention
from seqloom.nn.transformer import ACTIVATIONS, NORMS, Activation, Norm


class DecoderBlockOutput(NamedTuple):
    """What a block gives.

    Args:
        outputs: By row and step.
        memory: Keys and values of the steps, the next call's `past`.
        weights: Of the attention to the source, the mean over heads, if they were asked for.
    """

    outputs: Float[Tensor, "B T D"]
    memory: KeyValues
    weights: Float[Tensor, "B T S"] | None


class DecoderBlock(nn.Module):
    r"""Self-attention to what was written, attention to the source, and a network of two layers.

    $$\text{post: } y = N_1(x + A(x)), \; u = N_2(y + C(y, m)), \; z = N_3(u + F(u))$$
    $$\text{pre: } y = x + A(N_1(x)), \; u = y + C(N_2(y), m), \; z = u + F(N_3(u))$$

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS, section 3.1 ("post"); Xiong
    et al. (2020), "On Layer Normalization in the Transformer Architecture", ICML ("pre").
    Parameters: as in torch.nn.TransformerDecoderLayer, so its weights load unchanged: A =
    self_attn, C = multihead_attn, F = linear1 and linear2, N_1 to N_3 = norm1 to norm3.

    Args:
        input_size: Width D of inputs and outputs.
        num_heads: Heads of both attentions.
        hidden_size: Width inside F; 0 for four times D.
        norm: "pre" or "post": where the normalization stands.
        activation: Inside F, "gelu" or "relu".
        dropout: Share dropped before each residual sum.
        inner_dropout: Share dropped of attention weights and inside F; as `dropout` if None.
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
        self.self_attn = MultiHeadAttention(input_size, num_heads, dropout=inner)
        self.multihead_attn = MultiHeadAttention(input_size, num_heads, dropout=inner)
        self.linear1 = nn.Linear(input_size, hidden_size or 4 * input_size)
        self.linear2 = nn.Linear(hidden_size or 4 * input_size, input_size)
        self.norm1, self.norm2 = nn.LayerNorm(input_size), nn.LayerNorm(input_size)
        self.norm3 = nn.LayerNorm(input_size)
        for layer in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def remember(self, source: Float[Tensor, "B S D"]) -> KeyValues:
        """What the attention to the source needs of the encoder's outputs, computed once."""
        return self.multihead_attn.remember(source)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        source: KeyValues,
        real: Bool[Tensor, "G S"],
        past: KeyValues | None = None,
        *,
        return_weights: bool = False,
    ) -> DecoderBlockOutput:
        """Run.

        Args:
            x: The steps.
            source: `remember` of the encoder's outputs, of G sources; if B is a multiple of G,
                B / G rows of `x` that stand side by side are of one source.
            real: Which of them are no padding.
            past: The keys and values of earlier steps.
            return_weights: Whether to return the weights of the attention to the source.
        """
        B, T, D = x.shape
        is_pre = self.norm == "pre"
        attended, memory, _ = self.self_attn(
            self.norm1(x) if is_pre else x, causal=T > 1, past=past
        )
        y = x + self._dropped(attended)
        y = y if is_pre else self.norm1(y)
        # Texts of one source ask side by side, so that its keys are there once.
        G, S = real.shape
        asked = (self.norm2(y) if is_pre else y).reshape(G, -1, D)
        looked, _, weights = self.multihead_attn(
            asked,
            asked[:, :0],
            past=source,
            mask=real[:, None].expand(G, asked.shape[1], S),
            return_weights=return_weights,
        )
        looked = looked.reshape(B, T, D)
        u = y + self._dropped(looked)
        u = u if is_pre else self.norm2(u)
        inner = self.activation(self.linear1(self.norm3(u) if is_pre else u))
        inner = functional.dropout(inner, self.inner_share, self.training)
        z = u + self._dropped(self.linear2(inner))
        mean = None if weights is None else weights.mean(dim=1).reshape(B, T, S)
        return DecoderBlockOutput(z if is_pre else self.norm3(z), memory, mean)

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.share, self.training)
