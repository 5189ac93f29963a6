r"""Output layers of language models: from features to a distribution over the vocabulary.

Every layer has three methods, and a model never needs more of it:

- `loss(features, targets)`: what training minimizes, summed over the rows;
- `target_log_probs(features, targets)`: $\log p(w)$ of one word a row, exact;
- `log_probs(features)`: $\log p$ of every word, exact.

Two more are called once, when a model is made: `tie` and `set_counts`.

Log-probabilities are natural, and in float32 at least.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ShapeError

SLICE = 1 << 24  # scores held at once where no gradient is asked for: 64 MB in float32


class OutputLayer(Protocol):
    """What every output layer can do."""

    def loss(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """What training minimizes, summed over rows; in evaluation the exact cross-entropy."""
        ...

    def target_log_probs(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one word a row."""
        ...

    def log_probs(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The log-probability of every word."""
        ...

    def tie(self, embedding: nn.Embedding) -> None:
        """Share the weights of word vectors, or raise `ConfigError`."""
        ...

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Take in how often each word occurs in the training data; kept with the weights."""
        ...


class FullSoftmax(nn.Module):
    r"""A softmax over all words.

    $$p(w \mid x) = \frac{\exp(W_w x + b_w)}{\sum_v \exp(W_v x + b_v)}$$

    Paper: Bridle (1990), "Probabilistic Interpretation of Feedforward Classification Network
    Outputs".
    Parameters: W = weight (V, D), b = bias (V,), named and begun as those of `nn.Linear`.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.

    Examples:
        >>> layer = FullSoftmax(3, 5)
        >>> layer.log_probs(torch.zeros(2, 3)).exp().sum(dim=1).round(decimals=4).tolist()
        [1.0, 1.0]
    """

    def __init__(self, in_features: int, vocab_size: int) -> None:
        super().__init__()
        self.in_features, self.vocab_size = in_features, vocab_size
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(vocab_size, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(vocab_size).uniform_(-bound, bound))

    def tie(self, embedding: nn.Embedding) -> None:
        """Share the weights of word vectors (Press and Wolf 2017; Inan et al. 2017)."""
        self.weight = embedding.weight  # type: ignore[assignment]

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Counts change nothing here."""

    def loss(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """The cross-entropy, summed."""
        return -self.target_log_probs(features, targets).sum()

    def target_log_probs(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one word a row; without gradients in slices of the rows."""
        return softmax_log_probs(features, targets, self.weight, self.bias)

    def log_probs(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The log-probability of every word."""
        return exact(functional.linear(features, self.weight, self.bias)).log_softmax(dim=-1)


def softmax_log_probs(
    features: Float[Tensor, "N D"],
    targets: Int[Tensor, " N"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
) -> Float[Tensor, " N"]:
    """The log-probability of one class a row, under a softmax over all V."""
    size = len(features) if torch.is_grad_enabled() else rows_at_once(len(weight))
    found = [
        -functional.cross_entropy(
            exact(functional.linear(rows, weight, bias)), wanted, reduction="none"
        )
        for rows, wanted in zip(
            features.split(max(size, 1)), targets.split(max(size, 1)), strict=True
        )
    ]
    return torch.cat(found)


def rows_at_once(width: int) -> int:
    """How many rows of so many scores to hold at once."""
    return max(1, SLICE // width)


def copy_counts(own: Int[Tensor, " V"], given: Int[Tensor, " V"]) -> None:
    """Take over counts of the words of the same vocabulary.

    Raises:
        ShapeError: If there are more or fewer.
    """
    if given.shape != own.shape:
        raise ShapeError(f"there must be {len(own)} counts, one a word, got {tuple(given.shape)}")
    own.copy_(given)


def exact(scores: Tensor) -> Tensor:
    """Scores in float32 at least, whatever precision their product was taken in."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
