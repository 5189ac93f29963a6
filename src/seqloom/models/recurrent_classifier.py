"""Recurrent layers over a text in both directions, pooled: BRNN, BLSTM and Att-BLSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
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
from seqloom.nn.context import context_size
from seqloom.nn.pooling import Pooling, PoolingName
from seqloom.nn.recurrent import Merge, Recurrent


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions(SequenceOptions):
    """Settings of the recurrent classifiers, besides those of `SequenceOptions`.

    Args:
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        hidden_size: Width of the state, in each direction.
        num_layers: Layers stacked.
        bidirectional: Whether the text is read in both directions.
        merge: How the directions become one: "sum", "concat", "mean", "product" or "weighted".
        layer_dropout: Share of units dropped between layers and after the last.
        squash: Whether the pooled vector goes through a hyperbolic tangent (Zhou et al. 2016,
            equation 12).
        backend: What runs the recurrence; "auto" chooses.
    """

    CONTEXT_AT_OUTPUT: ClassVar[bool] = True

    cell: str = "lstm"
    hidden_size: int = 100
    num_layers: int = 1
    bidirectional: bool = True
    merge: Merge = "concat"
    layer_dropout: float = 0.0
    squash: bool = False
    backend: str = "auto"

    def __post_init__(self) -> None:
        self.check()
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        if not 0 <= self.layer_dropout < 1:
            raise ConfigError(f"layer_dropout must lie in [0, 1), got {self.layer_dropout}")
        if context_size(self.context, "output") and self.pooling == "last":
            raise ConfigError(
                "words in context at the output need another pooling, got pooling='last', which "
                "reads states alone"
            )
        with torch.device("meta"):  # the layer checks the rest, and takes no memory there
            self.build_layers()

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.vector_size,
            self.hidden_size,
            num_layers=self.num_layers,
            bidirectional=self.bidirectional,
            merge=self.merge,
            dropout=self.layer_dropout,
            backend=self.backend,
        )


@dataclass(frozen=True, kw_only=True)
class BRNNConfig(RecurrentOptions):
    """Two simple recurrent networks, added, the maximum over time, a hidden layer.

    Paper: Zhang and Wang (2015), "Relation Classification via Recurrent Neural Network",
    arXiv:1508.01006, section 3.
    """

    cell: str = "rnn"
    merge: Merge = "sum"
    hidden_sizes: tuple[int, ...] = (100,)


@dataclass(frozen=True, kw_only=True)
class BLSTMConfig(RecurrentOptions):
    """Two LSTMs side by side, the maximum over time, a hidden layer.

    Paper: Zhang et al. (2015), "Bidirectional Long Short-Term Memory Networks for Relation
    Classification", PACLIC.
    Differs from the paper: of its features of a sentence only those that every text has, the
    states over its words.
    """

    hidden_sizes: tuple[int, ...] = (100,)


@dataclass(frozen=True, kw_only=True)
class AttBLSTMConfig(RecurrentOptions):
    """Two LSTMs, added, and an attention over their states.

    The shares that are dropped and `l2` are those of the paper, section 4.1.

    Paper: Zhou et al. (2016), "Attention-Based Bidirectional Long Short-Term Memory Networks for
    Relation Classification", ACL.
    Differs from the paper: its LSTMs have peepholes, which `cell="peephole-lstm"` gives.
    """

    merge: Merge = "sum"
    pooling: PoolingName = "attention"
    squash: bool = True
    embedding_dropout: float = 0.3
    layer_dropout: float = 0.3
    dropout: float = 0.5
    l2: float = 1e-5


class RecurrentClassifier(nn.Module):
    r"""Vectors, recurrent layers, pooling, scores.

    $$H = \mathrm{merge}(\overrightarrow{h}, \overleftarrow{h}), \quad r = \mathrm{pool}(H), \quad
    h^* = \tanh(r) \text{ with } \mathtt{squash}, \text{ else } r, \quad s = \mathrm{MLP}(h^*)$$

    With pooling="last", r merges the state after the last word of the forward direction and the
    state after the first word of the backward one.

    Paper: Schuster and Paliwal (1997), "Bidirectional Recurrent Neural Networks", and those of
    `BRNNConfig`, `BLSTMConfig` and `AttBLSTMConfig`.
    Parameters: the layers = rnn; w of the attention = pooling.weight; the MLP = head.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecurrentOptions) -> None:
        super().__init__()
        self.config = config
        self.input = SequenceInput(config)
        self.rnn = config.build_layers()
        width = self.rnn.output_size + context_size(config.context, "output")
        self.pooling = Pooling(config.pooling, width)
        self.head = ScoreLayers(width, config)

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, and with attention how much each word counted."""
        config = self.config
        outputs, states = self.rnn(self.input(x, lengths), lengths)  # (B, T, H)
        outputs = functional.dropout(outputs, config.layer_dropout, self.training)
        outputs = self.input.after_layers(outputs, x, lengths)
        if config.pooling == "last" and config.bidirectional:
            last = states[0][-2:]  # (2, B, H), the two directions of the last layer
            pooled, attention = self._merged(last[0], last[1]), None
            pooled = functional.dropout(pooled, config.layer_dropout, self.training)
        else:
            pooled, attention = self.pooling(outputs, lengths)
        if config.squash:
            pooled = torch.tanh(pooled)
        return ScoreOutput(self.head(pooled), attention, states=outputs)

    def _merged(
        self, forward: Float[Tensor, "B H"], backward: Float[Tensor, "B H"]
    ) -> Float[Tensor, "B O"]:
        match self.config.merge:
            case "concat":
                return torch.cat([forward, backward], dim=-1)
            case "product":
                return forward * backward
            case "weighted":
                shares: Tensor = getattr(self.rnn, f"merge_l{self.config.num_layers - 1}")
                return shares[0] * forward + shares[1] * backward
            case "mean":
                return (forward + backward) / 2
            case _:
                return forward + backward
