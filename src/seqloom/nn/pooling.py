"""One vector of a sequence: its last, their mean, maximum or sum, or an attention over them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seqloom.errors import ConfigError, ShapeError, one_of
from seqloom.nn.attention import attention_weights
from seqloom.nn.masking import lengths_to_mask

PoolingName = Literal["last", "mean", "max", "sum", "attention"]
POOLINGS = ("last", "mean", "max", "sum", "attention")


class PoolingOutput(NamedTuple):
    """What pooling gives.

    Args:
        outputs: A vector a row.
        weights: Of "attention": how much each step counts; they sum to 1 and are 0 on padding.
    """

    outputs: Float[Tensor, "B D"]
    weights: Float[Tensor, "B T"] | None


class Pooling(nn.Module):
    r"""A sequence of vectors to one.

    $$\text{last: } h_n, \quad \text{mean: } \frac{1}{n} \sum_t h_t, \quad
    \text{max: } \max_t h_t, \quad \text{sum: } \sum_t h_t, \quad
    \text{attention: } \sum_t \alpha_t h_t, \;
    \alpha = \mathrm{softmax}_t(w^\top \tanh(h_t))$$

    The maximum is taken of each coordinate. n is the length of the row: padding is not seen.

    Paper: Zhou et al. (2016), "Attention-Based Bidirectional Long Short-Term Memory Networks for
    Relation Classification", ACL, equations 9 to 11, for "attention"; Kim (2014), "Convolutional
    Neural Networks for Sentence Classification", EMNLP, section 2, for "max".
    Parameters: w = weight, of "attention" alone.

    Args:
        kind: One of `POOLINGS`.
        input_size: Width D of the vectors.

    Examples:
        >>> Pooling("mean", 1)(torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([2])).outputs
        tensor([[2.]])
    """

    weight: Tensor | None

    def __init__(self, kind: PoolingName, input_size: int) -> None:
        super().__init__()
        if kind not in POOLINGS:
            raise ConfigError(one_of("pooling", kind, POOLINGS))
        if input_size < 1:
            raise ConfigError(f"input_size must be positive, got {input_size}")
        self.kind, self.input_size = kind, input_size
        self.register_parameter("weight", None)
        if kind == "attention":
            bound = input_size**-0.5
            self.weight = nn.Parameter(torch.empty(input_size).uniform_(-bound, bound))

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None = None
    ) -> PoolingOutput:
        """Pool; padding never changes a result.

        Args:
            x: The vectors.
            lengths: How many of each row are real, at least 1; all if not given.
        """
        if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] != self.input_size:
            raise ShapeError(
                f"x must be (batch, steps, {self.input_size}) with at least one step, got shape "
                f"{tuple(x.shape)}"
            )
        B, T, _ = x.shape
        if lengths is None:
            lengths = torch.full((B,), T, device=x.device)
        real = lengths_to_mask(lengths, T)  # (B, T)
        match self.kind:
            case "last":
                return PoolingOutput(x[torch.arange(B, device=x.device), lengths - 1], None)
            case "max":
                return PoolingOutput(x.masked_fill(~real[..., None], -torch.inf).amax(dim=1), None)
            case "attention":
                assert self.weight is not None
                weights = attention_weights(torch.tanh(x) @ self.weight, real)  # (B, T)
                seen = x.masked_fill(~real[..., None], 0.0)  # 0 times a NaN on padding is a NaN
                return PoolingOutput((weights[:, None] @ seen)[:, 0], weights)
            case _:
                total = x.masked_fill(~real[..., None], 0.0).sum(dim=1)  # (B, D)
                if self.kind == "mean":
                    total = total / lengths[:, None]
                return PoolingOutput(total, None)

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.kind!r}, {self.input_size}"
