"""A step is written as a person would write it, in LaTeX that can be drawn."""

from __future__ import annotations

import pytest

from made_up import MadeUp
from seqloom.kernels.expressions import Graph
from seqloom.kernels.functions import exp, sigmoid, tanh
from seqloom.kernels.latex import latex
from seqloom.nn.cells import CELLS, Cell, State


def products(gate: str) -> str:
    return f"W_{gate} x_t + b_{gate} + U_{gate} h_{{t-1}} + b'_{gate}"


LINES = {
    "rnn": [rf"h_t = \tanh({products('n')})"],
    "coupled": [
        rf"f_t = \sigma({products('f')})",
        rf"g_t = \tanh({products('g')})",
        r"h_t = f_t \odot h_{t-1} + (1 - f_t) \odot g_t",
    ],
    "lstm": [
        rf"i_t = \sigma({products('i')})",
        rf"f_t = \sigma({products('f')})",
        rf"g_t = \tanh({products('g')})",
        rf"o_t = \sigma({products('o')})",
        r"c_t = f_t \odot c_{t-1} + i_t \odot g_t",
        r"h_t = o_t \odot \tanh(c_t)",
    ],
    "peephole-lstm": [
        rf"i_t = \sigma({products('i')} + w_i \odot c_{{t-1}})",
        rf"f_t = \sigma({products('f')} + w_f \odot c_{{t-1}})",
        rf"g_t = \tanh({products('g')})",
        r"c_t = f_t \odot c_{t-1} + i_t \odot g_t",
        rf"o_t = \sigma({products('o')} + w_o \odot c_t)",
        r"h_t = o_t \odot \tanh(c_t)",
    ],
    "gru": [
        rf"r_t = \sigma({products('r')})",
        rf"z_t = \sigma({products('z')})",
        r"n_t = \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + b'_n))",
        r"h_t = n_t + z_t \odot (h_{t-1} - n_t)",
    ],
    "gru-before": [
        rf"r_t = \sigma({products('r')})",
        rf"z_t = \sigma({products('z')})",
        r"n_t = \tanh(W_n x_t + b_n + U_n (r_t \odot h_{t-1}) + b'_n)",
        r"h_t = n_t + z_t \odot (h_{t-1} - n_t)",
    ],
    "made-up": [
        rf"a_t = \mathrm{{softplus}}({products('a')})",
        r"b_t = \tanh(W_b x_t + b_b + w_k \odot (U_b h_{t-1} + b'_b))",
        r"c_t = \tanh(U_c (\tanh(a_t) \odot h_{t-1} - q_{t-1}) + b'_c)",
        r"p_t = \max(0.5 p_{t-1}, b_t)",
        r"\tilde{c}_t = c_t + \frac{W_c x_t + b_c}{a_t + 1}",
        r"h_t = p_t \odot \sigma(\tilde{c}_t)",
        r"q_t = \tanh(\tilde{c}_t)",
    ],
}
CASES = {**CELLS, "made-up": MadeUp}


@pytest.mark.parametrize("name", LINES)
def test_a_cell_is_written_as_in_a_paper(name):
    assert CASES[name].equations() == LINES[name]


def cell_of(step, **changes):
    return type("Mine", (Cell,), {"gates": ("n",), "step": step, **changes})


def test_what_is_used_twice_has_a_name_unless_it_is_short():
    swish = cell_of(lambda a: State(h=a.n * sigmoid(a.n)))
    assert swish.equations() == [rf"n_t = {products('n')}", r"h_t = n_t \odot \sigma(n_t)"]
    short = cell_of(
        lambda a, s: State(h=(1 - sigmoid(a.n)) * s.h, p=(1 - sigmoid(a.n)) * s.p),
        states=("h", "p"),
    )
    assert short.equations() == [
        rf"n_t = \sigma({products('n')})",
        r"h_t = (1 - n_t) \odot h_{t-1}",
        r"p_t = (1 - n_t) \odot p_{t-1}",
    ]
    gateless = cell_of(lambda a, s: State(h=a.n + exp(2 * s.h) / (1 + exp(2 * s.h))))
    assert gateless.equations() == [
        r"m_t = \exp(2 h_{t-1})",
        rf"h_t = {products('n')} + \frac{{m_t}}{{m_t + 1}}",
    ]


def test_a_late_product_used_twice_has_a_name():
    def step(x, s, late):
        m = late("n", tanh(x.n))
        return State(h=m * tanh(m) + s.h)

    assert cell_of(step, late=("n",)).equations() == [
        r"n_t = \tanh(W_n x_t + b_n)",
        r"\tilde{n}_t = U_n n_t + b'_n",
        r"h_t = h_{t-1} + \tanh(\tilde{n}_t) \odot \tilde{n}_t",
    ]


def test_a_state_keeps_its_letter_and_the_input_its_own():
    found = cell_of(lambda a, s: State(h=s.h + tanh(a.h) + tanh(a.x)), gates=("h", "x")).equations()
    assert [line.partition(" = ")[0] for line in found] == [r"\tilde{h}_t", r"\tilde{x}_t", "h_t"]


def test_states_that_are_another_or_nothing():
    states = ("h", "p", "q", "r")
    found = cell_of(lambda a, s: State(h=a.n, p=s.h, q=a.n, r=0.5), states=states).equations()
    assert found == [f"h_t = {products('n')}", "p_t = h_{t-1}", "q_t = h_t", "r_t = 0.5"]


def test_long_names_stand_upright():
    def step(x, s, v):
        return State(h=v.decay * s.h + tanh(x.new_in), mem=s.mem)

    cell = cell_of(step, gates=("new_in",), vectors=("decay",), states=("h", "mem"))
    assert cell.equations() == [
        r"\mathrm{new\_in}_t = \tanh(W_{\mathrm{new\_in}} x_t + b_{\mathrm{new\_in}})",
        r"h_t = w_{\mathrm{decay}} \odot h_{t-1} + \mathrm{new\_in}_t",
        r"\mathrm{mem}_t = \mathrm{mem}_{t-1}",
    ]


EXPRESSIONS = {
    r"\frac{(x + y) \odot \tanh(x - 1)}{y}": lambda x, y: (x + y) * tanh(x - 1) / y,
    "x - (y - x)": lambda x, y: x - (y - x),
    "x + y - 2": lambda x, y: x + (y - 2),
    r"x \odot y \odot \exp(x)": lambda x, y: (x * y) * exp(x),
    r"x + x \odot y": lambda x, y: x + x * y,
    "0.5 x": lambda x, y: x * 0.5,
    r"y \odot (2 x)": lambda x, y: y * (2 * x),
    "x - 2 y": lambda x, y: x + -2 * y,
    "x + 2 y": lambda x, y: x - -2 * y,
    r"x - x \odot y": lambda x, y: x + -(y * x),
    "-(x + y)": lambda x, y: -(x + y),
    r"-3 \cdot 10^{-7} x": lambda x, y: -3e-7 * x,
    "x + 10^{9}": lambda x, y: x + 1e9,
    r"1.0000001 x": lambda x, y: 1.0000001 * x,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_there_are_no_more_brackets_than_needed(text):
    graph = Graph()
    assert latex(EXPRESSIONS[text](graph.input("x"), graph.input("y")), {}) == text


def test_inputs_go_by_the_names_given():
    graph = Graph()
    assert latex(graph.input("x") - graph.input("y"), {"x": "a", "y": "b'"}) == "a - b'"


@pytest.mark.parametrize("name", CASES)
def test_matplotlib_can_draw_it(name):
    mathtext = pytest.importorskip("matplotlib.mathtext")
    for line in CASES[name].equations():
        assert mathtext.MathTextParser("path").parse(f"${line}$").width > 50
