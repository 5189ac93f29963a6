"""The transformer as an encoder-decoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.seq2seq_outputs import WordOutput
from seqloom.models.seq2seq_parts import (
    DecoderOutput,
    Memory,
    PairOptions,
    SourceInput,
    check_decoder_input,
    known_ids,
)
from seqloom.nn.attention import KeyValues
from seqloom.nn.decoder_block import DecoderBlock
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.positions import LearnedPositions, sinusoids
from seqloom.nn.transformer import Activation, Norm, TransformerBlock, check_positions

Positions = Literal["sinusoidal", "learned"]
POSITIONS = ("sinusoidal", "learned")


@dataclass(frozen=True, kw_only=True)
class TransformerSeq2SeqConfig(PairOptions):
    """Settings of `TransformerSeq2Seq`, besides those of `PairOptions`.

    Args:
        hidden_size: Width of word vectors and of every layer.
        num_layers: Blocks of the encoder, and of the decoder.
        decoder_layers: Blocks of the decoder, if they are others; 0 takes `num_layers`.
        num_heads: Heads of attention in each; they share `hidden_size`.
        feedforward_size: Width inside a block; 0 for four times `hidden_size`.
        positions: "sinusoidal" or "learned".
        max_positions: Vectors of "learned"; a place beyond is counted from the beginning again.
        norm: "pre" or "post", where the normalization stands.
        activation: "relu" or "gelu".
        dropout: Share dropped of the input and of what each part of a block adds.
        inner_dropout: Share dropped of attention weights and inside the networks of two layers; 0
            in the paper, as `dropout` if None.
        tied: Whether the output layer shares the word vectors.
    """

    hidden_size: int = 128
    num_layers: int = 4
    decoder_layers: int = 0
    num_heads: int = 4
    feedforward_size: int = 0
    positions: Positions = "sinusoidal"
    max_positions: int = 512
    norm: Norm = "pre"
    activation: Activation = "relu"
    dropout: float = 0.1
    inner_dropout: float | None = None
    tied: bool = True
    TRAINING: ClassVar[dict[str, Any]] = {
        "epochs": 30,
        "optimizer": {"rate": 1e-3, "betas": (0.9, 0.98)},
        "schedule": {"name": "noam", "warmup": 1000},
        "batch": {"batch_size": 128, "max_waste": 0.2},
    }

    def __post_init__(self) -> None:
        self.check_pair()
        sizes = (self.hidden_size, self.num_layers, self.max_positions)
        if min(sizes) < 1 or self.decoder_layers < 0:
            raise ConfigError(
                "hidden_size, num_layers and max_positions must be positive and decoder_layers not "
                f"negative, got {sizes} and {self.decoder_layers}"
            )
        check_positions(self.positions, POSITIONS, self.hidden_size)
        with torch.device("meta"):  # the blocks check the rest, and take no memory there
            self.build_block(TransformerBlock)

    def build_block(self, kind: Any) -> Any:
        """One of the blocks, of the encoder or of the decoder."""
        return kind(
            self.hidden_size,
            self.num_heads,
            hidden_size=self.feedforward_size,
            norm=self.norm,
            activation=self.activation,
            dropout=self.dropout,
            inner_dropout=self.inner_dropout,
        )


class TransformerMemory(NamedTuple):
    """Keys and values of the source by block of the decoder."""

    blocks: tuple[KeyValues, ...]


class WrittenState(NamedTuple):
    """Keys and values of the words written, by block."""

    blocks: tuple[KeyValues, ...]


class TransformerSeq2Seq(nn.Module):
    r"""Blocks of self-attention read; blocks with attention to what they read write.

    $$x_i = \sqrt{D} e(w_i) + p_i, \quad m = \mathrm{enc}(x), \quad
    f_t = \mathrm{dec}(y_{<t}, m)_t, \quad p(y_t \mid y_{<t}, x) = \mathrm{softmax}(V f_t + b)$$

    Word by word, the keys and values of words written are kept, and those of the source are
    computed once.

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS.
    Differs from the paper: with norm="pre" one more normalization stands at the end of encoder and
    decoder. The attention of a result is the mean over the heads of the last block.
    Parameters: enc = encoder (and encoder_norm), dec = decoder (and decoder_norm), V, b = output.

    Args:
        config: The settings.
    """

    attends = True
    shares = True

    def __init__(self, config: TransformerSeq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        D, pre = config.hidden_size, config.norm == "pre"
        self.input = SourceInput(config, D)
        self.embedding = self.input.embedding if config.shared else None
        if self.embedding is None:
            self.embedding = nn.Embedding(config.vocab_size, D)
            if self.input.embedding is not None:
                nn.init.normal_(self.input.embedding.weight, std=D**-0.5)
        nn.init.normal_(self.embedding.weight, std=D**-0.5)
        self.positions = (
            LearnedPositions(config.max_positions, D) if config.positions == "learned" else None
        )
        self.encoder = nn.ModuleList(
            config.build_block(TransformerBlock) for _ in range(config.num_layers)
        )
        self.decoder = nn.ModuleList(
            config.build_block(DecoderBlock)
            for _ in range(config.decoder_layers or config.num_layers)
        )
        self.encoder_norm = nn.LayerNorm(D) if pre else None
        self.decoder_norm = nn.LayerNorm(D) if pre else None
        self.output = WordOutput(D, config.vocab_size)
        nn.init.zeros_(self.output.softmax.bias)
        if config.tied:
            self.output.softmax.tie(self.embedding)

    def standardize(self, mean: Float[Tensor, " I"], scale: Float[Tensor, " I"]) -> None:
        """Subtract a mean from every vector of a source and multiply by a factor, from now on."""
        self.input.standardize(mean, scale)

    def encode(
        self,
        source: Int[Tensor, "B S"] | Float[Tensor, "B S I"],
        lengths: Int[Tensor, " B"],
        copies: Int[Tensor, "B S"] | None = None,
    ) -> Memory:
        """What the decoder may look at."""
        x = self.input(source, lengths)
        x = self._placed(x, 0, scaled=self.input.embedding is not None)
        for block in self.encoder:
            x, _ = block(x, lengths=lengths)
        x = x if self.encoder_norm is None else self.encoder_norm(x)
        remembered = tuple(
            block.remember(x)  # type: ignore[operator]
            for block in self.decoder
        )
        return Memory(x, lengths, None, TransformerMemory(remembered), copies)

    def begin(self, memory: Memory) -> WrittenState:
        """Nothing written."""
        none = memory.states[:, :0]
        return WrittenState(tuple(KeyValues(none, none) for _ in self.decoder))

    def decode(
        self,
        ids: Int[Tensor, "B T"],
        memory: Memory,
        state: WrittenState,
        *,
        return_attention: bool = False,
    ) -> DecoderOutput:
        """Read words after those the state has seen."""
        check_decoder_input(ids, memory, several=True)
        assert self.embedding is not None
        real = lengths_to_mask(memory.lengths, memory.states.shape[1])
        seen = state.blocks[0].keys.shape[1]
        x = self.embedding(known_ids(ids, self.config.vocab_size))
        x, after, weights = self._placed(x, seen, scaled=True), [], None
        for number, block in enumerate(self.decoder, start=1):
            x, kept, weights = block(
                x,
                memory.prepared.blocks[number - 1],
                real,
                state.blocks[number - 1] if seen else None,
                return_weights=return_attention and number == len(self.decoder),
            )
            after.append(kept)
        x = x if self.decoder_norm is None else self.decoder_norm(x)
        return DecoderOutput(x, WrittenState(tuple(after)), weights)

    def _placed(
        self, x: Float[Tensor, "B T D"], first: int, *, scaled: bool
    ) -> Float[Tensor, "B T D"]:
        """Vectors with their places, which count from `first`."""
        T, D = x.shape[1:]
        places = torch.arange(first, first + T, device=x.device)[None]
        x = x * math.sqrt(D) if scaled else x
        added = sinusoids(places, D) if self.positions is None else self.positions(places)
        return functional.dropout(x + added.to(x.dtype), self.config.dropout, self.training)
