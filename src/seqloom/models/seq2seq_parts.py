"""What encoder-decoders have in common: their input, what a decoder looks at, what it gives.

Every model that writes a sequence of its own (`Seq2Seq`, `PointerGenerator`, `TransformerSeq2Seq`,
`Captioner`) has the same methods, so that one objective trains them and one search reads them:

- `encode(source, lengths, copies)`: what the decoder may look at, a `Memory`;
- `begin(memory)`: the decoder's state before the first word;
- `decode(ids, memory, state)`: read words, whole or one by one, a `DecoderOutput`;
- `output`, a layer of `seqloom.models.seq2seq_outputs`: words of that;
- `attends`: whether there is attention to return;
- `shares`: whether `decode` takes several texts a source side by side, with one row of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.models.sentence_encoder import BY_TASK
from seqloom.nn.context import ContextMix, ContextOptions, WordsInContext, context_size

UNKNOWN = 1  # the id of the unknown word
EMBEDDING_RANGE = 0.1


class Memory(NamedTuple):
    """What a decoder may look at of its source; every part begins with the batch.

    Args:
        states: What the encoder made of each item.
        lengths: How many of them are real.
        context: One vector of the whole source.
        prepared: What attention needs of the states, computed once.
        copies: For each item of the source its id among the words a model may write; ids from
            `vocab_size` on are words of this source alone.
    """

    states: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]
    context: Float[Tensor, "B C"] | None = None
    prepared: Any = None
    copies: Int[Tensor, "B S"] | None = None


class DecoderOutput(NamedTuple):
    """What a decoder gives for the words it read.

    Args:
        features: What the output layer reads.
        state: What to go on from; None where only the whole was asked for.
        attention: How much each word looked at each item of the source.
        switch: Of a pointer: the probability that the next word is written, not copied.
        covered: Of a model with coverage: the attention each item had had before each word.
    """

    features: Float[Tensor, "B T D"]
    state: Any
    attention: Float[Tensor, "B T S"] | None = None
    switch: Float[Tensor, "B T"] | None = None
    covered: Float[Tensor, "B T S"] | None = None


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """What the data decides of every encoder-decoder.

    Args:
        vocab_size: Words that may be written.
        source_vocab_size: Words of the source; 0 where it is vectors.
        input_size: Width of the source's vectors; 0 where it is words.
        shared: Whether both have one vocabulary, and so one table of word vectors.
        words_in_context: What is read of the source's words in context, if anything; the task's
            `contextual` decides.
    """

    vocab_size: int
    source_vocab_size: int
    input_size: int
    shared: bool
    words_in_context: ContextOptions | None = field(default=None, metadata=BY_TASK)

    def check_pair(self) -> None:
        """Refuse sizes that contradict each other."""
        if self.vocab_size < 1 or (self.source_vocab_size > 0) == (self.input_size > 0):
            raise ConfigError(
                "vocab_size must be positive and either source_vocab_size or input_size, got "
                f"{self.vocab_size}, {self.source_vocab_size} and {self.input_size}"
            )
        if self.words_in_context is not None and self.input_size:
            raise ConfigError("words in context belong to texts, got vectors as a source")
        if context_size(self.words_in_context, "output"):
            raise ConfigError(
                "encoder-decoders take words in context at their input alone, got contextual."
                "insert with 'output'"
            )
        if self.shared and self.source_vocab_size != self.vocab_size:
            raise ConfigError(
                "a shared vocabulary must be of one size, got "
                f"{self.source_vocab_size} and {self.vocab_size}"
            )


class SourceInput(nn.Module):
    r"""Ids to word vectors, or given vectors scaled and projected.

    With words in context a mix of their layers joins the word vector, $W [e(w_t); m_t] + b$.

    Paper: Peters et al. (2018), "Deep contextualized word representations", NAACL, equation 1, for
    the mix.
    Parameters: e = embedding; the mix = context; W and b = joined.

    Args:
        config: The sizes.
        width: Of what comes out.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: PairOptions, width: int) -> None:
        super().__init__()
        self.input_size = config.input_size
        self.embedding = self.projection = self.context = self.joined = None
        if config.source_vocab_size:
            self.embedding = nn.Embedding(config.source_vocab_size, width)
        else:
            self.projection = nn.Linear(config.input_size, width)
            self.register_buffer("mean", torch.zeros(config.input_size, dtype=torch.float64))
            self.register_buffer("scale", torch.ones(config.input_size, dtype=torch.float64))
        if config.words_in_context is not None:
            self.context = ContextMix(config.words_in_context)
            self.joined = nn.Linear(width + config.words_in_context.size, width)

    def standardize(self, mean: Float[Tensor, " D"], scale: Float[Tensor, " D"]) -> None:
        """Subtract a mean from every given vector and multiply by a factor, from now on."""
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def forward(
        self,
        source: Int[Tensor, "B S"] | Float[Tensor, "B S I"] | WordsInContext,
        lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, "B S D"]:
        """The vectors of each row; on padding they mean nothing."""
        x, layers = source if isinstance(source, WordsInContext) else (source, None)
        shape = tuple(x.shape)
        if self.embedding is not None:
            if x.ndim != 2 or shape[1] < 1 or x.is_floating_point():
                raise ShapeError(
                    "source ids must be whole numbers of shape (B, S) with S at least 1, got "
                    f"{x.dtype} of shape {shape}"
                )
        elif x.ndim != 3 or shape[1] < 1 or shape[2] != self.input_size:
            raise ShapeError(
                f"source vectors must have shape (B, S, {self.input_size}) with S at least 1, got "
                f"{shape}"
            )
        if tuple(lengths.shape) != shape[:1]:
            raise ShapeError(
                f"lengths must have shape {shape[:1]} for a source of shape {shape}, got "
                f"{tuple(lengths.shape)}"
            )
        if self.context is not None:
            assert self.embedding is not None and self.joined is not None
            own = self.embedding(x)
            mixed = self.context("input", layers, lengths).to(own.dtype)
            return self.joined(torch.cat([own, mixed], dim=-1))  # type: ignore[no-any-return]
        if self.embedding is not None:
            return self.embedding(x)  # type: ignore[no-any-return]
        assert self.projection is not None
        standard = ((x - self.mean) * self.scale).to(x.dtype)
        return self.projection(standard)  # type: ignore[no-any-return]


def known_ids(ids: Int[Tensor, "B T"], vocab_size: int) -> Int[Tensor, "B T"]:
    """Ids a model has vectors for: a word of one source alone is read as the unknown word."""
    return ids.masked_fill(ids >= vocab_size, UNKNOWN)


def check_decoder_input(ids: Tensor, memory: Memory, *, several: bool = False) -> None:
    """Refuse words that are no batch of sequences, or of other rows than the memory.

    Args:
        ids: The words.
        memory: Of their sources.
        several: Whether there may be several texts a source, side by side.

    Raises:
        ShapeError: Naming what must hold and the shape that came.
    """
    shape, rows = tuple(ids.shape), len(memory.states)
    fits = len(shape) == 2 and shape[1] > 0
    if not fits or (shape[0] % rows if several else shape[0] != rows):
        what = f"a multiple of {rows}" if several else str(rows)
        raise ShapeError(
            f"ids must have shape ({what}, T) with T at least 1, as the memory has rows, got "
            f"{shape}"
        )
