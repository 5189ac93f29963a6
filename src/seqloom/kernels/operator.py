"""The recurrence as one operator of torch, so that `torch.compile` and `torch.export` see one node.

A cell goes in by a key that stands for its equations. There is no derivative of the derivative:
asking for one raises, and the reference backend has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.errors import BackendError
from seqloom.kernels.cpu import run_backward, run_forward, saved_shapes
from seqloom.kernels.keys import cell_of
from seqloom.kernels.layer import Settings, Weights


def _settings(
    clip: float | None, mask: Tensor | None, keep: Sequence[Tensor], reverse: bool, bf16: bool
) -> Settings:
    return Settings(clip, mask, tuple(keep), reverse, bf16)


@torch.library.custom_op("seqloom::recurrent", mutates_args=(), device_types="cpu")
def recurrent(
    cell: str,
    x: Tensor,
    lengths: Tensor,
    states: Sequence[Tensor],
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    vectors: Sequence[Tensor],
    projection: Tensor | None,
    mask: Tensor | None,
    keep: Sequence[Tensor],
    clip: float | None,
    reverse: bool,
    bf16: bool,
    save: bool,
) -> list[Tensor]:
    """The outputs, the last states, and what the way back needs; see `kernels.cpu`."""
    weights = Weights(weight_ih, weight_hh, bias_ih, bias_hh, vectors, projection)
    outputs, ends, saved = run_forward(
        cell_of(cell),
        x,
        lengths,
        states,
        weights,
        _settings(clip, mask, keep, reverse, bf16),
        save=save,
    )
    return [outputs, *ends, *saved]


@recurrent.register_fake
def _recurrent_shapes(
    cell: str, x: Tensor, lengths: Tensor, states: Sequence[Tensor], weight_ih: Tensor,
    weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None, vectors: Sequence[Tensor],
    projection: Tensor | None, mask: Tensor | None, keep: Sequence[Tensor], clip: float | None,
    reverse: bool, bf16: bool, save: bool,
) -> list[Tensor]:  # fmt: skip
    del lengths
    B, T, _ = x.shape
    weights = Weights(weight_ih, weight_hh, bias_ih, bias_hh, vectors, projection)
    settings = _settings(clip, mask, keep, reverse, bf16)
    saved = saved_shapes(cell_of(cell), weights, settings, B, T) if save else {}
    outputs = x.new_empty(B, T, weight_hh.shape[1])
    return [
        outputs,
        *(x.new_empty(s.shape) for s in states),
        *(x.new_empty(*s) for s in saved.values()),
    ]


@torch.library.custom_op("seqloom::recurrent_backward", mutates_args=(), device_types="cpu")
def recurrent_backward(
    cell: str,
    grads: Sequence[Tensor],
    x: Tensor,
    lengths: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    vectors: Sequence[Tensor],
    projection: Tensor | None,
    mask: Tensor | None,
    keep: Sequence[Tensor],
    clip: float | None,
    reverse: bool,
    bf16: bool,
    saved: Sequence[Tensor],
    needs_x: bool,
) -> list[Tensor]:
    """Gradients of x, the weights, the projection if there is one, the vectors and the states."""
    weights = Weights(weight_ih, weight_hh, bias_ih, bias_hh, vectors, projection)
    settings = _settings(clip, mask, keep, reverse, bf16)
    found = run_backward(
        cell_of(cell), grads, x, lengths, weights, settings, saved, needs_x=needs_x
    )
    last = [] if projection is None else [found["projection"]]
    names = ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [*(found[name] for name in names), *last, *found["vectors"], *found["states"]]


@recurrent_backward.register_fake
def _recurrent_backward_shapes(
    cell: str, grads: Sequence[Tensor], x: Tensor, lengths: Tensor, weight_ih: Tensor,
    weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None, vectors: Sequence[Tensor],
    projection: Tensor | None, mask: Tensor | None, keep: Sequence[Tensor], clip: float | None,
    reverse: bool, bf16: bool, saved: Sequence[Tensor], needs_x: bool,
) -> list[Tensor]:  # fmt: skip
    del cell, lengths, bias_ih, bias_hh, mask, keep, clip, reverse, bf16, saved
    width = weight_hh.shape[0]
    shapes = [x.shape if needs_x else (0,), weight_ih.shape, weight_hh.shape, (width,), (width,)]
    shapes += [] if projection is None else [projection.shape]
    shapes += [v.shape for v in vectors] + [g.shape for g in grads[1:]]
    return [x.new_empty(shape) for shape in shapes]


def _keep_for_backward(ctx, inputs, output):  # type: ignore[no-untyped-def]
    (cell, x, lengths, states, w_ih, w_hh, b_ih, b_hh, vectors, projection, mask, keep, clip,
     reverse, bf16, save) = inputs  # fmt: skip
    ends = len(states)
    ctx.set_materialize_grads(False)  # zeros for all that is saved would be made otherwise
    ctx.settings = (cell, clip, reverse, bf16, save, len(vectors), len(keep), ends)
    saved = output[1 + ends :]
    ctx.save_for_backward(
        x, lengths, w_ih, w_hh, b_ih, b_hh, projection, mask, *vectors, *keep, *saved
    )
    ctx.shapes = [output[0].shape, *(e.shape for e in output[1 : 1 + ends])]


def _backward(ctx, grads):  # type: ignore[no-untyped-def]
    cell, clip, reverse, bf16, save, vectors, keeps, ends = ctx.settings
    if not save:
        raise BackendError("this run was not to be differentiated; call it with gradients on")
    x, lengths, w_ih, w_hh, b_ih, b_hh, projection, mask, *rest = ctx.saved_tensors
    own, keep, saved = rest[:vectors], rest[vectors : vectors + keeps], rest[vectors + keeps :]
    given = [
        x.new_zeros(shape) if grad is None else grad
        for grad, shape in zip(grads[: 1 + ends], ctx.shapes, strict=True)
    ]
    needs_x = bool(ctx.needs_input_grad[1])
    found = recurrent_backward(
        cell, given, x, lengths, w_ih, w_hh, b_ih, b_hh, own, projection, mask, keep, clip,
        reverse, bf16, saved, needs_x,
    )  # fmt: skip
    dx, d_ih, d_hh, db_ih, db_hh, *more = found
    d_projection = None if projection is None else more.pop(0)
    d_vectors, d_states = more[:vectors], more[vectors:]
    return (
        None, dx if needs_x else None, None, d_states, d_ih, d_hh,
        None if b_ih is None else db_ih, None if b_hh is None else db_hh,
        d_vectors, d_projection, None, [None] * keeps, None, None, None, None,
    )  # fmt: skip


recurrent.register_autograd(_backward, setup_context=_keep_for_backward)
