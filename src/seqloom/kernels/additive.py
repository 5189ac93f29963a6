r"""The scores of additive attention as one launch forth and two back on a card.

$$s_{ti} = \sum_a v_a \tanh(q_{ta} + k_{ia})$$

Written with tensors that is four numbers or more in memory for each t, i and a. Here a program owns
a tile of queries and keys and goes through a in chunks; nothing of that shape is ever stored. Back,
with $d_{ti}$ the gradient of a score and $h_{tia} = \tanh(q_{ta} + k_{ia})$ computed again,

$$dq_{ta} = v_a \sum_i d_{ti} (1 - h_{tia}^2), \quad dk_{ia} = v_a \sum_t d_{ti} (1 - h_{tia}^2),
\quad dv_a = \sum_{ti} d_{ti} h_{tia}$$

A program owns some queries and some columns a, and goes through the keys; a second launch of the
same kernel owns keys and goes through the queries. The first also adds $dv$ over its queries, and
what the programs found is added afterwards. Numbers are read and written as they are stored, and
all sums have 32 bits.

Sums are always added in the same order: the same input gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.kernels.backends import has_triton
from seqloom.kernels.triton_products import power

STORED = (torch.float32, torch.bfloat16, torch.float16)
WIDEST = 512  # columns at a time where there is one query
MANY = 2**26  # numbers inside the scores; with fewer torch's code is as fast (measured on an H200)


def takes(
    own: Float[Tensor, "*B T A"],
    prepared: Float[Tensor, "*B S A"],
    out_weight: Float[Tensor, "1 A"],
) -> bool:
    """Whether the kernels run: on a card, in 32 or 16 bits, for many, not while torch compiles."""
    given = (own, prepared, out_weight)
    rows = math.prod(torch.broadcast_shapes(own.shape[:-2], prepared.shape[:-2]))
    return (
        rows * own.shape[-2] * prepared.shape[-2] * own.shape[-1] >= MANY
        and all(each.is_cuda and each.dtype in STORED for each in given)
        and has_triton()
        and not torch.compiler.is_compiling()
    )


def run_additive(
    own: Float[Tensor, "*B T A"],
    prepared: Float[Tensor, "*B S A"],
    out_weight: Float[Tensor, "1 A"],
) -> Float[Tensor, "*B T S"]:
    """Return the scores by the kernels; axes before the last two are broadcast.

    Operands may be stored in different types, as under autocast; scores are of the wider type of
    `own` and `prepared`, gradients of that of what they belong to.
    """
    T, S, A = own.shape[-2], prepared.shape[-2], own.shape[-1]
    rows = torch.broadcast_shapes(own.shape[:-2], prepared.shape[:-2])
    own = own.expand(*rows, T, A).reshape(-1, T, A)
    prepared = prepared.expand(*rows, S, A).reshape(-1, S, A)
    scores: Tensor = _Additive.apply(own, prepared, out_weight[0])  # type: ignore[no-untyped-call]
    return scores.view(*rows, T, S)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, prepared: Tensor, weight: Tensor) -> Tensor:
        from seqloom.kernels.additive_kernels import forth  # triton loads when it is needed

        own, prepared, weight = own.contiguous(), prepared.contiguous(), weight.contiguous()
        (B, T, A), S = own.shape, prepared.shape[1]
        scores = own.new_empty(B, T, S, dtype=torch.promote_types(own.dtype, prepared.dtype))
        tile, warps = _tile_forth(T, A)
        grid = (B * -(-T // tile["BT"]), -(-S // tile["BS"]))
        with torch.cuda.device_of(own):
            forth[grid](own, prepared, weight, scores, T, S, A, **tile, num_warps=warps)
        ctx.save_for_backward(own, prepared, weight)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        own, prepared, weight = ctx.saved_tensors
        wanted, d_scores = ctx.needs_input_grad, d_scores.contiguous()
        d_own, d_prepared, d_weight = None, None, None
        if wanted[0] or wanted[2]:
            d_own, d_weight = _back(own, prepared, weight, d_scores, weighed=wanted[2])
        if wanted[1]:
            d_prepared, _ = _back(prepared, own, weight, d_scores, turned=True)
        return d_own, d_prepared, d_weight


def _back(
    mine: Tensor,
    others: Tensor,
    weight: Tensor,
    d_scores: Tensor,
    *,
    turned: bool = False,
    weighed: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The gradients of `mine` and, where `weighed`, of the weights."""
    from seqloom.kernels.additive_kernels import back

    (B, M, A), N = mine.shape, others.shape[1]
    tile, warps = _tile_back(M, N)
    programs = B * -(-M // tile["BM"])
    d_mine = torch.empty_like(mine)
    parts = weight.new_empty(programs if weighed else 1, A, dtype=torch.float32)
    with torch.cuda.device_of(mine):
        back[programs, -(-A // tile["BA"])](
            mine, others, weight, d_scores, d_mine, parts, M, N, A,
            TURNED=turned, WEIGHED=weighed, **tile, num_warps=warps,
        )  # fmt: skip
    return d_mine, parts.sum(0).to(weight.dtype) if weighed else None


# Compiled for sm_90 none of these tiles spills registers (80 at most, A from 5 to 1024). They are
# few, so that a new length is rarely compiled for.


def _tile_forth(T: int, A: int) -> tuple[dict[str, int], int]:
    """Queries, keys and columns of a program's tile forth, and its warps."""
    if T == 1:
        return {"BT": 1, "BS": 4, "BA": min(WIDEST, max(16, power(A)))}, 4
    if T <= 8:
        return {"BT": 8, "BS": 16, "BA": 16}, 8
    return {"BT": 32, "BS": 16, "BA": 8}, 8


def _tile_back(M: int, N: int) -> tuple[dict[str, int], int]:
    """Vectors of its own, others and columns of a program's tile back, and its warps."""
    if N < 4:
        return {"BM": 16, "BN": 1, "BA": 64}, 4
    if M == 1:
        return {"BM": 1, "BN": 32, "BA": 32}, 4
    if M <= 4:
        return {"BM": 4, "BN": 16, "BA": 16}, 4
    return {"BM": 16, "BN": 4, "BA": 16}, 4
