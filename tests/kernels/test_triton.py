"""The printed kernels by Triton's interpreter, with one program: equal to the visible loop."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from interpreting import interpreted
from made_up import Awkward, Delayed, MadeUp, Smooth
from seqloom.errors import BackendError
from seqloom.kernels import tiles as tiles_module
from seqloom.kernels.gpu_launch import plan_of, program_of
from seqloom.kernels.plan import Variant
from seqloom.kernels.tiles import (
    ON_CHIP,
    Job,
    Tiles,
    candidates,
    choose_tiles,
    programs,
    set_aside,
    streamed,
)
from seqloom.kernels.triton_products import Form
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

CASES = {**CELLS, "made-up": MadeUp, "smooth": Smooth, "awkward": Awkward, "delayed": Delayed}

CHECK = """
import sys
sys.path.insert(0, {tests!r})
import torch
from made_up import Awkward, Delayed, MadeUp, Smooth
from seqloom.kernels import gpu_launch
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

OPTIONS = [{{}}, {{"bidirectional": True}}, {{"zoneout": 0.3, "clip": 0.4, "state_dropout": 0.3}},
           {{"bidirectional": True, "state_dropout": 0.3, "bias": False}}]
PROJECTED = [{{"projection_size": 3}}, {{"projection_size": 2, "bidirectional": True}},
             {{"projection_size": 3, "zoneout": 0.3, "clip": 0.2, "state_dropout": 0.3}}]

def results(cell, options, backend, kind, whole):
    torch.manual_seed(1)
    layer = Recurrent(cell, 3, 5, backend=backend, **options).to(kind)
    x = torch.randn(4, 3, 3).transpose(0, 1).to(kind).requires_grad_()
    begin = [torch.randn(s.shape).to(kind).requires_grad_() for s in layer.initial_states(3)]
    torch.manual_seed(2)
    given = [] if whole else begin
    outputs, after = layer(x, None if whole else torch.tensor([4, 1, 3]), given or None)
    total = outputs.square().sum()
    if not whole:
        total = total + sum(a.sum() for a in after)
    return [outputs, *after, *torch.autograd.grad(total, [x, *given, *layer.parameters()])]

for name in {names!r}:
    own = {{"made-up": MadeUp, "smooth": Smooth, "awkward": Awkward, "delayed": Delayed}}
    cell = {{**CELLS, **own}}[name]
    can_be_projected = name in ("rnn", "lstm", "peephole-lstm")
    for number, options in enumerate(OPTIONS + PROJECTED * can_be_projected):
        for whole in (False, True):
            gpu_launch.OPTIONS["split"] = 1 + (number + whole) % 2  # how warps share a product
            exact = results(cell, options, "reference", torch.float64, whole)
            found = results(cell, options, "triton", torch.float32, whole)
            for one, other in zip(exact, found):
                error = float((one - other).detach().norm() / (one.detach().norm() + 1e-9))
                assert error < 1e-5, (name, options, whole, error)
    print(name, "ok")
"""


@pytest.mark.parametrize("names", [list(CASES)[i::4] for i in range(4)], ids=["1", "2", "3", "4"])
def test_every_cell_by_the_interpreter(names):
    done = interpreted(CHECK.format(tests=str(Path(__file__).parent.parent), names=names))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("ok") == len(names)


def test_a_projected_state_that_is_no_number_is_not_clipped_to_one():
    code = """
import torch
from seqloom.nn.recurrent import Recurrent
x = torch.randn(2, 3, 3)
x[0, 1] = float("nan")
for backend in ("reference", "triton"):
    torch.manual_seed(1)
    layer = Recurrent("lstm", 3, 4, clip=0.5, projection_size=2, backend=backend)
    found = layer(x).outputs.isnan()
    assert found[0, 1:].all() and not found[0, 0].any() and not found[1].any(), (backend, found)
"""
    done = interpreted(code)
    assert done.returncode == 0, done.stderr[-2000:]


def test_one_row_of_one_step_by_the_interpreter():
    code = """
import torch
from seqloom.nn.recurrent import Recurrent
layer = Recurrent("lstm", 3, 5, bidirectional=True, backend="triton")
other = Recurrent("lstm", 3, 5, bidirectional=True, backend="reference")
other.load_state_dict(layer.state_dict())
x = torch.randn(1, 1, 3)
for lengths in (None, torch.ones(1, dtype=torch.long)):
    one, two = layer(x, lengths), other(x, lengths)
    assert torch.allclose(one.outputs, two.outputs, atol=1e-6)
    one.outputs.sum().backward(), two.outputs.sum().backward()
for a, b in zip(layer.parameters(), other.parameters()):
    assert torch.allclose(a.grad, b.grad, atol=1e-6)
print("ok")
"""
    done = interpreted(code)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


def test_wide_weights_are_rounded_to_the_input_and_get_wide_gradients():
    """As under autocast: half an input, weights of 32 bits."""
    code = """
import torch
from seqloom.kernels.backends import run_layer
from seqloom.nn.recurrent import Recurrent
for bidirectional in (False, True):
    layer = Recurrent("peephole-lstm", 3, 5, bidirectional=bidirectional)
    x = torch.randn(2, 4, 3).half()
    names = ("", "_reverse")[: 1 + bidirectional]
    found = []
    for backend in ("triton", "reference"):
        jobs = [layer._direction(x, [], 0, name) for name in names]
        ran = run_layer(backend, layer._kind, x, torch.tensor([4, 2]), jobs)
        assert ran.outputs.dtype == torch.float16
        grads = torch.autograd.grad(ran.outputs.float().square().sum(), layer.parameters())
        assert {g.dtype for g in grads} == {torch.float32}
        found.append([ran.outputs.float(), *(state.float() for state in ran.states), *grads])
    for one, other in zip(*found):
        error = float((one - other).detach().norm() / (other.detach().norm() + 1e-9))
        assert error < 4e-3, error
print("ok")
"""
    done = interpreted(code)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


def test_lengths_that_change_in_place_are_looked_at_again():
    code = """
import torch
from seqloom.nn.recurrent import Recurrent
layers = {b: Recurrent("gru", 3, 5, num_layers=2, backend=b) for b in ("triton", "reference")}
layers["reference"].load_state_dict(layers["triton"].state_dict())
x, lengths = torch.randn(3, 4, 3), torch.tensor([4, 1, 3])
for change in (None, [1, 4, 2], [2, 2, 4]):
    if change:
        lengths.copy_(torch.tensor(change))
    for steps in (4, 5):
        padded = torch.cat([x, torch.ones(3, steps - 4, 3)], 1)
        one, two = (layers[b](padded, lengths).outputs for b in layers)
        assert torch.allclose(one, two, atol=1e-6), change
with torch.inference_mode():
    made = torch.tensor([3, 2, 1])
    assert torch.allclose(*(layers[b](x, made).outputs for b in layers), atol=1e-6)
print("ok")
"""
    done = interpreted(code)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


FORMS = [
    Form(64, 64, 64, 4, 2),
    Form(100, 100, 128, 4, 4, wide=True),
    Form(96, 96, 64),
    Form(64, 64, 64, parts=2),
]


@pytest.mark.parametrize("cell", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_the_printed_kernels_are_python(cell, form):
    traced = CASES[cell].traced()
    for variant in (Variant(), Variant(keep=True, clip=True)):
        for backward in (False, True):
            program = program_of(traced, variant, form, backward=backward)
            compile(program.source, "kernels", "exec")
            program_of.cache_clear()
            assert program == program_of(traced, variant, form, backward=backward)


def test_looking_finds_the_pattern_in_either_half_of_a_word():
    """The arithmetic of the printed look: (~w - 0x00010001) & w & 0x80008000, in 32 bits."""
    rng = np.random.default_rng(0)
    halves = rng.integers(0, 1 << 16, (100_000, 2), dtype=np.uint32)
    halves[::7, 0], halves[::5, 1] = 0xFFFF, 0xFFFF
    halves[1::3] |= 0xFF00  # near it
    words = halves[:, 0] | halves[:, 1] << np.uint32(16)
    found = (np.uint32(0xFFFEFFFE) - words) & words & np.uint32(0x80008000)
    assert ((found != 0) == (halves == 0xFFFF).any(axis=1)).all()


# -- tiles -----------------------------------------------------------------------------------------


def jobs():
    for cell in ("rnn", "gru", "gru-before", "lstm", "made-up"):
        plan = plan_of(CASES[cell].traced(), Variant())
        direct, late = len(plan.direct), len(plan.late)
        for size, batch in ((8, 1), (104, 3), (512, 16), (656, 20), (1024, 64), (2048, 64)):
            for item in (2, 4):
                across = 1 << max(0, direct - 1).bit_length()
                yield Job(size, batch, 1, size, across, item, False, direct, late)
                yield Job(size, batch, 2, size * direct, 1, item, True, direct, late)


@pytest.mark.parametrize("job", list(jobs()), ids=str)
def test_tiles_fit_the_card_and_cover_the_work(job):
    tiles = choose_tiles(job, 132)
    assert tiles in [*candidates(job, 132), *streamed(job, 132)]
    assert programs(job, tiles.rows, tiles.units) <= 132
    assert tiles.units * -(-job.size // tiles.units) >= job.size
    chunks = -(-job.width // tiles.parts // tiles.chunk)
    columns = tiles.units * (tiles.parts if job.turned else job.direct)
    assert min(tiles.held, chunks) * tiles.chunk * columns * job.item <= ON_CHIP
    form = tiles.form(job.size, job.size, job.item)
    assert form.stages == tiles.stages
    assert form.pack <= 16 and form.pack & (form.pack - 1) == 0
    if tiles.parts > 1:
        assert job.size % (tiles.units * tiles.parts) == 0


@pytest.mark.parametrize("job", [job for job in jobs() if job.size >= 512], ids=str)
def test_tiles_of_streamed_matrices_fit_the_card_and_cover_the_work(job):
    for tiles in streamed(job, 132):
        assert programs(job, tiles.rows, tiles.units) <= 132
        mine = job.width // tiles.parts
        assert (tiles.parts == 1 or mine % tiles.chunk == 0) and mine * tiles.parts == job.width
        columns = tiles.units * (tiles.parts if job.turned else job.across)
        assert tiles.stages * tiles.chunk * (tiles.rows + columns) * job.item <= ON_CHIP
        assert tiles not in candidates(job, 132)
    assert not streamed(replace(job, projected=True), 132)


def test_measured_tiles_of_streamed_matrices_are_chosen(monkeypatch):
    job = Job(1024, 256, 1, 1024, 4, 2, False, 4, 0)
    measured = {"job": list(astuple(job)), "tiles": [64, 32, 8, 64, False, 1, 4]}
    monkeypatch.setattr(tiles_module, "load_table", lambda: {"tiles": [measured]})
    choose_tiles.cache_clear()
    assert choose_tiles(job, 132) == Tiles(64, 32, 8, 64, looks=False, held=0, stages=4)
    assert choose_tiles(replace(job, batch=16), 132).stages == 0
    set_aside(job, choose_tiles(job, 132))
    assert choose_tiles(job, 132).stages == 0
    choose_tiles.cache_clear()


def test_tiles_that_were_too_large_are_not_chosen_again():
    job = Job(512, 16, 1, 512, 4, 2, False, 4, 0)
    first = choose_tiles(job, 131)
    set_aside(job, first)
    assert choose_tiles(job, 131) != first


def test_too_many_rows_for_the_card_are_refused():
    job = Job(4096, 4096, 2, 4096, 4, 2, False, 4, 0)
    with pytest.raises(BackendError, match=r"4096 rows of 4096 units .* use smaller batches"):
        choose_tiles(job, 132)


def test_a_product_shared_by_programs_is_printed_for_the_way_back_alone():
    traced = CASES["lstm"].traced()
    form = Tiles(64, 16, 8, 128, looks=False, parts=8).form(1024, 1024, 2)
    assert "PARTIAL" in program_of(traced, Variant(), form, backward=True).source
    assert "slot" not in program_of(traced, Variant(), form, backward=False).source


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(BackendError, match=r"'triton' (runs on a GPU, got .*cpu|needs triton)"):
        Recurrent("lstm", 3, 4, backend="triton")(torch.zeros(1, 2, 3))


def test_arrays_that_are_looked_at_begin_with_a_pattern_and_with_0_where_a_row_is_over():
    """By hand: minus one in all bits, which no number is stored as, where there will be one."""
    code = """
import torch
from seqloom.kernels import gpu
from seqloom.kernels.gpu_launch import Given, Launch, Shape
from seqloom.kernels.plan import Variant
from seqloom.nn.cells import CELLS
lengths = torch.tensor([2, 4, 1])
B, T, directions, width = 3, 4, 2, 8
cell = CELLS["lstm"].traced()
for dtype in (torch.float32, torch.bfloat16):
    shape = Shape(B, T, directions, width, width, width, width)
    launch = Launch(cell, Variant(), shape, dtype, torch.device("cpu"), backward=False)
    launch.awaits = True  # as with several programs, which an interpreter has not
    order, alive = gpu._ordered(lengths, torch.zeros(B, T, 1, dtype=dtype))
    assert order.tolist() == [1, 0, 2]
    given = Given(cell, Variant(), lengths, order, alive, 0.0, "ieee", 2, True, False, [], [])
    front = directions * B
    bits = torch.int32 if dtype == torch.float32 else torch.int16
    whole = launch.awaited(given, front + B * T * directions, width, front=front).view(bits)
    assert whole.shape == (front + B * T * directions, width)
    assert (whole[:front] == -1).all()
    for found in (whole[front:], launch.awaited(given, B * T * directions, width).view(bits)):
        found = found.view(B, T, directions, width)
        for row, length in enumerate(lengths.tolist()):
            assert (found[row, :length] == -1).all() and (found[row, length:] == 0).all()
    assert (alive[:B] == -1).all()  # what is looked at is no part of what is kept
print("ok")
"""
    done = interpreted(code)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]


def test_what_is_kept_for_the_way_back_takes_the_place_of_the_products_of_the_input():
    """By hand: the output, four gates and the cell of each step; and the input, which is not ours.

    Of GRUs, whose derivative reads a product apart from the sum, that product as well.
    """
    code = """
import torch
from seqloom.nn.recurrent import Recurrent
B, T, H = 16, 6, 16
wanted = {"rnn": 1 + 1, "lstm": 1 + 4 + 1, "peephole-lstm": 1 + 4 + 1, "gru": 1 + 3 + 1}
for cell, numbers in wanted.items():
    layer, kept = Recurrent(cell, H, H, backend="triton"), {}
    x = torch.randn(B, T, H)
    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = layer(x).outputs
    for tensor in (x, *layer.parameters()):
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    found = sum(kept.values()) / (4 * B * T * H)
    assert numbers <= found < numbers + 1.5, (cell, found)  # states before the first step, weights
print("ok")
"""
    done = interpreted(code)
    assert done.stdout.strip() == "ok", done.stderr[-2000:]
