"""Printed code on its way to machine code: written to a file, so that what numba makes is kept."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from seqloom.compiled import compile_folder
from seqloom.kernels.printing import HEADER, Program


@cache
def _folder() -> Path:
    """Where printed code goes; for this process alone if there is no folder to keep it in."""
    kept = compile_folder()
    if kept is None:
        return Path(tempfile.mkdtemp(prefix="seqloom-cells-"))
    folder = Path(kept) / "cells"
    folder.mkdir(exist_ok=True)
    return folder


def source_of(program: Program, bits: int) -> str:
    """The module that is compiled, in single (32 bits) or double (64) precision."""
    return f"{HEADER.format(bits=bits)}\n\n{program.source}\n"


@cache
def _load(source: str) -> Any:
    name = f"seqloom_cell_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = _folder() / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        descriptor, beside = tempfile.mkstemp(dir=path.parent)  # other processes may do the same
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(source)
        Path(beside).replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where numba looks for it when it takes code from its cache
    spec.loader.exec_module(module)
    return module


def load_program(program: Program, bits: int) -> Mapping[str, Callable[..., None]]:
    """The functions of a program, compiled when they are first called."""
    module = _load(source_of(program, bits))
    return {key: getattr(module, function.name) for key, function in program.functions.items()}
