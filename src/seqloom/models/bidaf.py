"""BiDAF: attention from the passage to the question and back, flowing through all layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seqloom.errors import ConfigError
from seqloom.models.reader_parts import (
    ReaderInput,
    ReaderOptions,
    ReaderWords,
    SpanOutput,
    masks_of,
    span_output,
)
from seqloom.nn.attention import attention_weights, whole
from seqloom.nn.dropping import dropped
from seqloom.nn.recurrent import Recurrent


@dataclass(frozen=True, kw_only=True)
class BiDAFConfig(ReaderOptions):
    """Settings of `BiDAF`, besides those of `ReaderOptions`.

    Args:
        num_layers: Modeling layers.
        to_question: Whether the passage attends to the question; without it A is the mean of the
            question's states.
        to_passage: Whether the question attends to the passage; without it G has no H * C.
    """

    num_layers: int = 2
    to_question: bool = True
    to_passage: bool = True

    def __post_init__(self) -> None:
        self.check()
        if self.num_layers < 1:
            raise ConfigError(f"num_layers must be positive, got {self.num_layers}")
        if not (self.to_question or self.to_passage):
            raise ConfigError("to_question or to_passage must be true, got neither")


class FlowOutput(NamedTuple):
    """What `AttentionFlow` gives.

    Args:
        outputs: G, each word of the passage with what it found in the question.
        to_question: How much each word of the passage looked at each word of the question.
        to_passage: How much the question looked at each word of the passage; None without it.
    """

    outputs: Float[Tensor, "B T G"]
    to_question: Float[Tensor, "B T S"]
    to_passage: Float[Tensor, "B T"] | None


class AttentionFlow(nn.Module):
    r"""Attention both ways between a passage and a question.

    $$S_{ij} = w^\top [H_i; U_j; H_i \odot U_j], \quad
    A_i = \sum_j \mathrm{softmax}_j(S_{ij}) U_j, \quad
    b = \mathrm{softmax}_i(\max_j S_{ij}), \quad C = \sum_i b_i H_i$$

    $$G_i = [H_i; A_i; H_i \odot A_i; H_i \odot C]$$

    Paper: Seo et al. (2017), section 2, layer 4.
    Differs from the paper: the part of w for the product begins as 1, so that S is the inner
    product at first and equal words find each other from the first update on.
    Parameters: w = weight, the three parts of it in a row each (3, D).

    Args:
        input_size: Width D of the states.
        to_question: Whether A is attended to, else the mean of U.
        to_passage: Whether there is C.
    """

    def __init__(self, input_size: int, *, to_question: bool = True, to_passage: bool = True):
        super().__init__()
        bound = (3 * input_size) ** -0.5
        self.weight = nn.Parameter(torch.empty(3, input_size).uniform_(-bound, bound))
        with torch.no_grad():
            self.weight[2] = 1.0
        self.to_question, self.to_passage = to_question, to_passage
        self.output_size = input_size * (4 if to_passage else 3)

    def forward(
        self,
        passage: Float[Tensor, "B T D"],
        question: Float[Tensor, "B S D"],
        real_passage: Bool[Tensor, "B T"],
        real_question: Bool[Tensor, "B S"],
    ) -> FlowOutput:
        """Attend; on padding of the passage the outputs mean nothing."""
        own, others, both = self.weight.to(passage.dtype)
        scores = (passage * both) @ question.mT  # (B, T, S)
        scores = whole(scores + (passage @ own)[..., None] + (question @ others)[:, None])
        seen = real_question[:, None]  # (B, 1, S)
        weights = attention_weights(scores if self.to_question else torch.zeros_like(scores), seen)
        found = weights.to(question.dtype) @ question  # (B, T, D)
        parts = [passage, found, passage * found]
        to_passage = None
        if self.to_passage:
            best = scores.masked_fill(~seen, -torch.inf).amax(dim=2)  # (B, T)
            to_passage = attention_weights(best, real_passage)
            summary = to_passage[:, None].to(passage.dtype) @ passage  # (B, 1, D)
            parts.append(passage * summary)
        return FlowOutput(torch.cat(parts, dim=-1), weights, to_passage)


class BiDAF(nn.Module):
    r"""Where an answer begins and ends, by attention that flows both ways.

    $$H = \mathrm{BiLSTM}(X^P), \quad U = \mathrm{BiLSTM}(X^Q), \quad G = \mathrm{flow}(H, U),
    \quad M = \mathrm{BiLSTM}(G)$$

    $$p^{start} = \mathrm{softmax}(w_1^\top [G; M]), \quad
    p^{end} = \mathrm{softmax}(w_2^\top [G; \mathrm{BiLSTM}(M)])$$

    Paper: Seo, Kembhavi, Farhadi and Hajishirzi (2017), "Bidirectional Attention Flow for Machine
    Comprehension", ICLR, section 2.
    Parameters: the words = input, H and U = context, the flow = flow, M = modeling, the last
    layer = ending, w_1 and w_2 = start and end.

    Args:
        config: The settings.
    """

    def __init__(self, config: BiDAFConfig) -> None:
        super().__init__()
        self.config = config
        H, options = config.hidden_size, {"bidirectional": True, "backend": config.backend}
        self.input = ReaderWords(config)
        self.context = Recurrent("lstm", config.token_size, H, **options)  # type: ignore[arg-type]
        self.flow = AttentionFlow(
            2 * H, to_question=config.to_question, to_passage=config.to_passage
        )
        wide = self.flow.output_size
        self.modeling = Recurrent(
            "lstm",
            wide,
            H,
            num_layers=config.num_layers,
            dropout=config.dropout,
            variational=config.variational,
            **options,  # type: ignore[arg-type]
        )
        self.ending = Recurrent("lstm", 2 * H, H, **options)  # type: ignore[arg-type]
        self.start = nn.Linear(wide + 2 * H, 1)
        self.end = nn.Linear(wide + 2 * H, 1)

    def forward(self, x: ReaderInput) -> SpanOutput:
        """How well an answer begins and ends with each word of a passage."""
        passage, question = self.input(x)
        H = self.context(passage, x.passage_lengths).outputs  # (B, T, 2H)
        U = self.context(question, x.question_lengths).outputs  # (B, S, 2H)
        real, asked = masks_of(x)
        G, attention, _ = self.flow(H, U, real, asked)  # (B, T, 8H)
        M = self.modeling(self._dropped(G), x.passage_lengths).outputs  # (B, T, 2H)
        E = self.ending(self._dropped(M), x.passage_lengths).outputs  # (B, T, 2H)
        start = self.start(self._dropped(torch.cat([G, M], dim=-1)))[..., 0]
        end = self.end(self._dropped(torch.cat([G, E], dim=-1)))[..., 0]
        return span_output(start, end, real, attention)

    def _dropped(self, x: Tensor) -> Tensor:
        config = self.config
        return dropped(x, config.dropout, training=self.training, variational=config.variational)
