"""R-Net: a passage matched with its question, then with itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError, one_of
from seqloom.kernels.asking import Asked, fits, run_asking
from seqloom.kernels.backends import has_triton
from seqloom.models.reader_parts import (
    ReaderInput,
    ReaderOptions,
    ReaderWords,
    SpanOutput,
    masks_of,
    span_output,
    whole,
)
from seqloom.nn.attention import attention_weights
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.scores import SCORES, Additive, General

Matching = Literal["parallel", "recurrent"]
Pointing = Literal["softmax", "pointer"]
CHOICES = {
    "attention": tuple(SCORES),
    "matching": ("parallel", "recurrent"),
    "output": ("softmax", "pointer"),
}


@dataclass(frozen=True, kw_only=True)
class RNetConfig(ReaderOptions):
    """Settings of `RNet`, besides those of `ReaderOptions`.

    "rnet-notes" is bilinear attention ("general"), matched in parallel, no gate in self-matching
    and two softmax layers. "rnet-paper" is additive attention, matched step by step, gated
    everywhere, with the pointer network, three encoding layers and characters by a GRU.

    Args:
        num_layers: Encoding layers.
        join_layers: Whether matching reads the states of all encoding layers side by side, in which
            the words are nearer; else those of the last one.
        attention: The score of both matchings: one of `seqloom.nn.scores.SCORES`.
        matching: "parallel" lets every word of the passage ask at once; "recurrent" lets it ask
            with the state of the matching so far, word after word.
        gated: Whether what was matched with the question goes through a gate.
        self_matching: Whether the passage is matched with itself.
        self_gate: Whether what was matched with itself goes through a gate.
        output: "softmax" for two linear layers, "pointer" for a pointer network that begins with
            a summary of the question.
    """

    TRAINING: ClassVar[Mapping[str, Any]] = {**ReaderOptions.TRAINING, "epochs": 16}

    hidden_size: int = 75
    num_layers: int = 1
    join_layers: bool = False
    attention: str = "general"
    matching: Matching = "parallel"
    gated: bool = True
    self_matching: bool = True
    self_gate: bool = False
    output: Pointing = "softmax"

    def __post_init__(self) -> None:
        self.check()
        if self.num_layers < 1:
            raise ConfigError(f"num_layers must be positive, got {self.num_layers}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(one_of(name, getattr(self, name), known))
        if self.matching == "recurrent" and self.attention != "additive":
            raise ConfigError(
                f"matching='recurrent' has attention='additive', got {self.attention!r}"
            )


class MatchOutput(NamedTuple):
    """What matching gives: each item with what it found, and how much it looked at what."""

    outputs: Float[Tensor, "B T O"]
    weights: Float[Tensor, "B T S"]


class GatedMatch(nn.Module):
    r"""Each item beside what it finds in another sequence, through a gate.

    $$\alpha_{ji} = \mathrm{softmax}_i \, s(h_j, k_i), \quad c_j = \sum_i \alpha_{ji} k_i, \quad
    y_j = \sigma(W_g [h_j; c_j]) \odot [h_j; c_j]$$

    Paper: Wang et al. (2017), "Gated Self-Matching Networks for Reading Comprehension and Question
    Answering", ACL, equations 4 to 6, without the state in the score.
    Differs from the paper: with `alike`, the matrix of the score "general" begins near the
    identity, so that equal words find each other from the first update on. Where a sequence is
    matched with itself that would let every item find itself and nothing else.
    Parameters: s = score, W_g = gate.

    Args:
        size: Width of the items, of both sequences.
        score: One of `seqloom.nn.scores.SCORES`.
        hidden_size: Width inside the score "additive".
        gated: Whether there is a gate; without one y is [h; c].
        alike: Whether items that are alike find each other at first.
    """

    def __init__(
        self, size: int, score: str, hidden_size: int, *, gated: bool, alike: bool = False
    ) -> None:
        super().__init__()
        self.score = SCORES[score](size, size, hidden_size)
        if alike and isinstance(self.score, General):
            with torch.no_grad():
                self.score.key.weight += torch.eye(size)
        self.gate = nn.Linear(2 * size, 2 * size, bias=False) if gated else None

    def forward(
        self,
        items: Float[Tensor, "B T D"],
        keys: Float[Tensor, "B S D"],
        real_keys: Bool[Tensor, "B S"],
    ) -> MatchOutput:
        """Match; the outputs are twice as wide as the items."""
        scores = self.score(items, self.score.prepare(keys))  # type: ignore[operator]
        weights = attention_weights(whole(scores), real_keys[:, None])  # (B, T, S)
        both = torch.cat([items, weights.to(keys.dtype) @ keys], dim=-1)  # (B, T, 2D)
        if self.gate is not None:
            both = torch.sigmoid(self.gate(both)) * both
        return MatchOutput(both, weights)


class RecurrentMatch(nn.Module):
    r"""Matching word after word: the state so far takes part in the attention.

    $$s_{ti} = v^\top \tanh(W^Q u_i^Q + W^P u_t^P + W^v v_{t-1}), \quad
    c_t = \sum_i \mathrm{softmax}_i(s_{ti}) u_i^Q$$

    $$v_t = \mathrm{GRU}(v_{t-1}, \sigma(W_g [u_t^P; c_t]) \odot [u_t^P; c_t])$$

    Paper: Wang et al. (2017), equations 4 to 6.
    Parameters: W^Q = keys, W^P = items, W^v = state, v = out, W_g = gate, the GRU = cell.

    Args:
        size: Width of the words' states.
        hidden_size: Width of the state, and inside the score.
        gated: Whether there is a gate.
        backend: "auto" and "triton" run the kernels on a card; with others it is a loop there too.
    """

    def __init__(self, size: int, hidden_size: int, *, gated: bool, backend: str = "auto") -> None:
        super().__init__()
        self.backend = backend
        self.keys = nn.Linear(size, hidden_size, bias=False)
        self.items = nn.Linear(size, hidden_size, bias=False)
        self.state = nn.Linear(hidden_size, hidden_size, bias=False)
        self.out = nn.Linear(hidden_size, 1, bias=False)
        self.gate = nn.Linear(2 * size, 2 * size, bias=False) if gated else None
        self.cell = nn.GRUCell(2 * size, hidden_size)
        self.output_size = hidden_size

    def forward(
        self,
        items: Float[Tensor, "B T D"],
        keys: Float[Tensor, "B S D"],
        real_keys: Bool[Tensor, "B S"],
        real_items: Bool[Tensor, "B T"],
    ) -> MatchOutput:
        """The states, 0 on padding, and the weights.

        On a card all steps are one launch (`seqloom.kernels.asking`), else a loop.
        """
        fast = self.backend in ("auto", "triton") and items.is_cuda and has_triton()
        if fast and fits(self.output_size, keys.shape[1]):
            return self.at_once(items, keys, real_keys, real_items)
        B, T, _ = items.shape
        own, others = self.items(items), self.keys(keys)  # (B, T, H), (B, S, H)
        v = items.new_zeros(B, self.output_size)
        states, weights = [], []
        for t in range(T):
            inner = torch.tanh(others + (own[:, t] + self.state(v))[:, None])  # (B, S, H)
            looked = attention_weights(whole(self.out(inner)[..., 0]), real_keys)  # (B, S)
            found = (looked[:, None].to(keys.dtype) @ keys)[:, 0]  # (B, D)
            both = torch.cat([items[:, t], found], dim=-1)  # (B, 2D)
            if self.gate is not None:
                both = torch.sigmoid(self.gate(both)) * both
            alive = real_items[:, t, None]
            stepped = self.cell(both, v).to(v.dtype)
            v = torch.where(alive, stepped, v)
            states.append(torch.where(alive, stepped, 0.0))
            weights.append(looked)
        return MatchOutput(torch.stack(states, dim=1), torch.stack(weights, dim=1))

    def at_once(
        self,
        items: Float[Tensor, "B T D"],
        keys: Float[Tensor, "B S D"],
        real_keys: Bool[Tensor, "B S"],
        real_items: Bool[Tensor, "B T"],
    ) -> MatchOutput:
        """The same by the kernels; what the state takes no part in is multiplied beforehand."""
        given, asking = None, None
        if self.gate is not None:
            of_item, of_found = self.gate.weight.chunk(2, dim=1)  # (2D, D) each
            given = functional.linear(items, of_item).float()
            asking = functional.linear(keys, of_found).float()
        cell = self.cell
        states, weights = run_asking(
            Asked(
                self.items(items).float(),
                self.keys(keys).float(),
                items.float(),
                keys.float(),
                given,
                asking,
                self.state.weight.float(),
                self.out.weight[0].float(),
                cell.weight_ih.float(),
                cell.bias_ih.float(),
                cell.weight_hh.float(),
                cell.bias_hh.float(),
                real_items.sum(dim=1),
                real_keys.sum(dim=1),
            )
        )
        return MatchOutput(states.to(items.dtype), weights)


class SpanPointer(nn.Module):
    r"""A pointer network of two steps, which begins with a summary of the question.

    $$r^Q = \sum_j \mathrm{softmax}_j(v_Q^\top \tanh(W^Q u_j^Q + b_Q)) u_j^Q, \quad h_0 = r^Q$$

    $$s_j^k = v^\top \tanh(W^P h_j^P + W^a h_{k-1}), \quad
    h_k = \mathrm{GRU}(h_{k-1}, \sum_j \mathrm{softmax}_j(s_j^k) h_j^P)$$

    Paper: Wang et al. (2017), equations 9 to 11; Vinyals et al. (2015), "Pointer Networks",
    NeurIPS. The paper's product of a matrix and a learned vector is the vector b_Q.
    Parameters: W^Q and b_Q = pooling, v_Q = pooled, the score s = score, the GRU = cell.

    Args:
        passage_size: Width of the passage's states.
        question_size: Width of the question's states.
        hidden_size: Width inside the scores.
    """

    def __init__(self, passage_size: int, question_size: int, hidden_size: int) -> None:
        super().__init__()
        self.pooling = nn.Linear(question_size, hidden_size)
        self.pooled = nn.Linear(hidden_size, 1, bias=False)
        self.score = Additive(question_size, passage_size, hidden_size)
        self.cell = nn.GRUCell(passage_size, question_size)

    def forward(
        self,
        passage: Float[Tensor, "B T P"],
        question: Float[Tensor, "B S Q"],
        real_passage: Bool[Tensor, "B T"],
        real_question: Bool[Tensor, "B S"],
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """The scores of beginnings and of ends."""
        pooled = whole(self.pooled(torch.tanh(self.pooling(question)))[..., 0])  # (B, S)
        weights = attention_weights(pooled, real_question).to(question.dtype)
        h = (weights[:, None] @ question)[:, 0]  # (B, Q)
        prepared = self.score.prepare(passage)
        start = self.score(h[:, None], prepared)[:, 0]  # (B, T)
        looked = attention_weights(whole(start), real_passage).to(passage.dtype)
        h = self.cell((looked[:, None] @ passage)[:, 0], h)
        return start, self.score(h[:, None].to(prepared.dtype), prepared)[:, 0]


class RNet(nn.Module):
    r"""Where an answer begins and ends, by matching a passage with its question and with itself.

    $$u^Q = \mathrm{BiGRU}(x^Q), \quad u^P = \mathrm{BiGRU}(x^P), \quad
    v = \mathrm{match}(u^P, u^Q), \quad h = \mathrm{BiGRU}(\mathrm{match}(v, v))$$

    $$p^{start} = \mathrm{softmax}(W_s h), \quad p^{end} = \mathrm{softmax}(W_e h)$$

    or the two steps of `SpanPointer`. A match in parallel is `GatedMatch` and a BiGRU, else it is
    `RecurrentMatch`.

    Paper: Wang, Yang, Wei, Chang and Zhou (2017), "Gated Self-Matching Networks for Reading
    Comprehension and Question Answering", ACL.
    Parameters: the words = input, both encoders = encoder (one for both; a list of layers where
    they are joined), match with the question = match and matched, with itself = self_match and
    self_matched, W_s and W_e = start and end.

    Args:
        config: The settings.
    """

    def __init__(self, config: RNetConfig) -> None:
        super().__init__()
        self.config = config
        H, score = config.hidden_size, config.attention
        self.input = ReaderWords(config)
        self.encoder: Recurrent | nn.ModuleList
        wide = 2 * H  # what matching reads of a word
        if config.join_layers:
            sizes = [config.token_size] + (config.num_layers - 1) * [2 * H]
            self.encoder = nn.ModuleList(self._layers(size) for size in sizes)
            wide *= config.num_layers
        else:
            self.encoder = self._layers(config.token_size, config.num_layers)
        self.match: GatedMatch | RecurrentMatch
        self.matched = None
        if config.matching == "parallel":
            self.match = GatedMatch(wide, score, H, gated=config.gated, alike=True)
            self.matched = self._layers(2 * wide)
            width = 2 * H
        else:
            self.match = RecurrentMatch(wide, H, gated=config.gated, backend=config.backend)
            width = H
        self.self_match = self.self_matched = None
        if config.self_matching:
            self.self_match = GatedMatch(width, score, H, gated=config.self_gate)
            self.self_matched = self._layers(2 * width)
            width = 2 * H
        self.pointer = self.start = self.end = None
        if config.output == "pointer":
            self.pointer = SpanPointer(width, wide, H)
        else:
            self.start, self.end = nn.Linear(width, 1), nn.Linear(width, 1)

    def _layers(self, input_size: int, num_layers: int = 1) -> Recurrent:
        return Recurrent(
            "gru",
            input_size,
            self.config.hidden_size,
            num_layers=num_layers,
            bidirectional=True,
            dropout=self.config.dropout,
            backend=self.config.backend,
        )

    def forward(self, x: ReaderInput) -> SpanOutput:
        """How well an answer begins and ends with each word of a passage."""
        lengths = x.passage_lengths
        passage, question = self.input(x)
        real, asked = masks_of(x)
        p = self._encoded(passage, lengths)  # (B, T, D)
        q = self._encoded(question, x.question_lengths)  # (B, S, D)
        v, attention = self._matched(p, q, real, asked, lengths)
        if self.self_match is not None and self.self_matched is not None:
            found = self.self_match(v, v, real).outputs
            v = self.self_matched(self._dropped(found), lengths).outputs  # (B, T, 2H)
        v = self._dropped(v)
        if self.pointer is not None:
            start, end = self.pointer(v, self._dropped(q), real, asked)
        else:
            assert self.start is not None and self.end is not None
            start, end = self.start(v)[..., 0], self.end(v)[..., 0]
        return span_output(start, end, real, attention)

    def _encoded(
        self, words: Float[Tensor, "B T E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T D"]:
        if isinstance(self.encoder, Recurrent):
            return self.encoder(words, lengths).outputs  # type: ignore[no-any-return]
        found = [words]
        for layer in self.encoder:
            given = found[-1] if len(found) == 1 else self._dropped(found[-1])
            found.append(layer(given, lengths).outputs)  # (B, T, 2H)
        return torch.cat(found[1:], dim=-1)

    def _matched(
        self,
        p: Float[Tensor, "B T D"],
        q: Float[Tensor, "B S D"],
        real: Bool[Tensor, "B T"],
        asked: Bool[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "B T O"], Float[Tensor, "B T S"]]:
        if isinstance(self.match, RecurrentMatch):
            v, attention = self.match(self._dropped(p), self._dropped(q), asked, real)
        else:
            assert self.matched is not None
            found, attention = self.match(p, q, asked)
            v = self.matched(self._dropped(found), lengths).outputs  # (B, T, 2H)
        return v, attention

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.config.dropout, self.training)
