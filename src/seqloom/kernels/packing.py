"""Rows of different lengths, step after step and without padding: work for real steps only.

Rows are sorted by length, the longest first, so that those which are still at work at a step are
the first ones. Packed rows are those of step 0, then those of step 1, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seqloom.kernels.buffers import BUFFERS


@dataclass(frozen=True)
class Packing:
    """How the steps of a batch are packed.

    Args:
        batch: How many rows there are, B.
        steps: How many steps the padded batch has, T.
        counts: How many rows are at work at each step that any row has.
        starts: The first packed row of each step, and the end.
        order: The batch's rows, the longest first; None if they are in order.
        index: For each packed row, its place among the B * T of the batch; None if none is padding
            and time runs forwards.
        last: For each sorted row, the packed row of its last step, counted from -B on: where rows
            without a step find themselves among what they began with.
    """

    batch: int
    steps: int
    counts: list[int]
    starts: list[int]
    order: Int[Tensor, " B"] | None
    index: Int[Tensor, " N"] | None
    last: Int[Tensor, " B"] | None

    @property
    def rows(self) -> int:
        """How many packed rows there are, N."""
        return self.starts[-1]

    def pack(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "N D"]:
        """The real steps of a batch, packed."""
        width = x.shape[-1]
        packed = BUFFERS.take((self.rows, width), x)
        if self.index is None:
            packed.view(self.steps, self.batch, width).copy_(x.transpose(0, 1))
        else:
            torch.index_select(x.reshape(-1, width), 0, self.index, out=packed)
        return packed

    def unpack(self, packed: Float[Tensor, "N D"]) -> Float[Tensor, "B T D"]:
        """The other way round; padding is 0."""
        width = packed.shape[-1]
        if self.index is None:
            whole = packed.view(self.steps, self.batch, width).transpose(0, 1)
            return whole.clone(memory_format=torch.contiguous_format)
        if self.rows == self.batch * self.steps:
            x = packed.new_empty(self.batch * self.steps, width)
        else:
            x = packed.new_zeros(self.batch * self.steps, width)
        x.index_copy_(0, self.index, packed)
        return x.view(self.batch, self.steps, width)

    def sort(self, state: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        """A batch's rows, the longest first."""
        return state if self.order is None else state[self.order]

    def unsort(self, state: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        """The other way round, as a tensor of its own."""
        if self.order is None:
            return state.clone()
        return torch.empty_like(state).index_copy_(0, self.order, state)

    def ends(self, run: Float[Tensor, "BN H"]) -> Float[Tensor, "B H"]:
        """Every row's last state, from its B first ones with the packed ones after them."""
        if self.last is None:
            return run[self.rows :].clone()
        return self.unsort(run[self.last + self.batch])

    def before(self, run: Float[Tensor, "BN H"]) -> Float[Tensor, "N H"]:
        """For each packed row, the state before it."""
        if self.last is None:
            return run[: self.rows]
        found = BUFFERS.take((self.rows, run.shape[-1]), run)
        at = 0
        for step, count in enumerate(self.counts):
            start = self.batch + self.starts[step - 1] if step else 0
            found[at : at + count] = run[start : start + count]
            at += count
        return found


def pack_lengths(lengths: Int[Tensor, " B"], steps: int, *, reverse: bool) -> Packing:
    """The packing of rows with these lengths; `reverse` runs from each row's end on."""
    B = len(lengths)
    if bool((lengths == steps).all()):
        starts = list(range(0, (steps + 1) * B, B))
        index = None
        if reverse:
            time = torch.arange(steps - 1, -1, -1)
            index = (time[:, None] + steps * torch.arange(B)).reshape(-1)
        return Packing(B, steps, [B] * steps, starts, None, index, None)
    ordered, order = lengths.sort(descending=True, stable=True)
    time = torch.arange(steps)
    is_real = time[:, None] < ordered  # (T, B)
    counts = [count for count in is_real.sum(1).tolist() if count]
    starts = [0, *torch.tensor(counts).cumsum(0).tolist()] if counts else [0]
    where = ordered - 1 - time[:, None] if reverse else time[:, None].expand(-1, B)
    index = (where + steps * order)[is_real]
    firsts = torch.tensor([0, *starts[:-1]])
    last = torch.where(ordered > 0, firsts[ordered] + torch.arange(B), torch.arange(B) - B)
    is_sorted = bool((order == torch.arange(B)).all())
    return Packing(B, steps, counts, starts, None if is_sorted else order, index, last)
