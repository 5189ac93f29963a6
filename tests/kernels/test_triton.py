"""The printed kernels by Triton's interpreter, with one program: equal to the visible loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from made_up import MadeUp
from seqloom.errors import BackendError
from seqloom.kernels.plan import Variant
from seqloom.kernels.triton_printing import print_triton
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

CASES = {**CELLS, "made-up": MadeUp}

CHECK = """
import sys
sys.path.insert(0, {tests!r})
import torch
from made_up import MadeUp
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

OPTIONS = [{{}}, {{"bidirectional": True}}, {{"zoneout": 0.3, "clip": 0.4, "state_dropout": 0.3}}]
for name in {names!r}:
    cell = {{**CELLS, "made-up": MadeUp}}[name]
    for options in OPTIONS:
        found = []
        for backend, kind in (("reference", torch.float64), ("triton", torch.float32)):
            torch.manual_seed(1)
            layer = Recurrent(cell, 3, 5, backend=backend, **options).to(kind)
            x = torch.randn(4, 3, 3).transpose(0, 1).to(kind).requires_grad_()
            shapes = [s.shape for s in layer.initial_states(3)]
            begin = [torch.randn(s).to(kind).requires_grad_() for s in shapes]
            torch.manual_seed(2)
            outputs, after = layer(x, torch.tensor([4, 1, 3]), begin)
            total = outputs.square().sum() + sum(a.sum() for a in after)
            grads = torch.autograd.grad(total, [x, *begin, *layer.parameters()])
            found.append([outputs, *after, *grads])
        for one, other in zip(*found):
            error = float((one - other).detach().norm() / (one.detach().norm() + 1e-9))
            assert error < 1e-5, (name, options, error)
    print(name, "ok")
"""


@pytest.mark.parametrize("names", [list(CASES)[i::3] for i in range(3)], ids=["1", "2", "3"])
def test_every_cell_by_the_interpreter(names):
    pytest.importorskip("triton", reason="triton is not installed here")
    code = CHECK.format(tests=str(Path(__file__).parent.parent), names=names)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("ok") == len(names)


@pytest.mark.parametrize("cell", CASES)
def test_the_printed_kernels_are_python(cell):
    for variant in (Variant(), Variant(keep=True, clip=True)):
        program = print_triton(CASES[cell].traced(), variant)
        compile(program.source, "kernels", "exec")
        assert program.source == print_triton(CASES[cell].traced(), variant).source


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(BackendError, match=r"'triton' (runs on a GPU, got .*cpu|needs triton)"):
        Recurrent("lstm", 3, 4, backend="triton")(torch.zeros(1, 2, 3))
