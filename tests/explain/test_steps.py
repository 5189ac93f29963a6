"""Gates and states step by step, against torch and against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.explain.steps import cell_steps, draw_cell_steps
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

T, D, H = 6, 3, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_every_line_of_the_lstm_is_what_numpy_says():
    torch.manual_seed(0)
    theirs = nn.LSTM(D, H).double()
    layer = Recurrent("lstm", D, H).double()
    layer.load_torch(theirs)
    x = torch.randn(T, D, dtype=torch.float64)
    steps = cell_steps(layer, x)
    w, u, b, b2 = (p.detach().numpy() for p in theirs.parameters())
    h = c = np.zeros(H)
    for t in range(T):
        a = w @ x[t].numpy() + b + u @ h + b2
        i, f, o = sigmoid(a[:H]), sigmoid(a[H : 2 * H]), sigmoid(a[3 * H :])
        g = np.tanh(a[2 * H : 3 * H])
        c = f * c + i * g
        h = o * np.tanh(c)
        for name, wanted in {"i": i, "f": f, "g": g, "o": o, "c": c, "h": h}.items():
            np.testing.assert_allclose(steps.values[f"{name}_t"][t], wanted, atol=1e-12)
    assert [line.split(" = ")[0] for line in steps.equations] == list(steps.values)


@pytest.mark.parametrize("cell", [name for name in CELLS if name not in {"rnn-relu", "residual"}])
def test_states_are_those_of_the_layer(cell):
    torch.manual_seed(1)
    layer = Recurrent(cell, D, H, num_layers=2, backend="reference").double()
    x = torch.randn(T, D, dtype=torch.float64)
    outputs, states = layer(x[None])
    for number in range(2):
        found = cell_steps(layer, x, number=number).values
        for state, wanted in zip(layer.cell.states, states, strict=True):
            torch.testing.assert_close(found[f"{state}_t"][-1], wanted[number, 0])
    torch.testing.assert_close(found[f"{layer.cell.states[0]}_t"], outputs[0])


def test_what_it_cannot_show_it_refuses():
    with pytest.raises(ConfigError, match="projection_size"):
        cell_steps(Recurrent("lstm", D, H, projection_size=2), torch.zeros(T, D))
    with pytest.raises(ConfigError, match="between 0 and 0, got 1"):
        cell_steps(Recurrent("lstm", D, H), torch.zeros(T, D), number=1)
    with pytest.raises(ShapeError, match=r"got shape \(6, 2\)"):
        cell_steps(Recurrent("lstm", D, H), torch.zeros(T, 2))


def test_a_gate_is_drawn_units_by_words():
    steps = cell_steps(Recurrent("gru", D, H), torch.randn(2, D))
    figure = draw_cell_steps(steps, "z_t", ["a", "rose"])
    drawn = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(np.asarray(drawn), steps.values["z_t"].T, atol=1e-6)
