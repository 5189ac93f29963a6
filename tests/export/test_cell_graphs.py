"""A recurrence in an ONNX graph equals the visible loop, each row alone, whatever the cell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import helper, numpy_helper
from onnx_running import run, session

from made_up import Awkward, Delayed, MadeUp
from seqloom.export.graphs import OPSET, WRITERS
from seqloom.export.recurrence import SYMBOL
from seqloom.export.symbols import DOMAIN, write_symbols
from seqloom.kernels.functions import sigmoid, tanh
from seqloom.nn.cells import CELLS, Cell, State
from seqloom.nn.recurrent import Recurrent

D, H = 4, 6
OPERATORS = {
    "rnn": "RNN",
    "rnn-relu": "RNN",
    "rnn-sigmoid": "RNN",
    "gru": "GRU",
    "gru-before": "GRU",
    "lstm": "LSTM",
    "peephole-lstm": "LSTM",
}


class Renamed(Cell):
    """An LSTM by another name."""

    gates = ("i", "f", "g", "o")
    states = ("h", "c")

    @staticmethod
    def step(a, s):
        c = sigmoid(a.f) * s.c + sigmoid(a.i) * tanh(a.g)
        return State(h=sigmoid(a.o) * tanh(c), c=c)


def graph_of(layer, *, reverse):
    """The graph of one direction of a layer, with a node as torch's exporter leaves it."""
    end = "_l0_reverse" if reverse else "_l0"
    names = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if layer.bias else [])
    names += ["weight_hr"] if layer.projection_size else []
    vectors = [f"vector_{name}" for name in layer.cell.vectors]
    weights = [
        numpy_helper.from_array(getattr(layer, name + end).detach().numpy(), name)
        for name in (*names, *vectors)
    ]
    states = [f"state_{name}" for name in layer.cell.states]
    keep = [f"keep_{name}" for name in layer.cell.states] if layer.zoneout else []
    outputs = ["outputs", *(f"next_{name}" for name in layer.cell.states)]
    node = helper.make_node(
        SYMBOL,
        ["x", "lengths", *names, *states, *vectors, *keep],
        outputs,
        domain=DOMAIN,
        cell=layer._kind.key,
        reverse=int(reverse),
        clip=layer.clip or 0.0,
        states=len(states),
        vectors=len(vectors),
        keep=len(keep),
        bias_ih=int(layer.bias),
        bias_hh=int(layer.bias),
        projection=int(bool(layer.projection_size)),
    )
    kinds = dict.fromkeys(["x", *states, *keep], 1) | {"lengths": 7}
    ranks = dict.fromkeys(["x", *keep, "outputs"], 3) | {"lengths": 1}
    info = [
        helper.make_tensor_value_info(name, kinds.get(name, 1), [None] * ranks.get(name, 2))
        for name in ("x", "lengths", *states, *keep, *outputs)
    ]
    own = len(info) - len(outputs)
    graph = helper.make_graph([node], "layer", info[:own], info[own:], weights)
    became = write_symbols(graph, WRITERS)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return model, became


def check(layer, expected, *, reverse=False):
    """The graph's results on padded rows are those of the loop on each row alone."""
    model, became = graph_of(layer, reverse=reverse)
    assert became == [expected]
    opened = session(model)
    widths = [layer.state_size, *[H] * (len(layer.cell.states) - 1)]
    for lengths in ([5, 2, 1], [1], [4, 9]):
        rows, steps = len(lengths), max(lengths)
        x = torch.randn(rows, steps, D)
        begin = [torch.randn(rows, width) for width in widths]
        feed = {"x": x, "lengths": torch.tensor(lengths)}
        names = layer.cell.states
        feed |= {f"state_{name}": s for name, s in zip(names, begin, strict=True)}
        if layer.zoneout:
            shares = (torch.full((rows, steps, width), layer.zoneout) for width in widths)
            feed |= {f"keep_{name}": s for name, s in zip(names, shares, strict=True)}
        found = run(opened, feed)
        for b, n in enumerate(lengths):
            alone = [torch.stack([s[b : b + 1]] * len(layer._directions)) for s in begin]
            with torch.no_grad():
                outputs, after = layer(x[b : b + 1, :n], None, alone)
            own = outputs[0, :, layer.state_size :] if reverse else outputs[0]
            np.testing.assert_allclose(found["outputs"][b, :n], own, atol=1e-5)
            assert not found["outputs"][b, n:].any()
            for name, state in zip(names, after, strict=True):
                np.testing.assert_allclose(found[f"next_{name}"][b], state[-1, 0], atol=1e-5)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(3)


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_is_the_loop(name):
    layer = Recurrent(name, D, H, backend="reference").eval()
    check(layer, OPERATORS.get(name, "Scan"))


class OtherNames(Cell):
    """A peephole LSTM whose gates and vectors are called otherwise, one as another gate is."""

    gates = ("f", "i", "c", "o")
    states = ("h", "c")
    vectors = ("o", "pf", "i")

    @staticmethod
    def step(a, s, v):
        first, second = sigmoid(a.f + v.o * s.c), sigmoid(a.i + v.pf * s.c)
        c = second * s.c + first * tanh(a.c)
        return State(h=sigmoid(a.o + v.i * c) * tanh(c), c=c)


class Exchanged(Cell):
    """A GRU in which r and z have exchanged their names."""

    gates = ("z", "r", "n")

    @staticmethod
    def step(a, x, u, s):
        z, r = sigmoid(a.z), sigmoid(a.r)
        n = tanh(x.n + z * u.n)
        return State(h=n + r * (s.h - n))


class LateVector(Cell):
    """A second product of what is the same for all rows."""

    gates = ("n",)
    vectors = ("k",)
    late = ("n",)

    @staticmethod
    def step(x, s, v, late):
        return State(h=tanh(x.n + late("n", v.k)) + 0.5 * s.h)


class Constant(Cell):
    """One whose first state is a number."""

    gates = ("n",)
    states = ("h", "c")

    @staticmethod
    def step(a, s):
        return State(h=0.5, c=torch.sign(a.n) - s.c)


@pytest.mark.parametrize("cell", [MadeUp, Awkward, LateVector, Delayed, Constant])
def test_a_cell_of_ones_own_is_the_loop(cell):
    check(Recurrent(cell, D, H, backend="reference").eval(), "Scan")


@pytest.mark.parametrize(
    ("cell", "expected"), [(Renamed, "LSTM"), (OtherNames, "LSTM"), (Exchanged, "GRU")]
)
def test_a_cell_with_the_equations_of_an_operator_becomes_it(cell, expected):
    check(Recurrent(cell, D, H, backend="reference").eval(), expected)


@pytest.mark.parametrize(("name", "expected"), [("lstm", "LSTM"), ("coupled", "Scan")])
def test_the_other_direction_begins_at_each_rows_end(name, expected):
    layer = Recurrent(name, D, H, bidirectional=True, backend="reference").eval()
    check(layer, expected, reverse=True)


@pytest.mark.parametrize(
    "options",
    [
        {"projection_size": 3, "clip": 0.3, "zoneout": 0.2},
        {"clip": 0.2},
        {"zoneout": 0.4},
        {"bias": False, "projection_size": 2},
    ],
    ids="-".join,
)
def test_options_that_no_operator_has_are_a_loop(options):
    check(Recurrent("lstm", D, H, backend="reference", **options).eval(), "Scan")


def test_an_operator_without_biases():
    check(Recurrent("gru", D, H, bias=False, backend="reference").eval(), "GRU")
