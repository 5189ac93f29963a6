"""Recurrent layers over a series, and what comes after its end or after each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.models.recurrent_layers import LayerOptions
from seqloom.nn.pooling import Pooling

READS = ("last", "each")


class ForecastOutput(NamedTuple):
    """Of a forecaster: the numbers after the last step, (B, C), or after each step, (B, T, C).

    Args:
        scores: By row, and with "each" by step.
    """

    scores: Tensor


@dataclass(frozen=True, kw_only=True)
class ForecasterConfig(LayerOptions):
    """Settings of `Forecaster`, besides those of `LayerOptions`.

    Args:
        output_size: Numbers C that are forecast at once.
        reads: "last" forecasts from the state after the last step (N to 1); "each" from the state
            after each step (N to N), which trains on all of them.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {
        "epochs": 100,
        "patience": 10,
        "clip_norm": 1.0,
        "batch": {"batch_size": 32},
        "optimizer": {"name": "adam", "rate": 3e-3},
    }
    VALID_SHARE: ClassVar[float] = 0.2

    output_size: int
    hidden_size: int = 32
    reads: Literal["last", "each"] = "last"

    def __post_init__(self) -> None:
        self.check()
        if self.output_size < 1:
            raise ConfigError(f"output_size must be positive, got {self.output_size}")
        if self.reads not in READS:
            raise ConfigError(one_of("reads", self.reads, READS))
        if self.reads == "each" and self.bidirectional:
            raise ConfigError(
                "reads='each' forecasts from what came before each step, got bidirectional=True; "
                "set it to false, or reads='last'"
            )


class Forecaster(nn.Module):
    r"""Recurrent layers, and a linear layer that reads the state and the input of the same step.

    $$h = \mathrm{layers}(x), \quad \hat y_t = m + s \odot (W h_t + V x_t + b)$$

    with t the last step ("last") or each ("each"). V is what a linear autoregression of the input
    would be; m and s put the result into the unit of the targets.

    Paper: Elman (1990), "Finding Structure in Time", for predicting the next item from the state;
    Lai et al. (2018), "Modeling Long- and Short-Term Temporal Patterns with Deep Neural Networks",
    SIGIR, section 3.5, for the linear part beside the recurrent one.
    Differs from the paper: the linear part sees the last step alone.
    Parameters: the layers = rnn; W and b = output; V = direct; m = mean; s = scale.

    Args:
        config: The settings.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        self.input = config.build_input()
        self.rnn = config.build_layers()
        self.pooling = Pooling("last", self.rnn.output_size + config.input_size)
        self.output = nn.Linear(self.rnn.output_size, config.output_size)
        self.direct = nn.Linear(config.input_size, config.output_size, bias=False)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        nn.init.zeros_(self.direct.weight)
        self.register_buffer("mean", torch.zeros(config.output_size, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(config.output_size, dtype=torch.float64))

    def rescale(self, mean: Float[Tensor, " C"], scale: Float[Tensor, " C"]) -> None:
        """Give results in another unit from now on."""
        self.mean, self.scale = mean, scale

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> ForecastOutput:
        """The forecasts after the last step of each row, or after each step."""
        given = self.input(x, lengths)
        outputs, _ = self.rnn(given, lengths)  # (B, T, H)
        states = torch.cat([outputs, given], dim=-1)
        if self.config.reads == "last":
            states = self.pooling(states, lengths).outputs  # (B, H + D)
        widths = (self.rnn.output_size, self.config.input_size)
        state, last = states.split(widths, dim=-1)
        state = functional.dropout(state, self.config.dropout, self.training)
        found = self.output(state) + self.direct(last)
        return ForecastOutput(found * self.scale.to(found) + self.mean.to(found))
