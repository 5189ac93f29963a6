"""A recurrence that asks a question at every step, as one launch forth and one back on a card.

A program owns a row and runs all of its steps; programs need nothing of each other. What does not
depend on the state is multiplied beforehand for all steps at once, and the gradients of all weights
are large products afterwards, so that of a step only the products with the state, the attention and
the cell are left. Of each step the shares of the question's words, what was found, the gate, the
cell's input, its three gates, its recurrent part, the state and the sum inside the score are kept,
S + 5 D + 6 H numbers.

Sums are always added in the same order: the same input gives the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.kernels.triton_products import power

CHUNK = 64  # columns of the cell's input at a time
WARPS = 8
ALIGNED = 4  # numbers of 16 bytes
WIDEST = 128  # units of a state, and words of a question, that a program can hold


class Asked(NamedTuple):
    """What the recurrence reads, in 32 bits.

    Args:
        own: Of each step, what it adds inside the score (B, T, H).
        others: Of each word of the question, the same (B, S, H).
        items: What stands beside what was found (B, T, D).
        keys: What is found (B, S, D).
        given: Of each step, what it adds inside the gate (B, T, 2D); None without one.
        asking: Of each word of the question, the same (B, S, 2D).
        w_state: What the state adds inside the score (H, H).
        w_out: The score of what is inside it (H,).
        w_ih: The cell's weights of its input (3H, 2D), gates in the order reset, update, new.
        b_ih: Their biases.
        w_hh: The cell's weights of the state (3H, H).
        b_hh: Their biases.
        lengths: How many steps of each row are real, at least 1.
        asked: How many words of the question are real, at least 1.
    """

    own: Tensor
    others: Tensor
    items: Tensor
    keys: Tensor
    given: Tensor | None
    asking: Tensor | None
    w_state: Tensor
    w_out: Tensor
    w_ih: Tensor
    b_ih: Tensor
    w_hh: Tensor
    b_hh: Tensor
    lengths: Tensor
    asked: Tensor


def fits(size: int, words: int) -> bool:
    """Whether a program can hold a state and a question."""
    return max(size, words) <= WIDEST


def run_asking(given: Asked) -> tuple[Tensor, Tensor]:
    """Return the states (B, T, H) and the shares of the question's words (B, T, S), 0 on padding.

    The shares have no gradient.
    """
    states, shares = _Asking.apply(*_widened(given))  # type: ignore[no-untyped-call]
    return states[..., : given.own.shape[-1]], shares


def _widened(x: Asked) -> Asked:
    """With more units and wider words, of zeros, where rows would not begin at 16 bytes.

    A unit whose weights are all 0 begins with 0 and stays there.
    """
    (H, D), pad = (x.own.shape[-1], x.keys.shape[-1]), functional.pad
    h, d = -H % ALIGNED, -D % ALIGNED
    if not h and not d:
        return x

    def both(halves: Tensor | None) -> Tensor | None:
        return halves if halves is None else pad(halves.unflatten(-1, (2, D)), (0, d)).flatten(-2)

    def gates(bias: Tensor) -> Tensor:
        return pad(bias.view(3, H), (0, h)).flatten()

    w_ih = pad(x.w_ih.view(3, H, 2, D), (0, d, 0, 0, 0, h)).flatten(2).flatten(0, 1)
    w_hh = pad(x.w_hh.view(3, H, H), (0, h, 0, h)).flatten(0, 1)
    return Asked(
        pad(x.own, (0, h)), pad(x.others, (0, h)), pad(x.items, (0, d)), pad(x.keys, (0, d)),
        both(x.given), both(x.asking), pad(x.w_state, (0, h, 0, h)), pad(x.w_out, (0, h)),
        w_ih, gates(x.b_ih), w_hh, gates(x.b_hh), x.lengths, x.asked,
    )  # fmt: skip


class _Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> tuple[Tensor, Tensor]:
        laid: list[Any] = [None if each is None else each.contiguous() for each in tensors]
        x = Asked(*laid)
        B, T, H = x.own.shape
        S, D = x.keys.shape[1:]
        new = x.own.new_zeros
        states, shares, sums = new(B, T, H), new(B, T, S), new(B, T, H)
        gates, inputs, found = new(B, T, 4 * H), new(B, T, 2 * D), new(B, T, D)
        opened = found if x.given is None else new(B, T, 2 * D)
        placed = [x.items if each is None else each for each in x]  # what is not read
        kept = (states, shares, sums, gates, inputs, found, opened)
        from seqloom.kernels.asking_kernels import forth  # triton loads when it is needed

        forth[(B,)](*placed, *kept, T, S, **_sizes(H, D, S, gated=x.given is not None))
        ctx.save_for_backward(*x, *kept)
        ctx.mark_non_differentiable(shares)
        return states, shares

    @staticmethod
    def backward(ctx: Any, d_states: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        from seqloom.kernels.asking_kernels import back

        x = Asked(*ctx.saved_tensors[: len(Asked._fields)])
        states, shares, sums, gates, inputs, found, opened = ctx.saved_tensors[len(x) :]
        B, T, H = x.own.shape
        S, D = x.keys.shape[1:]
        new = x.own.new_zeros
        d_own, d_others, d_items, d_found = (
            torch.zeros_like(each) for each in (x.own, x.others, x.items, x.items)
        )
        d_given = d_found if x.given is None else torch.zeros_like(x.given)
        d_out, d_input, d_past = new(B, H), new(B, T, 3 * H), new(B, T, 3 * H)
        asking = x.items if x.asking is None else x.asking
        back[(B,)](
            d_states.contiguous(), x.others, x.items, x.keys, asking,
            x.w_state, x.w_out, x.w_ih, x.w_hh, x.lengths, x.asked,
            states, shares, sums, gates, found, opened,
            d_own, d_others, d_items, d_found, d_given, d_out, d_input, d_past, T, S,
            **_sizes(H, D, S, gated=x.given is not None),
        )  # fmt: skip
        before = torch.cat([new(B, 1, H), states[:, :-1]], dim=1).flatten(0, 1)  # (B T, H)
        flat_input, flat_past = d_input.flatten(0, 1), d_past.flatten(0, 1)
        gated = x.given is not None
        found_in = Asked(
            d_own,
            d_others,
            d_items,
            shares.mT @ d_found,
            d_given if gated else None,
            shares.mT @ d_given if gated else None,
            d_own.flatten(0, 1).mT @ before,
            d_out.sum(0),
            flat_input.mT @ inputs.flatten(0, 1),
            flat_input.sum(0),
            flat_past.mT @ before,
            flat_past.sum(0),
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
        )
        return tuple(found_in)


def _sizes(size: int, width: int, words: int, *, gated: bool) -> dict[str, Any]:
    return {
        "H": size,
        "D": width,
        "HP": max(16, power(size)),
        "SP": max(16, power(words)),
        "GATED": gated,
        "CHUNK": CHUNK,
        "num_warps": WARPS,
    }
