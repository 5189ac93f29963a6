"""The ways to run one layer of a recurrence, by name, and which can run what."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqloom.errors import BackendError, one_of
from seqloom.kernels.layer import Direction, Kind, Ran, Weights
from seqloom.kernels.products import has_bf16
from seqloom.kernels.reference import scan_reference


class Backend(NamedTuple):
    """A way to run a layer.

    Args:
        run: Runs its directions, one or two.
        why_not: What keeps it from running a layer there, or "".
    """

    run: Callable[[Kind, Tensor, Tensor | None, Sequence[Direction]], Ran]
    why_not: Callable[[Kind, Tensor, Sequence[Direction]], str]


def run_layer(
    backend: str,
    kind: Kind,
    x: Float[Tensor, "B T D"],
    lengths: Int[Tensor, " B"] | None,
    directions: Sequence[Direction],
) -> Ran:
    """Run a layer by a backend; without lengths all rows are whole.

    Raises:
        BackendError: If there is no such backend, or it cannot run this.
    """
    if backend not in BACKENDS:
        raise BackendError(one_of("backend", backend, BACKENDS))
    why_not = BACKENDS[backend].why_not(kind, x, directions)
    if why_not:
        raise BackendError(f"backend {backend!r} {why_not}; {_other(kind, x, directions)}")
    if backend != "triton":  # which begins with zeros and rounds weights by itself
        directions = [_begun(kind, x, each) for each in directions]
    if lengths is not None and (backend != "triton" or lengths.dtype != torch.int32):
        lengths = lengths.long()  # others cannot be places, or are a mask where they are
    return BACKENDS[backend].run(kind, x, lengths, directions)


def _other(kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    able = [name for name, one in BACKENDS.items() if not one.why_not(kind, x, directions)]
    return f"use backend={able[0]!r} or 'auto'" if able else "no backend here can run this"


def _begun(kind: Kind, x: Tensor, direction: Direction) -> Direction:
    """A direction with weights as the input is, that begins with zeros if nothing is given."""
    direction = replace(direction, weights=direction.weights.to(x.dtype))
    if direction.states:
        return direction
    rows, first = direction.weights.weight_hh.shape
    others = [rows // len(kind.traced.gates)] * (len(kind.traced.states) - 1)
    zeros = [x.new_zeros(x.shape[0], width) for width in (first, *others)]
    return replace(direction, states=zeros)


def _lengths(x: Tensor, lengths: Tensor | None) -> Tensor:
    return torch.full(x.shape[:1], x.shape[1], device=x.device) if lengths is None else lengths


# -- the loop --------------------------------------------------------------------------------------


def _run_reference(
    kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> Ran:
    found, ends = [], []
    lengths = _lengths(x, lengths)
    for each in directions:
        weights, settings = each.weights, each.settings
        drive = functional.linear(x, weights.weight_ih, weights.bias_ih)
        keep = list(settings.keep)
        if settings.reverse:
            drive, keep = turned(drive, lengths), [turned(k, lengths) for k in keep]
        outputs, ended = scan_reference(
            kind.shape, drive, each.states, weights.weight_hh, weights.bias_hh, weights.vectors,
            lengths, projection=weights.projection, clip=settings.clip, state_mask=settings.mask,
            keep=keep or None,
        )  # fmt: skip
        found.append(turned(outputs, lengths) if settings.reverse else outputs)
        ends.append(ended)
    return Ran.joined(found, ends)


def _why_not_reference(kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    del kind, x
    return "has no products in bfloat16" if directions[0].settings.bf16 else ""


def turned(x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B T D"]:
    """Each row's real steps from the last to the first; padding stays where it is."""
    steps = torch.arange(x.shape[1], device=x.device)  # (T,)
    back = lengths[:, None] - 1 - steps
    index = torch.where(back >= 0, back, steps)  # (B, T)
    return x.gather(1, index[..., None].expand_as(x))


# -- printed loops ---------------------------------------------------------------------------------


def _run_cpu(kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]) -> Ran:
    from seqloom.kernels.cpu import run_forward  # numba loads when it is needed
    from seqloom.kernels.operator import recurrent

    found, ends = [], []
    lengths = _lengths(x, lengths)
    for each in directions:
        w, s = each.weights, each.settings
        given = [x, *each.states, *_tensors(w)]
        save = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
        if not save and not torch.compiler.is_compiling():  # a stream's step is short
            outputs, ended, _ = run_forward(kind.traced, x, lengths, each.states, w, s, save=False)
        else:
            outputs, *rest = recurrent(
                kind.key, x, lengths, list(each.states), w.weight_ih, w.weight_hh, w.bias_ih,
                w.bias_hh, list(w.vectors), w.projection, s.mask, list(s.keep), s.clip, s.reverse,
                s.bf16, save,
            )  # fmt: skip
            ended = rest[: len(each.states)]
        found.append(outputs)
        ends.append(ended)
    return Ran.joined(found, ends)


def _tensors(weights: Weights) -> list[Tensor]:
    some = [weights.weight_ih, weights.weight_hh, weights.bias_ih, weights.bias_hh]
    return [w for w in [*some, *weights.vectors, weights.projection] if w is not None]


def _why_not_cpu(kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    del kind
    if directions[0].settings.bf16 and not has_bf16():
        return "has no products in bfloat16 on this processor"
    if x.device.type != "cpu":
        return f"runs on the CPU, got tensors on {x.device}"
    if x.dtype not in (torch.float32, torch.float64):
        return f"takes float32 and float64, got {x.dtype}"
    return ""


# -- printed kernels ------------------------------------------------------------------------------


def _run_triton(
    kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> Ran:
    from seqloom.kernels.gpu import run_directions

    return run_directions(kind.traced, x, lengths, directions)


@cache
def has_triton() -> bool:
    """Whether kernels can be compiled for a card."""
    return find_spec("triton") is not None


def _why_not_triton(kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    if not has_triton():
        return "needs triton, which is not installed"
    if x.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"runs on a GPU, got tensors on {x.device}"
    if x.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return f"takes float32, bfloat16 and float16, got {x.dtype}"
    if directions[0].settings.bf16:
        return "has products in bfloat16 for tensors in bfloat16"
    from seqloom.kernels.gpu import room_for  # triton loads when it is needed

    if not room_for(kind.traced, x, directions):
        return "has no room on this card for so many units"
    return ""


# -- torch's own layers ----------------------------------------------------------------------------


def _run_torch(
    kind: Kind, x: Tensor, lengths: Tensor | None, directions: Sequence[Direction]
) -> Ran:
    call: Callable[..., Any] = getattr(torch._VF, kind.torch_name)
    first = directions[0].weights
    flat = [tensor for each in directions for tensor in _tensors(each.weights)]
    begin = [torch.stack(parts) for parts in zip(*(d.states for d in directions), strict=True)]
    state = tuple(begin) if kind.torch_name == "lstm" else begin[0]
    options = (first.bias_ih is not None, 1, 0.0, torch.is_grad_enabled(), len(directions) == 2)
    if lengths is None:
        outputs, *ended = call(x, state, flat, *options, True)
    else:
        packed = pack_padded_sequence(
            x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        state = _picked(state, packed.sorted_indices)
        data, *ended = call(packed.data, packed.batch_sizes, state, flat, *options)
        ended = [each.index_select(1, packed.unsorted_indices) for each in ended]
        ran = packed._replace(data=data)
        whole, _ = pad_packed_sequence(ran, batch_first=True, total_length=x.shape[1])
        alive = (lengths > 0)[:, None]
        outputs = torch.where(alive[..., None], whole, 0.0)
        ended = [torch.where(alive, new, old) for new, old in zip(ended, begin, strict=True)]
    return Ran(outputs.unflatten(-1, (len(directions), -1)), ended)


def _picked(state: Any, rows: Tensor | None) -> Any:
    if isinstance(state, tuple):
        return tuple(_picked(each, rows) for each in state)
    return state if rows is None else state.index_select(1, rows)


def _why_not_torch(kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    del x
    settings = directions[0].settings
    options = {
        "clipping": settings.clip is not None,
        "dropout of the state": settings.mask is not None,
        "zoneout": bool(settings.keep),
        "products in bfloat16": settings.bf16,
        "projection but of lstm": (
            directions[0].weights.projection is not None and kind.torch_name != "lstm"
        ),
    }
    if not kind.torch_name:
        return f"has rnn, rnn-relu, gru and lstm, got {kind.name}"
    for option, is_on in options.items():
        if is_on:
            return f"has no {option}"
    return ""


BACKENDS: dict[str, Backend] = {
    "reference": Backend(_run_reference, _why_not_reference),
    "torch": Backend(_run_torch, _why_not_torch),
    "cpu": Backend(_run_cpu, _why_not_cpu),
    "triton": Backend(_run_triton, _why_not_triton),
}
