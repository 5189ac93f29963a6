"""Cells by name, and a cell of one's own under a name of one's own."""

from __future__ import annotations

import pytest

from seqloom.errors import ConfigError
from seqloom.kernels.cell_errors import CellError
from seqloom.nn import Cell, State, register_cell, sigmoid, tanh
from seqloom.nn.cells import CELLS, LSTM, find_cell


class Leaky(Cell):
    gates = ("n",)
    vectors = ("rate",)

    @staticmethod
    def step(a, s, v):
        return State(h=s.h + sigmoid(v.rate) * (tanh(a.n) - s.h))


@pytest.fixture(autouse=True)
def table():
    """The table is as it was after a test."""
    before = dict(CELLS)
    yield
    CELLS.clear()
    CELLS.update(before)


def test_a_registered_cell_is_found_by_its_name():
    assert register_cell("leaky", Leaky) is Leaky
    assert find_cell("leaky") is find_cell(Leaky) is Leaky


def test_as_a_decorator():
    @register_cell("other")
    class Other(Leaky):
        pass

    assert find_cell("other") is Other
    assert Other.equations() == Leaky.equations()


def test_a_name_that_is_taken_is_refused():
    register_cell("leaky", Leaky)
    for name in ("lstm", "leaky"):
        before = CELLS[name]
        with pytest.raises(ConfigError, match=rf"must be free, got '{name}', which is.*del CELLS"):
            register_cell(name, Leaky)
        assert CELLS[name] is before


@pytest.mark.parametrize(
    "what", [int, Leaky(), lambda a: a, "lstm"], ids=["class", "object", "function", "name"]
)
def test_what_is_no_cell_is_refused(what):
    with pytest.raises(ConfigError, match="must be a subclass of Cell, got"):
        register_cell("mine", what)
    assert "mine" not in CELLS


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_name_is_text(name):
    with pytest.raises(ConfigError, match=f"a cell's name must be text, got {name!r}"):
        register_cell(name, Leaky)


def test_a_step_that_cannot_be_understood_is_refused_at_once():
    class Wrong(Cell):
        gates = ("n",)

        @staticmethod
        def step(a, s):
            return State(h=a.n @ s.h)

    with pytest.raises(CellError, match=r"'@' is not elementwise.*test_cells.py"):
        register_cell("wrong", Wrong)
    with pytest.raises(ConfigError, match="cell Cell must have a step, got none"):
        register_cell("bare", Cell)
    assert not {"wrong", "bare"} & set(CELLS)


def test_a_cell_that_is_not_registered():
    with pytest.raises(
        ConfigError, match=r"unknown cell 'leaky'.*register_cell\('leaky', YourCell"
    ):
        find_cell("leaky")
    with pytest.raises(ConfigError, match="'lstn'; did you mean 'lstm'"):
        find_cell("lstn")
    assert find_cell("lstm") is LSTM
