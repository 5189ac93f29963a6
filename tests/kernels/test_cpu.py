"""The printed loops equal the visible one, forward and in every gradient."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from made_up import Awkward, Delayed, MadeUp
from seqloom.errors import BackendError
from seqloom.kernels import backends, products
from seqloom.kernels.keys import key_of
from seqloom.kernels.operator import recurrent
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import MERGES, Recurrent

CASES = {**CELLS, "made-up": MadeUp, "awkward": Awkward}
OPTIONS = {
    "plain": {},
    "both": {"bidirectional": True, "num_layers": 2},
    "no-bias": {"bias": False},
    "clip": {"clip": 0.3},
    "state-dropout": {"state_dropout": 0.4, "bidirectional": True},
    "weight-dropout": {"weight_dropout": 0.4},
    "zoneout": {"zoneout": 0.3, "clip": 0.5, "bidirectional": True},
    "variational": {"dropout": 0.4, "variational": True, "num_layers": 2},
    "residual": {"residual": True, "layer_norm": True, "num_layers": 2},
}
PROJECTED = {
    "projection": {"projection_size": 3, "bidirectional": True},
    "projection-all": {"projection_size": 3, "clip": 0.2, "zoneout": 0.3, "state_dropout": 0.3},
}


def relative(one, other):
    """The Frobenius norm of the difference over that of the true value."""
    return float((one.double() - other.double()).norm() / (other.double().norm() + 1e-30))


def all_ways(cell, x, lengths, states, dtype, size, **options):
    """Outputs, last states and gradients by the loop in double precision, `cpu`, and the loop."""
    found = []
    for backend, kind in (("reference", torch.float64), ("cpu", dtype), ("reference", dtype)):
        torch.manual_seed(1)
        layer = Recurrent(cell, x.shape[2], size, backend=backend, **options).to(dtype).to(kind)
        given = x.detach().to(dtype).to(kind).requires_grad_()
        begin = None
        if states is not None:
            begin = [s.detach().to(kind).requires_grad_() for s in states]
        torch.manual_seed(2)
        outputs, after = layer(given, lengths, begin)
        torch.manual_seed(3)
        total = sum((y * torch.randn(y.shape, dtype=dtype)).sum() for y in (outputs, *after))
        inputs = [given, *(begin or ()), *layer.parameters()]
        ran = [outputs, *after, *torch.autograd.grad(total, inputs)]
        found.append([tensor.detach() for tensor in ran])
    return zip(*found, strict=True)


def check(cell, x, lengths, states, dtype, **sizes):
    """To 1e-5 in single precision, or 3 times what the loop itself loses in it where it is wild."""
    limit = 1e-5 if dtype == torch.float32 else 1e-12
    for true, found, loop in all_ways(cell, x, lengths, states, dtype, **sizes):
        if float(true.norm()) == 0:
            assert not found.any()
        else:
            assert relative(found, true) < max(limit, 3 * relative(loop, true))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("size", [5, 64, 100])
@pytest.mark.parametrize("cell", CASES)
def test_every_shape(cell, size, dtype):
    """T in {1, 2, 7, 63} and B in {1, 3, 16}, ragged with a row of one step, states given."""
    torch.manual_seed(0)
    for steps, batch in ((1, 1), (1, 16), (2, 3), (7, 16), (63, 3), (63, 16), (63, 1)):
        x = torch.randn(steps, batch, 6).transpose(0, 1)  # not contiguous
        lengths = torch.randint(1, steps + 1, (batch,))
        lengths[0], lengths[-1] = steps, 1
        states = [0.5 * torch.randn(1, batch, size) for _ in CASES[cell].states]
        check(CASES[cell], x, lengths, states, dtype, size=size)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cell", CASES)
def test_every_option(cell, options):
    """In double precision, where every difference shows; single for one cell that has it all."""
    torch.manual_seed(0)
    x, lengths = torch.randn(4, 7, 5), torch.tensor([3, 7, 1, 5])
    for dtype in [torch.float64] + [torch.float32] * (cell == "made-up"):
        check(CASES[cell], x, lengths, None, dtype, size=6, **OPTIONS[options])


def test_states_that_are_a_product_or_what_another_was():
    torch.manual_seed(0)
    x, lengths = torch.randn(4, 7, 5), torch.tensor([3, 7, 1, 5])
    check(Delayed, x, lengths, [torch.randn(1, 4, 6) for _ in range(3)], torch.float64, size=6)


@pytest.mark.parametrize("merge", MERGES)
def test_every_merge(merge):
    torch.manual_seed(0)
    x, lengths = torch.randn(4, 7, 5), torch.tensor([3, 7, 1, 5])
    check(MadeUp, x, lengths, None, torch.float32, size=6, bidirectional=True, merge=merge)


@pytest.mark.parametrize("options", PROJECTED)
@pytest.mark.parametrize("cell", ["lstm", "peephole-lstm", "rnn"])
def test_projection(cell, options):
    torch.manual_seed(0)
    x, lengths = torch.randn(4, 7, 5), torch.tensor([3, 7, 1, 5])
    check(cell, x, lengths, None, torch.float64, size=6, **PROJECTED[options])


def test_same_seed_same_bits():
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        layer = Recurrent("peephole-lstm", 8, 33, bidirectional=True, zoneout=0.2, backend="cpu")
        y = layer(torch.randn(5, 9, 8), torch.tensor([9, 2, 9, 1, 4])).outputs
        found.append([y, *torch.autograd.grad(y.sum(), list(layer.parameters()))])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_value_that_is_no_number_is_not_hidden():
    layer = Recurrent("lstm", 3, 4, backend="cpu")
    x = torch.zeros(2, 3, 3)
    x[1, 1] = math.nan
    y = layer(x).outputs
    assert y[1, 1:].isnan().all() and not y[0].isnan().any() and not y[1, 0].isnan().any()


def test_the_way_back_can_be_walked_twice_and_saved_values_are_not_given_out_again():
    torch.manual_seed(0)
    layer = Recurrent("gru", 4, 5, backend="cpu")
    x = torch.randn(2, 6, 4)
    first = layer(x).outputs.square().sum()
    again = layer(torch.randn(2, 6, 4)).outputs.square().sum()  # must not use the first's memory
    weights = list(layer.parameters())
    one = torch.autograd.grad(first, weights, retain_graph=True)
    again.backward()
    layer(torch.randn(2, 6, 4))
    two = torch.autograd.grad(first, weights)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_results_are_the_users_own():
    layer = Recurrent("rnn", 4, 5, backend="cpu")
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        first = layer(x)
        kept = first.outputs.clone()
        layer(torch.randn(2, 3, 4))
        assert torch.equal(first.outputs, kept)
        first.outputs.zero_()
        assert torch.equal(layer(x).outputs, kept)


def test_no_derivative_of_the_derivative_and_it_says_so():
    layer = Recurrent("rnn", 3, 4, backend="cpu")
    x = torch.randn(2, 3, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(layer(x).outputs.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"recurrent_backward|does not require grad"):
        grad.sum().backward()


def test_what_it_cannot_run_it_refuses():
    with pytest.raises(BackendError, match=r"'cpu' takes float32 and float64, got torch.bfloat16"):
        Recurrent("rnn", 3, 4, backend="cpu").bfloat16()(torch.zeros(1, 2, 3).bfloat16())
    with pytest.raises(BackendError, match=r"'torch' has rnn, rnn-relu, gru and lstm, got Pee"):
        Recurrent("peephole-lstm", 3, 4, backend="torch")(torch.zeros(1, 2, 3))
    with pytest.raises(BackendError, match=r"'torch' has no clipping"):
        Recurrent("lstm", 3, 4, clip=1.0, backend="torch")(torch.zeros(1, 2, 3))
    x = torch.zeros(1, 2, 3)
    with pytest.raises(BackendError, match="no cell 'x-1' is known in this process"):
        recurrent("x-1", x, torch.tensor([2]), [], x[0], x[0], None, None, [], None, None, [],
                  None, False, False, False)  # fmt: skip


def test_products_in_bfloat16(monkeypatch):
    """Without such a processor: refused; and what rounding costs, done by rounding alone."""
    x = torch.randn(4, 20, 32)
    layer = Recurrent("lstm", 32, 64, products="bf16", backend="cpu")
    if not products.has_bf16():
        with pytest.raises(BackendError, match="no products in bfloat16 on this processor; no"):
            layer(x)
    with pytest.raises(BackendError, match=r"'reference' has no products in bfloat16"):
        Recurrent("rnn", 32, 64, products="bf16", backend="reference")(x)

    def rounded(self, weight, counts, *, bf16):
        self._right, self._packed, self._bf16 = weight.bfloat16().float().t(), None, False

    monkeypatch.setattr(backends, "has_bf16", lambda: True)
    monkeypatch.setattr(products.Matrix, "__init__", rounded)
    plain = Recurrent("lstm", 32, 64, backend="reference")
    plain.load_state_dict(layer.state_dict())
    with torch.no_grad():
        assert 1e-5 < relative(layer(x).outputs, plain(x).outputs) < 1e-2


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "rnn-relu", "gru", "lstm", "projected"])
def test_torchs_own_layers_are_the_same(cell, both, ragged):
    options = {"projection_size": 2} if cell == "projected" else {}
    cell = "lstm" if cell == "projected" else cell
    x, lengths = torch.randn(4, 6, 5), torch.tensor([2, 6, 1, 6]) if ragged else None
    found = []
    for backend in ("reference", "torch"):
        torch.manual_seed(0)
        layer = Recurrent(
            cell, 5, 4, num_layers=2, bidirectional=both, backend=backend, **options
        ).double()
        begin = [torch.randn_like(s) for s in layer.initial_states(4)]
        y, states = layer(x.double(), lengths, begin)
        grads = torch.autograd.grad(y.square().sum(), list(layer.parameters()))
        found.append([y, *states, *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


# -- the operator ----------------------------------------------------------------------------------


def test_the_operator_keeps_its_promises():
    """Shapes without running, nothing aliased, gradients: torch's own checks of an operator.

    Rows are whole, as what is kept for the way back has anything in it where padding is.
    """
    layer = Recurrent(MadeUp, 3, 4)
    weights = {name: p.detach().requires_grad_() for name, p in layer.named_parameters()}
    x = torch.randn(2, 5, 3, requires_grad=True)
    states = [torch.randn(2, 4, requires_grad=True) for _ in range(3)]
    torch.library.opcheck(
        recurrent,
        (key_of(MadeUp.traced(), "MadeUp"), x, torch.tensor([5, 5]), states,
         weights["weight_ih_l0"], weights["weight_hh_l0"], weights["bias_ih_l0"],
         weights["bias_hh_l0"], [weights["vector_k_l0"]], None, None, [], None, False, False, True),
    )  # fmt: skip


@pytest.mark.parametrize("cell", ["lstm", "made-up"])
def test_compiled_layers_give_the_same(cell):
    layer = Recurrent(CASES[cell], 3, 4, bidirectional=True, backend="cpu")
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for steps in (5, 7):
        x, lengths = torch.randn(2, steps, 3), torch.tensor([steps, 2])
        torch.testing.assert_close(compiled(x, lengths).outputs, layer(x, lengths).outputs)
        weights = list(layer.parameters())
        one = torch.autograd.grad(compiled(x, lengths).outputs.sum(), weights)
        two = torch.autograd.grad(layer(x, lengths).outputs.sum(), weights)
        torch.testing.assert_close(one, two)


def test_an_exported_layer_is_one_node_a_direction():
    layer = Recurrent("peephole-lstm", 3, 4, bidirectional=True, backend="cpu").eval()
    x, lengths = torch.randn(2, 5, 3), torch.tensor([5, 2])
    with torch.no_grad():
        program = torch.export.export(layer, (x, lengths))
        nodes = [n for n in program.graph.nodes if "seqloom.recurrent" in str(n.target)]
        assert len(nodes) == 2
        torch.testing.assert_close(program.module()(x, lengths)[0], layer(x, lengths).outputs)


# -- threads and processes -------------------------------------------------------------------------


def work(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    layer = Recurrent("peephole-lstm", 8, 16, bidirectional=True, backend="cpu")
    y = layer(torch.randn(4, 20, 8), torch.tensor([20, 3, 7, 11])).outputs
    y.sum().backward()
    return torch.cat([y.detach().flatten(), *(p.grad.flatten() for p in layer.parameters())])


def test_two_threads_do_not_meet():
    generator_free = [torch.randn(4, 20, 8), torch.randn(4, 20, 8)]
    layers = [Recurrent("gru", 8, 16, backend="cpu") for _ in generator_free]
    alone = [y(x).outputs for y, x in zip(layers, generator_free, strict=True)]
    wrong: list[int] = []

    def run(which: int) -> None:
        for _ in range(50):
            y = layers[which](generator_free[which]).outputs
            y.sum().backward()
            if not torch.equal(y, alone[which]):
                wrong.append(which)

    threads = [threading.Thread(target=run, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


WAYS = """
import multiprocessing, sys, warnings
sys.path[:0] = {folders!r}
import torch
from test_cpu import work

def send(queue):
    torch.set_num_threads(1)  # as torch's own workers do: its threads do not survive a fork
    queue.put(work(5).tolist())

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    expected = work(5)  # this process has used its threads before
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    process = context.Process(target=send, args=(queue,), daemon=True)
    process.start()
    found = torch.tensor(queue.get(timeout=120))
    process.join(30)
    assert process.exitcode == 0
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
"""


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_other_processes_give_the_same(way, tmp_path):
    """In a fresh process, so that what other tests have loaded does not decide."""
    here = Path(__file__).parent
    path = tmp_path / "ways.py"
    path.write_text(WAYS.format(folders=[str(here), str(here.parent)]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path), way], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a folder is closed by its permissions")
def test_without_a_folder_to_keep_code_in(tmp_path, monkeypatch):
    from seqloom.kernels import loading

    monkeypatch.setattr(loading, "compile_folder", lambda: None)
    loading._folder.cache_clear()
    loading._load.cache_clear()
    try:
        assert work(0).shape
    finally:
        loading._folder.cache_clear()
        loading._load.cache_clear()
