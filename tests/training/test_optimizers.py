"""Which weights decay, and averages of weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from seqloom.training.config import OptimizerConfig
from seqloom.training.optimizers import make_optimizer


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
