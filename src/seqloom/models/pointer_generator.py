"""The pointer-generator network: it writes words, or copies them from its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.models.seq2seq_layers import (
    DecoderState,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentPairOptions,
)
from seqloom.models.seq2seq_outputs import PointerOutput
from seqloom.models.seq2seq_parts import DecoderOutput, Memory, SourceInput, known_ids
from seqloom.nn.softmax import exact


@dataclass(frozen=True, kw_only=True)
class PointerConfig(RecurrentPairOptions):
    """Settings of `PointerGenerator`, besides those of `RecurrentPairOptions`.

    Args:
        coverage: Whether attention counts what it has seen, which keeps it from saying things
            twice. The words of training are then attended to one after the other.
        coverage_weight: What attending twice costs in training.
    """

    coverage: bool = False
    coverage_weight: float = 1.0
    TRAINING: ClassVar[dict[str, Any]] = {
        "epochs": 20,
        "clip_norm": 2.0,
        "batch": {"batch_size": 32, "max_waste": 0.2},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention in ("none", "multi-head"):
            raise ConfigError(
                f"a pointer points by one attention, got {self.attention!r}; use 'additive' or "
                "another score"
            )
        if self.coverage and self.attention != "additive":
            raise ConfigError(f"coverage needs attention='additive', got {self.attention!r}")
        if not 0 <= self.coverage_weight < float("inf"):
            raise ConfigError(f"coverage_weight must not be negative, got {self.coverage_weight}")
        if self.input_size:
            raise ConfigError(
                f"words can be copied from words alone, got vectors of width {self.input_size}"
            )


class PointerGenerator(nn.Module):
    r"""A recurrent encoder-decoder with a switch between its vocabulary and its source.

    $$g_t = \sigma(w_c^\top c_t + w_d^\top d_t + w_x^\top e(y_{t-1}) + b), \quad
    p(w) = g_t \, p_{vocab}(w) + (1 - g_t) \sum_{i : x_i = w} \alpha_{ti}$$

    A word of the source that the vocabulary lacks has an id from `vocab_size` on, which holds for
    this source alone; so a name never seen can be written. `PointerOutput` has the loss.

    Paper: See et al. (2017), "Get To The Point: Summarization with Pointer-Generator Networks",
    ACL, equations 8 to 13.
    Differs from the paper: attention goes into the next step only with `input_feeding`; the
    features are those of `RecurrentDecoder`; coverage is there from the first update on.
    Parameters: w_c, w_d, w_x and b = switch, side by side in this order.

    Args:
        config: The settings.
    """

    attends = True
    shares = False

    def __init__(self, config: PointerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = RecurrentEncoder(config)
        self.decoder = RecurrentDecoder(config, self.encoder, coverage=config.coverage)
        self.output = PointerOutput(config.hidden_size, config.vocab_size, config.coverage_weight)
        if config.tied:
            assert self.decoder.embedding is not None
            self.output.softmax.tie(self.decoder.embedding)
        width = self.encoder.output_size + config.hidden_size + config.embed_size
        self.switch = nn.Linear(width, 1)

    @property
    def input(self) -> SourceInput:
        """What reads the words of a source."""
        return self.encoder.input

    def encode(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        copies: Int[Tensor, "B S"] | None = None,
    ) -> Memory:
        """What the decoder may look at; of one vocabulary, `copies` are the source if not given."""
        if copies is None:
            if not self.config.shared:
                raise ConfigError(
                    "a pointer with two vocabularies must be given copies, got None; number the "
                    "source's words as the target's"
                )
            copies = source
        states, context = self.encoder(source, lengths)
        return Memory(states, lengths, context, self.decoder.prepare(states), copies)

    def begin(self, memory: Memory) -> DecoderState:
        """The state before the first word."""
        return self.decoder.begin(memory)

    def decode(
        self,
        ids: Int[Tensor, "B T"],
        memory: Memory,
        state: DecoderState,
        *,
        return_attention: bool = False,
    ) -> DecoderOutput:
        """Read words after those the state has seen."""
        output, y, attended = self.decoder(ids, memory, state, return_attention=return_attention)
        assert self.decoder.embedding is not None
        x = self.decoder.embedding(known_ids(ids, self.config.vocab_size))
        parts = [part.to(x.dtype) for part in (attended, y)]
        switch = torch.sigmoid(exact(self.switch(torch.cat([*parts, x], dim=-1)))[..., 0])
        return output._replace(switch=switch)  # type: ignore[no-any-return]
