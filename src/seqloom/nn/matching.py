"""Matching a sequence with another or with itself, and pointing at a span, as R-Net does."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from seqloom.kernels.asking import Asked, fits, run_asking
from seqloom.kernels.backends import has_triton
from seqloom.nn.attention import attention_weights, whole
from seqloom.nn.scores import SCORES, Additive, General


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
        backend: On a card "auto" and "triton" run the kernels; with others it is a loop there too.
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

        On a card all steps may be one launch (`seqloom.kernels.asking`), else it is a loop.
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
