"""Recurrent language models: a simple recurrent network or an LSTM over word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.errors import ConfigError
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput


@dataclass(frozen=True, kw_only=True)
class RecurrentLMConfig:
    """Settings of the recurrent language models.

    Args:
        vocab_size: Words known.
        cell: "rnn" (Elman 1990) or "lstm" (Hochreiter and Schmidhuber 1997).
        embed_size: Width of a word vector; 0 takes `hidden_size`.
        hidden_size: Width of the state of each layer.
        num_layers: Layers stacked.
        dropout: Share of units dropped between layers, after the embedding and before the output.
        tied: Whether the output layer shares the word vectors; needs embed_size == hidden_size.
        init_range: Weights begin uniformly in [-init_range, init_range].
    """

    vocab_size: int
    cell: Literal["rnn", "lstm"] = "lstm"
    embed_size: int = 0
    hidden_size: int = 200
    num_layers: int = 2
    dropout: float = 0.0
    tied: bool = False
    init_range: float = 0.1

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or self.embed_size < 0:
            raise ConfigError(
                "vocab_size, hidden_size and num_layers must be positive and embed_size not "
                f"negative, got {sizes} and {self.embed_size}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if self.tied and self.embed_size not in (0, self.hidden_size):
            raise ConfigError(
                "tied weights need embed_size == hidden_size, got "
                f"{self.embed_size} and {self.hidden_size}"
            )
        if self.init_range <= 0:
            raise ConfigError(f"init_range must be positive, got {self.init_range}")


class RecurrentState(NamedTuple):
    """The state of every layer; `c` is there for the LSTM only and else as wide as nothing."""

    h: Float[Tensor, "B L H"]
    c: Float[Tensor, "B L C"]


class RecurrentLM(nn.Module):
    r"""Word vectors, recurrent layers, a softmax over the vocabulary.

    $$h_t = \mathrm{cell}(e(w_t), h_{t-1}), \quad p(w_{t+1} \mid w_{\le t}) =
    \mathrm{softmax}(V h_t + b)$$

    Paper: Mikolov et al. (2010), "Recurrent neural network based language model", Interspeech;
    Zaremba et al. (2014), "Recurrent Neural Network Regularization", for the LSTM and its dropout.
    Differs from the papers: word vectors may be narrower than the state, or shared with the output.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecurrentLMConfig) -> None:
        super().__init__()
        self.config = config
        width = config.embed_size or config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, width)
        self.dropout = nn.Dropout(config.dropout)
        layer = nn.LSTM if config.cell == "lstm" else nn.RNN
        self.rnn: nn.LSTM | nn.RNN = layer(
            width,
            config.hidden_size,
            config.num_layers,
            batch_first=True,
            dropout=config.dropout if config.num_layers > 1 else 0.0,
        )
        self.output = nn.Linear(config.hidden_size, config.vocab_size)
        for weight in self.parameters():
            nn.init.uniform_(weight, -config.init_range, config.init_range)
        if config.tied:
            self.output.weight = self.embedding.weight

    def initial_state(self, batch_size: int) -> RecurrentState:
        """Zeros."""
        config = self.config
        shape = (batch_size, config.num_layers, config.hidden_size)
        h = self.output.weight.new_zeros(shape)
        return RecurrentState(h, h.clone() if config.cell == "lstm" else h.new_zeros(*shape[:2], 0))

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: RecurrentState | None = None,
    ) -> LMOutput:
        """Score the word after each of `ids`; on padding the scores mean nothing."""
        check_lm_input(ids, lengths, state)
        B, T = ids.shape
        state = state or self.initial_state(B)
        x = self.dropout(self.embedding(ids))  # (B, T, D)
        if lengths is None or bool((lengths == T).all()):
            y, state = self._run(x, state)
        else:
            y, state = self._run_ragged(x, lengths, state)
        return LMOutput(self.output(self.dropout(y)), state)

    def _run(
        self, x: Tensor | nn.utils.rnn.PackedSequence, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        h, c = (part.transpose(0, 1).contiguous() for part in state)  # (L, B, H), as torch wants
        if self.config.cell == "lstm":
            y, (h, c) = self.rnn(x, (h, c))
        else:
            y, h = self.rnn(x, h)
        return y, RecurrentState(h.transpose(0, 1), c.transpose(0, 1))

    def _run_ragged(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"], state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """Run rows of different lengths; a row of length 0 keeps its state."""
        packed = pack_padded_sequence(
            x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        y, last = self._run(packed, state)
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])  # type: ignore[arg-type]
        alive = (lengths > 0)[:, None, None]
        return y, RecurrentState(
            *(torch.where(alive, n, o) for n, o in zip(last, state, strict=True))
        )
