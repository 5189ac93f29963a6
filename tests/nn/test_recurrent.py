"""Recurrent layers equal torch's where torch has them, and padding never changes a result."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from gradients import assert_gradients_match, with_weights
from made_up import MadeUp
from seqloom.errors import BackendError, ConfigError, ShapeError
from seqloom.kernels import keys
from seqloom.nn.cells import CELLS
from seqloom.nn.recurrent import MERGES, Recurrent

B, T, D, H = 3, 5, 4, 6
CASES = {**CELLS, "made-up": MadeUp}
TORCH = {
    "rnn": nn.RNN,
    "rnn-relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def double(cell, **options) -> Recurrent:
    return Recurrent(cell, D, H, **options).double()


def random_input(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("cell", TORCH)
def test_equals_torch_with_its_weights(cell, both, layers, backend):
    theirs = TORCH[cell](D, H, layers, batch_first=True, bidirectional=both).double()
    ours = double(cell, num_layers=layers, bidirectional=both, backend=backend)
    ours.load_torch(theirs)
    x = random_input(B, T, D)
    begin = tuple(torch.randn_like(s) for s in ours.initial_states(B))
    given = begin if cell == "lstm" else begin[0]
    outputs, states = theirs(x, given)
    found = ours(x, None, begin)
    torch.testing.assert_close(found.outputs, outputs, rtol=0, atol=1e-10)
    for one, other in zip(found.states, states if cell == "lstm" else [states], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    back = TORCH[cell](D, H, layers, batch_first=True, bidirectional=both).double()
    back.load_state_dict(ours.state_dict())
    torch.testing.assert_close(back(x, given)[0], outputs)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("both", [False, True])
def test_a_projected_lstm_equals_torchs(both, backend):
    theirs = nn.LSTM(D, H, 2, batch_first=True, bidirectional=both, proj_size=2).double()
    ours = double("lstm", num_layers=2, bidirectional=both, projection_size=2, backend=backend)
    ours.load_torch(theirs)
    x = random_input(B, T, D)
    torch.testing.assert_close(ours(x).outputs, theirs(x)[0], rtol=0, atol=1e-10)


def test_the_reset_gate_before_the_product_is_the_papers():
    layer = double("gru-before")
    x, h = random_input(B, 1, D), random_input(1, B, H)
    w, u = layer.weight_ih_l0, layer.weight_hh_l0
    (r_x, z_x, n_x) = (x[:, 0] @ w.T + layer.bias_ih_l0).chunk(3, 1)
    b_r, b_z, b_n = layer.bias_hh_l0.chunk(3)
    u_r, u_z, u_n = u.chunk(3)
    r = torch.sigmoid(r_x + h[0] @ u_r.T + b_r)
    z = torch.sigmoid(z_x + h[0] @ u_z.T + b_z)
    n = torch.tanh(n_x + (r * h[0]) @ u_n.T + b_n)
    torch.testing.assert_close(layer(x, None, [h]).outputs[:, 0], (1 - z) * n + z * h[0])


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("cell", CASES)
def test_padding_never_changes_a_result(cell, merge):
    layer = double(CASES[cell], num_layers=2, bidirectional=True, merge=merge, layer_norm=True)
    x = random_input(B, T, D)
    lengths = torch.tensor([T, 2, 1])
    found = layer(x, lengths)
    for b, n in enumerate(lengths.tolist()):
        alone = layer(x[b : b + 1, :n])
        torch.testing.assert_close(found.outputs[b, :n], alone.outputs[0])
        assert not found.outputs[b, n:].any()
        for whole, one in zip(found.states, alone.states, strict=True):
            torch.testing.assert_close(whole[:, b], one[:, 0])


@pytest.mark.parametrize("cell", CASES)
def test_step_by_step_equals_the_whole(cell):
    layer = double(CASES[cell], num_layers=2, residual=True, clip=0.9, zoneout=0.1).eval()
    x = random_input(B, T, D)
    whole = layer(x)
    states = None
    for t in range(T):
        y, states = layer.step(x[:, t], states)
        torch.testing.assert_close(y, whole.outputs[:, t])
    assert states is not None
    for one, other in zip(states, whole.states, strict=True):
        torch.testing.assert_close(one, other)


GRADIENTS = {
    "one": {},
    **{f"merge-{m}": {"bidirectional": True, "merge": m} for m in MERGES},
    "no-bias": {"bias": False},
    "clip": {"clip": 0.5},
    "residual": {"residual": True, "layer_norm": True},
    "drawn": {"dropout": 0.3, "variational": True, "state_dropout": 0.3, "weight_dropout": 0.3,
              "zoneout": 0.3},
    "projection": {"projection_size": 2},
}  # fmt: skip


def check_gradients(cell, options):
    """By the visible loop; what is drawn at random is drawn alike in every call."""
    layer = Recurrent(CASES[cell], 2, 3, num_layers=2, backend="reference", **options).double()
    x = random_input(2, 3, 2).requires_grad_()
    begin = [torch.randn_like(s).requires_grad_() for s in layer.initial_states(2)]

    def run(x, *values):
        states, weights = values[: len(begin)], values[len(begin) :]
        torch.manual_seed(3)
        outputs, after = with_weights(layer, weights, x, torch.tensor([3, 1]), states)
        return (outputs, *after)

    assert_gradients_match(run, [x, *begin, *layer.parameters()], together=True)


@pytest.mark.parametrize("cell", CASES)
def test_gradients_of_every_cell_match_finite_differences(cell):
    check_gradients(cell, {})
    check_gradients(cell, {"bidirectional": True, "merge": "weighted"})


@pytest.mark.parametrize("options", GRADIENTS)
def test_gradients_of_every_option_match_finite_differences(options):
    cell = "peephole-lstm" if options == "projection" else "made-up"
    check_gradients(cell, GRADIENTS[options])


def test_dropout_of_the_state_is_the_same_at_every_step():
    torch.manual_seed(1)
    layer = Recurrent("residual", D, H, state_dropout=0.5)
    with torch.no_grad():
        layer.weight_ih_l0.zero_()
        layer.bias_ih_l0.zero_()
        layer.bias_hh_l0.zero_()
        layer.weight_hh_l0.copy_(torch.eye(H))
    begin = (torch.full((1, 1, H), 0.5),)
    outputs = layer(torch.zeros(1, 8, D), None, begin).outputs[0]
    dropped = outputs[0] == 0.5  # what was dropped adds nothing
    assert 0 < int(dropped.sum()) < H
    assert torch.equal(outputs == 0.5, dropped.expand(8, H))
    layer.eval()
    assert not (layer(torch.zeros(1, 8, D), None, begin).outputs == 0.5).any()


def test_variational_dropout_drops_units_for_good():
    layer = Recurrent("rnn", D, H, num_layers=2, dropout=0.5, variational=True)
    x = torch.ones(2, 6, H)
    dropped = layer._dropped(x)
    assert torch.equal(dropped[:, :1].expand_as(dropped), dropped)
    assert 0 < int((dropped == 0).sum()) < dropped.numel()


def test_weights_are_dropped_in_training_alone():
    layer = Recurrent("rnn", D, H, weight_dropout=0.5)
    x = torch.randn(B, T, D)
    assert not torch.equal(layer(x).outputs, layer(x).outputs)
    layer.eval()
    assert torch.equal(layer(x).outputs, layer(x).outputs)


def test_zoneout_keeps_values_in_training_and_mixes_them_otherwise():
    layer = double("rnn", zoneout=0.5)
    x, h = random_input(B, 1, D), random_input(1, B, H)
    plain = double("rnn")
    plain.load_state_dict(layer.state_dict())
    new, old = plain(x, None, [h]).outputs[:, 0], h[0]
    kept = layer(x, None, [h]).outputs[:, 0]
    assert torch.all((kept == old) | torch.isclose(kept, new))
    assert (kept == old).any() and not (kept == old).all()
    layer.eval()
    torch.testing.assert_close(layer(x, None, [h]).outputs[:, 0], (old + new) / 2)


def test_a_copy_runs_the_same_program():
    layer, x = Recurrent("lstm", D, H, backend="cpu"), torch.randn(B, T, D)
    with torch.no_grad():
        assert torch.equal(copy.deepcopy(layer)(x).outputs, layer(x).outputs)


def test_a_pickled_layer_runs_where_its_cell_was_not_used_before(monkeypatch):
    layer, x = Recurrent(MadeUp, D, H, backend="cpu"), torch.randn(B, T, D)
    expected, stored = layer(x).outputs, pickle.dumps(layer)
    monkeypatch.setattr(keys, "_CELLS", {})
    assert torch.equal(pickle.loads(stored)(x).outputs, expected)


class TestBadInput:
    layer = Recurrent("lstm", D, H)

    def test_width(self):
        with pytest.raises(ShapeError, match=rf"input_size={D}\).*got shape \(1, 2, 9\)"):
            self.layer(torch.zeros(1, 2, 9))

    def test_lengths(self):
        x = torch.zeros(2, 3, D)
        with pytest.raises(ShapeError, match=r"between 1 and the 3 steps of x, got 1 to 4"):
            self.layer(x, torch.tensor([1, 4]))
        with pytest.raises(ShapeError, match=r"between 1 and the 3 steps of x, got 0 to 2"):
            self.layer(x, torch.tensor([2, 0]))
        with pytest.raises(ShapeError, match=r"whole numbers on cpu as x is, got torch.float32"):
            self.layer(x, torch.tensor([2.0, 1.0]))
        with pytest.raises(ShapeError, match=r"on cpu as x is, got torch.int64 on meta"):
            self.layer(x, torch.tensor([2, 1], device="meta"))
        with pytest.raises(ShapeError, match=r"shape \(2,\), got \(3,\)"):
            self.layer(x, torch.tensor([1, 1, 1]))
        with pytest.raises(ShapeError, match=r"lengths must be a tensor, got \[1, 2\]"):
            self.layer(x, [1, 2])
        with pytest.raises(ShapeError, match=r"one row and one step, got shape \(0, 3, 4\)"):
            self.layer(torch.zeros(0, 3, 4))
        with pytest.raises(ShapeError, match="at least one row and one step"):
            self.layer(torch.zeros(2, 0, D))

    def test_dtype(self):
        with pytest.raises(ShapeError, match=r"torch.float32 on cpu.*got torch.float64"):
            self.layer(torch.zeros(1, 2, D, dtype=torch.float64))

    def test_states(self):
        with pytest.raises(ShapeError, match=r"\(1, 2, 6\), \(1, 2, 6\)\] \(h, c\), got"):
            self.layer(torch.zeros(2, 3, D), None, [torch.zeros(1, 2, 5)])

    def test_dtype_of_states(self):
        begin = [s.double() for s in self.layer.initial_states(1)]
        with pytest.raises(ShapeError, match=r"states must be torch.float32 on cpu.*float64"):
            self.layer(torch.zeros(1, 2, D), None, begin)

    def test_settings(self):
        with pytest.raises(ConfigError, match="'lstm'"):
            Recurrent("lstmm", D, H)
        with pytest.raises(ConfigError, match="'mean'"):
            Recurrent("rnn", D, H, merge="maen")  # type: ignore[arg-type]
        with pytest.raises(BackendError, match="'reference'"):
            Recurrent("rnn", D, H, backend="refrence")
        with pytest.raises(ConfigError, match="zoneout must lie in"):
            Recurrent("rnn", D, H, zoneout=1.0)
        with pytest.raises(ConfigError, match=r"uses its state 'h' cannot be projected, got GRU"):
            Recurrent("gru", D, H, projection_size=2)
        with pytest.raises(ConfigError, match="no end to begin from"):
            Recurrent("rnn", D, H, bidirectional=True).step(torch.zeros(1, D))
        with pytest.raises(ShapeError, match="same sizes and options"):
            Recurrent("gru", D, H).load_torch(nn.GRU(D, H + 1))


@pytest.mark.parametrize("backend", ["reference", "cpu", "auto"])
def test_under_autocast_on_a_cpu_the_weights_own_numbers_are_used(backend):
    torch.manual_seed(0)
    layer = Recurrent("lstm", 3, 5, num_layers=2, backend=backend)
    x = torch.randn(2, 4, 3)
    begin = [torch.randn(2, 2, 5) for _ in range(2)]
    expected = layer(x.bfloat16().float(), None, [b.bfloat16().float() for b in begin])
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x.bfloat16(), None, [b.bfloat16() for b in begin])
    assert found.outputs.dtype == torch.float32
    assert torch.allclose(found.outputs, expected.outputs, atol=1e-6)
    found.outputs.sum().backward()
    assert layer.weight_hh_l0.grad.dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"layer_norm": True}, {"bidirectional": True}])
def test_what_is_added_to_the_outputs_is_not_on_padding(options):
    layer = Recurrent("gru", 4, 4, num_layers=2, residual=True, merge="sum", **options).double()
    x, lengths = random_input(2, 5, 4), torch.tensor([5, 2])
    found = layer(x, lengths).outputs
    assert not found[1, 2:].any()
    torch.testing.assert_close(found[1, :2], layer(x[1:, :2]).outputs[0])


@pytest.mark.parametrize("cell", ["rnn", "rnn-relu"])
def test_a_projection_that_torch_lacks_runs_elsewhere(cell):
    layer, x = Recurrent(cell, 4, 5, projection_size=3), torch.randn(2, 3, 4)
    found = layer(x).outputs
    layer.backend = "reference"
    torch.testing.assert_close(found, layer(x).outputs)
    layer.backend = "torch"
    with pytest.raises(BackendError, match="has no projection"):
        layer(x)


@pytest.mark.parametrize("backend", ["reference", "torch", "cpu"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_lengths_may_be_any_whole_numbers(backend, dtype):
    layer, x = Recurrent("gru", D, H, bidirectional=True, backend=backend), torch.randn(3, 2, D)
    lengths = torch.tensor([2, 1, 2])
    expected, found = layer(x, lengths), layer(x, lengths.to(dtype))
    assert torch.equal(found.outputs, expected.outputs)
    assert torch.equal(found.states[0], expected.states[0])
