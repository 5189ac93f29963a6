"""The logarithm of the sum over all paths of a conditional random field, with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.kernels import crf_sums as loops

Array = NDArray[Any]


class _Partition(torch.autograd.Function):
    """The logarithm of the sum over all paths, less the score of a given one if there is one."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, tags: Tensor | None, *others: Tensor) -> Tensor:
        wide = [each.detach().double().contiguous() for each in (scores, *others[1:])]
        s, *weights = (each.numpy() for each in wide)
        lengths = _ids(others[0])
        order = np.argsort(-lengths, kind="stable")
        B, T, K = s.shape
        tops = wide[0].amax(dim=2, keepdim=True)
        steps = (wide[0] - tops).exp_().numpy()
        maxima, powers, leasts = zip(*map(_raise, weights), strict=True)
        matrix, first, last = powers
        batch = (steps, lengths, order)
        kept = (last, np.array(leasts), np.empty((B, T)), np.empty((T, B, K)))
        totals, doubts = np.empty(B), np.zeros(B, np.bool_)
        columns = np.ascontiguousarray(matrix.T)
        loops.forward_sums(s, *batch, columns, first, *kept, totals, doubts)
        real = np.arange(T) < lengths[:, None]
        totals += tops.numpy().sum(axis=(1, 2), where=real[..., None])
        totals += maxima[0] * (lengths - 1) + maxima[1] + maxima[2]
        if doubts.any():
            loops.totals_by_logs(s, lengths, weights[0].T.copy(), *weights[1:], doubts, totals)
        ctx.path = None if tags is None else _ids(tags)
        if tags is not None:
            loops.take_scores(s, ctx.path, lengths, *weights, totals)
        ctx.given, ctx.found = (s, lengths, *weights), (*batch, matrix, *kept)
        ctx.doubts, ctx.dtype = doubts, scores.dtype
        return torch.from_numpy(totals).to(scores.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        s, lengths, matrix, start, end = ctx.given
        _, _, order, power, *_, alphas = ctx.found
        B, T, K = s.shape
        weights, doubts = gradient.double().contiguous().numpy(), ctx.doubts.copy()
        unary, ahead = np.empty((B, T, K)), np.empty((T, B, K))
        loops.backward_sums(*ctx.found, weights, unary, ahead, doubts)
        before, after = alphas[:-1], ahead[1:]
        if doubts.any():
            sure = ~doubts[order]
            before, after = before[:, sure], after[:, sure]
        left, right = (torch.from_numpy(each.reshape(-1, K)) for each in (before, after))
        pairs = (left.T @ right).numpy() * power
        if doubts.any():
            columns = matrix.T.copy()
            loops.marginals_by_logs(
                s, lengths, matrix, columns, start, end, doubts, weights, unary, pairs
            )
        firsts = unary[:, 0].sum(axis=0)
        lasts = unary[np.arange(B), lengths - 1].sum(axis=0)
        if ctx.path is not None:
            loops.take_paths(ctx.path, lengths, weights, unary, pairs, firsts, lasts)
        found = [torch.from_numpy(each).to(ctx.dtype) for each in (unary, pairs, firsts, lasts)]
        return found[0], None, None, *found[1:]


def partition(
    scores: Tensor,
    tags: Tensor | None,
    lengths: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
) -> Tensor:
    """The logarithm of each row's sum over all paths, less the score of the given path if any.

    Args:
        scores: Of each tag at each step (B, T, K), in the processor's memory.
        tags: A path a row (B, T), or None.
        lengths: How many steps of each row are real (B,).
        transitions: From row to column (K, K).
        start: Of the first tag (K,).
        end: Of the last tag (K,).
    """
    found: Tensor = _Partition.apply(scores, tags, lengths, transitions, start, end)  # type: ignore[no-untyped-call]
    return found


def _ids(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.numpy(), np.int64)


def _raise(weights: Array) -> tuple[float, Array, float]:
    """The largest weight, the powers of what is left without it, and the least power allowed."""
    top = float(weights.max())
    powers = torch.from_numpy(weights - top).exp_().numpy()
    return top, powers, loops.least_power(weights.reshape(-1), powers.reshape(-1))
