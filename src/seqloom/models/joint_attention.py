"""Joint attention: a recurrent layer of two directions, and heads of attention over its states."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.models.outputs import ScoreOutput
from seqloom.models.sentence_encoder import (
    ScoreLayers,
    SequenceInput,
    SequenceItems,
    SequenceOptions,
)
from seqloom.nn.attention import attention_weights
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.pooling import Pooling
from seqloom.nn.recurrent import Recurrent

MAX_LENGTH = 1024


@dataclass(frozen=True, kw_only=True)
class JointAttentionConfig(SequenceOptions):
    """Settings of `JointAttention`, besides those of `SequenceOptions`.

    Args:
        cell: A cell's name. "peephole-lstm-old" lets the output gate look at the old cell state.
        hidden_size: Width of the state, in each direction.
        num_layers: Layers stacked.
        num_heads: Heads of attention, which share the states' width.
        sharpness: What the scores of attention are multiplied by: above 1 it looks at fewer words,
            below 1 at more.
        projection_size: Width of the output projection; 0 takes that of the states.
        identity_weight: For whoever trains the model: times the mean L1 distance of the rows of
            the attention matrix from those of the identity, added to the mean loss.
        backend: What runs the recurrence; "auto" chooses.
    """

    MAX_LENGTH = MAX_LENGTH  # the attention matrix grows with the square of the length

    cell: str = "peephole-lstm"
    hidden_size: int = 100
    num_layers: int = 1
    num_heads: int = 4
    sharpness: float = 1.0
    projection_size: int = 0
    identity_weight: float = 0.01
    backend: str = "auto"

    def __post_init__(self) -> None:
        self.check()
        if self.num_heads < 1 or self.states_size % self.num_heads or self.projection_size < 0:
            raise ConfigError(
                "2 hidden_size must be a multiple of num_heads and projection_size not negative, "
                f"got {self.hidden_size}, {self.num_heads} and {self.projection_size}"
            )
        if not 0 < self.sharpness < math.inf:
            raise ConfigError(f"sharpness must be positive, got {self.sharpness}")
        if not 0 <= self.identity_weight < math.inf:
            raise ConfigError(f"identity_weight must not be negative, got {self.identity_weight}")
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        with torch.device("meta"):  # the layer checks the rest, and takes no memory there
            self.build_layers()

    @property
    def states_size(self) -> int:
        """Width of the states of both directions."""
        return 2 * self.hidden_size

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.vector_size,
            self.hidden_size,
            num_layers=self.num_layers,
            bidirectional=True,
            backend=self.backend,
        )


class JointAttention(nn.Module):
    r"""A bidirectional LSTM with peepholes, attention over its states, a projection of both.

    $$H = [\overrightarrow{h}; \overleftarrow{h}], \quad
    A_n = \mathrm{softmax}\left(\beta \frac{(H W^Q_n)(H W^K_n)^\top}{\sqrt{K}}\right), \quad
    \hat H = [A_1 H W^V_1; \ldots; A_N H W^V_N]$$
    $$O = \tanh(W^O [H; \hat H] + b^O), \quad s = \mathrm{MLP}(\mathrm{pool}(O))$$

    It returns the $A_n$; training may draw them to the identity.

    Paper: none; the notes on joint attention, whose attention formula cannot be computed as it is
    printed. Gers et al. (2002) for the peepholes; Vaswani et al. (2017), section 3.2, for the
    heads.
    Differs from the notes: the gates have their usual names.
    Parameters: $W^Q, W^K, W^V$ stacked in attend; $W^O, b^O$ = projection; $\beta$ = sharpness.

    Args:
        config: The settings.
    """

    def __init__(self, config: JointAttentionConfig) -> None:
        super().__init__()
        self.config = config
        D = config.states_size
        self.input = SequenceInput(config)
        self.rnn = config.build_layers()
        self.attend = nn.Linear(D, 3 * D)
        self.projection = nn.Linear(2 * D, config.projection_size or D)
        self.pooling = Pooling(config.pooling, config.projection_size or D)
        self.head = ScoreLayers(config.projection_size or D, config)

    def forward(self, x: SequenceItems, lengths: Int[Tensor, " B"] | None = None) -> ScoreOutput:
        """The scores of each row, the attention matrices, and how much each word counted.

        How much a word counted is the weight it has in the pooling, if that is an attention; else
        the mean of its column over all heads and words.
        """
        states = self.rnn(self.input(x, lengths), lengths).outputs  # (B, T, D)
        B, T, _ = states.shape
        if lengths is None:
            lengths = torch.full((B,), T, device=states.device)
        real = lengths_to_mask(lengths, T)  # (B, T)
        q, k, v = (
            part.view(B, T, self.config.num_heads, -1).transpose(1, 2)
            for part in self.attend(states).chunk(3, dim=-1)
        )  # (B, N, T, K)
        scores = self.config.sharpness * (q @ k.mT) / math.sqrt(q.shape[-1])
        matrix = attention_weights(scores, real[:, None, None]) * real[:, None, :, None]
        attended = (matrix @ v).transpose(1, 2).reshape(B, T, -1)  # (B, T, D)
        outputs = torch.tanh(self.projection(torch.cat([states, attended], dim=-1)))
        pooled, attention = self.pooling(outputs, lengths)
        if attention is None:
            attention = matrix.mean(dim=1).sum(dim=1) / lengths[:, None]  # (B, T)
        return ScoreOutput(self.head(pooled), attention, matrix, outputs)
