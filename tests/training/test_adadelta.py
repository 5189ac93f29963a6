"""AdaDelta as its paper has it, and as Zhou et al. (2016) use it: at rate 1.0, with decay."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.errors import ConfigError
from seqloom.training.config import OptimizerConfig
from seqloom.training.optimizers import make_optimizer

RHO, EPSILON = 0.9, 1e-6


@pytest.mark.parametrize("decay", [0.0, 1e-2])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_updates_follow_algorithm_1_of_the_paper(rate, decay):
    """Zeiler (2012): steps 4 to 7, over thirty gradients drawn by chance."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2, bias=False).double()
    config = OptimizerConfig(name="adadelta", rate=rate, weight_decay=decay)
    optimizer = make_optimizer(model, config)
    x = model.weight.detach().numpy().copy()
    squares, updates = np.zeros_like(x), np.zeros_like(x)
    for _ in range(30):
        drawn = torch.randn(2, 3, dtype=torch.float64)
        model.weight.grad = drawn.clone()
        optimizer.step()
        g = drawn.numpy() + decay * x
        squares = RHO * squares + (1 - RHO) * g**2
        change = -np.sqrt(updates + EPSILON) / np.sqrt(squares + EPSILON) * g
        updates = RHO * updates + (1 - RHO) * change**2
        x = x + rate * change
        np.testing.assert_allclose(model.weight.detach().numpy(), x, rtol=1e-12)


def test_a_misspelled_name_is_refused():
    from seqloom.config import from_dict

    with pytest.raises(ConfigError, match="adadelt"):
        from_dict(OptimizerConfig, {"name": "adadelt"})
