"""The code of the READMEs runs as it stands, and the two say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from places import REPOSITORY

READMES = [REPOSITORY / "README.md", REPOSITORY / "README.zh.md"]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("path", "label"), list(zip(READMES, ["good", "好评"], strict=True)), ids=["en", "zh"]
)
def test_the_python_example_runs(path, label, capsys):
    (code,) = blocks(path, "python")
    exec(compile(code, path.name, "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == label
    assert 1 <= float(printed[1].split()[0]) < 10  # a perplexity
    assert len(code.strip().splitlines()) <= 10


def test_both_show_the_same_commands_and_figures():
    def commands(path: Path) -> list[str]:
        text = "".join(blocks(path, ""))
        return re.findall(r"^(?:seqloom|make) [a-z]+", text, re.MULTILINE)

    def figures(path: Path) -> list[str]:
        return re.findall(r"\| ([\d.]+) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)

    assert commands(READMES[0]) == commands(READMES[1])
    assert figures(READMES[0]) == figures(READMES[1])
    assert len(figures(READMES[0])) >= 3


@pytest.mark.parametrize("path", READMES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
