"""Linear-chain conditional random fields: what tags cost together, not one by one."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.errors import BackendError, ConfigError, ShapeError, one_of
from seqloom.kernels import crf as loops
from seqloom.kernels import crf_sums
from seqloom.nn.crf_partition import partition
from seqloom.nn.masking import lengths_to_mask

CRFBackend = Literal["auto", "reference", "compiled"]
BACKENDS = ("auto", "reference", "compiled")
FORBIDDEN = crf_sums.FORBIDDEN
"""What a transition costs that is not allowed."""


class Paths(NamedTuple):
    """The best tags of each row, the best path first.

    Args:
        tags: By row, rank and step; 0 on padding.
        scores: Of each path; minus infinity, or about `FORBIDDEN`, where there are fewer.
    """

    tags: Int[Tensor, "B N T"]
    scores: Float[Tensor, "B N"]


class CRF(nn.Module):
    r"""A score for every sequence of tags, and its probability among all of them.

    $$S(x, y) = b_{y_1} + \sum_{t=1}^{n} s_t(y_t) + \sum_{t=2}^{n} A_{y_{t-1} y_t} + e_{y_n}, \quad
    \ln p(y \mid x) = S(x, y) - \ln \sum_{y'} e^{S(x, y')}$$

    Paper: Lafferty, McCallum and Pereira (2001), "Conditional Random Fields", ICML, equation 2;
    Huang, Xu and Yu (2015), "Bidirectional LSTM-CRF Models for Sequence Tagging",
    arXiv:1508.01991, section 2.4, for scores s made by a network.
    Parameters: A = transitions (from row to column), b = start, e = end.

    The gradient of the logarithm of the sum is the marginals of tags and of pairs of tags, which
    the forward-backward algorithm gives (Rabiner 1989, section III).

    Args:
        size: Tags K.
        backend: "compiled" runs loops on the processor, forward and backward; "reference" is the
            sum as torch writes it, on any device; "auto" takes "compiled" for tensors in the
            processor's memory. One that is named runs or raises.

    Examples:
        >>> crf = CRF(2)
        >>> crf.decode(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])).tolist()
        [[0, 1]]
    """

    allowed: Tensor
    allowed_start: Tensor
    allowed_end: Tensor

    def __init__(self, size: int, *, backend: CRFBackend = "auto") -> None:
        super().__init__()
        if size < 1:
            raise ConfigError(f"size must be at least 1, got {size}")
        if backend not in BACKENDS:
            raise BackendError(one_of("backend", backend, BACKENDS))
        self.size, self.backend = size, backend
        self.transitions = nn.Parameter(torch.zeros(size, size))
        self.start = nn.Parameter(torch.zeros(size))
        self.end = nn.Parameter(torch.zeros(size))
        self.register_buffer("allowed", torch.ones(size, size, dtype=torch.bool))
        self.register_buffer("allowed_start", torch.ones(size, dtype=torch.bool))
        self.register_buffer("allowed_end", torch.ones(size, dtype=torch.bool))

    def constrain(
        self,
        allowed: Bool[Tensor, "K K"],
        start: Bool[Tensor, " K"],
        end: Bool[Tensor, " K"],
    ) -> None:
        """Let only some transitions, first and last tags be; all others get probability 0.

        Args:
            allowed: From row to column.
            start: First tags.
            end: Last tags.
        """
        K = self.size
        for name, given, shape in (
            ("allowed", allowed, (K, K)),
            ("start", start, (K,)),
            ("end", end, (K,)),
        ):
            if tuple(given.shape) != shape or given.dtype != torch.bool:
                raise ShapeError(
                    f"{name} must be booleans of shape {shape}, got {given.dtype} of shape "
                    f"{tuple(given.shape)}"
                )
        device = self.transitions.device
        self.allowed, self.allowed_start = allowed.to(device), start.to(device)
        self.allowed_end = end.to(device)

    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return A, b and e, with `FORBIDDEN` in them where something is not allowed."""
        return (
            self.transitions.masked_fill(~self.allowed, FORBIDDEN),
            self.start.masked_fill(~self.allowed_start, FORBIDDEN),
            self.end.masked_fill(~self.allowed_end, FORBIDDEN),
        )

    def loss(
        self,
        scores: Float[Tensor, "B T K"],
        tags: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, " B"]:
        r"""$-\ln p(y \mid x)$ of each row.

        Args:
            scores: Of each tag at each step.
            tags: The true ones; those on padding are not looked at.
            lengths: How many steps of each row are real; all if not given.
        """
        lengths = check_scores(scores, lengths, self.size)
        check_tags(scores, tags, lengths)
        weights = self.weights()
        if self._compiles(scores):
            return partition(scores, tags, lengths, *weights)
        total = log_partition(scores, lengths, *weights)
        return total - path_scores(scores, tags, lengths, *weights)

    def log_partition(
        self, scores: Float[Tensor, "B T K"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, " B"]:
        r"""$\ln \sum_{y'} e^{S(x, y')}$ of each row."""
        lengths = check_scores(scores, lengths, self.size)
        if self._compiles(scores):
            return partition(scores, None, lengths, *self.weights())
        return log_partition(scores, lengths, *self.weights())

    def marginals(
        self, scores: Float[Tensor, "B T K"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B T K"]:
        """The probability of each tag at each step, over all paths; 0 on padding."""
        with torch.enable_grad():
            given = scores.detach().requires_grad_()
            total = self.log_partition(given, lengths)
            (found,) = torch.autograd.grad(total.sum(), given)
        return found

    def decode(
        self, scores: Float[Tensor, "B T K"], lengths: Int[Tensor, " B"] | None = None
    ) -> Int[Tensor, "B T"]:
        """The best tags of each row (Viterbi 1967); 0 on padding."""
        return self.best(scores, lengths, 1).tags[:, 0]

    @torch.no_grad()
    def best(
        self,
        scores: Float[Tensor, "B T K"],
        lengths: Int[Tensor, " B"] | None = None,
        count: int = 1,
    ) -> Paths:
        """The best paths of each row, by compiled loops whatever the device.

        Args:
            scores: Of each tag at each step.
            lengths: How many steps of each row are real; all if not given.
            count: How many paths N, or all that T steps have, if those are fewer.
        """
        lengths = check_scores(scores, lengths, self.size)
        return best_paths(scores, lengths, self.weights(), count)

    def _compiles(self, scores: Tensor) -> bool:
        on_processor = scores.device.type == "cpu"
        if self.backend == "compiled" and not on_processor:
            raise BackendError(
                "backend 'compiled' runs in the processor's memory, got scores on "
                f"{scores.device}; use backend='auto'"
            )
        return self.backend != "reference" and on_processor

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.size}"


def check_scores(scores: Tensor, lengths: Tensor | None, size: int) -> Tensor:
    """Return the lengths, all of them if not given, of scores that are a batch of sequences.

    Raises:
        ShapeError: If they are not.
    """
    shape = tuple(scores.shape)
    if len(shape) != 3 or shape[1] < 1 or shape[2] != size:
        raise ShapeError(
            f"scores must be (batch, steps, {size}) with at least one step, got {shape}"
        )
    if lengths is None:
        return torch.full((shape[0],), shape[1], device=scores.device)
    if tuple(lengths.shape) != shape[:1]:
        raise ShapeError(f"lengths must have shape {shape[:1]}, got {tuple(lengths.shape)}")
    if int(lengths.min()) < 1 or int(lengths.max()) > shape[1]:
        raise ShapeError(
            f"lengths must lie between 1 and the {shape[1]} steps, got {int(lengths.min())} to "
            f"{int(lengths.max())}"
        )
    return lengths


def check_tags(scores: Tensor, tags: Tensor, lengths: Tensor) -> None:
    """Refuse tags that are not one a step, or are none of the K; those on padding may be anything.

    Raises:
        ShapeError: Naming both shapes, or the tag.
    """
    if tags.shape != scores.shape[:2]:
        raise ShapeError(f"tags must have shape {tuple(scores.shape[:2])}, got {tuple(tags.shape)}")
    K = scores.shape[2]
    used = tags[lengths_to_mask(lengths, scores.shape[1])]
    wrong = used[(used < 0) | (used >= K)]
    if len(wrong):
        raise ShapeError(f"tags must lie in 0..{K - 1}, got {int(wrong[0])}")


def best_paths(
    scores: Float[Tensor, "B T K"],
    lengths: Int[Tensor, " B"],
    weights: tuple[Tensor, Tensor, Tensor],
    count: int,
) -> Paths:
    """The best paths of each row, by compiled loops whatever the device.

    Args:
        scores: Of each tag at each step.
        lengths: How many steps of each row are real.
        weights: Of transitions, first and last tags.
        count: How many paths N, or all that T steps have, if those are fewer.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    B, T, K = scores.shape
    count = min(count, K**T)
    arrays = [_array(each) for each in (scores, *weights)]
    ends, paths = lengths.cpu().numpy(), np.zeros((B, count, T), np.int64)
    totals = np.zeros((B, count))
    if count == 1:
        loops.viterbi_loop(arrays[0], ends, *arrays[1:], paths[:, 0], totals[:, 0])
    else:
        loops.best_paths_loop(arrays[0], ends, *arrays[1:], paths, totals)
    device = scores.device
    return Paths(
        torch.from_numpy(paths).to(device), torch.from_numpy(totals).to(device, scores.dtype)
    )


def log_partition(
    scores: Float[Tensor, "B T K"],
    lengths: Int[Tensor, " B"],
    transitions: Float[Tensor, "K K"],
    start: Float[Tensor, " K"],
    end: Float[Tensor, " K"],
) -> Float[Tensor, " B"]:
    r"""The forward algorithm as it is written.

    $$\alpha_t(j) = s_t(j) + \ln \sum_i e^{\alpha_{t-1}(i) + A_{ij}}, \quad
    \ln Z = \ln \sum_j e^{\alpha_n(j) + e_j}$$
    """
    alpha = start + scores[:, 0]  # (B, K)
    for t in range(1, scores.shape[1]):
        stepped = scores[:, t] + torch.logsumexp(alpha[:, :, None] + transitions, dim=1)
        alpha = torch.where((t < lengths)[:, None], stepped, alpha)
    return torch.logsumexp(alpha + end, dim=1)


def path_scores(
    scores: Float[Tensor, "B T K"],
    tags: Int[Tensor, "B T"],
    lengths: Int[Tensor, " B"],
    transitions: Float[Tensor, "K K"],
    start: Float[Tensor, " K"],
    end: Float[Tensor, " K"],
) -> Float[Tensor, " B"]:
    """S of given tags."""
    real = lengths_to_mask(lengths, scores.shape[1])  # (B, T)
    tags = tags.masked_fill(~real, 0)
    own = scores.gather(2, tags[..., None])[..., 0].masked_fill(~real, 0.0)  # (B, T)
    steps = transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~real[:, 1:], 0.0)
    last = tags.gather(1, lengths[:, None] - 1)[:, 0]
    return own.sum(dim=1) + steps.sum(dim=1) + start[tags[:, 0]] + end[last]


def _array(tensor: Tensor) -> NDArray[np.float64]:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float64)
