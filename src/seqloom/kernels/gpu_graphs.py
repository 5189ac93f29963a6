"""Runs of a layer that come again in the same shape: recorded once, then one launch each way.

Around a recurrence there are some thirty small kernels, and a host takes longer to launch them than
a card to run them. What a run launches is recorded as a CUDA graph the third time that its shape
comes, with arrays of its own to read from and to write to; a later run copies its input there and
replays it. A recording is lent to one run at a time, from its way forth to its way back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.errors import BackendError
from seqloom.kernels.gpu_layout import copy_together

Forth = Callable[[Tensor, Tensor | None, Sequence[Tensor]], tuple[Sequence[Tensor], Any]]
"""The input, lengths and tensors to the outputs and what the way back needs."""
Back = Callable[[Any, Sequence[Tensor | None], bool], Sequence[Tensor | None]]
"""That, the gradients of the outputs and whether the input's is wanted, to all gradients."""

PLAIN = 2  # runs of a shape before it is recorded
SHARE = 16  # recordings take at most one of so many bytes of a card
LARGEST = 2**23  # gates of a run: beyond, launching is no longer what takes the time


class Work(NamedTuple):
    """What is recorded.

    Args:
        forth: The way forth.
        back: The way back.
        weights: Which of the tensors stay where they are from run to run; the others are copied.
    """

    forth: Forth
    back: Back
    weights: Sequence[bool]


@cache
def _beside(device: torch.device) -> Any:
    """A stream to record on."""
    return torch.cuda.Stream(device)


@cache
def _bytes(device: torch.device) -> int:
    """How many bytes recordings may take."""
    if device.type != "cuda":
        return 2**40
    return torch.cuda.get_device_properties(device).total_memory // SHARE


def record(
    work: Callable[[], Sequence[Tensor | None]], device: torch.device
) -> tuple[Callable[[], None], list[Tensor | None]]:
    """Return what replays some work, and where its results are then.

    Without a card it is done again each time, so that what is around it can be tested.
    """
    if device.type != "cuda":
        found = list(work())

        def again() -> None:
            for place, now in zip(found, work(), strict=True):
                if place is not None and now is not None:
                    place.copy_(now)

        return again, found
    graph, here, beside = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device), _beside(device)
    beside.wait_stream(here)
    with torch.cuda.stream(beside):
        work()  # so that nothing is compiled, and no library's work memory taken, in the recording
        graph.capture_begin(capture_error_mode="relaxed")
        try:
            results = list(work())
        finally:
            graph.capture_end()
    here.wait_stream(beside)
    return graph.replay, results


class Recording:
    """A run of one shape, both ways, with arrays of its own.

    Args:
        work: What is recorded.
        x: An input of this shape.
        lengths: Lengths, if there are any.
        tensors: The tensors that have gradients.
    """

    @torch.no_grad()
    def __init__(
        self, work: Work, x: Tensor, lengths: Tensor | None, tensors: Sequence[Tensor]
    ) -> None:
        self.work, self.lent = work, 0
        before = _reserved(x.device)
        self.x, self.lengths = _like(x), None if lengths is None else _like(lengths)
        self.tensors = [
            each.detach() if stays else _like(each)
            for each, stays in zip(tensors, work.weights, strict=True)
        ]
        self.kept: Any = None
        self._fresh = True  # what is kept was not walked back over, which may write there
        self._fill(x, lengths, tensors)
        self._replay, self.outputs = record(self._forth, x.device)
        self._backs: dict[Any, Any] = {}
        self.bytes = _reserved(x.device) - before

    def _forth(self) -> Sequence[Tensor]:
        outputs, self.kept = self.work.forth(self.x, self.lengths, self.tensors)
        return outputs

    def _fill(self, x: Tensor, lengths: Tensor | None, tensors: Sequence[Tensor]) -> None:
        given = zip(self.tensors, tensors, self.work.weights, strict=True)
        pairs = [(self.x, x), *((place, one) for place, one, stays in given if not stays)]
        if self.lengths is not None and lengths is not None:
            pairs.append((self.lengths, lengths))
        copy_together([place for place, _ in pairs], [one for _, one in pairs])

    def forth(
        self, x: Tensor, lengths: Tensor | None, tensors: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The outputs, as tensors of their own."""
        self._fill(x, lengths, tensors)
        self._replay()
        self._fresh = True
        return tuple(each for each in _copies(self.outputs) if each is not None)

    def back(self, gradients: Sequence[Tensor | None], *, needs_x: bool) -> Sequence[Tensor | None]:
        """The gradients, as tensors of their own."""
        key = (needs_x, *(each is None for each in gradients))
        found = self._backs.get(key)
        places = [None if g is None else _like(g) for g in gradients] if found is None else found[0]
        given = [(a, b) for a, b in zip(places, gradients, strict=True) if b is not None]
        torch._foreach_copy_([a for a, _ in given], [b for _, b in given])
        if found is None:
            before = _reserved(self.x.device)
            replay, results = record(
                lambda: self.work.back(self.kept, places, needs_x), self.x.device
            )
            found = self._backs[key] = places, replay, results
            self.bytes += _reserved(self.x.device) - before
            self._fresh = False
        if not self._fresh:
            self._replay()
        found[1]()
        self._fresh = False
        return _copies(found[2])


def _reserved(device: torch.device) -> int:
    return torch.cuda.memory_reserved(device) if device.type == "cuda" else 0


def _copies(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    found = [None if each is None else _like(each) for each in tensors]
    pairs = [(a, b) for a, b in zip(found, tensors, strict=True) if a is not None and b is not None]
    copy_together([a for a, _ in pairs], [b for _, b in pairs])
    return found


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)


class Lease:
    """A recording that a run has until its way back is over, or until nobody can ask for it."""

    def __init__(self, key: Any, recording: Recording) -> None:
        recording.lent += 1
        self.key, self.recording, self.number = key, recording, recording.lent
        self.over = False

    def end(self) -> None:
        """Hand it back."""
        if not self.over:
            self.over = True
            shape = _shapes.get(self.key)
            if shape is not None:  # else its weights are gone
                shape.free.append(self.recording)

    def __del__(self) -> None:
        if _shapes is not None:  # as it is when Python ends
            self.end()


class Shape:
    """What is known of runs of one shape."""

    def __init__(self) -> None:
        self.runs = 0
        self.recordings: list[Recording] = []
        self.free: list[Recording] = []


_shapes: dict[Any, Shape] = {}


def take(
    key: Any, weight: Tensor, device: torch.device, make: Callable[[], Recording]
) -> Lease | None:
    """A recording of a shape, or None where it is too new or recordings take too much already.

    Args:
        key: What a recording is of: all that is not copied into it.
        weight: Its recordings are given up when this is.
        device: Where it runs.
        make: Records a run.
    """
    shape = _shapes.get(key)
    if shape is None:
        shape = _shapes[key] = Shape()
        weakref.finalize(weight, _shapes.pop, key, None)
    if shape.free:
        return Lease(key, shape.free.pop())
    shape.runs += 1
    if shape.runs <= PLAIN or _taken() > _bytes(device):
        return None
    shape.recordings.append(make())
    return Lease(key, shape.recordings[-1])


def _taken() -> int:
    """How many bytes all recordings take."""
    return sum(one.bytes for shape in _shapes.values() for one in shape.recordings)


class Replayed(torch.autograd.Function):
    """A run by a recording."""

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any, lease: Lease, x: Tensor, lengths: Tensor | None, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        found = lease.recording.forth(x, lengths, tensors)
        if not any(ctx.needs_input_grad):
            lease.end()
            return found
        ctx.lease, ctx.tensors = lease, tensors
        ctx.versions = [each._version for each in tensors]
        ctx.set_materialize_grads(False)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: D102
        lease: Lease = ctx.lease
        if lease.over and lease.recording.lent != lease.number:
            raise BackendError(
                "the way back of a recurrent layer was asked for a second time, after its memory "
                "had been used again; set SEQLOOM_REPLAY=0"
            )
        if [each._version for each in ctx.tensors] != ctx.versions:
            raise BackendError("a weight of a recurrent layer was changed before its way back")
        found = lease.recording.back(gradients, needs_x=ctx.needs_input_grad[1])
        lease.end()
        return (None, found[0], None, *found[1:])
