"""Regressors against scikit-learn's and against curves that are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import seqloom
from seqloom import Regressor
from seqloom.errors import ConfigError, InputError, NotFittedError


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, scaled=False)  # unscaled, and its features correlate


@pytest.mark.parametrize("l2", [0.0, 0.1, 1.0, 1e4])
def test_linear_equals_ridge(diabetes, l2):
    x, y = diabetes
    model = Regressor("linear", l2=l2).fit(x, y)
    oracle = (Ridge(alpha=l2) if l2 else LinearRegression()).fit(x, y)
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(oracle.intercept_, abs=1e-2)
    np.testing.assert_allclose(model.predict(x), oracle.predict(x), atol=1e-4)
    assert model.score(x, y) == pytest.approx(oracle.score(x, y), abs=1e-8)


def test_another_architecture_waits_for_the_next_fit(diabetes, tmp_path):
    x, y = diabetes
    model = Regressor("linear", l2=0.1).fit(x, y)
    wanted = model.predict(x)
    loaded = Regressor.load(model.set_params(arch="logistic").save(tmp_path / "model"))
    assert loaded.arch == "linear"
    for one in (model, loaded):
        np.testing.assert_array_equal(one.predict(x), wanted)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_numbers_does_not_matter(diabetes, unit):
    x, y = diabetes
    model, oracle = Regressor(l2=1.0).fit(x, y * unit), Ridge(alpha=1.0).fit(x, y * unit)
    np.testing.assert_allclose(model.coef_ / unit, oracle.coef_ / unit, atol=1e-4)


def test_several_targets_equal_ridge(diabetes):
    x, y = diabetes
    both = np.stack([y, 1000 * np.sin(y)], axis=1)
    model, oracle = Regressor(l2=2.0).fit(x, both), Ridge(alpha=2.0).fit(x, both)
    assert model.coef_.shape == (2, 10) and model.intercept_.shape == (2,)
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-3)
    np.testing.assert_allclose(model.predict(x), oracle.predict(x), atol=1e-3)
    assert model.score(x, both) == pytest.approx(r2_score(both, oracle.predict(x)), abs=1e-8)


def test_features_that_repeat_each_other_are_no_trouble():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    twice = np.hstack([x, x, np.ones((50, 1))])
    y = x @ [2.0, -1.0] + 3
    model = Regressor().fit(twice, y)
    np.testing.assert_allclose(model.predict(twice), y, atol=1e-8)
    assert model.coef_[4] == 0


def curve(x, limit, steepness, midpoint):
    return limit / (1 + np.exp(-steepness * (x - midpoint)))


def test_logistic_finds_the_curve_the_numbers_come_from():
    x = np.linspace(-3, 9, 60)[:, None]
    model = Regressor("logistic").fit(x, curve(x[:, 0], 7.0, 1.5, 2.0))
    assert model.limit_ == pytest.approx(7.0, abs=1e-3)
    assert model.coef_[0] == pytest.approx(1.5, abs=1e-3)
    assert model.intercept_ == pytest.approx(-3.0, abs=1e-3)
    assert model.score(x, curve(x[:, 0], 7.0, 1.5, 2.0)) > 0.999999


def test_fixed_limit_steepness_and_midpoint_mean_what_they_say():
    x = np.linspace(-3, 9, 60)[:, None]
    y = curve(x[:, 0], 7.0, 1.5, 2.0)
    model = Regressor("logistic", limit=7.0, steepness=3.0, midpoint=1.0).fit(x, y)
    # 3 (w x + b - 1) = 1.5 (x - 2)
    assert model.limit_ == pytest.approx(7.0, abs=1e-12)
    assert model.coef_[0] == pytest.approx(0.5, abs=1e-4)
    assert model.intercept_ == pytest.approx(0.0, abs=1e-4)
    z = x[:, 0] * model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.predict(x), curve(z, 7.0, 3.0, 1.0), atol=1e-10)


def test_metrics_equal_scikit_learn(diabetes):
    x, y = diabetes
    model = Regressor().fit(x[:300], y[:300], valid=(x[300:], y[300:]))
    found, predicted = model.evaluate((x[300:], y[300:])), model.predict(x[300:])
    assert found["r_squared"] == pytest.approx(r2_score(y[300:], predicted))
    assert found["mean_squared_error"] == pytest.approx(mean_squared_error(y[300:], predicted))
    assert model.metrics_["valid_r_squared"] == pytest.approx(found["r_squared"])


def test_scikit_learns_tools(diabetes):
    x, y = diabetes
    ours, oracle = (cross_val_score(m, x, y, cv=4) for m in (Regressor(l2=1.0), Ridge(alpha=1.0)))
    np.testing.assert_allclose(ours, oracle, atol=1e-6)
    search = GridSearchCV(Regressor(), {"l2": [0.0, 1e9]}, cv=2).fit(x, y)
    assert search.best_params_ == {"l2": 0.0}


@pytest.mark.parametrize("arch", ["linear", "logistic"])
@pytest.mark.parametrize("targets", [1, 2])
def test_save_and_load_predict_the_same(arch, targets, diabetes, tmp_path):
    x, y = diabetes
    y = y if targets == 1 else np.stack([y, y**2], axis=1)
    model = Regressor(arch, l2=0.5).fit(x, y, out=tmp_path / "model")
    for loaded in (Regressor.load(tmp_path / "model"), seqloom.load(tmp_path / "model")):
        assert loaded.predict(x).tolist() == model.predict(x).tolist()
        assert loaded.predict(x).shape == y.shape
        assert loaded.get_params()["l2"] == 0.5
    again = Regressor(arch, l2=0.5).fit(x, y)
    assert again.predict(x).tolist() == model.predict(x).tolist()


X, Y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("options", "x", "y", "message"),
    [
        ({}, X, None, "requires y to be passed"),
        ({}, X, [1.0, 2.0], "inconsistent numbers of samples: 3 and 2"),
        ({}, X, [1.0, np.nan, 2.0], r"Input y contains NaN \(first at \(1,\)\)"),
        ({}, X, ["a", "b", "c"], "y must hold numbers, got something else"),
        ({}, [[np.nan]] * 3, Y, "Input X contains NaN"),
        ({}, ["some", "text", "here"], Y, "Expected 2D array, got 1D array"),
        ({"arch": "logistic"}, X, [1.0, -2.0, 0.0], "must not be negative.* got -2"),
        ({"arch": "logistic", "limit": 2.5}, X, Y, "must not be above limit=2.5, got 3"),
        ({"arch": "logistic"}, X, [0.0, 0.0, 0.0], "a number above 0"),
        ({"l2": -1.0}, X, Y, "l2 must be a number not below 0, got -1.0"),
        ({"arch": "logistic", "limit": 0.0}, X, Y, "limit must be positive.* got 0.0"),
        ({"arch": "logistic", "steepness": -1.0}, X, Y, "steepness must be positive, got -1.0"),
        ({"training": {"patience": 2}}, X, Y, "need validation data"),
    ],
)
def test_bad_input_is_refused(options, x, y, message):
    with pytest.raises((InputError, ConfigError), match=message):
        Regressor(**options).fit(x, y)


def test_use_before_fit_is_refused():
    with pytest.raises(NotFittedError, match="this Regressor has not been fitted"):
        Regressor().predict(X)
    with pytest.raises(ConfigError, match="'logstic'; did you mean 'logistic'"):
        Regressor("logstic")
    with pytest.raises(ConfigError, match="'limt'; did you mean 'limit'"):
        Regressor("logistic", limt=3.0)
    with pytest.raises(InputError, match=r"the pair \(X, y\)"):
        Regressor().fit(X, Y).evaluate(X)
