"""Loops compiled to machine code by numba, kept on disk so that only the first run waits.

Compiled functions release the GIL and never use numba's own threads (which do not survive a fork
and abort when two threads enter): what runs on several cores calls them from `in_threads`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import event, types
from numba.core.compiler import Flags
from numba.core.cpu import CPUTargetOptions
from numba.core.options import DefaultOptions, TargetOptions
from numba.extending import intrinsic

from seqloom.files import cache_folder

Function = Any  # numba gives what it compiled attributes of its own
Item = TypeVar("Item")
Result = TypeVar("Result")


class _SayOnce(event.Listener):  # type: ignore[misc]
    """Says on the first real compilation why this run starts slowly."""

    said = False

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__ if event.data else None
        if not _SayOnce.said and (module or "").startswith(("seqloom.", "seqloom_")):
            _SayOnce.said = True
            kept = (
                "later runs start at once" if compile_folder() else "no folder to keep it was found"
            )
            print(f"seqloom: compiling for this machine; {kept}", file=sys.stderr)  # noqa: T201

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _SayOnce())


@cache
def compile_folder() -> str | None:
    """Where compiled code is kept: a folder a state of the package, as callees may change too."""
    state = hashlib.sha256()
    package = Path(__file__).parent
    rooms = ("extract", "grammar", "kernels", "ngram", "word2vec")
    sources = [source for room in rooms for source in package.glob(f"{room}/*.py")]
    for source in [Path(__file__), *sorted(sources)]:
        stat = source.stat()
        state.update(f"{source} {stat.st_size} {stat.st_mtime_ns}".encode())
    folder = cache_folder() / "compiled" / state.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def compiled(function: Function) -> Function:
    """Compile a function when it is first called; it runs without the GIL and bounds checks."""
    return _compile(function, nogil=True)


def compiled_with_gil(function: Function) -> Function:
    """The same for one that must not run in two threads at once, and takes microseconds."""
    return _compile(function, nogil=False)


# Of functions whose arrays do not overlap: without this promise, one with many arrays is not made
# to work on several numbers at once. Numba has the flag for its own loops and no option for it.
DISTINCT: dict[str, Any] = {}
if hasattr(Flags, "noalias"):
    CPUTargetOptions.distinct = TargetOptions.Mapping("noalias")
    DISTINCT = {"distinct": True}


def compiled_real(function: Function) -> Function:
    """The same for loops of arithmetic over arrays that do not overlap.

    A product and a sum may become one operation.
    """
    return _compile(function, nogil=True, fastmath=ARITHMETIC, **DISTINCT)


def _compile(function: Function, **options: Any) -> Function:
    folder = compile_folder()
    kept = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = folder or kept
        jitted = numba.njit(cache=folder is not None, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = kept
    if folder is not None:
        jitted._cache.save_overload = _if_it_can(jitted._cache.save_overload)
    return jitted


def _if_it_can(save: Callable[..., None]) -> Callable[..., None]:
    """Keep what was compiled, or go on without where the disk is full."""

    def saved(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    return saved


# Of functions inside compiled ones. The caller holds the arrays, so counting references to them, an
# atomic operation for each use, is left out: it would take longer than looking a word up.
INNER: dict[str, Any] = {"error_model": "numpy", "forceinline": True} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)


def inner(function: Function) -> Function:
    """A function for use inside compiled ones alone, put into its caller; it makes no array."""
    return numba.njit(**INNER)(function)


# What arithmetic may be rearranged to without changing what is infinite or not a number.
ARITHMETIC = {"contract", "nsz", "arcp"}


def inner_real(function: Function) -> Function:
    """The same for arithmetic: a product and a sum may become one operation."""
    return numba.njit(**INNER, fastmath=ARITHMETIC)(function)


# The same, and sums may be taken in any order: several numbers at once.
SUMS = ARITHMETIC | {"reassoc"}


def compiled_sums(function: Function) -> Function:
    """As `compiled_real`, for loops that sum: the order of the terms is the compiler's choice.

    On one machine it is the same in every run.
    """
    return _compile(function, nogil=True, fastmath=SUMS, **DISTINCT)


def inner_sums(function: Function) -> Function:
    """As `inner_real`, for loops that sum."""
    return numba.njit(**INNER, fastmath=SUMS)(function)


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Inside compiled code: begin to load an array's element, which is needed a little later."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        element = builder.bitcast(
            builder.gep(view.data, [arguments[1]]), ir.IntType(8).as_pointer()
        )
        number = ir.IntType(32)
        types = [element.type, number, number, number]
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [element.type], ir.FunctionType(ir.VoidType(), types)
        )
        # For reading, to be kept in every cache, data rather than code.
        builder.call(prefetch, [element, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Do the work on each item, on as many threads as there are cores; results in order."""
    todo: Sequence[Item] = list(items)
    workers = min(cores(), len(todo))
    if workers <= 1:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, todo))
