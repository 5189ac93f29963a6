"""The scores of additive attention on a card: the kernels against torch's code.

    python benchmarks/additive_gpu.py

Values are compared with torch's code in 64 bits, a few rows at a time, the scores and every
gradient; times are of forward and backward together, the best of 20, and the memory is the most
that was taken beyond what is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from seqloom.kernels.additive import run_additive

REPEATS = 20
ROWS = 8  # at a time in 64 bits
SHAPES = (  # rows, queries, keys, width inside the score
    (60, 150, 150, 75),
    (120, 150, 150, 75),
    (60, 400, 400, 75),
    (64, 32, 32, 512),
    (64, 64, 64, 512),
    (64, 1, 32, 512),
)


def by_torch(own: Tensor, prepared: Tensor, out_weight: Tensor) -> Tensor:
    inner = torch.tanh(own[:, :, None] + prepared[:, None])  # (B, T, S, A)
    return functional.linear(inner, out_weight)[..., 0]


def once(method: Callable[..., Tensor], given: list[Tensor], worth: Tensor) -> list[Tensor]:
    """The scores and the gradients of all that is given."""
    leaves = [each.detach().requires_grad_() for each in given]
    scores = method(*leaves)
    return [scores.detach(), *torch.autograd.grad(scores, leaves, worth)]


def exact(given: list[Tensor], worth: Tensor) -> list[Tensor]:
    own, prepared, weight = (each.double() for each in given)
    cut = [each.split(ROWS) for each in (own, prepared, worth.double())]
    found = [once(by_torch, [q, k, weight], d) for q, k, d in zip(*cut, strict=True)]
    *rows, d_weights = zip(*found, strict=True)
    return [*(torch.cat(each) for each in rows), torch.stack(d_weights).sum(0)]


def measure(method: Callable[..., Tensor], given: list[Tensor], worth: Tensor) -> str:
    once(method, given, worth)
    torch.cuda.reset_peak_memory_stats()
    before, best = torch.cuda.memory_allocated(), float("inf")
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        once(method, given, worth)
        torch.cuda.synchronize()
        best = min(best, 1000 * (time.perf_counter() - began))
    return f"{best:.3f} ms, {(torch.cuda.max_memory_allocated() - before) / 2**20:.0f} MiB"


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype in (torch.float32, torch.bfloat16):
        for shape in SHAPES:
            torch.manual_seed(0)
            rows, queries, keys, width = shape
            sizes = ((rows, queries, width), (rows, keys, width), (1, width), (rows, queries, keys))
            *given, worth = (torch.randn(each, device="cuda", dtype=dtype) for each in sizes)
            found, right = once(run_additive, given, worth), exact(given, worth)
            errors = [float((a - b).norm() / b.norm()) for a, b in zip(found, right, strict=True)]
            again = once(run_additive, given, worth)
            same = all(torch.equal(a, b) for a, b in zip(found, again, strict=True))
            print(
                f"{shape} {dtype}: relative errors {[f'{e:.1e}' for e in errors]}, "
                f"{'the same' if same else 'OTHER'} bits twice; kernels "
                f"{measure(run_additive, given, worth)}; torch {measure(by_torch, given, worth)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
