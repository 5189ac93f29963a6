"""The recurrent encoder-decoder, with or without attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.models.seq2seq_layers import (
    DecoderState,
    RecurrentDecoder,
    RecurrentEncoder,
    RecurrentPairOptions,
)
from seqloom.models.seq2seq_outputs import WordOutput
from seqloom.models.seq2seq_parts import DecoderOutput, Memory, SourceInput


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(RecurrentPairOptions):
    """Settings of `Seq2Seq`: those of `RecurrentPairOptions`."""

    TRAINING: ClassVar[dict[str, Any]] = {
        "epochs": 20,
        "clip_norm": 1.0,
        "batch": {"batch_size": 64, "max_waste": 0.2},
    }


class Seq2Seq(nn.Module):
    r"""A recurrent network reads, another one writes.

    $$e = \mathrm{encode}(x), \quad f_t = \mathrm{decode}(y_{<t}, e), \quad
    p(y_t \mid y_{<t}, x) = \mathrm{softmax}(V f_t + b)$$

    `RecurrentEncoder` and `RecurrentDecoder` have the equations of both.

    Paper: Cho et al. (2014); Sutskever et al. (2014); Bahdanau et al. (2015); Luong et al. (2015).
    Parameters: encode = encoder, decode = decoder, V and b = output.

    Args:
        config: The settings.
    """

    shares = False

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = RecurrentEncoder(config)
        self.decoder = RecurrentDecoder(config, self.encoder)
        self.output = WordOutput(config.hidden_size, config.vocab_size)
        if config.tied:
            assert self.decoder.embedding is not None
            self.output.softmax.tie(self.decoder.embedding)

    @property
    def attends(self) -> bool:
        """Whether there is attention to return."""
        return self.config.attention != "none"

    def standardize(self, mean: Float[Tensor, " I"], scale: Float[Tensor, " I"]) -> None:
        """Subtract a mean from every vector of a source and multiply by a factor, from now on."""
        self.encoder.input.standardize(mean, scale)

    @property
    def input(self) -> SourceInput:
        """What reads the words of a source."""
        return self.encoder.input

    def encode(
        self,
        source: Int[Tensor, "B S"] | Float[Tensor, "B S I"],
        lengths: Int[Tensor, " B"],
        copies: Int[Tensor, "B S"] | None = None,
    ) -> Memory:
        """What the decoder may look at."""
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
        output, _, _ = self.decoder(ids, memory, state, return_attention=return_attention)
        return output  # type: ignore[no-any-return]
