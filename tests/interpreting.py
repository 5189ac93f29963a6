"""Code that Triton's interpreter runs, in a process of its own: it is chosen when triton loads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def interpreted(code: str) -> subprocess.CompletedProcess[str]:
    """Run code, or skip where triton is not installed."""
    pytest.importorskip("triton", reason="triton is not installed here")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
