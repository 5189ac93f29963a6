"""The adaptive softmax: frequent words in a short list, rare ones in clusters behind it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from seqloom.errors import ConfigError
from seqloom.nn.softmax import copy_counts, exact, rows_at_once

USUAL_CUTOFFS = (2000, 10000, 50000)


def usual_cutoffs(vocab_size: int) -> tuple[int, ...]:
    """Where clusters begin if nobody says: at 2,000, 10,000 and 50,000 words, as far as there are.

    A cutoff is taken if at least as many words come after it; of a small vocabulary the first
    quarter is the short list.
    """
    found = tuple(cut for cut in USUAL_CUTOFFS if 2 * cut <= vocab_size)
    return found or ((vocab_size // 4,) if vocab_size >= 4 else ())


class AdaptiveSoftmax(nn.Module):
    r"""A softmax over the most frequent words and one entry a cluster, then one inside the cluster.

    $$p(w \mid x) = \begin{cases} p_0(w \mid x) & w \text{ in the short list} \\
    p_0(c \mid x)\, p_c(w \mid x) & w \text{ in cluster } c \end{cases}, \quad
    p_0 = \mathrm{softmax}(H x), \; p_c = \mathrm{softmax}(B_c A_c x)$$

    $A_c$ has $D / d^c$ rows, so that rare words have narrower vectors. Words are ranked by the
    counts of the training data (`set_counts`), until then by their ids.
    Paper: Grave et al. (2017), "Efficient softmax approximation for GPUs", ICML, section 4.
    Parameters: H = head.weight; A_c, B_c = tail.{c-1}.0.weight, tail.{c-1}.1.weight: those of
    `torch.nn.AdaptiveLogSoftmaxWithLoss`, which load unchanged.

    Args:
        in_features: Width D of the features.
        vocab_size: Words V.
        cutoffs: The ranks at which clusters begin; empty takes `usual_cutoffs`.
        div_value: How many times narrower each cluster is than the one before, d.

    Examples:
        >>> layer = AdaptiveSoftmax(8, 10, cutoffs=(4, 7))
        >>> tuple(layer.head.weight.shape), tuple(layer.tail[1][1].weight.shape)
        ((6, 8), (3, 1))
    """

    counts: Tensor

    def __init__(
        self,
        in_features: int,
        vocab_size: int,
        *,
        cutoffs: Sequence[int] = (),
        div_value: float = 4.0,
    ) -> None:
        super().__init__()
        self.in_features, self.vocab_size = in_features, vocab_size
        self.cutoffs = tuple(cutoffs) or usual_cutoffs(vocab_size)
        if list(self.cutoffs) != sorted({cut for cut in self.cutoffs if 0 < cut < vocab_size}):
            raise ConfigError(
                f"cutoffs must increase and lie between 0 and the {vocab_size} words of the "
                f"vocabulary, got {list(self.cutoffs)}"
            )
        if div_value <= 0:
            raise ConfigError(f"div_value must be positive, got {div_value}")
        self.short = self.cutoffs[0] if self.cutoffs else vocab_size
        self.ends = (*self.cutoffs[1:], vocab_size) if self.cutoffs else ()
        self.head = nn.Linear(in_features, self.short + len(self.cutoffs), bias=False)
        self.tail = nn.ModuleList()
        for c, (begin, end) in enumerate(zip(self.cutoffs, self.ends, strict=True), 1):
            width = max(1, int(in_features // div_value**c))
            self.tail.append(
                nn.Sequential(
                    nn.Linear(in_features, width, bias=False),
                    nn.Linear(width, end - begin, bias=False),
                )
            )
        self.register_buffer("counts", torch.zeros(vocab_size, dtype=torch.long))
        self._ranks: Tensor | None = None
        self.register_load_state_dict_post_hook(_forget_ranks)  # type: ignore[no-untyped-call]

    def set_counts(self, counts: Int[Tensor, " V"]) -> None:
        """Rank words by how often each occurs; of equally frequent ones the smaller id first."""
        copy_counts(self.counts, counts)
        self._ranks = None

    def tie(self, embedding: nn.Embedding) -> None:
        """Refused: the weights have other shapes."""
        raise ConfigError(f"an adaptive softmax cannot be tied, got weights of {embedding}")

    def ranks(self) -> Int[Tensor, " V"]:
        """The rank of each word, 0 for the most frequent."""
        if self._ranks is None or self._ranks.device != self.counts.device:
            order = self.counts.argsort(descending=True, stable=True)
            self._ranks = order.argsort()
        return self._ranks

    def loss(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        """The cross-entropy, summed."""
        return -self.target_log_probs(features, targets).sum()

    def target_log_probs(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """The log-probability of one word a row; only clusters that are asked for are computed."""
        if torch.is_grad_enabled():
            return self._target_log_probs(features, targets)
        sizes = [end - begin for begin, end in zip(self.cutoffs, self.ends, strict=True)]
        size = rows_at_once(max(self.head.out_features, *sizes, 1))
        pairs = zip(features.split(size), targets.split(size), strict=True)
        return torch.cat([self._target_log_probs(*pair) for pair in pairs])

    def _target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        places = self.ranks()[targets.long()]
        head = exact(self.head(features))
        # A word of cluster c reads the entry of c, which stands after the short list.
        cluster = torch.zeros_like(places)
        for cut in self.cutoffs:
            cluster += places >= cut
        entry = torch.where(cluster > 0, self.short + cluster - 1, places)
        found = -functional.cross_entropy(head, entry, reduction="none")  # (N,)
        for c, begin in enumerate(self.cutoffs, 1):
            (rows,) = (cluster == c).nonzero(as_tuple=True)
            if len(rows):
                inside = exact(self.tail[c - 1](features[rows]))
                own = functional.cross_entropy(inside, places[rows] - begin, reduction="none")
                found = found.index_add(0, rows, -own)
        return found

    def log_probs(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The log-probability of every word."""
        head = exact(self.head(features)).log_softmax(dim=-1)
        parts = [head[:, : self.short]]
        for c, tail in enumerate(self.tail):
            inside = exact(tail(features)).log_softmax(dim=-1)
            parts.append(head[:, self.short + c, None] + inside)
        return torch.cat(parts, dim=-1)[:, self.ranks()]


def _forget_ranks(module: AdaptiveSoftmax, _: object) -> None:
    module._ranks = None
