"""A matrix that is multiplied with at every step, laid out for that once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from seqloom.kernels.buffers import BUFFERS

TURN = 3  # products for which it pays to turn a matrix
PACK = 16  # and to have MKL arrange it, for one number of rows,
LARGE = 3 << 19  # if it has so many bytes that it does not stay near the processor


class Matrix:
    """Gives x @ weight.T for many x.

    The library's product with a turned matrix takes up to 1.7 times as long as with one that lies
    right, and it arranges the matrix anew each time unless it is told to keep it.

    Args:
        weight: (outputs, inputs).
        counts: How many rows x has each time.
        bf16: Whether both are rounded to bfloat16 first.
    """

    def __init__(self, weight: Tensor, counts: Sequence[int], *, bf16: bool = False) -> None:
        self._right = weight.t()  # (inputs, outputs)
        self._packed: Tensor | None = None
        self._bf16 = bf16
        if bf16:
            self._right = self._right.bfloat16().contiguous()
            return
        if len(counts) >= TURN and not self._right.is_contiguous():
            self._right = BUFFERS.take(self._right.shape, weight).copy_(self._right)
        self._rows = counts[0] if counts else 0
        if len(counts) >= PACK and counts[-1] == self._rows > 1 and _can_pack(weight):
            self._weight = weight.contiguous()
            self._packed = torch.ops.mkl._mkl_reorder_linear_weight(self._weight, self._rows)

    def into(self, x: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
        """The product, with a bias if there is one, into memory that is there."""
        if self._bf16:
            out.copy_(torch.mm(x.bfloat16(), self._right))
            return out if bias is None else out.add_(bias)
        if self._packed is not None:
            return out.copy_(self._multiply(x, bias))
        if bias is None:
            return torch.mm(x, self._right, out=out)
        return torch.addmm(bias, x, self._right, out=out)

    def add(self, x: Tensor, out: Tensor) -> None:
        """Add the product to what is there."""
        if self._bf16:
            out += torch.mm(x.bfloat16(), self._right)
        elif self._packed is not None:
            out += self._multiply(x, None)
        else:
            torch.addmm(out, x, self._right, out=out)

    def _multiply(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return torch.ops.mkl._mkl_linear(x, self._packed, self._weight, bias, self._rows)  # type: ignore[no-any-return]


def has_bf16() -> bool:
    """Whether the processor multiplies in bfloat16, by what the system says of it."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return False
    flags = next((x for x in info.read_text().splitlines() if x.startswith("flags")), "").split()
    return "amx_bf16" in flags or "avx512_bf16" in flags


def _can_pack(weight: Tensor) -> bool:
    has_it = torch.backends.mkl.is_available() and hasattr(
        torch.ops.mkl, "_mkl_reorder_linear_weight"
    )
    is_large = 4 * weight.numel() >= LARGE
    return is_large and weight.dtype == torch.float32 and weight.device.type == "cpu" and has_it
