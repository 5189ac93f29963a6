"""A convolutional language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions
from seqloom.nn.convolution import GatedConvolution


@dataclass(frozen=True, kw_only=True)
class CNNLMConfig(OutputOptions):
    """Settings of `CNNLM`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        embed_size: Width of a word vector; 0 takes `hidden_size`.
        hidden_size: Width of every layer.
        num_layers: Gated convolutions stacked.
        kernel_size: Words a convolution sees, the last one included; the model sees
            num_layers * (kernel_size - 1) + 1 words.
        dropout: Share of units dropped before each convolution and before the output.
        weight_norm: Whether length and direction of the convolutions' weights are learned apart.
        tied: Whether the output layer shares the word vectors; needs embed_size == hidden_size.
    """

    vocab_size: int
    embed_size: int = 0
    hidden_size: int = 200
    num_layers: int = 4
    kernel_size: int = 4
    dropout: float = 0.0
    weight_norm: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers, self.kernel_size)
        if min(sizes) < 1 or self.embed_size < 0:
            raise ConfigError(
                "vocab_size, hidden_size, num_layers and kernel_size must be positive and "
                f"embed_size not negative, got {sizes} and {self.embed_size}"
            )
        if self.tied and self.embed_size not in (0, self.hidden_size):
            raise ConfigError(
                "tied weights need embed_size == hidden_size, got "
                f"{self.embed_size} and {self.hidden_size}"
            )
        self.check_output(tied=self.tied)
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")


class CNNState(NamedTuple):
    """The last kernel_size - 1 inputs of each layer, the latest last."""

    inputs: Float[Tensor, "B L P H"]


class CNNLM(nn.Module):
    r"""Word vectors, gated causal convolutions with residuals, a softmax over the vocabulary.

    $$h^0_t = P e(w_t), \quad h^l = h^{l-1} + (h^{l-1} * W^l + b^l) \odot
    \sigma(h^{l-1} * V^l + c^l), \quad p(w_{t+1} \mid w_{\le t}) = \mathrm{softmax}(U h^L_t + d)$$

    Paper: Dauphin et al. (2017), "Language Modeling with Gated Convolutional Networks", ICML.
    Differs from the paper: a residual around every layer, none around several, and no bottlenecks.
    Parameters: P = projection, left out where embed_size == hidden_size; W and V, b and c are
    stacked in layers.l.conv.

    Args:
        config: The settings.
    """

    def __init__(self, config: CNNLMConfig) -> None:
        super().__init__()
        self.config = config
        H, E = config.hidden_size, config.embed_size or config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, E)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.projection = nn.Linear(E, H) if E != H else None
        self.layers = nn.ModuleList(
            GatedConvolution(H, H, config.kernel_size, weight_norm=config.weight_norm)
            for _ in range(config.num_layers)
        )
        self.output = config.build_output(H, config.vocab_size)
        if config.tied:
            self.output.tie(self.embedding)

    def initial_state(self, batch_size: int) -> CNNState:
        """Zeros, as if nothing came before."""
        shape = (self.config.num_layers, self.config.kernel_size - 1, self.config.hidden_size)
        return CNNState(self.embedding.weight.new_zeros(batch_size, *shape))

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: CNNState | None = None,
    ) -> LMOutput:
        """Read `ids`; on padding the features mean nothing.

        A row of length 0 keeps its state.
        """
        check_lm_input(ids, lengths, state)
        state = self.initial_state(len(ids)) if state is None else state
        x = self.embedding(ids)  # (B, T, E)
        x = x if self.projection is None else self.projection(x)  # (B, T, H)
        kept = []
        for layer, past in zip(self.layers, state.inputs.unbind(dim=1), strict=True):
            gated, last = layer(self._dropped(x), lengths, past)
            x = x + gated
            kept.append(last.to(past.dtype))
        return LMOutput(self._dropped(x), CNNState(torch.stack(kept, dim=1)))

    def _dropped(self, x: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
        return functional.dropout(x, self.config.dropout, self.training)
