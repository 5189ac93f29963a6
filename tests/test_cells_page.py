"""The page about cells: its code runs and prints what it says, its equations are the cell's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from places import REPOSITORY
from seqloom.nn.cells import CELLS

PAGE = REPOSITORY / "docs" / "cells.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, re.DOTALL)
DEFINITION = CODE[0][0]


@pytest.fixture(autouse=True)
def table():
    """The cells are those there were, after a test."""
    before = dict(CELLS)
    yield
    CELLS.clear()
    CELLS.update(before)


def test_every_block_runs_and_prints_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("tiny.txt").write_text("a rose is a rose\nis a rose a rose\n" * 30, encoding="utf-8")
    names: dict = {}
    for code, printed in CODE:
        small = re.sub('"ptb:(train|valid|test)"', '"tiny.txt"', code)
        Path("my_cell.py").write_text(small, encoding="utf-8")
        exec(compile(small, "my_cell.py", "exec"), names)
        found = capsys.readouterr().out
        if printed:
            assert found == printed
        elif "ptb:" in code:
            assert re.fullmatch(r"(\S+: perplexity [\d.]+, \d+ s\n){2}", found)
        else:
            assert found == ""


def test_the_equations_on_the_page_are_those_of_its_cell():
    names: dict = {}
    exec(DEFINITION, names)
    assert re.findall(r"^\$\$(.+)\$\$$", TEXT, re.MULTILINE) == names["TwoSpeed"].equations()


def test_the_cell_is_short():
    lines = DEFINITION[DEFINITION.index("@register_cell") :].splitlines()
    assert len(lines) <= 12
