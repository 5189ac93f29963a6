"""The code of docs/cells.md as it stands: a cell of one's own trained on the Penn Treebank.

    python benchmarks/own_cell.py

It prints the perplexities and seconds of that page, in a folder that is removed afterwards.
"""

from __future__ import annotations

import os
import platform
import re
import tempfile
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cells.md"


def main() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    print(f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks:
            exec(compile(block, PAGE.name, "exec"), names)
        os.chdir(PAGE.parent)


if __name__ == "__main__":
    main()
