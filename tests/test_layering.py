"""Imports go one way through the rooms, and the light entrances stay light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import seqloom

PACKAGE = Path(seqloom.__file__).parent

BASE = {"errors", "files", "config", "architectures"}

# Room -> the rooms it may import from, besides its own. A single file at the top is a room too.
ALLOWED = {
    "__init__": {"architectures", "tasks"},  # only when a name is asked for
    "__main__": {"cli"},
    "errors": set(),
    "files": {"errors"},
    "config": {"errors"},
    "architectures": {"errors"},
    "compiled": {"files"},
    "resources": set(),
    "recipes": set(),
    "figures": {"errors"},
    "text": {"errors", "files", "config", "figures"},
    "data": {"errors", "files", "config", "text"},
    "metrics": {"errors"},
    "ngram": {"errors", "files", "compiled"},
    "grammar": {"errors", "compiled", "text", "data"},
    "word2vec": {"errors", "compiled", "kernels"},
    "extract": {"errors", "compiled", "text"},
    "decoding": {"errors"},
    "kernels": {"errors", "files", "compiled"},
    "nn": {"errors", "kernels"},
    "models": {"errors", "nn"},
    "explain": {"errors", "figures", "nn", "kernels"},
    "training": {"errors", "files", "config", "data", "figures"},
    "tasks": BASE
    | {"text", "data", "ngram", "grammar", "models", "nn", "decoding", "metrics", "training"}
    | {"extract", "word2vec"},
    "serving": BASE
    | {"tasks", "resources", "text", "data", "figures", "explain", "nn", "kernels", "models"}
    | {"training"},
    "export": BASE | {"text", "data", "kernels", "nn", "models", "tasks"},
    "cli": BASE
    | {"resources", "figures", "ngram", "grammar", "extract", "text", "data", "metrics", "tasks"}
    | {"kernels", "nn", "serving", "export"},
}


def room_of(module: str) -> str:
    """`seqloom.text.words` is in the room `text`; `seqloom` itself in `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "seqloom"}


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way(path: Path):
    room = path.relative_to(PACKAGE).with_suffix("").parts[0]
    for name in imports_of(path):
        target = room_of(name)
        if target == "__version__":
            continue
        if target in seqloom.__all__:  # named at the top, lies in a task
            target = "tasks"
        assert target == room or target in ALLOWED[room], f"{room} may not import {name}"


def test_every_room_is_listed():
    rooms = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()}
    assert rooms - {"__pycache__", "py"} == set(ALLOWED)


def loaded_by(code: str) -> set[str]:
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


HEAVY = {"torch", "numba", "matplotlib", "tokenizers", "rjieba", "pyarrow", "pandas"}


@pytest.mark.parametrize(
    "code",
    [
        "import seqloom",
        "import seqloom.cli",
        "import seqloom.text, seqloom.data, seqloom.figures",
    ],
)
def test_entrances_load_nothing_heavy(code: str):
    assert loaded_by(code) & HEAVY == set()


def test_help_loads_not_even_numpy():
    assert "numpy" not in loaded_by("import seqloom.cli")


def test_using_models_loads_no_training():
    code = (
        "import seqloom; seqloom.LanguageModel, seqloom.Classifier, seqloom.Regressor, seqloom.load"
    )
    loaded = loaded_by(code)
    assert "seqloom.tasks.classifier" in loaded
    assert not [name for name in loaded if name.startswith("seqloom.training")]
