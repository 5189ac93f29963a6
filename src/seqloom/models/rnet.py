"""R-Net: a passage matched with its question, then with itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, one_of
from seqloom.models.reader_parts import (
    ReaderInput,
    ReaderOptions,
    ReaderWords,
    SpanOutput,
    masks_of,
    span_output,
)
from seqloom.nn.dropping import dropped
from seqloom.nn.matching import GatedMatch, RecurrentMatch, SpanPointer
from seqloom.nn.recurrent import Recurrent
from seqloom.nn.scores import SCORES

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
            variational=self.config.variational,
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
        config = self.config
        return dropped(x, config.dropout, training=self.training, variational=config.variational)
