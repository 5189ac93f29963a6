"""What the verb refuses at the start, in one line."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from seqloom.errors import ConfigError
from seqloom.serving.models import find_served
from seqloom.serving.settings import ServeConfig


def refused(*arguments: object) -> str:
    command = [sys.executable, "-m", "seqloom", "serve", "--port", "0", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_a_truncated_model_is_refused(counted: Path, tmp_path: Path):
    place = shutil.copytree(counted, tmp_path / "cut")
    victim = max(place.iterdir(), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1])
    assert "it was cut" in refused(place)


def test_an_edited_model_is_refused(counted: Path, tmp_path: Path):
    place = shutil.copytree(counted, tmp_path / "edited")
    header = json.loads((place / "seqloom.json").read_text())
    header["metrics"]["accuracy"] = 1.0
    (place / "seqloom.json").write_text(json.dumps(header))
    assert "was edited after the model was saved" in refused(place)


def test_an_altered_file_is_refused(counted: Path, tmp_path: Path):
    place = shutil.copytree(counted, tmp_path / "altered")
    victim = place / "vocabulary.json"
    victim.write_bytes(victim.read_bytes().replace(b"cat", b"bat"))
    assert "it was altered" in refused(place)


def test_the_app_runs_where_torch_is_not_installed():
    code = (
        "import asyncio, sys\n"
        "sys.modules['torch'] = None\n"
        "from seqloom.serving.models import find_served\n"
        "from seqloom.serving.server import create_app\n"
        "from seqloom.serving.service import Service\n"
        "from seqloom.serving.settings import ServeConfig\n"
        "async def app(): return create_app(Service(find_served(['textrank']), ServeConfig()))\n"
        "print('/v1/summarize' in asyncio.run(app()).openapi()['paths'])"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_port_that_is_taken_is_told_so(counted: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"must be free to listen on, got 127.0.0.1:{port}" in refused(
            counted, "--port", port
        )


def test_another_address_needs_a_token():
    with pytest.raises(ConfigError, match=r"got host='0\.0\.0\.0' without; give --token"):
        ServeConfig(host="0.0.0.0")
    with pytest.raises(ConfigError, match=r"got host='example\.org' without"):
        ServeConfig(host="example.org")
    assert ServeConfig(host="0.0.0.0", token="x").token == "x"
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert ServeConfig(host=host).is_loopback
    with pytest.raises(ConfigError, match="visible ASCII"):
        ServeConfig(token="a b")


@pytest.mark.parametrize(("name", "value"), [("workers", 0), ("max_queue", 0), ("max_batch", -1)])
def test_settings_out_of_range_are_named(name: str, value: int):
    with pytest.raises(ConfigError, match=f"{name} must be at least 1, got {value}"):
        ServeConfig(**{name: value})


def test_names_are_those_of_directories_or_given(counted: Path):
    found = find_served([str(counted), f"other={counted}", "news=textrank", "lead"])
    assert [(each.name, each.task) for each in found] == [
        ("ngram", "lm"),
        ("other", "lm"),
        ("news", "summarize"),
        ("lead", "summarize"),
    ]
    with pytest.raises(ConfigError, match="got 'ngram' twice"):
        find_served([str(counted), str(counted)])
    assert "textrank" in [each.name for each in find_served([])]


def test_the_app_loads_neither_torch_nor_numba():
    code = (
        "import asyncio, sys\n"
        "from seqloom.serving.models import find_served\n"
        "from seqloom.serving.server import create_app\n"
        "from seqloom.serving.service import Service\n"
        "from seqloom.serving.settings import ServeConfig\n"
        "async def app(): create_app(Service(find_served(['textrank']), ServeConfig()))\n"
        "asyncio.run(app())\n"
        "print(sorted({'torch', 'numba', 'numpy'} & set(sys.modules)))"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[]\n"
