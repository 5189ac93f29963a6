"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from places import REPOSITORY

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: one thread each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


@pytest.fixture
def shared_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of benchmark data; a test that needs it is skipped where it is not to be had."""
    place = Path(os.environ.get("SEQLOOM_DATA") or REPOSITORY.parent / "shared" / "data")
    if not (place / "MANIFEST.md").is_file():
        message = f"the benchmark data is not here: no MANIFEST.md in {place}"
        if os.environ.get("SEQLOOM_REQUIRE_DATA"):
            pytest.fail(message)
        pytest.skip(message)
    monkeypatch.setenv("SEQLOOM_DATA", str(place))
    return place
