"""One vector to a sequence of words: the recurrent network of one input and many outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.models.seq2seq_outputs import WordOutput
from seqloom.models.seq2seq_parts import (
    EMBEDDING_RANGE,
    DecoderOutput,
    Memory,
    check_decoder_input,
    known_ids,
)
from seqloom.nn.recurrent import Recurrent

CaptionFeeding = Literal["first", "output"]
FEEDINGS = ("first", "output")


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig:
    """Settings of `CaptionNetwork`.

    Args:
        vocab_size: Words that may be written.
        input_size: Width of the vector.
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        embed_size: Width of what goes into a step.
        hidden_size: Width of the state.
        num_layers: Layers stacked.
        feeding: What goes into the steps after the first: "first" nothing, "output" the last word.
        dropout: Share dropped of the inputs, between layers and of the features.
        backend: What runs the recurrence; "auto" chooses.
    """

    vocab_size: int
    input_size: int
    cell: str = "lstm"
    embed_size: int = 64
    hidden_size: int = 128
    num_layers: int = 1
    feeding: CaptionFeeding = "output"
    dropout: float = 0.0
    backend: str = "auto"
    TRAINING: ClassVar[dict[str, Any]] = {
        "epochs": 40,
        "clip_norm": 1.0,
        "batch": {"batch_size": 32, "max_waste": 0.2},
    }

    def __post_init__(self) -> None:
        if min(self.vocab_size, self.input_size, self.embed_size) < 1:
            raise ConfigError(
                "vocab_size, input_size and embed_size must be positive, got "
                f"{self.vocab_size}, {self.input_size} and {self.embed_size}"
            )
        if self.feeding not in FEEDINGS:
            raise ConfigError(one_of("feeding", self.feeding, FEEDINGS))
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            self.build_layers()

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.embed_size,
            self.hidden_size,
            num_layers=self.num_layers,
            dropout=self.dropout,
            backend=self.backend,
        )


class CaptionState(NamedTuple):
    """Where a caption stands.

    Args:
        states: The cell's states by row, (B, L, H) each.
        given: What is added to the input of the next step: of the vector, and then nothing.
    """

    states: tuple[Float[Tensor, "B L H"], ...]
    given: Float[Tensor, "B D"]


class CaptionNetwork(nn.Module):
    r"""A vector goes into the first step; words come out of all.

    $$h_1 = \mathrm{cell}(W x + e(y_0), 0), \quad h_t = \mathrm{cell}(e(y_{t-1}), h_{t-1}), \quad
    p(y_t) = \mathrm{softmax}(V h_t + b)$$

    With feeding="first" nothing is fed back and all e are 0: then the words depend on x alone.

    Paper: Vinyals et al. (2015), "Show and Tell: A Neural Image Caption Generator", CVPR, for
    "output".
    Differs from the paper: the vector shares its step with the word that begins a text.
    Parameters: W = input, e = embedding, the cell's = rnn, V and b = output.

    Args:
        config: The settings.
    """

    attends = False
    shares = False
    mean: Tensor
    scale: Tensor

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("mean", torch.zeros(config.input_size, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(config.input_size, dtype=torch.float64))
        self.input = nn.Linear(config.input_size, config.embed_size, bias=False)
        self.embedding = None
        if config.feeding == "output":
            self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
            nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE)
        self.rnn = config.build_layers()
        self.output = WordOutput(config.hidden_size, config.vocab_size)

    def standardize(self, mean: Float[Tensor, " I"], scale: Float[Tensor, " I"]) -> None:
        """Subtract a mean from every vector and multiply by a factor, from now on."""
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def encode(
        self,
        source: Float[Tensor, "B 1 I"],
        lengths: Int[Tensor, " B"],
        copies: None = None,  # noqa: ARG002
    ) -> Memory:
        """What goes into the first step, as a source of one item."""
        if source.ndim != 3 or source.shape[1:] != (1, self.config.input_size):
            raise ShapeError(
                f"vectors must have shape (B, 1, {self.config.input_size}), got "
                f"{tuple(source.shape)}"
            )
        standard = ((source - self.mean) * self.scale).to(source.dtype)
        x = self.input(standard)  # (B, 1, D)
        return Memory(x, lengths, x[:, 0])

    def begin(self, memory: Memory) -> CaptionState:
        """The state before the first word."""
        assert memory.context is not None
        states = self.rnn.initial_states(len(memory.states))
        return CaptionState(tuple(part.transpose(0, 1) for part in states), memory.context)

    def decode(
        self,
        ids: Int[Tensor, "B T"],
        memory: Memory,
        state: CaptionState,
        *,
        return_attention: bool = False,  # noqa: ARG002
    ) -> DecoderOutput:
        """Read words after those the state has seen; there is no attention to return."""
        check_decoder_input(ids, memory)
        T = ids.shape[1]
        x = functional.pad(state.given[:, None], (0, 0, 0, T - 1))  # (B, T, D)
        if self.embedding is not None:
            x = x + self.embedding(known_ids(ids, self.config.vocab_size)).to(x.dtype)
        y, ended = self.rnn(self._dropped(x), None, [p.transpose(0, 1) for p in state.states])
        after = CaptionState(
            tuple(part.transpose(0, 1) for part in ended), torch.zeros_like(state.given)
        )
        return DecoderOutput(self._dropped(y), after)

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.config.dropout, self.training)
