"""The printed kernels on a GPU: checked against the visible loop, and timed against cuDNN.

    python benchmarks/recurrent_gpu.py --save benchmarks/results/DATE-recurrent-gpu.md

Checks: the relative Frobenius error of outputs, last states and every gradient, against the visible
loop in double precision on the same rounded numbers; what is given out next is poisoned first.
Times: microseconds a step, the median of several times of some calls in a row, and how many times
as long torch's layer (cuDNN) takes of the same cell (of the nearest one where torch lacks it).
Kernels are compiled beforehand by several processes; what a first use costs is measured by itself.
Runs are recorded and replayed, as they are in training, and checked so; with SEQLOOM_REPLAY=0 in
the environment they are not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from made_up import MadeUp, Smooth  # noqa: E402
from seqloom.errors import SeqloomError  # noqa: E402
from seqloom.kernels import gpu_graphs  # noqa: E402
from seqloom.kernels.gpu_launch import check_flags  # noqa: E402
from seqloom.nn.cells import CELLS  # noqa: E402
from seqloom.nn.recurrent import TORCH_NAMES, Recurrent  # noqa: E402

STEPS = 256
CASES = {**CELLS, "made-up": MadeUp, "smooth": Smooth}
LIMITS = {"fp32": 1e-5, "tf32": 1e-3, "fp16": 2e-3, "bf16": 1.5e-2}
KINDS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16,
         "bf16": torch.bfloat16}  # fmt: skip
PEERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
PEER_OF = {"gru-before": "gru", "peephole-lstm": "lstm", "made-up": "lstm", "smooth": "lstm"}
TIMED = ("rnn", "gru", "gru-before", "lstm", "peephole-lstm", "made-up")
GRID = [(b, h) for h in (128, 256, 512, 1024) for b in (16, 64, 256)]


class Point(NamedTuple):
    """A layer on a batch."""

    cell: str
    kind: str
    steps: int
    batch: int
    size: int
    both: bool = False
    ragged: bool = False


def precision(kind: str) -> torch.dtype:
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    torch.backends.cudnn.allow_tf32 = kind == "tf32"
    return KINDS[kind]


# -- checks ----------------------------------------------------------------------------------------


def round_tf32(tensor: torch.Tensor) -> None:
    """Round numbers to those that tf32 has, in place."""
    bits = torch.empty_like(tensor, dtype=torch.int32).copy_(tensor.view(torch.int32))
    tensor.copy_((((bits + 0x1000) >> 13) << 13).view(torch.float32))


def results(point: Point, backend: str) -> list[torch.Tensor]:
    """Outputs, last states and every gradient."""
    dtype, (_, _, steps, batch, size, both, ragged) = precision(point.kind), point
    torch.manual_seed(0)
    layer = Recurrent(CASES[point.cell], 12, size, bidirectional=both, backend=backend).to(dtype)
    x = torch.randn(steps, batch, 12).transpose(0, 1).to(dtype)  # not contiguous
    begin = [(0.5 * torch.randn(s.shape)).to(dtype) for s in layer.initial_states(batch)]
    lengths = None
    if ragged:
        lengths = torch.randint(1, steps + 1, (batch,))
        lengths[0], lengths[-1] = steps, 1 if batch > 1 else steps
        lengths = lengths.cuda()
    weights = [torch.randn(batch, steps, layer.output_size).to(dtype)]
    weights += [torch.randn(s.shape).to(dtype) for s in begin]
    if point.kind == "tf32":
        for tensor in (x, *begin, *weights, *layer.parameters()):
            round_tf32(tensor.data)
    exact = torch.float64 if backend == "reference" else dtype
    layer, x = layer.to("cuda", exact), x.to("cuda", exact)
    begin, weights = ([t.to("cuda", exact) for t in some] for some in (begin, weights))
    if backend == "triton":
        torch.full((1 << 26,), math.nan, device="cuda")
    given = [x, *begin]
    for tensor in given:
        tensor.requires_grad_()
    outputs, after = layer(x, lengths, begin)
    total = [(y * w).sum() for y, w in zip((outputs, *after), weights, strict=True)]
    grads = torch.autograd.grad(total, [*given, *layer.parameters()])
    return [t.detach() for t in (outputs, *after, *grads)]


def error(point: Point) -> tuple[float, float, bool]:
    """The largest relative error forward and of gradients, and whether a second run is the same."""
    exact = results(point, "reference")
    found, again = results(point, "triton"), results(point, "triton")
    torch.cuda.synchronize()
    check_flags(found[0].device)
    errors = [
        float((b.double() - a).norm() / (a.norm() + 1e-30))
        for a, b in zip(exact, found, strict=True)
    ]
    same = all(torch.equal(a, b) for a, b in zip(found, again, strict=True))
    forth = 1 + len(CASES[point.cell].states)
    return max(errors[:forth]), max(errors[forth:]), same


def check_points() -> list[Point]:
    """Every shape asked for the LSTM and the made-up cells, and a covering set for the others.

    Shapes that differ in T alone share their kernels, and so their precision.
    """
    shapes = list(itertools.product((1, 3, 16, 65), (5, 64, 100, 128, 512, 1024)))
    kinds = itertools.cycle(("bf16", "fp32", "tf32", "fp16"))
    found = []
    for cell in ("lstm", "smooth", "made-up"):
        for number, (batch, size) in enumerate(shapes):
            kind = next(kinds)
            for steps in (1, 2, 7, 63, 256):
                found.append(
                    Point(cell, kind, steps, batch, size, number % 3 == 1, number % 2 == 1)
                )
        next(kinds)  # so that the next cell has other precisions at the same shapes
    some = [(1, 1, 5), (2, 3, 64), (7, 16, 100), (63, 65, 128), (256, 3, 64), (7, 16, 512)]
    for cell in (c for c in CASES if c not in ("lstm", "made-up", "smooth")):
        for number, (steps, batch, size) in enumerate([*some, (7, 65, 1024)]):
            kind = next(kinds)
            found.append(Point(cell, kind, steps, batch, size, number % 2 == 1, number % 3 != 0))
        next(kinds)
    return found


def not_a_number() -> str:
    """Whether numbers that are none are handed on as such, and nobody waits for them."""
    found = []
    for kind, pattern in itertools.product(("fp32", "bf16", "fp16"), ("nan", "all bits set")):
        dtype = precision(kind)
        layer = Recurrent("lstm", 8, 64, backend="triton").to("cuda", dtype)
        x = torch.randn(20, 9, 8, device="cuda", dtype=dtype)
        x[1, 3, 2] = math.nan
        begin = [torch.randn(1, 20, 64, device="cuda", dtype=dtype) for _ in range(2)]
        if pattern == "all bits set":
            bits = torch.int32 if kind == "fp32" else torch.int16
            begin[0].view(bits)[0, 4] = -1
        outputs = layer(x, None, begin).outputs
        torch.cuda.synchronize()
        check_flags(outputs.device)
        lost = outputs.isnan().any(-1)  # (B, T)
        wanted = torch.zeros_like(lost)
        wanted[1, 3:] = True
        wanted[4] |= pattern == "all bits set"
        found.append(torch.equal(lost, wanted))
    said = "come out where they must" if all(found) else f"DO NOT come out right: {found}"
    return f"NaNs in the input and in states {said}, and nobody waits for them."


def check_some(until: float) -> None:
    """What a process of `checks` does: a line of JSON for each point, errors or what failed."""
    gpu_graphs.PLAIN = 0  # the first run of a shape is replayed already
    for given in json.loads(os.environ["SEQLOOM_POINTS"]):
        if time.time() > until:
            break
        point = Point(*given)
        try:
            found: list[Any] = list(error(point))
        except (SeqloomError, RuntimeError) as problem:
            found = [f"{type(problem).__name__}: {str(problem)[:60]}".replace("|", " ")]
        print(json.dumps([point, found]), flush=True)


def checks(until: float, processes: int) -> Iterator[str]:
    """A table of what is off, and how large the largest errors are."""
    worst: dict[tuple[str, str], list[float]] = {}
    count: dict[tuple[str, str], int] = {}
    off, reached = [], 0
    points = check_points()
    shapes = list(dict.fromkeys(point._replace(steps=0) for point in points))
    shares: list[list[Point]] = [[] for _ in range(processes)]
    for point in points:  # those that share kernels stay together
        shares[shapes.index(point._replace(steps=0)) % processes].append(point)
    tools = {tool: sanitize(tool) for tool in ("memcheck", "racecheck")}
    for line in run_processes("--check", shares, until):
        given, found = json.loads(line)
        point = Point(*given)
        reached += 1
        if len(found) == 1:
            off.append(f"| {' | '.join(map(str, point))} | {found[0]} | | |")
            continue
        forth, back, same = found
        key = (point.cell, point.kind)
        worst[key] = [max(a, b) for a, b in zip(worst.get(key, (0, 0)), (forth, back), strict=True)]
        count[key] = count.get(key, 0) + 1
        if not max(forth, back) < LIMITS[point.kind] or not same:
            off.append(f"| {' | '.join(map(str, point))} | {forth:.1e} | {back:.1e} | {same} |")
    yield f"{reached} of {len(points)} points were reached. {not_a_number()}"
    yield from ["", "| cell | precision | points | largest error forward | of gradients | limit |",
                "|---|---|---|---|---|---|"]  # fmt: skip
    for (cell, kind), (forth, back) in sorted(worst.items()):
        figures = f"{forth:.1e} | {back:.1e} | {LIMITS[kind]:g}"
        yield f"| {cell} | {kind} | {count[cell, kind]} | {figures} |"
    yield from ["", f"Beyond the limit, or not the same bits twice: {len(off)}."]
    if off:
        yield "\n| cell | precision | T | B | H | both | ragged | forward | gradients | same bits |"
        yield from ["|---|---|---|---|---|---|---|---|---|---|", *sorted(off)]
    yield ""
    for tool, process in tools.items():
        yield sanitized(tool, process, until)


SMALL = [
    Point("lstm", "bf16", 3, 17, 64, both=True, ragged=True),
    Point("lstm", "fp32", 3, 3, 100),
    Point("made-up", "fp16", 3, 65, 64, ragged=True),
    Point("made-up", "tf32", 2, 3, 128),
    Point("gru-before", "bf16", 2, 130, 128),
]


def sanitize(tool: str) -> subprocess.Popen[str] | None:
    """Small shapes under compute-sanitizer, if it is there."""
    found = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if found is None:
        return None
    command = [found, "--tool", tool, sys.executable, __file__, "--small"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def sanitized(tool: str, process: subprocess.Popen[str] | None, until: float) -> str:
    """What it says."""
    if process is None:
        return f"compute-sanitizer --tool {tool}: not installed."
    try:
        said, _ = process.communicate(timeout=max(1.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        return f"compute-sanitizer --tool {tool}: did not end in time."
    last = [line for line in said.splitlines() if "SUMMARY" in line]
    return f"compute-sanitizer --tool {tool}: {' '.join(last).replace('=', '').strip()}."


# -- times -----------------------------------------------------------------------------------------


def milliseconds(job: Callable[[], Any], repeats: int = 5, calls: int = 5) -> float:
    """The median of several times of some calls in a row, as they come in training."""
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
        found.append(one.elapsed_time(two) / calls)
    return sorted(found)[repeats // 2]


def jobs(
    layer: nn.Module, x: torch.Tensor, out: Callable[[Any], torch.Tensor], *more: Any
) -> list[Callable[[], Any]]:
    """Forward, and forward with the way back."""
    weights = [x, *layer.parameters()]
    grad = torch.randn_like(out(layer(x, *more)))

    def forward() -> None:
        with torch.no_grad():
            layer(x, *more)

    def both() -> None:
        torch.autograd.grad(out(layer(x, *more)), weights, grad)

    return [forward, both]


def inputs(point: Point) -> torch.Tensor:
    dtype = precision(point.kind)
    shape = (point.batch, point.steps, point.size)
    return torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True)


def our_times(point: Point, **options: Any) -> list[float]:
    """Microseconds a step, forward and both ways."""
    x = inputs(point)
    layer = Recurrent(
        CASES[point.cell], point.size, point.size, bidirectional=point.both, backend="triton",
        **options,
    ).to("cuda", x.dtype)  # fmt: skip
    more = []
    if point.ragged:
        torch.manual_seed(1)
        more = [torch.randint(20, point.steps + 1, (point.batch,), device="cuda")]
    found = [
        1000 * milliseconds(job) / point.steps for job in jobs(layer, x, lambda y: y[0], *more)
    ]
    check_flags(x.device)
    return found


def peer_times(point: Point, cache: dict[Point, list[float]]) -> list[float]:
    """Those of torch's layer."""
    point = point._replace(cell=PEER_OF.get(point.cell, point.cell))
    if point not in cache:
        x = inputs(point)
        peer = PEERS[point.cell](
            point.size, point.size, batch_first=True, bidirectional=point.both, device="cuda",
            dtype=x.dtype,
        )  # fmt: skip
        cache[point] = [
            1000 * milliseconds(job, calls=3) / point.steps for job in jobs(peer, x, lambda y: y[0])
        ]
    return cache[point]


def time_points() -> list[Point]:
    """What is timed against cuDNN."""
    found = [Point(c, "bf16", STEPS, b, h) for c in TIMED for b, h in GRID]
    found += [Point("lstm", "bf16", STEPS, b, 2048) for b in (16, 64)]
    found += [Point(c, "tf32", STEPS, b, h) for c in ("gru", "lstm") for b, h in GRID if h >= 256]
    found += [Point("lstm", "fp16", STEPS, 16, h) for h in (128, 256, 512, 1024)]
    found += [Point(c, "fp16", STEPS, 64, h) for c in ("gru", "lstm") for h in (256, 512)]
    return found


def speeds(until: float, table: dict[str, dict[str, float]]) -> Iterator[str]:
    """A table of times, and what of them `auto` needs: our time over cuDNN's."""
    yield from [
        "| cell | precision | B | H | forward, us a step | cuDNN / ours | both ways | "
        "cuDNN / ours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ratios: dict[tuple[str, str], list[list[float]]] = {}
    cache: dict[Point, list[float]] = {}
    lost = []
    for point in time_points():
        if time.monotonic() > until:
            yield from ["", f"From {point} on nothing was reached in the time given."]
            break
        name = f"| {point.cell} | {point.kind} | {point.batch} | {point.size} |"
        try:
            ours = our_times(point)
            theirs = peer_times(point, cache)
        except (SeqloomError, RuntimeError) as problem:
            yield f"{name} {type(problem).__name__}: {str(problem)[:80]} | | | |".replace("\n", " ")
            lost.append(f"{point.cell} {point.kind} B={point.batch} H={point.size} (did not run)")
            torch.cuda.empty_cache()
            continue
        both = [t / o for o, t in zip(ours, theirs, strict=True)]
        if point.cell in PEERS:
            for way, share in zip(("inference", "training"), both, strict=True):
                line = table.setdefault(f"{TORCH_NAMES[CELLS[point.cell]]} {point.kind} {way}", {})
                line[f"{point.batch} {point.size}"] = round(1 / share, 3)
        cells = [f"{o:.2f} | {r:.2f}" for o, r in zip(ours, both, strict=True)]
        yield f"{name} {' | '.join(cells)} |"
        group = "bf16" if point.size < 2048 else "bf16, H = 2048"
        if point.kind != "bf16":
            group = point.kind
        for key in ((group, "all cells"), (group, point.cell)):
            ratios.setdefault(key, []).append(both)
        if min(both) < 1:
            lost.append(f"{point.cell} {point.kind} B={point.batch} H={point.size}")
    yield from ["", "| geometric mean | cells | points | forward | least | both ways | least |",
                "|---|---|---|---|---|---|---|"]  # fmt: skip
    for (group, cell), rows in ratios.items():
        columns = list(zip(*rows, strict=True))
        means = [math.exp(sum(map(math.log, column)) / len(column)) for column in columns]
        figures = " | ".join(f"{m:.2f} | {min(c):.2f}" for m, c in zip(means, columns, strict=True))
        yield f"| {group} | {cell} | {len(rows)} | {figures} |"
    yield from ["", f"Slower than cuDNN in one of the two: {', '.join(lost) or 'none'}."]


def others() -> Iterator[str]:
    """Directions, lengths, the visible loop, memory."""
    yield from ["| what | B | H | precision | forward | both ways |", "|---|---|---|---|---|---|"]
    for batch, size in ((16, 128), (16, 512), (64, 256), (64, 512)):
        one = our_times(Point("lstm", "bf16", STEPS, batch, size))
        two = our_times(Point("lstm", "bf16", STEPS, batch, size, both=True))
        shares = " | ".join(f"{b / a:.2f}" for a, b in zip(one, two, strict=True))
        yield f"| two directions / one | {batch} | {size} | bf16 | {shares} |"
    for kind in ("fp32", "bf16"):
        whole = our_times(Point("lstm", kind, STEPS, 64, 128))
        ragged = our_times(Point("lstm", kind, STEPS, 64, 128, ragged=True))
        shares = " | ".join(f"{b / a:.2f}" for a, b in zip(whole, ragged, strict=True))
        yield f"| lengths from 20 to 256 / whole | 64 | 128 | {kind} | {shares} |"
    point = Point("peephole-lstm", "bf16", STEPS, 64, 256)
    ours = our_times(point)
    x = inputs(point)
    loop = Recurrent("peephole-lstm", 256, 256, backend="reference").to("cuda", x.dtype)
    slow = [1000 * milliseconds(job, 3, 1) / STEPS for job in jobs(loop, x, lambda y: y[0])]
    shares = " | ".join(f"{b / a:.0f}" for a, b in zip(ours, slow, strict=True))
    yield f"| the visible loop of the peephole LSTM / ours | 64 | 256 | bf16 | {shares} |"
    yield from ["", "Peak memory in training:", "",
                "| B | H | ours, MB | cuDNN's, MB | ours / cuDNN's |",
                "|---|---|---|---|---|"]  # fmt: skip
    for batch, size in ((64, 256), (64, 1024), (256, 512)):
        peaks = []
        for is_ours in (True, False):
            torch.cuda.empty_cache()
            x = inputs(Point("lstm", "bf16", STEPS, batch, size))
            layer = (
                Recurrent("lstm", size, size, backend="triton").to("cuda", x.dtype)
                if is_ours
                else nn.LSTM(size, size, batch_first=True, device="cuda", dtype=x.dtype)
            )
            jobs(layer, x, lambda y: y[0])[1]()
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            begin = torch.cuda.memory_allocated()
            jobs(layer, x, lambda y: y[0])[1]()
            peaks.append(torch.cuda.max_memory_allocated() - begin)
        figures = " | ".join(f"{peak / 1e6:.0f}" for peak in peaks)
        yield f"| {batch} | {size} | {figures} | {peaks[0] / peaks[1]:.2f} |"


# -- compiling -------------------------------------------------------------------------------------


def run_processes(what: str, shares: list[list[Point]], until: float) -> list[str]:
    """Have several processes work on points; the lines that they print."""
    workers = []
    with tempfile.TemporaryDirectory() as folder:
        for number, share in enumerate(shares):
            environment = {**os.environ, "SEQLOOM_POINTS": json.dumps(share)}
            left = time.time() + until - time.monotonic()
            command = [sys.executable, __file__, what, "--seconds", str(left)]
            with (Path(folder) / str(number)).open("w") as out:
                workers.append(
                    subprocess.Popen(
                        command, env=environment, stdout=out, stderr=subprocess.DEVNULL
                    )
                )
        for worker in workers:
            worker.wait()
        texts = [(Path(folder) / str(n)).read_text() for n in range(len(shares))]
    return [line for text in texts for line in text.splitlines()]


def compile_all(points: list[Point], processes: int, until: float) -> float:
    """Compile what points need by several processes at once; how long it took."""
    began = time.monotonic()
    shares = [points[i::processes] for i in range(processes)]
    print("\n".join(run_processes("--compile", shares, until)), file=sys.stderr)
    return time.monotonic() - began


def compile_some() -> None:
    """What a process of `compile_all` does."""
    done = set()
    for given in json.loads(os.environ["SEQLOOM_POINTS"]):
        point = Point(*given)._replace(steps=2)
        if point in done:
            continue
        done.add(point)
        try:
            dtype = precision(point.kind)
            layer = Recurrent(
                CASES[point.cell], 16, point.size, bidirectional=point.both, backend="triton"
            ).to("cuda", dtype)
            x = torch.randn(point.batch, 2, 16, device="cuda", dtype=dtype)
            lengths = torch.full((point.batch,), 2, device="cuda") if point.ragged else None
            layer(x, lengths).outputs.sum().backward()
            with torch.no_grad():
                layer(x, lengths)
        except (SeqloomError, RuntimeError) as problem:
            print(point, type(problem).__name__, str(problem)[:200])


def first_use() -> Iterator[str]:
    """How long a new cell takes the first time, with nothing cached."""
    code = """
import sys, time
sys.path[:0] = {paths!r}
import torch
from made_up import MadeUp
from seqloom.nn.recurrent import Recurrent
x = torch.randn(64, 32, 256, device="cuda", dtype=torch.bfloat16)
torch.randn(8, 8, device="cuda") @ torch.randn(8, 8, device="cuda")
import triton
began = time.perf_counter()
layer = Recurrent({cell}, 256, {size}, backend="triton").to("cuda", x.dtype)
layer(x).outputs.sum().backward()
torch.cuda.synchronize()
print(f"{{time.perf_counter() - began:.1f}}")
"""
    yield from ["| cell | H | first forward and backward, seconds |", "|---|---|---|"]
    for cell, size in (("'lstm'", 256), ("MadeUp", 256), ("'lstm'", 1024)):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TRITON_CACHE_DIR": folder, "SEQLOOM_CACHE": folder}
            text = code.format(paths=sys.path[:2], cell=cell, size=size)
            done = subprocess.run(
                [sys.executable, "-c", text], env=environment, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
        said = done.stdout.split()[-1] if done.returncode == 0 else done.stderr[-80:]
        yield f"| {cell} | {size} | {said} |"


def timed(until: float, given: argparse.Namespace) -> list[str]:
    """All that is timed."""
    first = list(first_use())
    extra = [Point("lstm", "bf16", STEPS, b, h, both=True) for b, h in GRID[:9] if b < 256]
    extra += [Point("lstm", k, STEPS, 64, 128, ragged=r) for k in ("fp32", "bf16") for r in (0, 1)]
    took = compile_all([*time_points(), *extra], given.processes, until)
    ratios: dict[str, dict[str, float]] = {}
    lines = [
        f"Compiling the timed kernels in {given.processes} processes took {took:.0f} s.",
        "",
        "## Directions, lengths, loop, memory",
        "",
        *others(),
        "",
        "## First use",
        "",
        *first,
        "",
        "## Speed",
        "",
        *speeds(until, ratios),
        "",
    ]
    if given.table:
        table = {"measured": f"{date.today()} on {torch.cuda.get_device_name()}", "ratios": ratios}
        given.table.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=540, help="for all")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--save", type=Path)
    parser.add_argument("--only", choices=("times", "checks"), help="half of it")
    parser.add_argument("--table", type=Path, help="where to keep the ratios, for `auto`")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*contiguous chunk.*")
    if given.small:
        for point in SMALL:
            results(point, "triton")
        torch.cuda.synchronize()
        return
    if given.compile or given.check:
        compile_some() if given.compile else check_some(given.seconds)
        return
    began = time.monotonic()
    lines = [
        "# Recurrent layers on the GPU",
        "",
        f"    {' '.join(['python', *sys.argv])}",
        "",
        f"{date.today()}, {torch.cuda.get_device_name()}, torch {torch.__version__}. One layer, "
        f"backend 'triton'; T = {STEPS} for the times.",
        "",
    ]
    if given.only != "checks":
        lines += timed(began + (0.6 if given.only is None else 1.0) * given.seconds, given)
    if given.only != "times":
        lines += ["## Checks", "", *checks(began + given.seconds, given.processes)]
    report = "\n".join(lines) + "\n"
    print(report)
    if given.save:
        given.save.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
