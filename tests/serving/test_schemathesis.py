"""schemathesis over the OpenAPI document: no 5xx, every answer as it is described."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from served import Server

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection,unsupported_method"
)


@pytest.mark.slow
def test_schemathesis_finds_nothing(server: Server, tmp_path):
    """`positive_data_acceptance` is left out: no schema says that a sentence holds one blank."""
    command = shutil.which("schemathesis")
    if command is None:
        pytest.skip("schemathesis is not installed; pip install 'seqloom[fuzz]'")
    options = ["--checks", CHECKS, "--max-examples", "50", "--seed", "1"]
    paths = ["--include-path-regex", "^/(v1|health|ready|metrics)"]
    address = f"http://127.0.0.1:{server.port}/openapi.json"
    found = subprocess.run(
        [command, "run", address, *paths, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stdout[-5000:]
    assert server.metric("seqloom_worker_restarts_total") == 0
