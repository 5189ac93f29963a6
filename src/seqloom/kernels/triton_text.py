"""The parts of a printed kernel that are the same for every cell: how programs hand on numbers.

Programs of the same rows need each other's states at every step. They are handed on in one of two
ways. *Looking*: the array is filled beforehand with a pattern that no number is stored as (all bits
set, a NaN that arithmetic does not give), and a program loads what it needs again and again until
the pattern is gone. The numbers are their own message: no barrier, no fence, one way through the
cache. *A barrier*: a counter that each program raises when it has stored, and waits for; the loads
after it are plain ones, which suits large tiles.

Both give up after a while and raise a flag, so that a mistake ends in an error.
"""

from __future__ import annotations

PATIENCE = 1 << 21  # looks before a program gives up, about a second
BAD_LENGTH = 2  # what a flag says where a length is none; 1 where a program gave up
GLANCE = 1 << 12  # looks after which it looks whether another one has given up

HEADER = '''"""Printed from the equations of a cell."""
import triton
import triton.language as tl


@triton.jit
def _peek(pointer):
    return tl.inline_asm_elementwise(
        "ld.acquire.gpu.global.s32 $0, [$1];", "=r,l", [pointer], dtype=tl.int32, is_pure=False,
        pack=1,
    )


@triton.jit
def arrive(counter):
    """Say to the other programs of these rows that what was stored can be read."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def wait(counter, flag, target, lost, PATIENCE: tl.constexpr):
    """Wait for the others; lost is 1 if they did not come in time."""
    tries = lost * PATIENCE
    while (tries < PATIENCE) & (_peek(counter) < target):
        tries += 1
    lost = (tries >= PATIENCE).to(tl.int32)
    if lost > 0:
        tl.store(flag, 1)
    tl.debug_barrier()
    return lost


@triton.jit
def halves(words, kind: tl.constexpr):
    """Words of 32 bits as pairs of numbers of 16."""
    low, high = (words & 0xFFFF).to(tl.int16), (words >> 16).to(tl.int16)
    return tl.join(low, high).to(kind, bitcast=True)


@triton.jit
def in_registers(x):
    """The same numbers, which the compiler then hands to a product from registers."""
    return tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=2
    )


@triton.jit
def nearest(x, PRECISION: tl.constexpr):
    """Numbers rounded to those of tf32, whose units would cut off what is too much."""
    if PRECISION != "tf32":
        return x
    bits = x.to(tl.int32, bitcast=True) + 0x1000
    return tl.where(x == x, bits.to(tl.float32, bitcast=True), x)
'''


def print_look(pack: int, *, wide: bool, guarded: bool) -> str:
    """Print `look`, which loads 16 bytes from each address as soon as they are there.

    Args:
        pack: How many addresses a thread has; they are all loaded at once.
        wide: Whether a number takes 4 bytes, and not 2.
        guarded: Whether an address may be 0, for which zeros are given.
    """
    asm, constraints = _look_asm(pack, wide=wide, guarded=guarded)
    joined = "tl.join(tl.join(a, c), tl.join(b, d))"
    found = f"{joined}.to(kind, bitcast=True)" if wide else f"halves({joined}, kind)"
    return f'''
LOOK: tl.constexpr = tl.constexpr({asm!r})
LOOK_AT: tl.constexpr = tl.constexpr({constraints!r})


@triton.jit
def look(addresses, flag, kind: tl.constexpr):
    """The numbers at addresses, waited for; shape (rows, columns, 2, 2{"" if wide else ", 2"})."""
    a, b, c, d = tl.inline_asm_elementwise(
        LOOK, LOOK_AT, [addresses, flag.to(tl.int64)],
        dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=False, pack={pack},
    )
    return {found}
'''


def _look_asm(pack: int, *, wide: bool, guarded: bool) -> tuple[str, str]:
    words = [[f"${w * pack + i}" for w in range(4)] for i in range(pack)]
    addresses = [f"${4 * pack + i}" for i in range(pack)]
    flag = f"${5 * pack}"
    guards = ", ".join(f"g{i}" for i in range(pack))
    lines = ["{", ".reg .pred p; .reg .b32 found, t, n;", "mov.u32 n, 0;"]
    if guarded:
        lines.append(f".reg .pred {guards};")
        for i in range(pack):
            lines += [f"mov.b32 {word}, 0;" for word in words[i]]
            lines.append(f"setp.ne.u64 g{i}, {addresses[i]}, 0;")
    lines.append("AGAIN:")
    for i in range(pack):
        guard = f"@g{i} " if guarded else ""
        lines.append(
            f"{guard}ld.relaxed.gpu.global.v4.b32 {{{', '.join(words[i])}}}, [{addresses[i]}];"
        )
    lines.append("mov.b32 found, 0;")
    for word in (word for row in words for word in row):
        if wide:  # the largest word is the pattern if one is
            lines.append(f"max.u32 found, found, {word};")
        else:  # a half is the pattern if it borrows: (~w - 0x00010001) & w has its highest bit
            lines.append(f"sub.u32 t, 0xfffefffe, {word}; and.b32 t, t, {word};")
            lines.append("or.b32 found, found, t;")
    lines += [
        "setp.ne.u32 p, found, 0xffffffff;"
        if wide
        else "and.b32 found, found, 0x80008000; setp.eq.u32 p, found, 0;",
        "@p bra DONE;",
        f"add.u32 n, n, 1; and.b32 t, n, {GLANCE - 1}; setp.ne.u32 p, t, 0;",
        "@p bra AGAIN;",
        f"ld.volatile.global.u32 t, [{flag}]; setp.ne.u32 p, t, 0;",
        "@p bra DONE;",
        f"setp.lt.u32 p, n, {PATIENCE};",
        "@p bra AGAIN;",
        f"st.volatile.global.u32 [{flag}], 1;",
        "DONE:",
        "}",
    ]
    return " ".join(lines), ",".join(["=&r"] * (4 * pack) + ["l"] * (2 * pack))
