"""Recurrent layers over vectors, and at each step the probability of each label or of none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.models.recurrent_layers import LayerOptions
from seqloom.nn.masking import lengths_to_mask

BLANK = 0  # the number of the blank; labels follow it
NEVER = -1e4  # the logarithm of a probability that is 0 in any precision


class LabelOutput(NamedTuple):
    """Of a recognizer: the log-probability of the blank and of each label at each step.

    Args:
        scores: By row and step. On padding the blank is certain, which changes neither the
            probability of a sequence of labels nor what is read.
    """

    scores: Float[Tensor, "B T C"]


@dataclass(frozen=True, kw_only=True)
class RecognizerConfig(LayerOptions):
    """Settings of `Recognizer`, besides those of `LayerOptions`.

    Args:
        output_size: The labels and the blank, C.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 30,
        "patience": 5,
        "clip_norm": 5.0,
        "batch": {"batch_size": 32, "max_waste": 0.1},
        "optimizer": {"name": "adam", "rate": 3e-3},
        "schedule": {"name": "cosine"},
    }
    VALID_SHARE: ClassVar[float] = 0.1

    output_size: int
    hidden_size: int = 100
    bidirectional: bool = True
    dropout: float = 0.2

    def __post_init__(self) -> None:
        self.check()
        if self.output_size < 2:
            raise ConfigError(
                f"output_size must be the blank and at least one label, got {self.output_size}"
            )


class Recognizer(nn.Module):
    r"""Recurrent layers and a softmax at each step, one of whose labels is the blank.

    $$h = \mathrm{layers}(x), \quad y_t = \mathrm{softmax}(W h_t + b)$$

    Paper: Graves et al. (2006), "Connectionist Temporal Classification: Labelling Unsegmented
    Sequence Data with Recurrent Neural Networks", ICML, section 3.
    Parameters: the layers = rnn; W and b = output; the blank is label 0.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecognizerConfig) -> None:
        super().__init__()
        self.config = config
        self.input = config.build_input()
        self.rnn = config.build_layers()
        self.output = nn.Linear(self.rnn.output_size, config.output_size)

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> LabelOutput:
        """The log-probabilities at each step of each row."""
        outputs, _ = self.rnn(self.input(x, lengths), lengths)  # (B, T, H)
        outputs = functional.dropout(outputs, self.config.dropout, self.training)
        scores = self.output(outputs).log_softmax(dim=-1)  # (B, T, C)
        if lengths is not None:
            padding = ~lengths_to_mask(lengths, x.shape[1])
            certain = scores.new_full((scores.shape[-1],), NEVER)
            certain[BLANK] = 0.0
            scores = scores.where(~padding[..., None], certain)
        return LabelOutput(scores)
