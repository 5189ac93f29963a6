"""schemathesis over the OpenAPI document: no 5xx, every answer as it is described."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from served import Server

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection,unsupported_method"
)


@pytest.mark.slow
def test_schemathesis_finds_nothing(models: dict[str, Path], tmp_path: Path):
    """Over all routes, the studio's too, which train into a folder of the test.

    `positive_data_acceptance` is left out: no schema says that a sentence holds one blank.
    """
    command = shutil.which("schemathesis")
    if command is None:
        pytest.skip("schemathesis is not installed; pip install 'seqloom[fuzz]'")
    options = ["--checks", CHECKS, "--max-examples", "50", "--seed", "1"]
    given = (*models.values(), "textrank", "--max-wait", 60_000)
    with Server(*given, env={**os.environ, "SEQLOOM_RUNS": str(tmp_path / "runs")}) as server:
        address = f"http://127.0.0.1:{server.port}/openapi.json"
        paths = server.ask("/openapi.json").value["paths"]
        found = subprocess.run(
            [command, "run", address, *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        text = server.ask("/metrics").body.decode()
    assert found.returncode == 0, found.stdout[-5000:]
    asked = set(re.findall(r'seqloom_requests_total\{endpoint="([^"]+)"', text))
    assert set(paths) <= asked
    assert 'status="5' not in text
    assert "\nseqloom_worker_restarts_total 0\n" in text
