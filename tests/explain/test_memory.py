"""Probes learn what is near, gates begin open, and reach and table say what was scored."""

from __future__ import annotations

import pytest
import torch

from seqloom.errors import ConfigError
from seqloom.explain.memory import (
    Memory,
    Probe,
    ProbeConfig,
    draw_reach,
    draw_scores,
    held_out_sequences,
    measure_memory,
    open_gates,
    score_probe,
    train_probe,
)
from seqloom.explain.problems import Adding, Copying
from seqloom.nn.recurrent import Recurrent

SMALL = ProbeConfig(hidden_size=16, steps=60)
COPYING = Memory(
    Copying(),
    {
        "rnn": {10: (1.0, 0.9, 0.2), 20: (0.1, 0.5, 1.0), 50: (0.1, 0.1, 0.1)},
        "lstm": {10: (1.0, 1.0, 1.0), 20: (0.95, 0.9, 0.2)},
    },
)


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_near_symbol_is_learned(cell):
    probe = train_probe(cell, Copying(alphabet=4), 2, SMALL)
    assert score_probe(probe, Copying(alphabet=4), 2) == 1.0


def test_the_same_seed_gives_the_same_probe_and_leaves_torchs_numbers_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    config = ProbeConfig(hidden_size=4, steps=3, horizon=10)
    first, again = (train_probe("gru", Adding(), 5, config) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_probe_reads_its_layer_out_at_every_step():
    probe = Probe("lstm", Adding(), SMALL)
    inputs, targets = held_out_sequences(Adding(), 7, 5)
    outputs = probe.layer(inputs).outputs @ probe.readout.weight.T + probe.readout.bias
    torch.testing.assert_close(probe(inputs), outputs)
    expected = (outputs[:, -1, 0] - targets[:, 0]).square()
    torch.testing.assert_close(Adding().loss(probe(inputs), targets), expected)


def changed(cell: str, horizon: int | None) -> dict[str, torch.Tensor]:
    """By gate, what was added to its bias."""
    layer = Recurrent(cell, 2, 500, num_layers=2)
    before = {name: weight.detach().clone() for name, weight in layer.named_parameters()}
    open_gates(layer, horizon)
    for name, weight in layer.named_parameters():
        if not name.startswith("bias_ih"):
            assert torch.equal(weight, before[name])
    amounts = (layer.bias_ih_l1 - before["bias_ih_l1"]).detach().split(500)
    return dict(zip(layer.cell.gates, amounts, strict=True))


@pytest.mark.parametrize(("cell", "keeps"), [("lstm", "f"), ("gru", "z"), ("coupled", "f")])
def test_usual_gates_begin_with_a_bias_of_one(cell, keeps):
    for gate, amount in changed(cell, None).items():
        torch.testing.assert_close(amount, torch.full_like(amount, float(gate == keeps)))


def test_a_horizon_spreads_the_gates_from_one_step_to_it():
    amounts = changed("lstm", 100)
    steps = amounts["f"].exp()
    assert steps.min() >= 0.999 and steps.max() <= 99.001
    assert 45 < steps.mean() < 55
    torch.testing.assert_close(amounts["i"], -amounts["f"], rtol=0, atol=1e-6)
    assert not amounts["g"].any() and not amounts["o"].any()
    assert not changed("rnn", 100)["n"].any()
    with pytest.raises(ConfigError, match="at least 2, got 1"):
        changed("lstm", 1)


def test_reach_is_the_largest_distance_the_median_solves():
    assert COPYING.score("rnn", 10) == 0.9
    assert COPYING.reach("rnn") == 10
    assert COPYING.reach("lstm") == 20
    assert Memory(Adding(), {"rnn": {10: (0.05,), 20: (0.2,)}}).reach("rnn") == 0
    assert Memory(Adding(), {"rnn": {10: (0.2,), 20: (0.049,)}}).reach("rnn") == 20


def test_the_table_shows_medians_and_reach():
    assert COPYING.to_table() == [
        "| cell | 10 | 20 | 50 | reach |",
        "|---|---|---|---|---|",
        "| rnn | 0.900 | 0.500 | 0.100 | 10 |",
        "| lstm | 1.000 | 0.900 |  | 20 |",
    ]


def test_figures_show_scores_and_reach():
    lines = draw_scores(COPYING).axes[0].lines
    assert [list(line.get_ydata()) for line in lines] == [[0.9, 0.5, 0.1], [1.0, 0.9]]
    widths = [bar.get_width() for bar in draw_reach([COPYING]).axes[0].patches]
    assert widths == [10, 20]


def test_measuring_trains_a_probe_for_every_cell_distance_and_seed():
    said: list[str] = []
    config = ProbeConfig(hidden_size=4, steps=2)
    found = measure_memory(Adding(), ("rnn", "gru"), (4, 6), config, seeds=2, say=said.append)
    assert {cell: list(scores) for cell, scores in found.scores.items()} == {
        "rnn": [4, 6],
        "gru": [4, 6],
    }
    second = train_probe("gru", Adding(), 6, ProbeConfig(hidden_size=4, steps=2, seed=1))
    assert found.scores["gru"][6][1] == score_probe(second, Adding(), 6)
    assert len(said) == 4 and said[0].startswith("adding, rnn, distance 4: mean squared error ")


def test_empty_sizes_are_refused():
    with pytest.raises(ConfigError, match=r"got \(32, 0, 32\)"):
        ProbeConfig(steps=0)
