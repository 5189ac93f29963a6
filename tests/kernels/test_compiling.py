"""The printed kernels compile for a card, which needs none: the interpreter knows no types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
sys.path.insert(0, {tests!r})
from triton import compile as build
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from made_up import MadeUp
from seqloom.kernels import gpu_launch
from seqloom.kernels.plan import Variant
from seqloom.kernels.tiles import Tiles
from seqloom.kernels.triton_printing import CONSTANTS, SIZES
from seqloom.nn.cells import CELLS

WIDE = ("DV", "PARTIAL")
KINDS = {{"LENGTHS": "*i64", "ORDER": "*i64", "COUNTERS": "*i32", "FLAG": "*i32"}}

def check(cell, tiles, variant, *, backward, apart=False, ragged=True, kind="*bf16"):
    size, item = 64, 4 if kind == "*fp32" else 2
    form = tiles.form(size, size, item)
    program = gpu_launch.program_of(cell.traced(), variant, form, backward=backward)
    function = getattr(gpu_launch._module(program.source), program.name)
    types = {{}}
    for name in program.pointers:
        between = apart and name.startswith(("DEND", "DBEGIN"))
        types[name] = KINDS.get(name, "*fp32" if name in WIDE or between else kind)
    types |= {{name: "fp32" if name == "clip" else "i32" for name in SIZES}}
    types |= dict.fromkeys(CONSTANTS, "constexpr")
    values = dict(
        H=size, R=size, REAL=size, REAL_R=size, BB=tiles.rows, BH=tiles.units, BR=tiles.units,
        NU=size // tiles.units, DIRECTIONS=2, HELD=tiles.held, SAVE=True, MASKED=True, BIASED=True,
        BEGUN=True, ENDED=True, RAGGED=ragged, APART=apart, PRECISION="tf32", PATIENCE=1 << 21,
    )
    given = {{(i,): [["tt.divisibility", 16]] for i in range(len(program.pointers))}}
    source = ASTSource(function, types, constexprs={{n: values[n] for n in CONSTANTS}}, attrs=given)
    options = {{"num_warps": tiles.warps, "num_stages": 1, "launch_cooperative_grid": True}}
    assert build(source, target=GPUTarget("cuda", 90, 32), options=options).asm["cubin"]

LOOKING, MEETING = Tiles(16, 16, 4, 64), Tiles(64, 16, 8, 64, looks=False)
SHARED = Tiles(64, 16, 8, 64, looks=False, parts=2)
STREAMED = Tiles(64, 16, 8, 32, looks=False, held=0, stages=3, parts=2)
check({cell}, LOOKING, Variant(), backward=False)
check({cell}, MEETING, Variant(keep=True, clip=True), backward=False, kind="*fp32")
check({cell}, LOOKING, Variant(clip=True), backward=True, kind="*fp32")
check({cell}, SHARED, Variant(), backward=True, ragged=False)
check({cell}, LOOKING, Variant(keep=True), backward=True, apart={joined})
for kind in ("*bf16", "*fp32"):
    check({cell}, STREAMED, Variant(), backward=False, kind=kind)
    check({cell}, STREAMED, Variant(), backward=True, kind=kind)
"""


@pytest.mark.parametrize(
    ("cell", "joined"),
    [("CELLS['peephole-lstm']", True), ("CELLS['gru']", False), ("MadeUp", False)],
)
def test_kernels_compile_for_a_card(cell, joined):
    pytest.importorskip("triton", reason="triton is not installed here")
    code = CODE.format(tests=str(Path(__file__).parent.parent), cell=cell, joined=joined)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
