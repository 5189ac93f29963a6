"""Grids of several programs by Triton's interpreter: each program is a process, memory is shared.

The interpreter runs one program after another, so that programs which wait for each other never
come to an end there. Here each is a copy of the process that launches it. What the kernels say in
a card's own words, which the interpreter does not know, is said in Triton's.
"""

from __future__ import annotations

import os
import traceback
from itertools import product
from typing import Any

from triton.runtime import interpreter

from seqloom.kernels import triton_printing, triton_text

PEEK = """@triton.jit
def _peek(pointer):
    return tl.load(pointer, volatile=True)
"""
IN_REGISTERS = '''@triton.jit
def in_registers(x):
    """The same numbers."""
    return x
'''
LOOK = '''
@triton.jit
def look(addresses, flag, kind: tl.constexpr):
    """The numbers at addresses, waited for."""
    there = addresses != 0
    words = addresses.to(tl.pointer_type(tl.int32))
    missing, looks = 1, 0
    while (missing > 0) & (looks < 5000):
        a = tl.load(words, mask=there, other=0, volatile=True)
        b = tl.load(words + 1, mask=there, other=0, volatile=True)
        c = tl.load(words + 2, mask=there, other=0, volatile=True)
        d = tl.load(words + 3, mask=there, other=0, volatile=True)
        missing = {missing}
        looks += 1
    return {result}


@triton.jit
def count_missing(words):
    """How many of the words, or of their halves, have all bits set."""
    return tl.sum(tl.sum({is_missing}, axis=1), axis=0)
'''


def _plain_look(pack: int, *, wide: bool, guarded: bool) -> str:
    joined = "tl.join(tl.join(a, c), tl.join(b, d))"
    low, high = "((words & 0xFFFF) == 0xFFFF)", "((words >> 16) & 0xFFFF) == 0xFFFF"
    return LOOK.format(
        missing=" + ".join(f"count_missing({word})" for word in "abcd"),
        result=f"{joined}.to(kind, bitcast=True)" if wide else f"halves({joined}, kind)",
        is_missing="(words == -1).to(tl.int32)" if wide else f"({low} | ({high})).to(tl.int32)",
    )


def _without_asm(header: str) -> str:
    kept = []
    for part in header.split("\n\n\n"):
        name = part.partition("def ")[2].partition("(")[0]
        kept.append({"_peek": PEEK, "in_registers": IN_REGISTERS}.get(name, part).rstrip())
    return "\n\n\n".join(kept) + "\n"


class SideBySide(interpreter.GridExecutor):
    """Runs the programs of a grid at the same time."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        grid = (*self.grid, 1, 1)[:3]
        for each in args:
            if hasattr(each, "untyped_storage"):
                each.untyped_storage().share_memory_()
        children = []
        for place in product(*map(range, grid)):
            child = os.fork()
            if not child:
                self._alone(grid, place, args, kwargs)
            children.append(child)
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(ends):
            raise RuntimeError("a program failed")

    def _alone(self, grid: Any, place: Any, args: Any, kwargs: Any) -> None:
        """Run one program of the grid, and end this process."""
        builder = interpreter.interpreter_builder
        set_dim, set_place = builder.set_grid_dim, builder.set_grid_idx
        builder.set_grid_dim = lambda *_: set_dim(*grid)
        builder.set_grid_idx = lambda *_: set_place(*place)
        self.grid = (1,)
        try:
            super().__call__(*args, **kwargs)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def run_side_by_side() -> None:
    """From now on kernels of cells run so in this process."""
    interpreter.GridExecutor = SideBySide
    triton_printing.HEADER = _without_asm(triton_text.HEADER)
    triton_printing.print_look = _plain_look
