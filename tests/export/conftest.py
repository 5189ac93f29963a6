"""Exports in tests take less time."""

from __future__ import annotations

from functools import cache

import pytest


@pytest.fixture(autouse=True, scope="session")
def _operators_read_once():
    """torch's exporter reads its list of operators anew each time, a third of an export."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    patch = pytest.MonkeyPatch()
    patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
    yield
    patch.undo()
