"""The recurrent encoder and the recurrent decoder that `Seq2Seq` and others are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.models.seq2seq_parts import (
    EMBEDDING_RANGE,
    DecoderOutput,
    Memory,
    PairOptions,
    SourceInput,
    check_decoder_input,
    known_ids,
)
from seqloom.nn.decoder_attention import ATTENTIONS, SourceAttention
from seqloom.nn.masking import lengths_to_mask
from seqloom.nn.pooling import Pooling
from seqloom.nn.recurrent import Recurrent

EncoderName = Literal["recurrent", "dense"]
ContextName = Literal["last", "mean", "max"]
ContextPlace = Literal["state", "input", "both"]
Feeding = Literal["none", "output", "context", "upward"]
CHOICES = {
    "encoder": ("recurrent", "dense"),
    "context": ("last", "mean", "max"),
    "context_to": ("state", "input", "both"),
    "input_feeding": ("none", "output", "context", "upward"),
}


@dataclass(frozen=True, kw_only=True)
class RecurrentPairOptions(PairOptions):
    r"""Settings of recurrent encoder-decoders, besides those of `PairOptions`.

    Args:
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        embed_size: Width of a word vector.
        hidden_size: Width of the decoder's state.
        num_layers: Layers of the decoder.
        encoder: "recurrent", or "dense" for $\tanh(W x + b)$ of each item by itself.
        encoder_size: Width of the encoder's state, a direction; 0 takes `hidden_size`, divided by
            the number of directions.
        encoder_layers: Layers of the encoder; 0 takes `num_layers`.
        bidirectional: Whether the encoder reads both ways.
        context: What the source as a whole is: its "last" states, or the "mean" or "max" of all.
        context_to: Where the decoder gets it: as its first "state", as an "input" of every step,
            or "both".
        attention: "none", or the score: "additive", "concat", "cosine", "dot", "general",
            "scaled-dot" or "multi-head".
        num_heads: Of "multi-head".
        input_feeding: Whether attention goes into the recurrence: "none"; "output", the last
            features go into the next step (Luong et al. 2015); "context", attention by the state
            before the step goes into it (Bahdanau et al. 2015); "upward", attention by the first
            layer goes into the layers above (Wu et al. 2016). With "none" and "upward" all steps of
            training are computed at once.
        dropout: Share dropped of word vectors, between layers, of the states that are attended to
            and of the features.
        tied: Whether the output layer shares the word vectors, which must be as wide as the state.
        backend: What runs the recurrence; "auto" chooses.
    """

    cell: str = "gru"
    embed_size: int = 256
    hidden_size: int = 256
    num_layers: int = 1
    encoder: EncoderName = "recurrent"
    encoder_size: int = 0
    encoder_layers: int = 0
    bidirectional: bool = True
    context: ContextName = "last"
    context_to: ContextPlace = "state"
    attention: str = "additive"
    num_heads: int = 4
    input_feeding: Feeding = "none"
    dropout: float = 0.0
    tied: bool = False
    backend: str = "auto"

    def __post_init__(self) -> None:
        self.check_pair()
        sizes = (self.embed_size, self.hidden_size, self.num_layers, self.num_heads)
        if min(sizes) < 1 or self.encoder_size < 0 or self.encoder_layers < 0:
            raise ConfigError(
                "embed_size, hidden_size, num_layers and num_heads must be positive, encoder_size "
                f"and encoder_layers not negative, got {sizes}, {self.encoder_size} and "
                f"{self.encoder_layers}"
            )
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(one_of(name, getattr(self, name), known))
        if self.attention not in ("none", *ATTENTIONS):
            raise ConfigError(one_of("attention", self.attention, ("none", *ATTENTIONS)))
        if self.attention == "none" and self.input_feeding != "none":
            raise ConfigError(
                f"input_feeding feeds attention, got {self.input_feeding!r} with attention='none'"
            )
        if self.input_feeding == "upward" and self.num_layers < 2:
            raise ConfigError(
                "input_feeding='upward' feeds the layers above the first, got num_layers="
                f"{self.num_layers}; set it to 2"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if self.tied and self.embed_size != self.hidden_size:
            raise ConfigError(
                "tied weights need word vectors as wide as the state, got embed_size="
                f"{self.embed_size} and hidden_size={self.hidden_size}"
            )
        halved = self.encoder == "recurrent" and self.bidirectional and not self.encoder_size
        if halved and self.hidden_size % 2:
            raise ConfigError(
                "an encoder of two directions halves hidden_size, which must be even, got "
                f"{self.hidden_size}; set encoder_size"
            )
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            RecurrentDecoder(self, RecurrentEncoder(self))


class RecurrentEncoder(nn.Module):
    r"""The states of a source, and one vector of the whole of it.

    $$e_i = \mathrm{cell}(x_i, e_{i-1}) \quad \text{or} \quad e_i = \tanh(W x_i + b), \qquad
    C = e_n, \; \frac{1}{n} \sum_i e_i \text{ or } \max_i e_i$$

    Of two directions $e_i$ is both side by side, and the last states are those each direction ends
    with.

    Paper: Cho et al. (2014), "Learning Phrase Representations using RNN Encoder-Decoder for
    Statistical Machine Translation", EMNLP; Sutskever et al. (2014), "Sequence to Sequence Learning
    with Neural Networks", NeurIPS.

    Args:
        config: The settings.
    """

    def __init__(self, config: RecurrentPairOptions) -> None:
        super().__init__()
        self.config = config
        self.input = SourceInput(config, config.embed_size)
        both = config.bidirectional and config.encoder == "recurrent"
        size = config.encoder_size or config.hidden_size // (2 if both else 1)
        self.rnn = self.dense = None
        if config.encoder == "recurrent":
            self.rnn = Recurrent(
                config.cell,
                config.embed_size,
                size,
                num_layers=config.encoder_layers or config.num_layers,
                bidirectional=both,
                dropout=config.dropout,
                backend=config.backend,
            )
        else:
            self.dense = nn.Linear(config.embed_size, size)
        self.output_size = size * (2 if both else 1)
        kind: Any = "last" if config.context == "last" else config.context
        self.pooling = Pooling(kind, self.output_size)

    def forward(
        self, source: Int[Tensor, "B S"] | Float[Tensor, "B S I"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S E"], Float[Tensor, "B E"]]:
        """States, 0 on padding, and the context."""
        x = self._dropped(self.input(source, lengths))
        if self.dense is not None:
            real = lengths_to_mask(lengths, x.shape[1])[..., None]
            states = torch.tanh(self.dense(x)) * real
            return self._dropped(states), self.pooling(states, lengths).outputs
        assert self.rnn is not None
        states, ended = self.rnn(x, lengths)
        if self.config.context == "last":
            top = ended[0]  # (L, B, H)
            if self.rnn.num_layers > 1:
                top = top[-2:] if self.rnn.bidirectional else top[-1:]
            return self._dropped(states), top.transpose(0, 1).flatten(1)
        return self._dropped(states), self.pooling(states, lengths).outputs

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.config.dropout, self.training)


class DecoderState(NamedTuple):
    """Where a recurrent decoder stands.

    Args:
        states: The cell's states by row, (B, L, H) each.
        fed: The features that the next step gets, where they are fed.
        coverage: The attention each item of the source has had, where it is counted.
    """

    states: tuple[Float[Tensor, "B L H"], ...]
    fed: Float[Tensor, "B H"] | None = None
    coverage: Float[Tensor, "B S"] | None = None


class RecurrentDecoder(nn.Module):
    r"""Words and a source to features of the next word.

    $$d_0 = \tanh(W_0 C + b_0), \quad d_t = \mathrm{cell}([e(y_{t-1}); \ldots], d_{t-1}), \quad
    c_t = \mathrm{attend}(d_t), \quad f_t = \tanh(W_c [c_t; d_t])$$

    Without attention $f_t = d_t$. The dots are C where `context_to` says so and, with
    `input_feeding`, $f_{t-1}$ ("output") or $c_t = \mathrm{attend}(d_{t-1})$ ("context"). With
    "upward" the first layer asks, $c_t = \mathrm{attend}(d^1_t)$, and the others go on from there,
    $d^2_t = \mathrm{cell}([d^1_t; c_t], d^2_{t-1})$: no step of training waits for the one before.

    Paper: Luong et al. (2015), "Effective Approaches to Attention-based Neural Machine
    Translation", EMNLP, sections 3 and 3.3; Bahdanau et al. (2015), "Neural Machine Translation by
    Jointly Learning to Align and Translate", ICLR, for "context"; Wu et al. (2016), "Google's
    Neural Machine Translation System", arXiv:1609.08144, section 3, for "upward".
    Differs from the papers: every state of every layer begins with a map of C of its own; with
    "context" the features are Luong's, not a maxout layer; "upward" asks by $d^1_t$, not by
    $d^1_{t-1}$, and hands $c_t$ to the second layer alone.
    Parameters: e = embedding, W_0 and b_0 = bridge, the cell's = rnn (and upper, the layers that
    "upward" feeds), attend = attention, W_c = combine.

    Args:
        config: The settings.
        encoder: Whose states it reads.
        coverage: Whether attention counts what it has seen.
    """

    def __init__(
        self, config: RecurrentPairOptions, encoder: RecurrentEncoder, *, coverage: bool = False
    ) -> None:
        super().__init__()
        self.config, self.covers = config, coverage
        H, E = config.hidden_size, encoder.output_size
        self.attention = self.combine = self.bridge = None
        attended = 0
        if config.attention != "none":
            self.attention = SourceAttention(
                H,
                E,
                score=config.attention,
                num_heads=config.num_heads,
                coverage=coverage,
                dropout=config.dropout,
            )
            attended = self.attention.output_size
            self.combine = nn.Linear(attended + H, H, bias=False)
        upward = config.input_feeding == "upward"
        feeds = {"none": 0, "output": H, "context": attended, "upward": 0}
        into = E if config.context_to != "state" else 0
        self.embedding = encoder.input.embedding if config.shared else None
        if self.embedding is None:
            self.embedding = nn.Embedding(config.vocab_size, config.embed_size)
        nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE)
        if encoder.input.embedding is not None and not config.shared:
            nn.init.uniform_(encoder.input.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE)
        self.rnn = Recurrent(
            config.cell,
            config.embed_size + into + feeds[config.input_feeding],
            H,
            num_layers=1 if upward else config.num_layers,
            dropout=config.dropout,
            backend=config.backend,
        )
        self.upper = None
        if upward:
            self.upper = Recurrent(
                config.cell,
                H + attended,
                H,
                num_layers=config.num_layers - 1,
                dropout=config.dropout,
                backend=config.backend,
            )
        if config.context_to != "input":
            self.bridge = nn.Linear(E, len(self.rnn.cell.states) * config.num_layers * H)

    def prepare(self, states: Float[Tensor, "B S E"]) -> Any:
        """What attention needs of the encoder's states."""
        return None if self.attention is None else self.attention.prepare(states)

    def begin(self, memory: Memory) -> DecoderState:
        """The state before the first word."""
        B, kinds, H = len(memory.states), len(self.rnn.cell.states), self.config.hidden_size
        if self.bridge is None:
            none = self.rnn.initial_states(B)
            if self.upper is not None:
                above = self.upper.initial_states(B)
                none = tuple(torch.cat(both) for both in zip(none, above, strict=True))
            states = tuple(part.transpose(0, 1) for part in none)
        else:
            first = torch.tanh(self.bridge(memory.context)).view(B, kinds, -1, H)
            states = first.unbind(1)  # (B, L, H) each
        like = memory.states
        feeds = self.config.input_feeding == "output"
        return DecoderState(
            states,
            like.new_zeros(B, H) if feeds else None,
            like.new_zeros(like.shape[:2]) if self.covers else None,
        )

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        memory: Memory,
        state: DecoderState,
        *,
        return_attention: bool = False,
    ) -> tuple[DecoderOutput, Float[Tensor, "B T H"], Float[Tensor, "B T E"] | None]:
        """Read words; give the output, the cell's own outputs and what attention read."""
        check_decoder_input(ids, memory)
        if self.config.input_feeding in ("none", "upward"):
            return self._read(ids, memory, state, return_attention=return_attention)
        parts = []
        for t in range(ids.shape[1]):
            step = self._read(ids[:, t : t + 1], memory, state, return_attention=return_attention)
            parts.append(step)
            state = step[0].state
        outputs, ys, cs = zip(*parts, strict=True)
        together = DecoderOutput(
            torch.cat([each.features for each in outputs], dim=1),
            state,
            _joined([each.attention for each in outputs]),
            None,
            _joined([each.covered for each in outputs]),
        )
        return together, torch.cat(ys, dim=1), _joined(list(cs))

    def _read(
        self,
        ids: Int[Tensor, "B T"],
        memory: Memory,
        state: DecoderState,
        *,
        return_attention: bool,
    ) -> tuple[DecoderOutput, Float[Tensor, "B T H"], Float[Tensor, "B T E"] | None]:
        """All words at once, or one of them where attention is fed."""
        config, T = self.config, ids.shape[1]
        assert self.embedding is not None
        x = self._dropped(self.embedding(known_ids(ids, config.vocab_size)))  # (B, T, D)
        found = None
        if config.context_to != "state":
            assert memory.context is not None
            x = torch.cat([x, memory.context[:, None].expand(-1, T, -1).to(x.dtype)], dim=-1)
        if config.input_feeding == "output":
            assert state.fed is not None
            x = torch.cat([x, state.fed[:, None].to(x.dtype)], dim=-1)
        elif config.input_feeding == "context":
            query = state.states[0][:, -1:]  # the first state of the last layer
            found = self._attend(query, memory, state, return_attention)
            x = torch.cat([x, found.outputs.to(x.dtype)], dim=-1)
        before = [part.transpose(0, 1) for part in state.states]  # (L, B, H)
        y, ended = self.rnn(x, None, before if self.upper is None else [p[:1] for p in before])
        if self.upper is not None:
            found = self._attend(y, memory, state, return_attention)
            x = self._dropped(torch.cat([y, found.outputs.to(y.dtype)], dim=-1))
            y, above = self.upper(x, None, [part[1:] for part in before])
            ended = tuple(torch.cat(both) for both in zip(ended, above, strict=True))
        states = tuple(part.transpose(0, 1) for part in ended)
        if self.attention is None:
            return DecoderOutput(self._dropped(y), DecoderState(states)), y, None
        found = found or self._attend(y, memory, state, return_attention)
        assert self.combine is not None
        both = torch.cat([found.outputs, y.to(found.outputs.dtype)], dim=-1)
        features = torch.tanh(self.combine(both))
        fed = features[:, -1] if config.input_feeding == "output" else None
        after = DecoderState(states, fed, found.coverage)
        output = DecoderOutput(self._dropped(features), after, found.weights, None, found.covered)
        return output, y, found.outputs

    def _attend(
        self, query: Tensor, memory: Memory, state: DecoderState, return_weights: bool
    ) -> Any:
        assert self.attention is not None
        return self.attention(
            query, memory.prepared, memory.lengths, state.coverage, return_weights=return_weights
        )

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.config.dropout, self.training)


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else torch.cat(parts, dim=1)
