"""What a card is measured for: how kernels are best cut there, and where torch's layers win."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from datetime import date
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqloom.kernels import gpu_launch as gpu
from seqloom.kernels.choice import gpu_line
from seqloom.kernels.plan import Variant
from seqloom.kernels.tiles import Job, Tiles, candidates, choose_tiles, cost, streamed
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import TORCH_NAMES, Recurrent
from seqloom.nn.timing import PEERS

STEPS = 128
GRID = [(batch, size) for size in (128, 256, 512, 1024) for batch in (16, 64, 256)]
MOST = 6  # tiles of a kind tried for a shape, those that should be best


def microseconds(job: Callable[[], Any], steps: int, repeats: int = 5, calls: int = 3) -> float:
    """The median time of a step, of some calls in a row."""
    for _ in range(2):
        job()
    torch.cuda.synchronize()
    found = []
    for _ in range(repeats):
        one, two = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        one.record()
        for _ in range(calls):
            job()
        two.record()
        two.synchronize()
        found.append(1000 * float(one.elapsed_time(two)) / calls / steps)
    return sorted(found)[repeats // 2]


def _jobs(
    layer: nn.Module, x: Tensor, output: Callable[[Any], Tensor]
) -> Iterator[tuple[bool, Callable[[], Any]]]:
    """Forward, and forward with the way back: whether it is training, and what runs it."""
    weights, grad = list(layer.parameters()), torch.randn_like(output(layer(x)))

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    yield False, forward
    yield True, lambda: torch.autograd.grad(output(layer(x)), weights, grad)


class Point(NamedTuple):
    """A shape whose tiles are looked for.

    Args:
        cell: The cell's name.
        dtype: Its numbers; products of 32 bits are tf32.
        batch: Rows.
        size: Units.
        directions: One or two.
    """

    cell: str
    dtype: torch.dtype
    batch: int
    size: int
    directions: int = 1


def points() -> Iterator[Point]:
    """The shapes that are measured."""
    for batch, size in GRID:
        for cell in ("lstm", "gru", "rnn"):
            yield Point(cell, torch.bfloat16, batch, size)
        for cell in ("lstm", "gru") if size > 128 else ():
            yield Point(cell, torch.float32, batch, size)
        if batch < 256:
            yield Point("lstm", torch.bfloat16, batch, size, 2)


def tune_tiles(
    say: Callable[[str], None], shapes: Iterable[Point], steps: int = STEPS, most: int = MOST
) -> Iterator[dict[str, Any]]:
    """The best tiles of some shapes, each tried among those that should be good.

    Args:
        say: Told what was found.
        shapes: The shapes.
        steps: Of a run that is timed.
        most: How many tiles that hold their matrices are tried, and how many that stream them.
    """
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for point in shapes:
            cell, dtype, batch, size, directions = point
            plan = gpu.plan_of(CELLS[cell].traced(), Variant())
            layer = Recurrent(
                cell, size, size, bidirectional=directions == 2, backend="triton"
            ).to("cuda", dtype)  # fmt: skip
            x = torch.randn(batch, steps, size, device="cuda", dtype=dtype)
            jobs = _jobs(layer, x, lambda y: y.outputs)
            wide = size + -size % (16 // dtype.itemsize)
            shape = gpu.Shape(batch, steps, directions, wide, wide, size, size)
            for (backward, run), option in zip(jobs, ("tiles", "back_tiles"), strict=True):
                job = gpu.job_of(plan, shape, dtype.itemsize, backward=backward)
                found = _times(job, processors, option, run, steps, most)
                if not found:
                    continue
                took, best = min(found, key=lambda one: one[0])
                say(
                    f"{cell}, {dtype}, B={batch} H={size}, {directions} ways, {option}: "
                    f"{took:.2f} us a step, {found[0][0]:.2f} as it was: {best}"
                )
                cut = [best.rows, best.units, best.warps, best.chunk, best.looks, best.parts]
                cut += [best.stages] if best.stages else []
                yield {"job": list(astuple(job)), "tiles": cut}
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _times(
    job: Job, processors: int, option: str, run: Callable[[], Any], steps: int, most: int
) -> list[tuple[float, Tiles]]:
    """Microseconds a step: with the tiles in use first, then with those that should be good."""
    able = sorted(candidates(job, processors), key=lambda tiles: cost(job, tiles))[:most]
    flowing: dict[Any, Tiles] = {}  # of those that differ in stages and chunks alone the best
    for tiles in sorted(streamed(job, processors), key=lambda tiles: cost(job, tiles)):
        flowing.setdefault((tiles.rows, tiles.units, tiles.warps, tiles.parts), tiles)
    found = []
    for tiles in dict.fromkeys([choose_tiles(job, processors), *able, *[*flowing.values()][:most]]):
        gpu.OPTIONS[option] = tiles
        try:
            found.append((microseconds(run, steps), tiles))
        except Exception as error:
            if not any(name in f"{type(error).__name__} {error}" for name in gpu.REFUSALS):
                raise
        finally:
            gpu.OPTIONS.clear()
    return found


def tune_ratios(say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """By cell, precision and way, and by rows and size: our time over torch's."""
    found: dict[str, dict[str, float]] = {}
    for cell, peer in PEERS.items():
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            for batch, size in GRID:
                x = torch.randn(batch, STEPS, size, device="cuda", dtype=dtype)
                ours = Recurrent(cell, size, size, backend="triton").to("cuda", dtype)
                theirs = peer(size, size, batch_first=True).to("cuda", dtype)
                pairs = zip(
                    _jobs(ours, x, lambda y: y.outputs),
                    _jobs(theirs, x, lambda y: y[0]),
                    strict=True,
                )
                for (training, mine), (_, other) in pairs:
                    ratio = microseconds(mine, STEPS) / microseconds(other, STEPS)
                    line = gpu_line(TORCH_NAMES[CELLS[cell]], dtype, training=training)
                    found.setdefault(line, {})[f"{batch} {size}"] = round(ratio, 3)
                    say(f"{line}, B={batch} H={size}: triton takes {ratio:.2f} of torch's time")
    return found


def tune_gpu(say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the card: the parts `gpu` and `tiles` of the table of measurements."""
    tiles = list(tune_tiles(say, points()))
    when = f"{date.today()} on {torch.cuda.get_device_name()}"
    return {"tiles": tiles, "gpu": {"measured": when, "ratios": tune_ratios(say)}}
