"""Gradients by distance equal autograd's through the whole sequence."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from seqloom.errors import ConfigError, ShapeError
from seqloom.explain.gradients import (
    GradientFlow,
    draw_gradient_flow,
    gradient_flow,
    input_gradient_flow,
)
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import Recurrent

B, T, D, H = 3, 12, 2, 5


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def squares(output: torch.Tensor) -> torch.Tensor:
    return output.square().sum(1)


def sequences(steps: int = T) -> torch.Tensor:
    return torch.randn(B, steps, D, dtype=torch.float64)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_by_state_equals_one_backward_pass(cell, layers):
    layer = Recurrent(cell, D, H, num_layers=layers, backend="reference").double()
    x = sequences()
    k = 7
    begin = [s.detach().requires_grad_() for s in layer(x[:, : T - k]).states]
    last = layer(x[:, T - k :], None, begin).outputs[:, -1]
    whole = torch.autograd.grad(squares(last).sum(), begin)
    expected = torch.cat([g.transpose(0, 1).flatten(1) for g in whole], 1).norm(dim=1).mean()
    flow = gradient_flow({cell: (layer, squares)}, x, distance=k)
    assert flow.norms[cell][k - 1] == pytest.approx(expected.item(), rel=1e-10)
    parts = [
        gradient_flow({"": (layer, squares)}, x, distance=k, state=s) for s in layer.cell.states
    ]
    for part, gradient in zip(parts, whole, strict=True):
        alone = gradient.transpose(0, 1).flatten(1).norm(dim=1).mean()
        assert part.norms[""][-1] == pytest.approx(alone.item(), rel=1e-10)


def test_by_input_equals_torchs_layer():
    torchs = nn.GRU(D, H, batch_first=True).double()
    x = sequences().requires_grad_()
    (whole,) = torch.autograd.grad(squares(torchs(x)[0][:, -1]).sum(), x)
    flow = input_gradient_flow({"gru": (lambda x: torchs(x)[0], squares)}, x, distance=T - 1)
    assert flow.by == "input"
    for k, norm in zip(flow.distances, flow.norms["gru"], strict=True):
        assert norm == pytest.approx(whole[:, T - 1 - k].norm(dim=1).mean().item(), rel=1e-10)


def test_a_linear_recurrence_by_hand():
    """One rectified unit with weight w and positive states: the gradient is w to the k."""
    layer = Recurrent("rnn-relu", 1, 1).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(0.0)
        layer.weight_ih_l0.fill_(1.0)
        layer.weight_hh_l0.fill_(1.5)
    x = torch.ones(2, 30, 1, dtype=torch.float64)
    one = {"": (layer, lambda output: output[:, 0])}
    free = gradient_flow(one, x, distance=30).norms[""]
    assert free == pytest.approx([1.5**k for k in range(1, 31)])
    clipped = gradient_flow(one, x, distance=30, clip=4.0).norms[""]
    assert clipped == pytest.approx([1.5, 1.5**2, 1.5**3] + [4.0] * 27)


def test_clipping_above_every_norm_changes_nothing():
    layer = Recurrent("lstm", D, H).double()
    x = sequences()
    free = gradient_flow({"lstm": (layer, squares)}, x, distance=T)
    assert gradient_flow({"lstm": (layer, squares)}, x, distance=T, clip=1e6) == free


def test_it_vanishes_without_turning_to_zero_in_single_precision():
    layer = Recurrent("rnn", D, H)
    with torch.no_grad():
        layer.weight_hh_l0.mul_(0.8)
    flow = gradient_flow({"rnn": (layer, squares)}, torch.randn(B, 100, D))
    assert 0 < flow.norms["rnn"][-1] < 1e-10 * flow.norms["rnn"][0]
    assert flow.change("rnn") == flow.norms["rnn"][-1] / flow.norms["rnn"][0]


def test_a_figure_has_a_line_a_name_and_a_gap_for_zero():
    flow = GradientFlow("state", (1, 2, 3), {"a": (2.0, 1.0, 0.0), "b": (4.0, 8.0, 16.0)})
    axes = draw_gradient_flow(flow, relative=True).axes[0]
    assert axes.get_yscale() == "log"
    first, second = (list(line.get_ydata()) for line in axes.lines)
    assert first == pytest.approx([1.0, 0.5, float("nan")], nan_ok=True)
    assert second == pytest.approx([1.0, 2.0, 4.0])


def test_a_gradient_that_is_nowhere_has_no_ratio():
    flow = GradientFlow("state", (1, 2), {"dead": (0.0, 0.0), "alive": (1.0, 0.5)})
    assert math.isnan(flow.change("dead")) and flow.change("alive") == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": 0}, "at least 1, got 0"),
        ({"distance": 3, "clip": 0.0}, "above 0, got 0.0"),
        ({"distance": 3, "state": "c"}, "unknown state 'c'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    layer = Recurrent("rnn", D, H).double()
    with pytest.raises(ConfigError, match=message):
        gradient_flow({"rnn": (layer, squares)}, sequences(), **options)


def test_short_sequences_and_summed_losses_are_refused():
    layer = Recurrent("rnn", D, H).double()
    with pytest.raises(ShapeError, match=r"at least 100 steps, got shape \(3, 12, 2\)"):
        gradient_flow({"rnn": (layer, squares)}, sequences())
    with pytest.raises(ShapeError, match=r"at least 13 steps, got shape \(3, 12, 2\)"):
        input_gradient_flow({"": (lambda x: x, squares)}, sequences(), distance=T)
    with pytest.raises(ShapeError, match=r"3 rows, got shape \(\)"):
        gradient_flow({"rnn": (layer, torch.sum)}, sequences(), distance=3)
    with pytest.raises(ConfigError, match="'gru'"):
        gradient_flow({"rnn": (layer, squares)}, sequences(), distance=3).change("gru")
