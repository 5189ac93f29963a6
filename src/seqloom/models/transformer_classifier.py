"""Blocks of self-attention over a text, pooled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.outputs import ScoreOutput
from seqloom.models.sentence_encoder import (
    ScoreLayers,
    SequenceInput,
    SequenceItems,
    SequenceOptions,
)
from seqloom.nn.pooling import Pooling, PoolingName
from seqloom.nn.positions import sinusoids
from seqloom.nn.transformer import Activation, Norm, TransformerBlock, check_positions

Positions = Literal["rotary", "sinusoidal", "none"]
POSITIONS = ("rotary", "sinusoidal", "none")
MAX_LENGTH = 1024


@dataclass(frozen=True, kw_only=True)
class TransformerClassifierConfig(SequenceOptions):
    """Settings of `TransformerClassifier`, besides those of `SequenceOptions`.

    Args:
        hidden_size: Width of every layer; vectors of another width are projected to it.
        num_layers: Blocks stacked.
        num_heads: Heads of attention in each; they share `hidden_size`.
        feedforward_size: Width inside a block; 0 for four times `hidden_size`.
        positions: "rotary", "sinusoidal" or "none".
        norm: "pre" or "post", where the normalization stands.
        activation: "gelu" or "relu".
        block_dropout: Share dropped of the input, of attention weights and inside each block.
    """

    MAX_LENGTH = MAX_LENGTH  # attention grows with the square of the length

    pooling: PoolingName = "mean"
    dropout: float = 0.1
    hidden_size: int = 100
    num_layers: int = 2
    num_heads: int = 4
    feedforward_size: int = 0
    positions: Positions = "sinusoidal"
    norm: Norm = "pre"
    activation: Activation = "gelu"
    block_dropout: float = 0.1

    def __post_init__(self) -> None:
        self.check()
        if min(self.hidden_size, self.num_layers) < 1:
            raise ConfigError(
                "hidden_size and num_layers must be positive, got "
                f"{self.hidden_size} and {self.num_layers}"
            )
        check_positions(self.positions, POSITIONS, self.hidden_size)
        with torch.device("meta"):  # the block checks the rest, and takes no memory there
            self.build_block()

    def build_block(self) -> TransformerBlock:
        """One of the blocks."""
        return TransformerBlock(
            self.hidden_size,
            self.num_heads,
            hidden_size=self.feedforward_size,
            norm=self.norm,
            activation=self.activation,
            dropout=self.block_dropout,
            rotary=self.positions == "rotary",
        )


class TransformerClassifier(nn.Module):
    r"""Vectors, blocks of self-attention, pooling, scores.

    $$x_t = P \, e_t + p_t, \quad z = \mathrm{block}_L(\cdots \mathrm{block}_1(x)), \quad
    s = \mathrm{MLP}(\mathrm{pool}(N(z)))$$

    $e_t$ is $\sqrt{E}$ times the vector of word t, E being its width, or the given vector t.

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS, section 3.
    Differs from the paper: no decoder; the outputs are pooled and classified. N is there with
    norm="pre" alone.
    Parameters: P = projection, where widths differ; N = norm; the MLP = head.

    Args:
        config: The settings.
    """

    def __init__(self, config: TransformerClassifierConfig) -> None:
        super().__init__()
        self.config = config
        D = config.hidden_size
        self.input = SequenceInput(config)
        self.projection = None if config.vector_size == D else nn.Linear(config.vector_size, D)
        self.blocks = nn.ModuleList(config.build_block() for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(D) if config.norm == "pre" else None
        self.pooling = Pooling(config.pooling, D)
        self.head = ScoreLayers(D, config)

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, and with attention how much each word counted."""
        config, y = self.config, self.input(x, lengths)
        if config.vocab_size:
            y = y * math.sqrt(config.embed_size)
        if self.projection is not None:
            y = self.projection(y)
        if config.positions == "sinusoidal":
            places = torch.arange(y.shape[1], device=y.device)[None]
            y = y + sinusoids(places, config.hidden_size).to(y.dtype)
        y = functional.dropout(y, config.block_dropout, self.training)
        for block in self.blocks:
            y, _ = block(y, lengths=lengths)
        y = y if self.norm is None else self.norm(y)
        pooled, attention = self.pooling(y, lengths)
        return ScoreOutput(self.head(pooled), attention, states=y)
