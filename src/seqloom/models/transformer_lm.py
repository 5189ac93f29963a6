"""The transformer as a language model: left to right, or restoring words from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions
from seqloom.nn.attention import KeyValues
from seqloom.nn.masking import are_whole
from seqloom.nn.past import keep_last
from seqloom.nn.positions import LearnedPositions, sinusoids
from seqloom.nn.transformer import Activation, Norm, TransformerBlock, check_positions

Positions = Literal["rotary", "sinusoidal", "learned", "none"]
POSITIONS = ("rotary", "sinusoidal", "learned", "none")
ObjectiveName = Literal["causal", "masked"]
OBJECTIVES = ("causal", "masked")
PIECE = 256  # words read at once at least, so that memory grows with a text and not its square


@dataclass(frozen=True, kw_only=True)
class TransformerLMConfig(OutputOptions):
    """Settings of `TransformerLM`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        hidden_size: Width of word vectors and of every layer.
        num_layers: Blocks stacked.
        num_heads: Heads of attention in each; they share `hidden_size`.
        feedforward_size: Width inside a block; 0 for four times `hidden_size`.
        context_size: How many positions before its own a position sees in each block.
        memory: Whether the positions seen are the last ones, wherever they are; if not, a text is
            read in blocks of `context_size` and nothing is known of the block before.
        positions: "rotary", "sinusoidal", "learned" or "none".
        norm: "pre" or "post", where the normalization stands.
        activation: "gelu" or "relu".
        dropout: Share dropped of the input, of attention weights and inside each block.
        tied: Whether the output layer shares the word vectors.
        objective: "causal" predicts the next word; "masked" restores words from both sides.
    """

    vocab_size: int
    hidden_size: int = 200
    num_layers: int = 4
    num_heads: int = 4
    feedforward_size: int = 0
    context_size: int = 128
    memory: bool = True
    positions: Positions = "rotary"
    norm: Norm = "pre"
    activation: Activation = "gelu"
    dropout: float = 0.0
    tied: bool = False
    objective: ObjectiveName = "causal"

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers, self.context_size)
        if min(sizes) < 1:
            raise ConfigError(
                "vocab_size, hidden_size, num_layers and context_size must be positive, got "
                f"{sizes}"
            )
        self.check_output(tied=self.tied)
        check_positions(self.positions, POSITIONS, self.hidden_size)
        if self.objective not in OBJECTIVES:
            raise ConfigError(one_of("objective", self.objective, OBJECTIVES))
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
            dropout=self.dropout,
            rotary=self.positions == "rotary",
        )


class TransformerState(NamedTuple):
    """Keys and values of the last positions by block, and how many positions were read in all.

    The latest is last. What was not read yet is 0.
    """

    keys: Float[Tensor, "B L C D"]
    values: Float[Tensor, "B L C D"]
    seen: Int[Tensor, " B"]


class TransformerLM(nn.Module):
    r"""Word vectors, blocks of self-attention, a softmax over the vocabulary.

    $$x_t = \sqrt{D} e(w_t) + p_t, \quad z = \mathrm{block}_L(\cdots \mathrm{block}_1(x)), \quad
    p(w_{t+1} \mid w_{\le t}) = \mathrm{softmax}(V N(z_t) + b)$$

    Position t sees itself and in each block the positions t - C, ..., t - 1 (C = `context_size`),
    whether a text is read in one go, in pieces or word by word. With `memory` the pieces of
    training see, without a gradient, what the pieces before them left (Dai et al. 2019). Without,
    position t sees the positions from C floor(t / C) on.

    With objective="masked" a position sees all others of its row, at most C of them; a row holds
    the id `blank` where a word is to be restored.

    Paper: Vaswani et al. (2017), "Attention Is All You Need", NeurIPS; Dai et al. (2019),
    "Transformer-XL", ACL, section 3.2, for the memory; Devlin et al. (2019), "BERT", NAACL, section
    3.1, for the masked objective.
    Differs from the papers: rotary positions by default; with norm="pre" one more normalization N
    stands before the output. Sinusoidal positions count from the beginning of the stream (of the
    block, without memory); learned ones do too, modulo C + 1. Keys and values are kept, not what
    they were computed from, so they are those of the weights at that time.

    Args:
        config: The settings.
    """

    def __init__(self, config: TransformerLMConfig) -> None:
        super().__init__()
        self.config = config
        D = config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, D)
        nn.init.normal_(self.embedding.weight, std=D**-0.5)
        self.positions = (
            LearnedPositions(config.context_size + 1, D) if config.positions == "learned" else None
        )
        self.blocks = nn.ModuleList(config.build_block() for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(D) if config.norm == "pre" else None
        self.output = config.build_output(D, config.vocab_size)
        if config.tied:
            self.output.tie(self.embedding)
        if config.objective == "masked":
            self.blank_vector = nn.Parameter(torch.randn(D) * D**-0.5)

    @property
    def blank(self) -> int:
        """The id of a word to be restored, one more than any word has."""
        return self.config.vocab_size

    def initial_state(self, batch_size: int) -> TransformerState:
        """Nothing read; a masked model never keeps anything."""
        config, like = self.config, self.embedding.weight
        size = config.context_size if config.objective == "causal" else 0
        empty = like.new_zeros(batch_size, config.num_layers, size, config.hidden_size)
        seen = torch.zeros(batch_size, dtype=torch.long, device=like.device)
        return TransformerState(empty, torch.zeros_like(empty), seen)

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: TransformerState | None = None,
    ) -> LMOutput:
        """Read `ids`; on padding the features mean nothing.

        A row of length 0 keeps its state.
        """
        check_lm_input(ids, lengths, state)
        B, T = ids.shape
        state = self.initial_state(B) if state is None else state
        if are_whole(lengths, T):
            lengths = None  # nothing is padded, which is faster to know
        if self.config.objective == "masked":
            return LMOutput(self._finished(self._both_sides(ids, lengths)[-1]), state)
        if torch.compiler.is_exporting():  # one piece, whatever its length
            return LMOutput(*self._read(ids, lengths, state))
        found, size = [], max(PIECE, self.config.context_size)
        for begin in range(0, T, size):
            piece = ids[:, begin : begin + size]
            own = None if lengths is None else (lengths - begin).clamp(0, piece.shape[1])
            features, state = self._read(piece, own, state)
            found.append(features)
        return LMOutput(torch.cat(found, dim=1), state)

    def _read(
        self, ids: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None, state: TransformerState
    ) -> tuple[Float[Tensor, "B T D"], TransformerState]:
        """Read one piece after what the state holds."""
        _, T = ids.shape
        C, memory = self.config.context_size, self.config.memory
        # Of the C positions kept, only those that some row needs are looked at.
        needed = C
        if not torch.compiler.is_exporting():
            needed = int((state.seen.clamp(max=C) if memory else state.seen % C).max())
        places = state.seen[:, None] + torch.arange(T, device=ids.device)  # (B, T)
        x = self._embedded(ids, places if memory else places % C)
        mask = None if needed == 0 and T <= C else self._mask(places, needed)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            old = KeyValues(state.keys[:, i], state.values[:, i])  # (B, C, D) each
            past = KeyValues(*(part[:, C - needed :] for part in old)) if needed else None
            x, new = block(x, mask=mask, causal=mask is None, past=past)
            for kept, part, added in zip((keys, values), old, new, strict=True):
                whole = torch.cat([part[:, : C - needed], added.to(part.dtype)], dim=1)
                kept.append(keep_last(whole, T, lengths))
        seen = state.seen + (T if lengths is None else lengths)
        after = TransformerState(torch.stack(keys, dim=1), torch.stack(values, dim=1), seen)
        return self._finished(x), after

    def _mask(self, places: Int[Tensor, "B T"], past: int) -> Bool[Tensor, "B T S"]:
        """Which positions each sees: of those at hand the latest, `past` lie before the first."""
        C, steps = self.config.context_size, places.shape[1]
        keys = torch.arange(-past, steps, device=places.device) + places[:, :1]  # (B, S)
        first = (places - C).clamp(min=0) if self.config.memory else places - places % C
        own, keys = places[:, :, None], keys[:, None, :]
        return (keys >= first[:, :, None]) & (keys <= own)

    def layers(
        self, ids: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B L T D"]:
        """Of a masked model, what each block makes of a text, word vectors with places first."""
        check_lm_input(ids, lengths, None)
        if self.config.objective != "masked":
            raise ConfigError(
                "layers of words in context are those of a model with objective='masked', got "
                f"{self.config.objective!r}"
            )
        *found, last = self._both_sides(ids, lengths)
        return torch.stack([*found, self._finished(last)], dim=1)

    def _both_sides(
        self, ids: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None
    ) -> list[Float[Tensor, "B T D"]]:
        T, most = ids.shape[1], self.config.context_size + 1
        if most < T:
            raise ShapeError(
                f"a masked model reads at most context_size + 1 = {most} words at once, got {T}; "
                "cut the text, or build the model with a larger context_size"
            )
        found = [self._embedded(ids, torch.arange(T, device=ids.device)[None])]
        for block in self.blocks:
            found.append(block(found[-1], lengths=lengths)[0])
        return found

    def _embedded(
        self, ids: Int[Tensor, "B T"], places: Int[Tensor, "M T"]
    ) -> Float[Tensor, "B T D"]:
        D = self.config.hidden_size
        if self.config.objective == "masked":
            is_blank = (ids == self.blank)[:, :, None]
            known = self.embedding(ids.clamp(max=self.blank - 1))
            x = torch.where(is_blank, self.blank_vector, known) * math.sqrt(D)
        else:
            x = self.embedding(ids) * math.sqrt(D)
        if self.config.positions == "sinusoidal":
            x = x + sinusoids(places, D).to(x.dtype)
        elif self.positions is not None:
            x = x + self.positions(places)
        return functional.dropout(x, self.config.dropout, self.training)

    def _finished(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        x = x if self.norm is None else self.norm(x)
        return functional.dropout(x, self.config.dropout, self.training)
