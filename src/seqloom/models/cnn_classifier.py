"""Convolutions over the words of a text, pooled: Kim's classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.models.outputs import ScoreOutput
from seqloom.models.sentence_encoder import (
    ScoreLayers,
    SequenceInput,
    SequenceItems,
    SequenceOptions,
)
from seqloom.nn.pooling import Pooling

ActivationName = Literal["relu", "tanh"]
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True, kw_only=True)
class CNNClassifierConfig(SequenceOptions):
    """Settings of `CNNClassifier`, besides those of `SequenceOptions`.

    Args:
        widths: How many words a filter of each kind sees.
        num_maps: Filters of each width.
        activation: "relu" or "tanh".
    """

    embed_size: int = 300
    max_norm: float | None = 3.0
    widths: tuple[int, ...] = (3, 4, 5)
    num_maps: int = 100
    activation: ActivationName = "relu"

    def __post_init__(self) -> None:
        self.check()
        if not self.widths or min(self.widths) < 1 or self.num_maps < 1:
            raise ConfigError(
                "widths must hold at least one and be positive, as num_maps must, got "
                f"{self.widths} and {self.num_maps}"
            )
        if self.activation not in ACTIVATIONS:
            raise ConfigError(one_of("activation", self.activation, ACTIVATIONS))


class CNNClassifier(nn.Module):
    r"""Filters of several widths, each pooled over time.

    $$c^h_t = f\Big(\sum_{k=0}^{h-1} F^h_k x_{t-h+1+k} + b^h\Big), \; t = 1, \ldots, n + h - 1,
    \quad z = [\mathrm{pool}_t \, c^{h}_t]_{h}, \quad s = W z + b$$

    with $x_t = 0$ outside of the text, so that every window holds a word and a text may be shorter
    than a filter.

    Paper: Kim (2014), "Convolutional Neural Networks for Sentence Classification", EMNLP,
    equations 2 to 4.
    Differs from the paper: every filter is given h - 1 zeros on both sides (the paper's code gives
    all of them as many as the widest); other poolings by option.
    Parameters: $F^h, b^h$ = convolutions (H, D, h); W, b = head.output.

    Args:
        config: The settings.
    """

    def __init__(self, config: CNNClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.input = SequenceInput(config)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.vector_size, config.num_maps, width, padding=width - 1)
            for width in config.widths
        )
        self.poolings = nn.ModuleList(
            Pooling(config.pooling, config.num_maps) for _ in config.widths
        )
        self.head = ScoreLayers(config.num_maps * len(config.widths), config)

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, and with attention how much each word counted."""
        inputs = self.input(x, lengths).mT  # (B, D, T)
        B, _, T = inputs.shape
        if lengths is None:
            lengths = torch.full((B,), T, device=inputs.device)
        activation = ACTIVATIONS[self.config.activation]
        pooled, shares, states = [], [], []
        for width, convolution, pooling in zip(
            self.config.widths, self.convolutions, self.poolings, strict=True
        ):
            maps = activation(convolution(inputs)).mT  # (B, T + width - 1, H)
            found = pooling(maps, lengths + width - 1)
            pooled.append(found.outputs)
            states.append(maps[:, :T])  # of the windows that end at a word
            if found.weights is not None:
                shares.append(word_shares(found.weights, lengths, width))
        attention = torch.stack(shares).mean(dim=0) if shares else None
        scores = self.head(torch.cat(pooled, dim=1))
        return ScoreOutput(scores, attention, states=torch.cat(states, dim=-1))


def word_shares(
    weights: Float[Tensor, "B W"], lengths: Int[Tensor, " B"], width: int
) -> Float[Tensor, "B T"]:
    """Share the weight of each window among the words in it.

    Args:
        weights: Of the windows; window t ends at word t.
        lengths: Words of each row.
        width: Words of a window.
    """
    last = torch.arange(weights.shape[1], device=weights.device)[None]
    first = (last - width + 1).clamp(min=0)
    words = (torch.minimum(last, lengths[:, None] - 1) - first + 1).clamp(min=1)  # (B, W)
    shares = (weights / words)[:, None]
    gathered = functional.avg_pool1d(shares, width, stride=1)[:, 0] * width  # (B, T)
    steps = torch.arange(gathered.shape[1], device=weights.device)
    return gathered * (steps < lengths[:, None])
