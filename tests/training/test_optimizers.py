"""Which weights decay, and averages of weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from toy import Points, line, run

from seqloom.config import from_dict
from seqloom.errors import ConfigError
from seqloom.training import LossOutput, TrainConfig
from seqloom.training.config import OptimizerConfig
from seqloom.training.optimizers import WeightAverage, make_optimizer


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "adadelta", "adam", "adamw"])
def test_biases_decay_only_if_they_are_to(name, biases):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    before = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    optimizer = make_optimizer(
        model, OptimizerConfig(name=name, rate=0.1, weight_decay=0.01, decay_biases=biases)
    )
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for key, weight in model.named_parameters():
        moved = not torch.equal(weight, before[key])
        assert moved == (biases or "bias" not in key), key
        if name == "sgd" and moved:
            assert_close(weight.detach(), before[key] * (1 - 0.1 * 0.01))


def settings(**changes) -> TrainConfig:
    base = {"epochs": 6, "device": "cpu", "optimizer": {"name": "sgd", "rate": 0.02}}
    return from_dict(TrainConfig, base | changes)


def merity(values: list[float], patience: int) -> int | None:
    """Which evaluation triggers, as the authors' program has it (main.py of awd-lstm-lm)."""
    best_val_loss: list[float] = []
    for number, val_loss in enumerate(values):
        if len(best_val_loss) > patience and val_loss > min(best_val_loss[:-patience]):
            return number
        best_val_loss.append(val_loss)
    return None


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_averaging_is_triggered_as_by_its_authors(patience):
    generator, triggered = torch.Generator().manual_seed(0), 0
    for _ in range(200):
        values = (torch.rand(12, generator=generator) - 0.04 * torch.arange(12)).tolist()
        average = WeightAverage(nn.Linear(1, 1), "triggered", 0.9, patience)
        found = None
        for number, value in enumerate(values):
            average.observe(value)
            if average.triggered and found is None:
                found = number
        assert found == merity(values, patience)
        triggered += found is not None
    assert triggered > 0


def test_triggered_averaging_is_torchs_averaged_sgd():
    """The third evaluation is worse than the first: averaging begins after update 12."""
    scores = [3.0, 2.0, 4.0, 1.9, 1.8, 1.7]
    points = Points(scores=scores)
    model, result = run(settings(averaging="triggered", average_patience=1), points)
    oracle, watched = line(), Points()
    # torch leaves out the first update after t0.
    optimizer = torch.optim.ASGD(oracle.parameters(), lr=0.02, lambd=0.0, t0=11.0)
    plain = []
    for epoch in range(6):
        for batch in watched.batches(epoch, 0, rank=0, world_size=1):
            optimizer.zero_grad()
            loss = watched.loss(oracle, batch.tensors("cpu"))
            (loss.total / loss.items).backward()
            optimizer.step()
        plain.append(oracle[0].weight.detach().clone())
    for k in range(3):  # until it was triggered, the weights themselves
        assert_close(points.seen[k], plain[k])
    averaged = optimizer.state[oracle[0].weight]["ax"]
    assert_close(points.seen[-1], averaged)
    assert not torch.allclose(points.seen[-1], plain[-1])
    assert_close(model[0].weight.detach(), averaged)  # the last is the best
    assert result.metrics == {"error": 1.7}


def test_higher_may_be_better():
    points = Points(scores=[1.0, 2.0, 0.5, 3.0, 3.1, 3.2])
    points.higher_is_better = True
    run(settings(averaging="triggered", average_patience=1), points)
    assert not torch.allclose(points.seen[2], points.seen[3])
    falling = Points(scores=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    model, _ = run(settings(averaging="triggered", average_patience=1), falling)
    plain, _ = run(settings(), Points(scores=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]))
    assert_close(model[0].weight, plain[0].weight)  # never triggered


def test_a_negative_patience_is_refused():
    with pytest.raises(ConfigError, match="average_patience must not be negative, got -1"):
        settings(average_patience=-1)


class Paced(Points):
    """Batches that say by how much of the rate they move the weights."""

    def loss(self, model, batch):
        found = super().loss(model, batch)
        return LossOutput(found.total, found.items, 0.25)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_pace_scales_the_rate(accumulate):
    slow, _ = run(settings(accumulate=accumulate), Paced())
    oracle, _ = run(
        settings(accumulate=accumulate, optimizer={"name": "sgd", "rate": 0.005}), Points()
    )
    assert_close(slow[0].weight, oracle[0].weight)
