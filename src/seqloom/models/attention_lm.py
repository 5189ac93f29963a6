"""A recurrent language model that attends to its own past."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.models.inputs import check_lm_input
from seqloom.models.outputs import LMOutput, OutputOptions
from seqloom.nn.attention import Attention
from seqloom.nn.masking import are_whole
from seqloom.nn.past import keep_last
from seqloom.nn.recurrent import Recurrent

Form = Literal["attention", "key-value", "key-value-predict"]
FORMS = {"attention": 1, "key-value": 2, "key-value-predict": 3}  # name -> parts of a state


@dataclass(frozen=True, kw_only=True)
class AttentionLMConfig(OutputOptions):
    """Settings of `AttentionLM`, besides those of `OutputOptions`.

    Args:
        vocab_size: Words known.
        cell: A cell's name: one of `seqloom.nn.cells.CELLS`, or one that was registered.
        embed_size: Width of a word vector; 0 takes `hidden_size`.
        hidden_size: Width of the state of each layer.
        num_layers: Layers stacked.
        form: What a state is used as: "attention", all of it for everything; "key-value", one half
            to be compared and one to be read; "key-value-predict", a third each to be compared, to
            be read and to predict with.
        score: How states are compared: one of `seqloom.nn.scores.SCORES`.
        context_size: How many past states are attended to.
        dropout: Share of units dropped between layers, after the embedding and before the output.
        tied: Whether the output layer shares the word vectors; needs embed_size == hidden_size.
        init_range: Weights begin uniformly in [-init_range, init_range].
        backend: What runs the recurrence; "auto" chooses.
    """

    vocab_size: int
    cell: str = "lstm"
    embed_size: int = 0
    hidden_size: int = 200
    num_layers: int = 1
    form: Form = "attention"
    score: str = "additive"
    context_size: int = 15
    dropout: float = 0.0
    tied: bool = False
    init_range: float = 0.1
    backend: str = "auto"

    def __post_init__(self) -> None:
        sizes = (self.vocab_size, self.hidden_size, self.num_layers, self.context_size)
        if min(sizes) < 1 or self.embed_size < 0:
            raise ConfigError(
                "vocab_size, hidden_size, num_layers and context_size must be positive and "
                f"embed_size not negative, got {sizes} and {self.embed_size}"
            )
        if self.form not in FORMS:
            raise ConfigError(one_of("form", self.form, FORMS))
        if self.hidden_size % FORMS[self.form]:
            raise ConfigError(
                f"form {self.form!r} needs a hidden_size that {FORMS[self.form]} divides, "
                f"got {self.hidden_size}"
            )
        if self.tied and self.embed_size not in (0, self.hidden_size):
            raise ConfigError(
                "tied weights need embed_size == hidden_size, got "
                f"{self.embed_size} and {self.hidden_size}"
            )
        self.check_output(tied=self.tied)
        if self.init_range <= 0:
            raise ConfigError(f"init_range must be positive, got {self.init_range}")
        if not isinstance(self.cell, str):
            raise ConfigError(
                f"cell must be a name, got {self.cell!r}; give the class one with register_cell"
            )
        with torch.device("meta"):  # the layers check the rest, and take no memory there
            self.build_layers()
            self.build_attention()

    @property
    def part_size(self) -> int:
        """Width of a part of a state."""
        return self.hidden_size // FORMS[self.form]

    def build_layers(self) -> Recurrent:
        """The recurrent layers."""
        return Recurrent(
            self.cell,
            self.embed_size or self.hidden_size,
            self.hidden_size,
            num_layers=self.num_layers,
            dropout=self.dropout,
            backend=self.backend,
        )

    def build_attention(self) -> Attention:
        """What compares a state with past ones."""
        return Attention(self.part_size, self.part_size, score=self.score)


@cache
def state_type(states: tuple[str, ...]) -> Any:
    """The NamedTuple of a cell's states, each (B, L, H), and of past outputs and their number."""
    return namedtuple("AttentionState", (*states, "past", "seen"), rename=True)


class AttentionLM(nn.Module):
    r"""Word vectors, recurrent layers, attention to their last outputs, a softmax.

    $$h_t = \mathrm{cell}(e(w_t), h_{t-1}) = [k_t; v_t; p_t], \quad
    \alpha_{ts} = \mathrm{softmax}_s \, s(k_t, k_s), \quad
    r_t = \sum_{s=t-C}^{t-1} \alpha_{ts} v_s$$
    $$y_t = \tanh(W [p_t; r_t] + b), \quad
    p(w_{t+1} \mid w_{\le t}) = \mathrm{softmax}(V y_t + c)$$

    With form="attention" k, v and p are all of h, with "key-value" p is v. Before the first word
    there is nothing to attend to and r is 0. "additive" is the
    paper's score.

    Paper: Daniluk et al. (2017), "Frustratingly Short Attention Spans in Neural Language Modeling",
    ICLR, equations 1 to 9; Cheng et al. (2016), "Long Short-Term Memory-Networks for Machine
    Reading", EMNLP, for attention to a network's own past.
    Differs from the papers: y is as wide as h in every form, and has a bias; the attention does not
    feed the recurrence, so whole sequences go through the fast layer first.

    Args:
        config: The settings.
    """

    def __init__(self, config: AttentionLMConfig) -> None:
        super().__init__()
        self.config = config
        H = config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, config.embed_size or H)
        self.rnn = config.build_layers()
        self.attention = config.build_attention()
        self.combine = nn.Linear(2 * config.part_size, H)
        self.output = config.build_output(H, config.vocab_size)
        for weight in self.parameters():
            if weight.ndim:  # the sharpness of score="cosine" begins at 1
                nn.init.uniform_(weight, -config.init_range, config.init_range)
        if config.tied:
            self.output.tie(self.embedding)

    def initial_state(self, batch_size: int) -> Any:
        """Zeros: no past."""
        states, like = self.rnn.initial_states(batch_size), self.embedding.weight
        past = like.new_zeros(batch_size, self.config.context_size, self.config.hidden_size)
        seen = torch.zeros(batch_size, dtype=torch.long, device=like.device)
        return self._state(states, past, seen)

    def _state(self, states: tuple[Tensor, ...], past: Tensor, seen: Tensor) -> Any:
        rows = (part.transpose(0, 1) for part in states)
        return state_type(self.rnn.cell.states)(*rows, past, seen)

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        state: Any = None,
    ) -> LMOutput:
        """Read `ids`; on padding the features mean nothing.

        A row of length 0 keeps its state.
        """
        check_lm_input(ids, lengths, state)
        B, T = ids.shape
        if are_whole(lengths, T):
            lengths = None  # nothing is padded, which is faster to know
        state = self.initial_state(B) if state is None else state
        *begin, past, seen = state
        x = self._dropped(self.embedding(ids))  # (B, T, D)
        begin = [part.transpose(0, 1).to(x.dtype) for part in begin]  # (L, B, H)
        h, ended = self.rnn(x, None if lengths is None else lengths.clamp(min=1), begin)
        if lengths is not None:
            alive = (lengths > 0)[:, None]
            ended = tuple(torch.where(alive, n, o) for n, o in zip(ended, begin, strict=True))
        both = torch.cat([past.to(h.dtype), h], dim=1)  # (B, C + T, H)
        features = self._dropped(self._attended(h, both, seen))
        read = T if lengths is None else lengths
        kept = keep_last(both, T, lengths).to(past.dtype)
        return LMOutput(features, self._state(ended, kept, seen + read))

    def _attended(
        self, h: Float[Tensor, "B T H"], both: Float[Tensor, "B S H"], seen: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T H"]:
        """Attend from each state to the C before it, those of the past included."""
        C, K, T = self.config.context_size, self.config.part_size, h.shape[1]
        parts, own = both.split(K, dim=-1), h.split(K, dim=-1)
        keys, values = parts[0], parts[min(1, len(parts) - 1)]
        keys, values, prepared = (
            part[:, :-1].unfold(1, C, 1).mT  # (B, T, C, K)
            for part in (keys, values, self.attention.prepare(keys))
        )
        steps = torch.arange(T, device=h.device)[:, None] + seen[:, None, None]  # (B, T, 1)
        is_there = torch.arange(C, 0, -1, device=h.device) <= steps  # (B, T, C): read already
        read, _ = self.attention(
            own[0][:, :, None], keys, values, mask=is_there[:, :, None], prepared=prepared
        )
        return torch.tanh(self.combine(torch.cat([own[-1], read[:, :, 0]], dim=-1)))

    def _dropped(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return functional.dropout(x, self.config.dropout, self.training)
