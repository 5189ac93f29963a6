"""The neural probabilistic language model of Bengio et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions


@dataclass(frozen=True, kw_only=True)
class NNLMConfig(OutputOptions):
    """Settings of `NNLM`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        order: How many words an n-gram has: the model sees order - 1 words of context.
        embed_size: Width of a word's feature vector.
        hidden_size: Units of the hidden layer; 0 leaves it out, which needs `direct`.
        direct: Whether the features also reach the output directly.
        dropout: Share of features and hidden units dropped in training.
    """

    vocab_size: int
    order: int = 5
    embed_size: int = 100
    hidden_size: int = 200
    direct: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.order < 2:
            raise ConfigError(f"order must be at least 2, got {self.order}")
        if self.vocab_size < 1 or self.embed_size < 1 or self.hidden_size < 0:
            raise ConfigError(
                "vocab_size and embed_size must be positive and hidden_size not negative, got "
                f"{self.vocab_size}, {self.embed_size} and {self.hidden_size}"
            )
        if self.hidden_size == 0 and not self.direct:
            raise ConfigError("hidden_size 0 leaves nothing to predict with; set direct=true")
        self.check_output()
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")


class NNLMState(NamedTuple):
    """The words that precede the next one, the latest last."""

    words: Int[Tensor, "B C"]


class NNLM(nn.Module):
    r"""A feed-forward network over the last n - 1 words.

    $$y = b + W x + U \tanh(d + H x), \quad x = (C(w_{t-n+1}), \ldots, C(w_{t-1}))$$

    Paper: Bengio et al. (2003), "A Neural Probabilistic Language Model", JMLR 3, equation 1.
    Differs from the paper: optional dropout; before the first word the context is the padding word.
    Parameters: C = embedding.weight; H, d = hidden; b = output.bias; [U W] = output.weight: the
    first `hidden_size` columns are U, those after them, with `direct`, are W. So the features that
    the output layer reads are [tanh(d + H x), x], and y is one product.

    Args:
        config: The settings.
    """

    def __init__(self, config: NNLMConfig) -> None:
        super().__init__()
        self.config = config
        width = (config.order - 1) * config.embed_size
        self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(width, config.hidden_size) if config.hidden_size else None
        features = config.hidden_size + (width if config.direct else 0)
        self.output = config.build_output(features, config.vocab_size)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def initial_state(self, batch_size: int) -> NNLMState:
        """A context of padding."""
        shape = (batch_size, self.config.order - 1)
        return NNLMState(self.embedding.weight.new_zeros(shape, dtype=torch.long))

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: NNLMState | None = None,
    ) -> LMOutput:
        """Read `ids`, each with those before it."""
        check_lm_input(ids, lengths, state)
        B, _ = ids.shape
        context = self.config.order - 1
        words = torch.cat([(state or self.initial_state(B)).words, ids], dim=1)  # (B, C + T)
        # The window that ends at ids[:, t] holds words[:, t + 1 : t + 1 + C].
        windows = words.unfold(1, context, 1)[:, 1:]  # (B, T, C)
        x = self.dropout(self.embedding(windows).flatten(2))  # (B, T, C D)
        parts = [] if self.hidden is None else [self.dropout(torch.tanh(self.hidden(x)))]
        if self.config.direct:
            parts.append(x)
        features = torch.cat(parts, dim=-1)
        if lengths is None:
            return LMOutput(features, NNLMState(words[:, -context:]))
        places = lengths[:, None] + torch.arange(context, device=ids.device)  # (B, C)
        return LMOutput(features, NNLMState(words.gather(1, places)))
