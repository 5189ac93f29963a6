"""R-Net's matching word after word on a card: the kernels against the loop, values and time.

    python benchmarks/matching_gpu.py

Values are compared with the loop in 64 bits, the states and every gradient; times are of forward
and backward together, the best of five, of the kernels and of the loop in 32 bits.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.nn.matching import RecurrentMatch

REPEATS = 5


class Shape(NamedTuple):
    """Rows, words of a passage and of a question, width of a word, units of the state."""

    rows: int
    words: int
    asked: int
    width: int
    units: int


SHAPES = (
    Shape(1, 1, 1, 2, 3),
    Shape(3, 7, 5, 10, 5),
    Shape(17, 40, 33, 64, 100),
    Shape(60, 150, 20, 150, 75),
    Shape(120, 150, 20, 150, 75),
    Shape(60, 400, 40, 150, 75),
    Shape(120, 150, 20, 256, 128),
)


class Given(NamedTuple):
    """What is matched, and what the states are worth."""

    both: Tensor
    known: Tensor
    real: Tensor
    worth: Tensor


def draw(shape: Shape, device: str) -> Given:
    """Passages and questions of several lengths."""
    rows, words, asked, width, units = shape
    return Given(
        torch.randn(rows, words + asked, width, device=device),
        torch.arange(asked, device=device) < torch.randint(1, asked + 1, (rows, 1), device=device),
        torch.arange(words, device=device) < torch.randint(1, words + 1, (rows, 1), device=device),
        torch.randn(rows, words, units, device=device),
    )


def update(layer: Any, given: Given, words: int) -> tuple[list[Tensor], float]:
    """The states and all gradients, and the least milliseconds of several times."""
    both = given.both.detach().to(next(layer.parameters()).dtype, copy=True).requires_grad_()
    best = float("inf")
    for _ in range(REPEATS):
        layer.zero_grad()
        both.grad = None
        wait(both)
        began = time.perf_counter()
        found = layer(both[:, :words], both[:, words:], given.known, given.real)
        (found.outputs * given.worth).sum().backward()
        wait(both)
        best = min(best, 1000 * (time.perf_counter() - began))
    gradients = [each.grad for each in (both, *layer.parameters())]
    return [each.detach().double() for each in (found.outputs, *gradients)], best


def wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()


def main(device: str = "cuda", shapes: tuple[Shape, ...] = SHAPES) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    for shape in shapes:
        torch.manual_seed(0)
        given = draw(shape, device)
        for gated in (True, False):
            layers = {
                name: RecurrentMatch(shape.width, shape.units, gated=gated, backend=name)
                for name in ("triton", "reference")
            }
            layers["reference"].load_state_dict(layers["triton"].state_dict())
            found, seconds = update(layers["triton"].to(device), given, shape.words)
            _, others = update(layers["reference"].to(device), given, shape.words)
            exact, _ = update(layers["reference"].double(), given, shape.words)
            worst = max(
                float((a - b).norm() / b.norm().clamp(min=1e-12))
                for a, b in zip(found, exact, strict=True)
            )
            print(
                f"{shape._asdict()} {'gated' if gated else 'no gate'}: greatest relative error "
                f"{worst:.1e}; {seconds:.2f} ms, the loop {others:.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
