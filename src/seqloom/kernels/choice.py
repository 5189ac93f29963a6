"""Which backend `auto` takes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from seqloom.kernels.backends import BACKENDS
from seqloom.kernels.layer import Direction, Kind


def choose(backend: str, kind: Kind, x: Tensor, directions: Sequence[Direction]) -> str:
    """The backend itself if it was named, or the fastest one that can run this."""
    if backend != "auto":
        return backend
    for name in ("cpu", "torch"):
        if not BACKENDS[name].why_not(kind, x, directions):
            return name
    return "reference"
