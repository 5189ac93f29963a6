"""The printed kernels on a GPU: checked against the visible loop, and timed against cuDNN.

    python benchmarks/recurrent_gpu.py --save benchmarks/results/DATE-recurrent-gpu.md

Checks: the relative Frobenius error of outputs, last states and every gradient, against the visible
loop in double precision on the same rounded numbers. Times: microseconds a step, the median of
several, and how many times as long torch's layer (cuDNN) of the cell takes (of the LSTM where
torch does not have the cell).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from made_up import MadeUp  # noqa: E402
from seqloom.kernels.gpu import check_flags  # noqa: E402
from seqloom.nn.cells import CELLS  # noqa: E402
from seqloom.nn.recurrent import Recurrent  # noqa: E402
from seqloom.nn.timing import PEERS  # noqa: E402

STEPS = 256
CASES = {**CELLS, "made-up": MadeUp}
LIMITS = {"fp32": 1e-5, "tf32": 1e-3, "fp16": 2e-3, "bf16": 1.5e-2}
KINDS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16,
         "bf16": torch.bfloat16}  # fmt: skip


def precision(kind: str) -> torch.dtype:
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    torch.backends.cudnn.allow_tf32 = kind == "tf32"
    return KINDS[kind]


def error(name: str, kind: str, shape: tuple[int, int, int], *, both: bool, ragged: bool) -> float:
    """The largest relative error among outputs, last states and gradients."""
    (steps, batch, size), dtype, found = shape, precision(kind), []
    for backend in ("reference", "triton"):
        torch.manual_seed(0)
        layer = Recurrent(CASES[name], 12, size, bidirectional=both, backend=backend).to(dtype)
        x = torch.randn(steps, batch, 12).transpose(0, 1).to(dtype)  # not contiguous
        begin = [(0.5 * torch.randn(s.shape)).to(dtype) for s in layer.initial_states(batch)]
        lengths = None
        if ragged:
            lengths = torch.randint(1, steps + 1, (batch,))
            lengths[0], lengths[-1] = steps, 1 if batch > 1 else steps
        weights = [torch.randn(batch, steps, layer.output_size).to(dtype)]
        weights += [torch.randn(s.shape).to(dtype) for s in begin]
        if backend == "reference":
            layer, x = layer.double(), x.double()
            begin, weights = [b.double() for b in begin], [w.double() for w in weights]
        else:
            torch.full((1 << 28,), math.nan, device="cuda")  # poison what is given out next
            layer, x = layer.cuda(), x.cuda()
            begin, weights = [b.cuda() for b in begin], [w.cuda() for w in weights]
            lengths = None if lengths is None else lengths.cuda()
        given = [x, *begin]
        for tensor in given:
            tensor.requires_grad_()
        outputs, after = layer(x, lengths, begin)
        total = [(y * w).sum() for y, w in zip((outputs, *after), weights, strict=True)]
        grads = torch.autograd.grad(total, [*given, *layer.parameters()])
        found.append([t.detach().double().cpu() for t in (outputs, *after, *grads)])
    check_flags()
    pairs = zip(*found, strict=True)
    return max(float((b - a).norm() / (a.norm() + 1e-30)) for a, b in pairs)


def milliseconds(job: Callable[[], Any], repeats: int = 9) -> float:
    for _ in range(3):
        job()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        one, two = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        one.record()
        job()
        two.record()
        two.synchronize()
        times.append(one.elapsed_time(two))
    return sorted(times)[repeats // 2]


def jobs(layer: nn.Module, x: torch.Tensor, out: Callable[[Any], torch.Tensor]) -> list[Any]:
    weights = list(layer.parameters())
    grad = torch.randn_like(out(layer(x)))

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    def both() -> None:
        torch.autograd.grad(out(layer(x)), weights, grad)

    return [forward, both]


def times(name: str, kind: str, batch: int, size: int) -> list[tuple[float, float]]:
    """Microseconds a step, ours and cuDNN's, forward and with the way back."""
    dtype = precision(kind)
    x = torch.randn(batch, STEPS, size, device="cuda", dtype=dtype, requires_grad=True)
    theirs = PEERS[name if name in PEERS else "lstm"](
        size, size, batch_first=True, device="cuda", dtype=dtype
    )
    ours = Recurrent(CASES[name], size, size, backend="triton").cuda().to(dtype)
    found = []
    for mine, other in zip(jobs(ours, x, lambda y: y.outputs), jobs(theirs, x, lambda y: y[0]),
                           strict=True):  # fmt: skip
        found.append((1000 * milliseconds(mine) / STEPS, 1000 * milliseconds(other) / STEPS))
    check_flags()
    return found


def checks(until: float) -> list[str]:
    lines = ["| cell | precision | T | B | H | directions | lengths | error | limit |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    shapes = [(1, 1, 5), (2, 3, 64), (7, 16, 100), (63, 65, 128), (256, 3, 64), (7, 16, 512)]
    shapes += [(7, 3, 1024)]
    names = ["lstm", "made-up", *(n for n in CASES if n not in ("lstm", "made-up"))]
    for name in names:
        for number, (steps, batch, size) in enumerate(shapes):
            for kind in ("fp32", "bf16") if number % 2 else ("fp32", "tf32", "fp16"):
                if time.monotonic() > until:
                    return [*lines, "", "The rest was not reached in the time given."]
                both, ragged = number % 2 == 1, number % 3 != 0
                try:
                    found = (
                        f"{error(name, kind, (steps, batch, size), both=both, ragged=ragged):.1e}"
                    )
                except Exception as problem:
                    found = f"{type(problem).__name__}: {str(problem)[:60]}"
                lines.append(
                    f"| {name} | {kind} | {steps} | {batch} | {size} | {1 + both} | "
                    f"{'ragged' if ragged else 'whole'} | {found} | {LIMITS[kind]:g} |"
                )
    return lines


def speeds(until: float) -> list[str]:
    lines = [
        "| cell | precision | B | H | forward, us a step | cuDNN / ours | both | cuDNN / ours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ratios: dict[str, list[list[float]]] = {}
    plan = [("lstm", "bf16", b, h) for h in (128, 256, 512, 1024) for b in (16, 64, 256)]
    plan += [(n, "bf16", 64, 256) for n in ("rnn", "gru", "gru-before", "peephole-lstm", "made-up")]
    plan += [("lstm", k, 16, h) for k in ("fp16", "tf32") for h in (256, 512, 1024)]
    for name, kind, batch, size in plan:
        if time.monotonic() > until:
            lines += ["", "The rest was not reached in the time given."]
            break
        try:
            found = times(name, kind, batch, size)
        except Exception as problem:
            said = f"{type(problem).__name__}: {str(problem)[:80]}".replace("|", " ")
            lines.append(f"| {name} | {kind} | {batch} | {size} | {said} | | | |")
            continue
        cells = [f"{ours:.2f} | {theirs / ours:.2f}" for ours, theirs in found]
        lines.append(f"| {name} | {kind} | {batch} | {size} | {' | '.join(cells)} |")
        ratios.setdefault(kind, []).append([theirs / ours for ours, theirs in found])
    for kind, rows in ratios.items():
        means = [
            math.exp(sum(map(math.log, column)) / len(rows)) for column in zip(*rows, strict=True)
        ]
        lines += ["", f"Geometric means in {kind}, of the points that ran ({len(rows)}): "
                  f"{means[0]:.2f} forward, {means[1]:.2f} both ways."]  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=540, help="for all; half for the checks")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*contiguous chunk.*")
    began = time.monotonic()
    card = torch.cuda.get_device_name()
    lines = [
        "# Recurrent layers on the GPU",
        "",
        "    python benchmarks/recurrent_gpu.py --save FILE",
        "",
        f"{date.today()}, {card}, torch {torch.__version__}. One layer, backend 'triton'; "
        f"T = {STEPS} for the times.",
        "",
        "## Speed",
        "",
        *speeds(began + given.seconds / 2),
        "",
        "## Checks",
        "",
        *checks(began + given.seconds),
    ]
    report = "\n".join(lines) + "\n"
    print(report)
    if given.save:
        given.save.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
