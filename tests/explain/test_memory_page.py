"""The page about memory says what was measured."""

from __future__ import annotations

import json
import re
import statistics

import pytest

from places import REPOSITORY
from seqloom.explain.memory import Memory
from seqloom.explain.problems import Adding, Copying

TEXT = (REPOSITORY / "docs" / "memory.md").read_text(encoding="utf-8")
FOUND = json.loads((REPOSITORY / "docs" / "figures" / "memory.json").read_text(encoding="utf-8"))


def flat(text: str) -> str:
    """On one line, as a sentence may be broken anywhere."""
    return " ".join(text.split())


def change(norms: list[float]) -> float:
    return norms[-1] / norms[0]


@pytest.mark.parametrize("problem", [Copying(), Adding()], ids=lambda p: p.name)
def test_the_tables_are_those_of_the_scores(problem):
    scores = {
        cell: {int(distance): tuple(each) for distance, each in by_distance.items()}
        for cell, by_distance in FOUND["scores"][problem.name].items()
    }
    assert "\n".join(Memory(problem, scores).to_table()) in TEXT


def test_the_reach_is_what_its_definition_says():
    for cell, by_distance in FOUND["scores"]["adding"].items():
        solved = [int(d) for d, each in by_distance.items() if statistics.median(each) < 0.05]
        assert FOUND["reach"]["adding"][cell] == max(solved, default=0)


def test_the_table_of_gradients_is_that_of_the_norms():
    for name, norms in FOUND["norms"].items():
        before, after = change(FOUND["untrained norms"][name]), change(norms)
        assert f"| {name} | {before:.1e} | {after:.1e} | {FOUND['errors'][name]:.4f} |" in TEXT


def test_the_elman_cells_gradient_falls_where_the_lstms_does_not():
    assert len(FOUND["norms"]["lstm"]) == 100
    assert change(FOUND["norms"]["rnn"]) < 1e-6
    assert change(FOUND["norms"]["lstm"]) > 0.1


def test_numbers_in_sentences_are_those_measured():
    product, parts = FOUND["product"], FOUND["lstm parts"]
    exploding = FOUND["exploding norms"]["rnn x 5"]
    for sentence in (
        f"is {product['step']:.2f}, so the bound at distance 100 is {product['bound']:.1e}",
        f"the largest singular value measured there is {product['measured']:.1e}.",
        f"the trained LSTM keeps {parts['h']:.2f} of its gradient, by $c$ alone {parts['c']:.2f}:",
        f"from {exploding[0]:.1f} at distance 1 to {exploding[-1]:.1e} at distance 100",
        f"runs in {sum(FOUND['seconds'].values()) / 60:.0f} CPU minutes",
    ):
        assert sentence in flat(TEXT)


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "memory.md", "exec"), {})
    assert (tmp_path / "flow.png").stat().st_size > 0
