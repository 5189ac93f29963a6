"""Recurrent language models: any cell over word vectors."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions
from seqloom.nn.recurrent import Recurrent


@dataclass(frozen=True, kw_only=True)
class RecurrentLMConfig(OutputOptions):
    """Settings of the recurrent language models, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        embed_size: Width of a word vector; 0 takes `hidden_size`.
        hidden_size: Width of the state of each layer.
        num_layers: Layers stacked.
        dropout: Share of units dropped between layers, after the embedding and before the output.
        variational: Whether `dropout` drops the same units at every step of a window (Gal and
            Ghahramani 2016).
        state_dropout: Share of the state dropped before its product, the same at every step.
        weight_dropout: Share of recurrent weights dropped in each window (Merity et al. 2018).
        zoneout: Share of state values that stay what they were (Krueger et al. 2017).
        clip: The largest absolute value a state may have.
        tied: Whether the output layer shares the word vectors; needs embed_size == hidden_size.
        init_range: Weights begin uniformly in [-init_range, init_range].
        backend: What runs the recurrence; "auto" chooses.
    """

    vocab_size: int
    cell: str = "lstm"
    embed_size: int = 0
    hidden_size: int = 200
    num_layers: int = 2
    dropout: float = 0.0
    variational: bool = False
    state_dropout: float = 0.0
    weight_dropout: float = 0.0
    zoneout: float = 0.0
    clip: float | None = None
    tied: bool = False
    init_range: float = 0.1
    backend: str = "auto"

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or self.embed_size < 0:
            raise ConfigError(
                "vocab_size, hidden_size and num_layers must be positive and embed_size not "
                f"negative, got {sizes} and {self.embed_size}"
            )
        if self.tied and self.embed_size not in (0, self.hidden_size):
            raise ConfigError(
                "tied weights need embed_size == hidden_size, got "
                f"{self.embed_size} and {self.hidden_size}"
            )
        self.check_output(tied=self.tied)
        if self.init_range <= 0:
            raise ConfigError(f"init_range must be positive, got {self.init_range}")
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        with torch.device("meta"):  # the layer checks the rest, and takes no memory there
            self.build_layers()

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.embed_size or self.hidden_size,
            self.hidden_size,
            num_layers=self.num_layers,
            dropout=self.dropout,
            variational=self.variational,
            state_dropout=self.state_dropout,
            weight_dropout=self.weight_dropout,
            zoneout=self.zoneout,
            clip=self.clip,
            backend=self.backend,
        )


@cache
def state_type(states: tuple[str, ...]) -> Any:
    """The NamedTuple of a cell's states, each (B, L, H): all layers of a row side by side."""
    return namedtuple("RecurrentState", states, rename=True)


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
        self.embedding = nn.Embedding(config.vocab_size, config.embed_size or config.hidden_size)
        self.rnn = config.build_layers()
        self.output = config.build_output(config.hidden_size, config.vocab_size)
        for weight in self.parameters():
            nn.init.uniform_(weight, -config.init_range, config.init_range)
        if config.tied:
            self.output.tie(self.embedding)

    def initial_state(self, batch_size: int) -> Any:
        """Zeros, one tensor a state of the cell."""
        return self._state(self.rnn.initial_states(batch_size))

    def _state(self, states: tuple[Float[Tensor, "L B H"], ...]) -> Any:
        return state_type(self.rnn.cell.states)(*(part.transpose(0, 1) for part in states))

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: Any = None,
    ) -> LMOutput:
        """Read `ids`; on padding the features mean nothing.

        A row of length 0 keeps its state.
        """
        check_lm_input(ids, lengths, state)
        if lengths is not None and bool((lengths == ids.shape[1]).all()):
            lengths = None  # nothing is padded, which is faster to know
        x = self._dropped(self.embedding(ids))  # (B, T, D)
        state = self.initial_state(len(ids)) if state is None else state
        begin = [part.transpose(0, 1).to(x.dtype) for part in state]  # (L, B, H)
        y, states = self.rnn(x, None if lengths is None else lengths.clamp(min=1), begin)
        after = self._state(states)
        if lengths is not None:
            alive = (lengths > 0)[:, None, None]
            after = after._make(torch.where(alive, n, o) for n, o in zip(after, state, strict=True))
        return LMOutput(self._dropped(y), after)

    def _dropped(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        share, training = self.config.dropout, self.training
        if self.config.variational:
            return x * functional.dropout(x.new_ones(len(x), 1, x.shape[2]), share, training)
        return functional.dropout(x, share, training)
