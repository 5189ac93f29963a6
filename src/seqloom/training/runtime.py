"""Where a run computes: device, precision and processes, on torch alone.

Several processes are those `torchrun` or `accelerate launch` started; both set the variables that
`torch.distributed` reads. Every process holds the whole model and sees its share of each batch;
gradients and counts are summed, so the result is that of one process with the same batches.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, distributed

from seqloom.errors import BackendError
from seqloom.training.config import Precision


class Runtime:
    """The device, precision and process group of one run.

    Args:
        device: "auto" takes a GPU where there is one.
        precision: Of the products.
    """

    def __init__(self, device: str, precision: Precision) -> None:
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0")) if self.world_size > 1 else 0
        self.device = _choose_device(device, self.world_size)
        self.precision = precision
        if precision == "fp16" and self.device.type == "cpu":
            raise BackendError("precision 'fp16' needs a GPU; use 'bf16' or 'fp32' on a CPU")
        if self.world_size > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
            atexit.register(_leave_group)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "fp16")

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and talks."""
        return self.rank == 0

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which a model runs."""
        if self.precision in ("fp32", "tf32"):
            return nullcontext()
        kind = torch.bfloat16 if self.precision == "bf16" else torch.float16
        return torch.autocast(self.device.type, kind)

    @contextmanager
    def products(self) -> Iterator[None]:
        """For a whole run: with "tf32", products keep 10 bits of the numbers' mantissa."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = before or self.precision == "tf32"
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.world_size > 1:
            distributed.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Whether a flag is set in one of the processes; all must ask at the same point."""
        if self.world_size == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)))

    def gather(self, value: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """The tensors of every process, by rank."""
        own = {name: tensor.detach().cpu() for name, tensor in value.items()}
        if self.world_size == 1:
            return [own]
        found: list[Any] = [None] * self.world_size
        distributed.all_gather_object(found, own)
        return found

    @torch.no_grad()
    def share(self, weights: Iterable[Tensor]) -> None:
        """Give every process the weights of the main one."""
        if self.world_size > 1:
            for weight in weights:
                distributed.broadcast(weight.data, src=0)

    def sum_gradients(self, weights: Iterable[Tensor]) -> None:
        """Replace each gradient by its sum over all processes, in one message a dtype."""
        if self.world_size == 1:
            return
        groups: dict[torch.dtype, list[Tensor]] = {}
        for weight in weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            groups.setdefault(weight.grad.dtype, []).append(weight.grad)
        for gradients in groups.values():
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            distributed.all_reduce(flat)
            sizes = [gradient.numel() for gradient in gradients]
            for gradient, piece in zip(gradients, flat.split(sizes), strict=True):
                gradient.copy_(piece.view_as(gradient))

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Let the main process through a block before the others."""
        if not self.is_main:
            self.wait()
        yield
        if self.is_main:
            self.wait()

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.world_size > 1:
            distributed.barrier()


def _leave_group() -> None:
    # Left to the interpreter's end, the group's threads may outlive it, and the process aborts.
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _choose_device(name: str, world_size: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")  # which is none of those below
    if device.type not in ("cpu", "cuda"):
        raise BackendError(f"device must be 'auto', 'cpu' or 'cuda[:N]', got {name!r}")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise BackendError(f"device {name!r} was asked for, but torch sees no GPU here")
        if (device.index or 0) >= torch.cuda.device_count():
            raise BackendError(
                f"device {name!r} was asked for, but torch sees {torch.cuda.device_count()} GPUs"
            )
        if ":" not in name:
            local = int(os.environ.get("LOCAL_RANK", "0")) if world_size > 1 else 0
            device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    return device
