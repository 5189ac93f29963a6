"""Tags one by one: what a conditional random field is without transitions."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.nn.crf import Paths, best_paths, check_scores, check_tags
from seqloom.nn.masking import lengths_to_mask


class TagSoftmax(nn.Module):
    r"""The probability of each tag at each step, whatever the others are.

    $$\ln p(y \mid x) = \sum_{t=1}^{n} \ln \mathrm{softmax}(s_t)_{y_t}$$

    It has the methods of `seqloom.nn.crf.CRF` and no weights.

    Args:
        size: Tags K.

    Examples:
        >>> TagSoftmax(2).decode(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])).tolist()
        [[0, 1]]
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ConfigError(f"size must be at least 1, got {size}")
        self.size = size

    def loss(
        self,
        scores: Float[Tensor, "B T K"],
        tags: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, " B"]:
        r"""$-\ln p(y \mid x)$ of each row; tags on padding are not looked at."""
        lengths = check_scores(scores, lengths, self.size)
        check_tags(scores, tags, lengths)
        ignored = tags.masked_fill(~lengths_to_mask(lengths, scores.shape[1]), -1)
        each: Tensor = functional.cross_entropy(
            scores.flatten(0, 1), ignored.flatten(), ignore_index=-1, reduction="none"
        )
        return each.view(tags.shape).sum(dim=1)

    @torch.no_grad()
    def marginals(
        self, scores: Float[Tensor, "B T K"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T K"]:
        """The probability of each tag at each step; 0 on padding."""
        lengths = check_scores(scores, lengths, self.size)
        real = lengths_to_mask(lengths, scores.shape[1])
        return scores.softmax(dim=-1).masked_fill(~real[..., None], 0.0)

    @torch.no_grad()
    def decode(
        self, scores: Float[Tensor, "B T K"], lengths: Int[Tensor, " B"] | None = None
    ) -> Int[Tensor, "B T"]:
        """The best tag of each step; 0 on padding."""
        lengths = check_scores(scores, lengths, self.size)
        real = lengths_to_mask(lengths, scores.shape[1])
        return scores.argmax(dim=-1).masked_fill(~real, 0)

    @torch.no_grad()
    def best(
        self,
        scores: Float[Tensor, "B T K"],
        lengths: Int[Tensor, " B"] | None = None,
        count: int = 1,
    ) -> Paths:
        """The best paths of each row; their scores are log-probabilities."""
        lengths = check_scores(scores, lengths, self.size)
        none = scores.new_zeros(self.size)
        weights = (none.new_zeros(self.size, self.size), none, none)
        return best_paths(scores.log_softmax(dim=-1), lengths, weights, count)

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.size}"
