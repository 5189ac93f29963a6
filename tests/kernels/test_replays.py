"""Runs that are recorded and replayed: the same numbers, and nothing of one run in another.

Without a card a recording does its work again each time it is replayed.
"""

from __future__ import annotations

from interpreting import interpreted

SAME = """
import torch
from seqloom.kernels import gpu, gpu_graphs
from seqloom.nn.recurrent import Recurrent

def check(cell, both, ragged, begun):
    torch.manual_seed(0)
    layer = Recurrent(cell, 3, 5, bidirectional=both, num_layers=2, backend="triton")
    rows = layer.num_layers * (1 + both)
    for _ in range(5):
        x = torch.randn(3, 6, 3, requires_grad=True)
        lengths = torch.randint(1, 7, (3,)) if ragged else None
        states = [torch.randn(rows, 3, w).requires_grad_() for w in layer._widths] if begun else []
        found = []
        for gpu.REPLAYED in (("cpu",), ()):
            outputs, ended = layer(x, lengths, states or None)
            loss = outputs.square().sum() + ended[0].sum()
            wanted = [x, *layer.parameters(), *states]
            found.append([outputs, *ended, *torch.autograd.grad(loss, wanted)])
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
        with torch.no_grad():
            for weight in layer.parameters():
                weight.add_(0.01)  # a recording reads weights where they are
    assert [len(shape.free) for shape in gpu_graphs._shapes.values()] == [1, 1]
    gpu.REPLAYED = ("cpu",)
    with torch.no_grad():
        for _ in range(4):
            outputs = layer(x, lengths, states or None).outputs
        gpu.REPLAYED = ()
        assert torch.equal(outputs, layer(x, lengths, states or None).outputs)

check("lstm", True, True, False)
assert not gpu_graphs._shapes  # gone with the weights
check("gru", False, False, True)
check("peephole-lstm", True, False, True)
print("ok")
"""

OWN = """
import torch
from seqloom.errors import BackendError
from seqloom.kernels import gpu, gpu_graphs
from seqloom.nn.recurrent import Recurrent
gpu.REPLAYED = ("cpu",)
layer = Recurrent("gru", 3, 4, backend="triton")
draw = lambda: torch.randn(2, 5, 3)
for _ in range(3):
    layer(draw()).outputs.sum().backward()
(shape,) = gpu_graphs._shapes.values()
assert len(shape.free) == 1
first, second = draw().requires_grad_(), draw().requires_grad_()
one = layer(first).outputs
two = layer(second).outputs  # before the way back of the first: a recording of its own
assert not shape.free
kept = one.detach().clone()
(of_second,) = torch.autograd.grad(two.square().sum(), second)
assert torch.equal(one.detach(), kept)
(of_first,) = torch.autograd.grad(one.square().sum(), first)
assert len(shape.free) == 2
kept = of_first.clone(), of_second.clone()
layer(draw()).outputs.sum().backward()
assert torch.equal(of_first, kept[0]) and torch.equal(of_second, kept[1])

again = layer(first).outputs.square().sum()  # walked twice
a = torch.autograd.grad(again, first, retain_graph=True)[0]
assert torch.equal(a, torch.autograd.grad(again, first, retain_graph=True)[0])
layer(draw()).outputs.sum().backward()
try:
    torch.autograd.grad(again, first)
    raise SystemExit("a way back from memory that was used again")
except BackendError as problem:
    assert "second time" in str(problem)

forgotten = layer(draw().requires_grad_()).outputs
count = len(shape.free)
del forgotten
assert len(shape.free) == count + 1

changed = layer(draw()).outputs.sum()
with torch.no_grad():
    layer.weight_hh_l0.mul_(2)
try:
    changed.backward()
    raise SystemExit("a way back with other weights")
except BackendError as problem:
    assert "was changed" in str(problem)
print("ok")
"""

NOT = """
import torch
from seqloom.kernels import gpu, gpu_graphs
from seqloom.nn.recurrent import Recurrent
gpu.REPLAYED = ("cpu",)
x = torch.randn(2, 5, 3)
for options in ({"zoneout": 0.1}, {"state_dropout": 0.1}, {"weight_dropout": 0.1}):
    layer = Recurrent("lstm", 3, 4, backend="triton", **options)
    for _ in range(4):
        layer(x)
    assert not gpu_graphs._shapes, options
layer = Recurrent("lstm", 3, 4, backend="triton")
gpu_graphs._bytes = lambda device: -1
for _ in range(4):
    layer(x)
(shape,) = gpu_graphs._shapes.values()
assert not shape.free and not shape.recordings
print("ok")
"""


def test_a_replayed_run_gives_the_same_bits():
    done = interpreted(SAME)
    assert done.stdout.strip() == "ok", done.stdout + done.stderr[-2000:]


def test_runs_share_nothing_that_is_still_needed():
    done = interpreted(OWN)
    assert done.stdout.strip() == "ok", done.stdout + done.stderr[-2000:]


def test_what_changes_from_run_to_run_is_not_recorded():
    done = interpreted(NOT)
    assert done.stdout.strip() == "ok", done.stdout + done.stderr[-2000:]
