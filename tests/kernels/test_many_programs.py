"""Grids of several programs, which hand numbers to each other: equal to the visible loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreting import interpreted

CHECK = """
import sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
import many_programs
many_programs.run_side_by_side()
from made_up import MadeUp
from seqloom.kernels import gpu_launch, gpu_runs
from seqloom.kernels.tiles import Tiles
from seqloom.nn.recurrent import Recurrent

ROWS, STEPS, SIZE = 12, 5, 24  # one program by rows and two by units, none of them full

def results(cell, options, backend, kind, whole, projected=False):
    torch.manual_seed(1)
    size = {{"projection_size": 20}} if projected else {{}}
    layer = Recurrent(cell, 3, SIZE, backend=backend, **options, **size).to(kind)
    x = torch.randn(ROWS, STEPS, 3).to(kind).requires_grad_()
    begin = [torch.randn(s.shape).to(kind) for s in layer.initial_states(ROWS)]
    given = [] if whole else [each.requires_grad_() for each in begin]
    lengths = None if whole else torch.randint(1, STEPS + 1, (ROWS,))
    torch.manual_seed(2)
    outputs, after = layer(x, lengths, given or None)
    total = outputs.square().sum()
    if not whole:
        total = total + sum(a.sum() for a in after)
    wanted = [x, *given, *layer.parameters()]
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    again = torch.autograd.grad(total, wanted)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    return [outputs, *after, *first]

def check(cell, options, kind=torch.float32, limit=1e-5, **more):
    for whole in (True, False):
        exact = results(cell, options, "reference", torch.float64, whole, **more)
        found = results(cell, options, "triton", kind, whole, **more)
        for one, other in zip(exact, found, strict=True):
            error = float((one - other).detach().norm() / (one.detach().norm() + 1e-9))
            assert error < limit, (cell, options, kind, whole, error)

{body}
print("ok")
"""

LOOKING = """
gpu_launch.OPTIONS.update(tiles=Tiles(16, 16, 2, 32), back_tiles=Tiles(16, 16, 2, 32))
for cell in ("lstm", "gru", MadeUp):
    check(cell, {})
check("peephole-lstm", {"bidirectional": True, "state_dropout": 0.3})
check("lstm", {"zoneout": 0.3, "clip": 0.4}, projected=True)
check("lstm", {}, torch.float16, 1e-2)
"""
MEETING = """
ROWS = 18
tiles = Tiles(16, 16, 4, 16, looks=False)
gpu_launch.OPTIONS.update(tiles=tiles, back_tiles=tiles)
for cell in ("gru", MadeUp):
    check(cell, {})
check("peephole-lstm", {"bidirectional": True, "state_dropout": 0.3})
check("lstm", {"zoneout": 0.3}, projected=True)
"""
SHARED = """
SIZE = 32
tiles = Tiles(16, 16, 4, 16, looks=False)
gpu_launch.OPTIONS.update(tiles=tiles, back_tiles=Tiles(16, 16, 4, 16, looks=False, parts=2))
for cell in ("lstm", MadeUp):
    check(cell, {"bidirectional": cell == "lstm"})
"""
STREAMED = """
SIZE = 32
flows = Tiles(16, 16, 4, 16, looks=False, held=0, stages=3)
shared = Tiles(16, 16, 4, 16, looks=False, held=0, stages=2, parts=2)
for back in (flows, shared):
    gpu_launch.OPTIONS.update(tiles=flows, back_tiles=back)
    for cell in ("gru", MadeUp):
        check(cell, {})
check("lstm", {"bidirectional": True, "state_dropout": 0.3, "zoneout": 0.2})
torch.backends.cuda.matmul.allow_tf32 = True
check("lstm", {}, limit=1e-3)
SIZE = 20  # the last chunk is not full
gpu_launch.OPTIONS.update(back_tiles=flows)
check("lstm", {}, limit=1e-3)
"""
APART = """
gpu_runs.APART, gpu_runs.SHORTEST = 1, 2
gpu_launch.OPTIONS.update(tiles=Tiles(16, 16, 2, 32), back_tiles=Tiles(16, 16, 2, 32))
lengths = []
launch = gpu_launch.Launch.run
def watched(self, *args, between=None, **more):
    lengths.append(between)
    return launch(self, *args, between=between, **more)
gpu_launch.Launch.run = watched
for cell in ("rnn", "lstm"):
    check(cell, {})
assert {(4, 5), (2, 4), (0, 2)} < set(lengths)
ROWS = 18
check("lstm", {"bidirectional": True})
check("peephole-lstm", {"state_dropout": 0.3, "zoneout": 0.2, "clip": 0.3})
ROWS = 12
check("lstm", {"clip": 0.4}, projected=True)
check("lstm", {}, torch.float16, 1e-2)
"""


@pytest.mark.parametrize("body", [LOOKING, MEETING, SHARED, STREAMED, APART], ids=range(5))
def test_programs_side_by_side_are_the_visible_loop(body):
    done = interpreted(CHECK.format(tests=str(Path(__file__).parent.parent), body=body))
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


def test_programs_that_wait_in_vain_end_and_say_so():
    code = """
gpu_launch.OPTIONS.update(tiles=Tiles(16, 16, 4, 16, looks=False))
gpu_launch.PATIENCE = 1 << 8
run = many_programs.SideBySide._alone
def without_one(self, grid, place, args, kwargs):
    if place == (1, 0, 0):  # of two programs that need each other
        many_programs.os._exit(0)
    run(self, grid, place, args, kwargs)
many_programs.SideBySide._alone = without_one
from seqloom.errors import BackendError
layer = Recurrent("lstm", 3, SIZE, backend="triton")
layer(torch.randn(4, 3, 3))
try:
    layer(torch.randn(4, 3, 3))
except BackendError as problem:
    assert "waited for each other in vain" in str(problem)
else:
    raise SystemExit("nobody said that results are wrong")
"""
    done = interpreted(CHECK.format(tests=str(Path(__file__).parent.parent), body=code))
    assert done.stdout.strip() == "ok", done.stderr[-2000:]
