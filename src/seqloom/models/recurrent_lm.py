"""Recurrent language models: any cell over word vectors."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
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
from seqloom.nn.dropping import dropped
from seqloom.nn.masking import are_whole
from seqloom.nn.recurrent import Recurrent


@dataclass(frozen=True, kw_only=True)
class RecurrentLMConfig(OutputOptions):
    """Settings of the recurrent language models, besides those of `OutputOptions`.

    The last three are for whoever trains the model; `forward` does not look at them.

    Args:
        vocab_size: Words known.
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        embed_size: Width of a word vector; 0 takes `hidden_size`.
        hidden_size: Width of the state of each layer.
        last_size: Width of the state of the last layer; 0 takes `hidden_size`.
        projection_size: Width the state of each layer is projected to (Sak et al. 2014); 0 for no
            projection.
        num_layers: Layers stacked.
        dropout: Share of units dropped between layers, after the embedding and before the output.
        input_dropout: Share dropped after the embedding, if it is another.
        output_dropout: Share dropped before the output, if it is another.
        word_dropout: Share of words whose vectors are dropped in each window, wherever they occur
            in it (Gal and Ghahramani 2016, section 4.2).
        variational: Whether the first three drop the same units at every step of a window (Gal and
            Ghahramani 2016).
        state_dropout: Share of the state dropped before its product, the same at every step.
        weight_dropout: Share of recurrent weights dropped in each window (Merity et al. 2018).
        zoneout: Share of state values that stay what they were (Krueger et al. 2017).
        clip: The largest absolute value a state may have.
        tied: Whether the output layer shares the word vectors, which must be as wide as the output
            of the last layer.
        init_range: Weights begin uniformly in [-init_range, init_range].
        backend: What runs the recurrence; "auto" chooses.
        activation_reg: Weight of the mean square of the features the output layer reads, in the
            loss (Merity et al. 2017).
        temporal_reg: Weight of the mean square of the change of the last layer's output from step
            to step, before dropout.
        window_spread: Standard deviation of the length of a window, drawn anew for each around the
            given one, in one of 20 around half of it; 0 for windows of the same length (Merity et
            al. 2018, section 4.1).
    """

    vocab_size: int
    cell: str = "lstm"
    embed_size: int = 0
    hidden_size: int = 200
    last_size: int = 0
    projection_size: int = 0
    num_layers: int = 2
    dropout: float = 0.0
    input_dropout: float | None = None
    output_dropout: float | None = None
    word_dropout: float = 0.0
    variational: bool = False
    state_dropout: float = 0.0
    weight_dropout: float = 0.0
    zoneout: float = 0.0
    clip: float | None = None
    tied: bool = False
    init_range: float = 0.1
    backend: str = "auto"
    activation_reg: float = 0.0
    temporal_reg: float = 0.0
    window_spread: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers)
        if min(sizes) < 1 or self.embed_size < 0:
            raise ConfigError(
                "vocab_size, hidden_size and num_layers must be positive and embed_size not "
                f"negative, got {sizes} and {self.embed_size}"
            )
        if self.last_size < 0 or (self.last_size and self.num_layers == 1):
            raise ConfigError(
                "last_size must not be negative and needs two layers, got "
                f"{self.last_size} and num_layers={self.num_layers}"
            )
        if self.last_size and self.projection_size:
            raise ConfigError(
                "last_size and projection_size both set the width of the output, got "
                f"{self.last_size} and {self.projection_size}; set one of them"
            )
        if self.tied and self.word_size != self.output_size:
            raise ConfigError(
                "tied weights need word vectors as wide as the output of the last layer, got "
                f"{self.word_size} and {self.output_size}; set last_size={self.word_size} or "
                f"embed_size={self.output_size}"
            )
        self.check_output(tied=self.tied)
        if self.init_range <= 0:
            raise ConfigError(f"init_range must be positive, got {self.init_range}")
        for name in ("input_dropout", "output_dropout", "word_dropout"):
            if not 0 <= (getattr(self, name) or 0.0) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        for name in ("activation_reg", "temporal_reg", "window_spread"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, got {getattr(self, name)}")
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            self.build_layers()

    @property
    def word_size(self) -> int:
        """Width of a word vector."""
        return self.embed_size or self.hidden_size

    @property
    def output_size(self) -> int:
        """Width of the features the output layer reads."""
        return self.last_size or self.projection_size or self.hidden_size

    def build_layers(self) -> tuple[Recurrent, Recurrent | None]:
        """The recurrent layers, and the last one where it has a size of its own."""

        def layers(input_size: int, hidden_size: int, num_layers: int) -> Recurrent:
            return Recurrent(
                self.cell,
                input_size,
                hidden_size,
                num_layers=num_layers,
                projection_size=self.projection_size,
                dropout=self.dropout,
                variational=self.variational,
                state_dropout=self.state_dropout,
                weight_dropout=self.weight_dropout,
                zoneout=self.zoneout,
                clip=self.clip,
                backend=self.backend,
            )

        if not self.last_size:
            return layers(self.word_size, self.hidden_size, self.num_layers), None
        first = layers(self.word_size, self.hidden_size, self.num_layers - 1)
        return first, layers(self.hidden_size, self.last_size, 1)


@cache
def state_type(states: tuple[str, ...]) -> Any:
    """The NamedTuple of a cell's states, each (B, L, H): all layers of a row side by side."""
    return namedtuple("RecurrentState", states, rename=True)


class RecurrentLM(nn.Module):
    r"""Word vectors, recurrent layers, a softmax over the vocabulary.

    $$h_t = \mathrm{cell}(e(w_t), h_{t-1}), \quad p(w_{t+1} \mid w_{\le t}) =
    \mathrm{softmax}(V h_t + b)$$

    Paper: Mikolov et al. (2010), "Recurrent neural network based language model", Interspeech;
    Zaremba et al. (2014), "Recurrent Neural Network Regularization", for the LSTM and its dropout;
    Merity et al. (2018), "Regularizing and Optimizing LSTM Language Models", for the options that
    make the AWD-LSTM.
    Differs from the papers: word vectors may be narrower than the state, or shared with the output.
    Parameters: e = embedding; the layers = rnn, and last where `last_size` is set; V, b = output.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecurrentLMConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.word_size)
        self.rnn, self.last = config.build_layers()
        self.output = config.build_output(config.output_size, config.vocab_size)
        for weight in self.parameters():
            nn.init.uniform_(weight, -config.init_range, config.init_range)
        if config.tied:
            self.output.tie(self.embedding)

    @property
    def _stacks(self) -> list[Recurrent]:
        return [self.rnn] if self.last is None else [self.rnn, self.last]

    def initial_state(self, batch_size: int) -> Any:
        """Zeros, one tensor a state of the cell; those of a last layer of its own come after."""
        return self._state([stack.initial_states(batch_size) for stack in self._stacks])

    def _state(self, stacks: Sequence[Sequence[Float[Tensor, "L B _"]]]) -> Any:
        names = self.rnn.cell.states
        if len(stacks) > 1:
            names = (*names, *(f"last_{name}" for name in names))
        return state_type(names)(*(part.transpose(0, 1) for states in stacks for part in states))

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
        if lengths is not None and not lengths.is_cuda and are_whole(lengths, ids.shape[1]):
            lengths = None  # nothing is padded, which is faster; on a card, to ask costs more
        config = self.config
        y = self._dropped(self._embedded(ids), config.input_dropout)  # (B, T, D)
        state = self.initial_state(len(ids)) if state is None else state
        begin = [part.transpose(0, 1).to(y.dtype) for part in state]  # (L, B, H)
        ended, kinds = [], len(self.rnn.cell.states)
        for number, stack in enumerate(self._stacks):
            if number:
                y = self._dropped(y, config.dropout)
            own = begin[number * kinds : (number + 1) * kinds]
            y, states = stack(y, None if lengths is None else lengths.clamp(min=1), own)
            ended.append(states)
        after = self._state(ended)
        if lengths is not None:
            alive = (lengths > 0)[:, None, None]
            after = after._make(torch.where(alive, n, o) for n, o in zip(after, state, strict=True))
        return LMOutput(self._dropped(y, config.output_dropout), after, y)

    def _embedded(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        x: Tensor = self.embedding(ids)
        if not self.training or not self.config.word_dropout:
            return x
        kept = functional.dropout(x.new_ones(self.config.vocab_size, 1), self.config.word_dropout)
        return x * kept[ids.long()]

    def _dropped(
        self, x: Float[Tensor, "B T D"], share: float | None = None
    ) -> Float[Tensor, "B T D"]:
        share = self.config.dropout if share is None else share
        return dropped(x, share, training=self.training, variational=self.config.variational)
