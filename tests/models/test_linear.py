"""Linear models, the perceptron, the logistic curve and the MLP against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError, ShapeError, TrainingError
from seqloom.models.linear import (
    LeastSquaresConfig,
    Linear,
    LinearClassifierConfig,
    diagonal_basis,
    whitening_basis,
)
from seqloom.models.logistic_curve import LogisticCurve, LogisticCurveConfig
from seqloom.models.mlp import MLP, MLPConfig
from seqloom.models.perceptron import Perceptron, PerceptronConfig
from seqloom.nn.bag import Bag

B, D, C = 6, 3, 2


@pytest.fixture
def x():
    return torch.randn(B, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def random(*shape, seed):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def as_bag(x):
    rows, ids = torch.ones_like(x).nonzero(as_tuple=True)
    return Bag(ids, x[rows, ids], torch.arange(len(x)) * x.shape[1])


def models():
    linear = Linear(LinearClassifierConfig(input_size=D, output_size=C))
    perceptron = Perceptron(PerceptronConfig(input_size=D, output_size=C))
    for model in (linear, perceptron):
        with torch.no_grad():
            model.weight.copy_(random(D, C, seed=1))
            model.bias.copy_(random(C, seed=2))
    torch.manual_seed(3)
    plain = MLP(MLPConfig(input_size=D, output_size=C, embedded=False, hidden_sizes=(5, 4)))
    words = MLP(MLPConfig(input_size=D, output_size=C, embedded=True, embed_size=4))
    return {"linear": linear, "perceptron": perceptron, "mlp": plain, "embedded": words}


@pytest.mark.parametrize("name", ["linear", "perceptron", "mlp", "embedded"])
def test_a_bag_scores_as_the_vector_it_stands_for_and_rows_alone_as_together(name, x):
    model = models()[name].eval()
    scores = model(x).scores
    assert scores.shape == (B, C)
    assert_close(model(as_bag(x)).scores, scores)
    alone = torch.cat([model(as_bag(row[None])).scores for row in x])
    assert_close(alone, scores)


@pytest.mark.parametrize("name", ["linear", "perceptron", "mlp"])
def test_wrong_width_names_expected_and_actual(name):
    with pytest.raises(ShapeError, match=rf"input_size={D}, got shape \(1, 9\)"):
        models()[name](torch.zeros(1, 9, dtype=torch.float64))


@pytest.mark.parametrize("name", ["linear", "mlp", "embedded"])
def test_every_parameter_gets_a_gradient(name, x):
    model = models()[name]
    model(as_bag(x)).scores.square().sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_linear_is_its_equation(x):
    model = models()["linear"]
    assert_close(model(x).scores, x @ random(D, C, seed=1) + random(C, seed=2))


@pytest.mark.parametrize("shape", [(D,), (D, D), (C, D, D)], ids=["diagonal", "shared", "each"])
def test_coordinates_never_change_what_is_said(shape, x):
    model = Linear(LeastSquaresConfig(input_size=D, output_size=C))
    mean, center, scale = random(D, seed=4), random(C, seed=5), random(C, seed=6).abs()
    model.condition(mean, random(*shape, seed=7), center, scale)
    with torch.no_grad():
        model.weight.copy_(random(D, C, seed=1))
        model.bias.copy_(random(C, seed=2))
    scores, weight = model(x).scores, model.original_weight()
    assert_close(scores, (x - mean) @ weight + center + scale * random(C, seed=2))
    assert_close(model(as_bag(x)).scores, scores)
    model.recondition(random(C, D, D, seed=8), random(C, D, seed=9), random(C, seed=10).abs())
    assert_close(model(x).scores, scores)
    assert_close(model.original_weight(), weight)
    assert "basis" in model.state_dict()
    model.settle()
    assert set(model.state_dict()) == {"weight", "bias"}
    assert_close(model(x).scores, scores)
    assert_close(model.weight, weight)


def test_settling_relative_scores_keeps_their_differences(x):
    model = models()["linear"]
    before = model(x).scores.softmax(dim=1)
    model.settle(relative=True)
    assert_close(model(x).scores.softmax(dim=1), before)
    assert_close(model(x).scores.sum(dim=1), torch.zeros(B, dtype=torch.float64))


def test_whitening_evens_out_a_quadratic():
    rows = random(50, D, seed=0) * torch.tensor([1.0, 1e-4, 1e5], dtype=torch.float64)
    curvature = rows.T @ rows / 50
    basis = whitening_basis(curvature, 0.5)
    whole = curvature + 0.5 * torch.eye(D, dtype=torch.float64)
    assert_close(basis.T @ whole @ basis, torch.eye(D, dtype=torch.float64), atol=1e-6, rtol=0)
    flat = whitening_basis(torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64)), 0.0)
    assert flat.abs().sum() == 1  # nothing moves along the second direction
    assert_close(diagonal_basis(torch.tensor([4.0, 0.0]), 0.0), torch.tensor([0.5, 1.0]))


def test_a_quadratic_that_is_not_finite_is_refused():
    with pytest.raises(TrainingError, match="squares of features must be finite, got infinity"):
        whitening_basis(torch.full((2, 2), torch.inf, dtype=torch.float64), 0.0)


def test_the_logistic_curve_is_its_equation(x):
    config = LogisticCurveConfig(
        input_size=D, output_size=1, limit=3.0, steepness=2.0, midpoint=0.5
    )
    model = LogisticCurve(config)
    with torch.no_grad():
        model.linear.weight.copy_(random(D, 1, seed=1))
    z = x.numpy() @ random(D, 1, seed=1).numpy()
    expected = 3.0 / (1 + np.exp(-2.0 * (z - 0.5)))
    np.testing.assert_allclose(model(x).scores.detach().numpy(), expected)
    assert not model.log_limit.requires_grad
    sigmoid = LogisticCurve(LogisticCurveConfig(input_size=D, output_size=1, limit=1.0))
    assert_close(sigmoid(x).scores, torch.sigmoid(x @ torch.zeros(D, 1, dtype=torch.float64)))


def test_the_mlp_is_its_equation(x):
    model = models()["mlp"].double()
    model.standardize(x.mean(dim=0), 1 / x.std(dim=0))
    h = ((x - x.mean(dim=0)) / x.std(dim=0)).numpy()
    h = np.maximum(0, h @ model.first.detach().numpy() + model.bias.detach().numpy())
    for i, layer in enumerate(model.layers):
        h = h @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        if i < len(model.layers) - 1:
            h = np.maximum(0, h)
    np.testing.assert_allclose(model(x).scores.detach().numpy(), h)


def test_dropout_acts_in_training_only(x):
    config = MLPConfig(input_size=D, output_size=C, embedded=False, dropout=0.5)
    model = MLP(config)
    assert not torch.equal(model(x).scores, model(x).scores)
    model.eval()
    assert torch.equal(model(x).scores, model(x).scores)


def rosenblatt(x, y, classes, orders):
    """The rule as the paper has it, one example at a time."""
    weights, bias, counts = np.zeros((x.shape[1], classes)), np.zeros(classes), []
    for order in orders:
        mistakes = 0
        for i in order:
            scores = x[i] @ weights + bias
            others = [c for c in range(classes) if c != y[i]]
            rival = max(others, key=lambda c: scores[c])
            if scores[y[i]] <= scores[rival]:
                weights[:, y[i]] += x[i]
                weights[:, rival] -= x[i]
                bias[y[i]] += 1
                bias[rival] -= 1
                mistakes += 1
        counts.append(mistakes)
        if not mistakes:
            break
    return weights, bias, counts


@pytest.mark.parametrize("kind", ["vectors", "bag"])
def test_the_perceptron_follows_the_rule_step_by_step(kind):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, D)), rng.integers(0, 3, 80)
    x = (x - x.mean(axis=0)) / x.std(axis=0)  # as the model would
    orders = [np.random.default_rng([5, epoch]).permutation(80) for epoch in range(4)]
    weights, bias, counts = rosenblatt(x, y, 3, orders)
    model = Perceptron(PerceptronConfig(input_size=D, output_size=3))
    given = torch.from_numpy(x)
    found = model.learn(
        given if kind == "vectors" else as_bag(given), torch.from_numpy(y), epochs=4, seed=5
    )
    assert found == counts
    np.testing.assert_allclose(model.weight.numpy(), weights, atol=1e-9)
    np.testing.assert_allclose(model.bias.numpy(), bias, atol=1e-9)


def test_the_perceptron_stops_at_the_first_epoch_without_a_mistake():
    model = Perceptron(PerceptronConfig(input_size=1, output_size=2))
    x, y = torch.tensor([[-1.0], [1.0], [2.0]], dtype=torch.float64), torch.tensor([0, 1, 1])
    mistakes = model.learn(x, y, epochs=100, seed=0)
    assert len(mistakes) < 100
    assert mistakes[-1] == 0
    assert all(mistakes[:-1])


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (LinearClassifierConfig, {"l2": -1.0}, "l2 must be .* got -1.0"),
        (LinearClassifierConfig, {"l2": float("nan")}, "l2 must be .* got nan"),
        (LeastSquaresConfig, {"input_size": 0}, "must be positive, got 0 and 2"),
        (LogisticCurveConfig, {"limit": -3.0}, "limit must be positive.* got -3.0"),
        (LogisticCurveConfig, {"midpoint": float("inf")}, "midpoint must be .* got inf"),
        (PerceptronConfig, {"output_size": 1}, "two classes, got 3 and 1"),
        (MLPConfig, {"embedded": False, "hidden_sizes": (0,)}, r"must be positive.* \(0,\)"),
        (MLPConfig, {"embedded": False, "dropout": 1.0}, "dropout must lie .* got 1.0"),
    ],
)
def test_wrong_settings_are_refused(config, values, message):
    with pytest.raises(ConfigError, match=message):
        config(**{"input_size": D, "output_size": C, **values})
