"""The multi-layer perceptron over vectors, bags of words or averaged word vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.outputs import ScoreOutput
from seqloom.nn.bag import Bag, linear


@dataclass(frozen=True, kw_only=True)
class MLPConfig:
    """Settings of `MLP`.

    Args:
        input_size: Features D.
        output_size: Classes C.
        embedded: Whether the features are words whose learned vectors are averaged first.
        hidden_sizes: Units of each hidden layer; none of them leaves a softmax layer alone.
        embed_size: Width of those word vectors.
        dropout: Share of units dropped in training, before every layer but the first.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 200,
        "patience": 10,
        "optimizer": {"name": "adam", "rate": 1e-3},
    }
    VALID_SHARE: ClassVar[float] = 0.1

    input_size: int
    output_size: int
    embedded: bool
    hidden_sizes: tuple[int, ...] = (100,)
    embed_size: int = 100
    dropout: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.input_size, self.output_size, self.embed_size, *self.hidden_sizes)
        if min(sizes) < 1:
            raise ConfigError(
                "input_size, output_size, embed_size and hidden_sizes must be positive, got "
                f"{self.input_size}, {self.output_size}, {self.embed_size} and "
                f"{self.hidden_sizes}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")


class MLP(nn.Module):
    r"""Layers of rectified linear units, then a score a class.

    $$h_0 = x, \quad h_i = \max(0, W_i^\top h_{i-1} + b_i), \quad s = W^\top h_n + b$$

    With `embedded`, $h_0$ is the mean of the vectors of the words of x; without hidden layers this
    is the model of Joulin et al. (2017), "Bag of Tricks for Efficient Text Classification".
    Papers: Rumelhart, Hinton and Williams (1986), "Learning representations by back-propagating
    errors"; Nair and Hinton (2010) for the units; Srivastava et al. (2014) for dropout.
    Parameters: the first W is `first` (D, H), its rows the features; the others are `layers`.

    Args:
        config: The settings.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: MLPConfig) -> None:
        super().__init__()
        self.config = config
        D = config.input_size
        widths = [*config.hidden_sizes, config.output_size]
        if config.embedded:
            widths = [config.embed_size, *widths]
        self.first = nn.Parameter(torch.empty(D, widths[0]))
        # Of the first layer's bias; averaged word vectors have none.
        self.bias = None if config.embedded else nn.Parameter(torch.zeros(widths[0]))
        layers = [nn.Linear(inner, outer) for inner, outer in pairwise(widths)]
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("mean", torch.zeros(D, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(D, dtype=torch.float64))
        nn.init.normal_(self.first, std=0.1 if config.embedded else D**-0.5)
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def standardize(self, mean: Float[Tensor, " D"], scale: Float[Tensor, " D"]) -> None:
        """Subtract a mean from every vector and multiply by a factor, from now on."""
        self.mean, self.scale = mean, scale

    def forward(self, x: Float[Tensor, "B D"] | Bag) -> ScoreOutput:
        """Return one score a class."""
        if not isinstance(x, Bag):
            if x.shape[-1] != self.config.input_size:
                raise ShapeError(
                    f"x must end in input_size={self.config.input_size}, got shape {tuple(x.shape)}"
                )
            x = (x - self.mean) * self.scale
        h = linear(x, self.first)  # (B, H)
        if self.bias is not None:
            h = h + self.bias
        for i, layer in enumerate(self.layers):
            if i or not self.config.embedded:  # an average of word vectors is not rectified
                h = torch.relu(h)
            h = layer(self.dropout(h))
        return ScoreOutput(h)
