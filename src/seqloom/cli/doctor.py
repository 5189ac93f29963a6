"""`seqloom doctor`: what this machine has of what Seqloom can use."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

from seqloom import __version__
from seqloom.cli.output import JsonOption, print_rows

# distribution -> what it is for; the extra that brings it is in pyproject.toml
PACKAGES = {
    "numpy": "arrays",
    "rjieba": "Chinese words",
    "tokenizers": "subwords",
    "zstandard": ".zst files",
    "torch": "neural models (extra: neural)",
    "matplotlib": "figures (extra: figures)",
    "pyarrow": "Parquet (extra: tables)",
}


def run(as_json: JsonOption = False) -> None:
    """Show versions, optional packages, devices and folders."""
    print_rows(examine(), as_json=as_json)


def examine() -> list[dict[str, Any]]:
    """Return one row a finding: what, what was found, and what it means."""
    rows = [
        _row("seqloom", __version__),
        _row("python", platform.python_version(), platform.platform()),
        _row("cores", str(os.cpu_count())),
    ]
    for name, use in PACKAGES.items():
        try:
            rows.append(_row(name, importlib.metadata.version(name), use))
        except importlib.metadata.PackageNotFoundError:
            rows.append(_row(name, "not installed", use))
    rows.append(_row("gpu", _gpu()))
    rows.append(_row("Chinese font", _chinese_font(), "figures with Chinese words"))
    rows.extend(_folders())
    return rows


def _row(what: str, found: str, use: str = "") -> dict[str, Any]:
    return {"what": what, "found": found, "for": use}


def _gpu() -> str:
    if importlib.util.find_spec("torch") is None:
        return "unknown without torch"
    import torch

    if not torch.cuda.is_available():
        return "none that torch can use"
    return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"


def _chinese_font() -> str:
    if importlib.util.find_spec("matplotlib") is None:
        return "unknown without matplotlib"
    from seqloom.figures.style import cjk_family

    return cjk_family() or "none; install e.g. Noto Sans CJK, or save figures as .svg"


def _folders() -> list[dict[str, Any]]:
    from seqloom.data.datasets import data_folder
    from seqloom.files import cache_folder

    given, cache = data_folder(), cache_folder()
    data = "not set" if given is None else f"{given}{'' if given.is_dir() else ' (missing)'}"
    return [
        _row("SEQLOOM_DATA", data, "your own copies of data sets"),
        _row("cache", f"{cache}{'' if cache.is_dir() else ' (not made yet)'}", "fetched data"),
    ]
