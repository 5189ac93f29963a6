"""What browser tests need, and what happens where it is missing."""

from __future__ import annotations

import os

import pytest


def missing(what: str) -> None:
    """Skip, or fail where the browser tests must run."""
    if os.environ.get("SEQLOOM_REQUIRE_BROWSER"):
        pytest.fail(what)
    pytest.skip(what)
