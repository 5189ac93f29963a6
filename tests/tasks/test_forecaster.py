"""Forecasts of series: what is read, learned and given back, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from typer.testing import CliRunner

from seqloom import Forecaster, load
from seqloom.cli import app
from seqloom.data.series import Series
from seqloom.errors import ConfigError, InputError
from seqloom.models.forecaster import Forecaster as Network
from seqloom.models.forecaster import ForecasterConfig
from seqloom.tasks.directory import read_model, write_model
from seqloom.tasks.forecaster_series import SeriesConfig, SeriesReader
from seqloom.tasks.forecaster_training import conformal_offsets, cut, quantile_goal

QUICK = {"epochs": 8, "device": "cpu", "optimizer": {"rate": 0.02}}


def wave(count, noise=0.0, seed=0):
    draw = np.random.default_rng(seed)
    return 5 + np.sin(np.arange(count) * 2 * np.pi / 12) + noise * draw.normal(size=count)


@pytest.fixture(scope="module", params=["last", "each"])
def fitted(request):
    training = {**QUICK, "epochs": 40, "batch": {"batch_size": 8}}
    model = Forecaster(
        horizon=4, window=12, season=12, hidden_size=8, reads=request.param, training=training
    )
    return model.fit(wave(200, 0.02))


# -- the network ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", ["last", "each"])
def test_the_network_is_its_equation_and_padding_changes_nothing(reads):
    torch.manual_seed(0)
    config = ForecasterConfig(input_size=3, output_size=4, hidden_size=5, cell="gru", reads=reads)
    model = Network(config).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight)
    model.rescale(torch.arange(4.0).double(), torch.tensor([1.0, 2, 3, 4]).double())
    x, lengths = torch.randn(3, 6, 3, dtype=torch.float64), [6, 1, 4]
    whole = model(x, torch.tensor(lengths)).scores
    oracle = nn.GRU(3, 5, batch_first=True).double()
    oracle.load_state_dict(model.rnn.state_dict())
    for b, n in enumerate(lengths):
        h = oracle(x[b : b + 1, :n])[0][0]
        y = h @ model.output.weight.T + model.output.bias + x[b, :n] @ model.direct.weight.T
        y = y * model.scale + model.mean
        assert_close(whole[b] if reads == "last" else whole[b, :n], y[-1] if reads == "last" else y)


def test_each_forecast_knows_only_what_came_before():
    torch.manual_seed(0)
    model = Network(ForecasterConfig(input_size=1, output_size=1, reads="each")).eval()
    nn.init.normal_(model.output.weight)
    x = torch.randn(1, 9, 1)
    for n in range(1, 10):
        assert_close(model(x[:, :n]).scores[:, -1], model(x).scores[:, n - 1])


def test_the_loss_is_the_pinball_loss_in_units_of_the_spread():
    draw = np.random.default_rng(0)
    scores, targets = draw.normal(size=(3, 6)), draw.normal(size=(3, 2))
    scale, levels = np.array([2.0, 2, 2, 5, 5, 5]), (0.1, 0.5, 0.9)
    total = 0.0
    for row, truth in zip(scores, targets, strict=True):
        losses = []
        for c in range(6):
            error = (truth[c // 3] - row[c]) / scale[c]
            tau = levels[c % 3]
            losses.append(tau * error if error > 0 else (tau - 1) * error)
        total += sum(losses) / 6
    found = quantile_goal(torch.tensor(scale), levels).loss(
        torch.tensor(scores), torch.tensor(targets)
    )
    assert found.item() == pytest.approx(total)


# -- windows and what is undone ------------------------------------------------------------------


@pytest.mark.parametrize("difference", [0, 1, 3])
@pytest.mark.parametrize("transform", ["none", "log", "sqrt"])
def test_a_perfect_network_would_forecast_the_future(difference, transform):
    """What is learned, put back as if the network had said it, is what came."""
    config = SeriesConfig(horizon=5, window=4, difference=difference, transform=transform)
    values = np.random.default_rng(0).uniform(1, 9, size=(30, 2))
    reader = SeriesReader(config, ("a", "b"))
    view = reader.view(Series(values, ("a", "b")))
    origins = np.array([8, 20, 24])
    examples = reader.windows(view, origins, each=False)
    said = np.repeat(examples.targets.astype(np.float64), 3, axis=1)  # each of three quantiles
    found = reader.quantiles(said, view, origins)
    for forecast, row in zip(found, origins, strict=True):
        for level in range(3):
            np.testing.assert_allclose(forecast[..., level], values[row + 1 : row + 6], rtol=1e-5)


def test_windows_hold_the_rows_before_and_after_each_origin():
    config = SeriesConfig(horizon=2, window=3, difference=2, season=4, harmonics=1)
    values = np.arange(20.0)[:, None] ** 2
    reader = SeriesReader(config, ("a",))
    view = reader.view(Series(values, ("a",), None, start=7))
    both = reader.windows(view, np.array([6]), each=True)
    for place, row in enumerate((4, 5, 6)):
        x = both.features.items[0][place]
        phase = 2 * math.pi * (7 + row) / 4
        expected = [row**2 - (row - 2) ** 2, math.sin(phase), math.cos(phase)]
        np.testing.assert_allclose(x, expected, atol=1e-5)
        after = [(row + k) ** 2 - (row + k - 2) ** 2 for k in (1, 2)]
        np.testing.assert_allclose(both.targets[0, place], after)


@pytest.mark.parametrize("each", [False, True])
def test_no_training_target_lies_in_the_rows_that_validate(each):
    config = SeriesConfig(horizon=3, window=4)
    reader = SeriesReader(config, ("a",))
    view = reader.view(Series(np.arange(50.0)[:, None], ("a",)))
    parts = cut(reader, view, 0.2, each=each)
    last = max(int(window[-1, 0]) for window in parts.train.features.items)
    assert last + 3 == 39  # rows 40 to 49 validate
    assert parts.origins.tolist() == list(range(39, 47))
    assert [int(w[-1, 0]) for w in parts.valid.features.items] == parts.origins.tolist()


def test_intervals_are_moved_to_cover_their_share():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=(40, 3))
    scores = np.tile([-0.1, 0.0, 0.1], (40, 3))
    scale = np.repeat([1.0, 2.0, 4.0], 3)
    (offset,) = conformal_offsets(scores, targets, scale, 0.8, 1)
    beyond = sorted((np.abs(targets) - 0.1).ravel() / np.tile([1.0, 2.0, 4.0], 40))
    assert offset == pytest.approx(beyond[math.ceil(121 * 0.8) - 1])
    inside = np.abs(targets) <= 0.1 + offset * np.array([1.0, 2.0, 4.0]) + 1e-12
    assert inside.mean() == pytest.approx(0.8, abs=0.02)


# -- the estimator -------------------------------------------------------------------------------


def test_it_forecasts_a_wave(fitted):
    series = wave(206, 0.02)
    found = fitted.forecast(series)
    ahead = 5 + np.sin(np.arange(206, 210) * 2 * np.pi / 12)
    assert np.abs(found.median[:, 0] - ahead).max() < 0.25
    assert (found.lower <= found.median).all() and (found.median <= found.upper).all()
    assert found.rows()[0]["step"] == 1 and len(found.rows()) == 4


def test_noise_is_covered_as_often_as_promised():
    noise = np.random.default_rng(3).normal(size=700)
    model = Forecaster(horizon=2, window=4, hidden_size=2, interval=0.8, training=QUICK)
    model.fit(noise[:400])
    found = model.evaluate(noise, origins=150)
    assert found["coverage"] == pytest.approx(0.8, abs=0.08)
    assert found["width"] == pytest.approx(2 * 1.2816, rel=0.2)  # of the normal distribution


def test_another_column_helps():
    lead = np.random.default_rng(1).normal(size=301)
    table = pandas.DataFrame({"target": lead[:-1], "lead": lead[1:]})
    alone = Forecaster(window=3, hidden_size=4, training=QUICK)
    both = Forecaster(window=3, hidden_size=4, columns=["target"], training=QUICK)
    alone.fit(table[["target"]][:200])
    both.fit(table[:200])
    assert both.forecast(table).columns == ("target",)
    assert both.evaluate(table, origins=50)["mae"] < 0.35
    assert alone.evaluate(table[["target"]], origins=50)["mae"] > 0.6


def test_a_backtest_does_not_see_the_future():
    series = wave(80, 0.1)
    changed = series.copy()
    changed[76:] += 50
    model = Forecaster(horizon=4, window=8, hidden_size=2, training={**QUICK, "epochs": 2})
    first, second = (model.backtest(one, origins=2).origins for one in (series, changed))
    np.testing.assert_array_equal(first[0].forecast.median, second[0].forecast.median)
    np.testing.assert_array_equal(first[1].forecast.median, second[1].forecast.median)
    assert second[1].metrics()["mae"] > 40
    assert [origin.row for origin in first] == [72, 76]
    naive = np.abs(series[76:80] - series[75]).mean()
    assert first[1].metrics()["naive_mae"] == pytest.approx(naive)


def test_evaluation_makes_the_same_forecasts(fitted):
    series = wave(220, 0.02)
    tested = fitted.backtest(series, origins=3, refit=False)
    for origin in tested.origins:
        alone = fitted.forecast(series[: origin.row])
        np.testing.assert_allclose(alone.median, origin.forecast.median, rtol=1e-6)
    assert fitted.evaluate(series, origins=3) == tested.metrics()


def test_the_phase_of_a_part_is_known():
    series = wave(150)
    model = Forecaster(horizon=2, window=3, season=12, harmonics=1, training=QUICK).fit(series)
    whole = model.forecast(series).median
    np.testing.assert_allclose(model.forecast(series[100:], start=100).median, whole, rtol=1e-5)
    assert np.abs(model.forecast(series[100:]).median - whole).max() > 1e-3


def test_rows_are_counted_from_the_first_row_of_fit(tmp_path):
    series, path = wave(159), tmp_path / "y.csv"
    path.write_text("y\n" + "".join(f"{value!r}\n" for value in series.tolist()))
    model = Forecaster(horizon=2, window=3, season=12, harmonics=1, training=QUICK)
    model.fit(f"{path}[9:]")
    ahead = model.forecast(f"{path}[9:]").median
    np.testing.assert_array_equal(model.forecast(series[9:]).median, ahead)
    np.testing.assert_array_equal(model.forecast(series[100:], start=91).median, ahead)
    np.testing.assert_array_equal(model.forecast(path).median, ahead)
    loaded = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.forecast(series[9:]).median, ahead)
    alike = Forecaster(**model.get_params(deep=False)).fit(series[9:])
    np.testing.assert_array_equal(alike.forecast(series[9:]).median, ahead)
    assert model.evaluate(f"{path}[9:]") == model.evaluate(series[9:])


def test_a_directory_written_without_a_start_still_loads(fitted, tmp_path):
    header = read_model(fitted.save(tmp_path / "new")).header
    before = {name: value for name, value in header.settings.items() if name != "start"}
    weights = fitted.model_.state_dict()
    place = write_model(tmp_path / "old", replace(header, settings=before), weights, {})
    expected = fitted.forecast(wave(60)).median
    np.testing.assert_array_equal(load(place).forecast(wave(60)).median, expected)


@pytest.fixture(scope="module")
def sales():
    draw = np.random.default_rng(5)
    sold = wave(120, 0.1)
    return pandas.DataFrame({"sold": sold, "price": 3 * sold + draw.normal(size=120)})


@pytest.fixture(scope="module")
def seller(sales):
    training = {**QUICK, "epochs": 2}
    return Forecaster(horizon=2, window=6, columns=["sold"], hidden_size=2, training=training).fit(
        sales
    )


def test_columns_are_found_by_name(sales, seller, tmp_path):
    expected = seller.forecast(sales).median
    turned = sales[["price", "sold"]]
    np.testing.assert_array_equal(seller.forecast(turned).median, expected)
    np.testing.assert_array_equal(seller.forecast(sales.to_numpy()).median, expected)
    assert seller.evaluate(turned, origins=2) == seller.evaluate(sales, origins=2)
    path, place = tmp_path / "turned.csv", str(seller.save(tmp_path / "model"))
    turned.to_csv(path, index=False)
    figure = str(tmp_path / "turned.svg")
    told = ["forecast", str(path), "--model", place, "--json", "--figure", figure]
    rows = json.loads(CliRunner().invoke(app, told).stdout)
    assert [row["forecast"] for row in rows] == pytest.approx(expected[:, 0].tolist())
    unnamed = Forecaster(**seller.get_params(deep=False)).set_params(columns=["y0"])
    unnamed.fit(sales.to_numpy())
    np.testing.assert_array_equal(unnamed.forecast(sales).median, expected)


def test_other_or_repeated_names_are_refused(sales, seller):
    renamed = sales.rename(columns={"price": "weather"})
    with pytest.raises(InputError, match="the columns sold, price, got sold, weather"):
        seller.forecast(renamed)
    with pytest.raises(InputError, match="the columns sold, price, got sold, weather"):
        seller.evaluate(renamed)
    twice = sales.set_axis(["sold", "sold"], axis=1)
    with pytest.raises(InputError, match="got 'sold' twice"):
        seller.forecast(twice)
    with pytest.raises(InputError, match="got 'sold' twice"):
        Forecaster(window=6).fit(twice)
    with pytest.raises(ConfigError, match="got 'sold' twice"):
        Forecaster(window=6, columns=["sold", "sold"]).fit(sales)
    with pytest.raises(ConfigError, match="must be a list of names, got 'sold'"):
        Forecaster(window=6, columns="sold").fit(sales)


def test_settings_changed_after_fit_change_nothing_of_it(sales, seller, tmp_path):
    expected = seller.forecast(sales)
    changed = load(seller.save(tmp_path / "model"))
    changed.set_params(horizon=4, window=3, transform="log", interval=0.5, columns=["price"])
    found = changed.forecast(sales)
    np.testing.assert_array_equal(found.median, expected.median)
    assert found.interval == 0.8 and found.columns == ("sold",)
    assert changed.evaluate(sales, origins=2) == seller.evaluate(sales, origins=2)
    again = load(changed.save(tmp_path / "again"))
    np.testing.assert_array_equal(again.forecast(sales).median, expected.median)
    assert again.get_params()["horizon"] == 2 and again.get_params()["transform"] == "none"


def test_saving_and_loading_changes_nothing(fitted, tmp_path):
    loaded = load(fitted.save(tmp_path / "model"))
    assert isinstance(loaded, Forecaster)
    before, after = fitted.forecast(wave(60)), loaded.forecast(wave(60))
    for name in ("median", "lower", "upper"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    assert loaded.get_params()["window"] == 12


def test_gaps_are_refused_or_filled():
    holes = wave(100)
    holes[[40, 41]] = np.nan
    model = Forecaster(window=6, hidden_size=2, training={**QUICK, "epochs": 1})
    with pytest.raises(InputError, match=r"2 missing numbers \(the first in row 40 of column 'y0'"):
        model.fit(holes)
    filled = wave(100)
    filled[40:42] = filled[39] + (filled[42] - filled[39]) * np.array([1, 2]) / 3
    model.set_params(gaps="interpolate")
    expected = model.fit(filled).forecast(filled).median
    np.testing.assert_array_equal(model.fit(holes).forecast(holes).median, expected)
    holes[-1] = np.nan
    with pytest.raises(InputError, match="'y0' must not begin or end with a gap"):
        model.fit(holes)


def test_a_series_it_cannot_go_on_from_is_refused(fitted):
    with pytest.raises(InputError, match=r"at least 12 rows for a forecast.*got 5"):
        fitted.forecast(np.zeros(5))
    with pytest.raises(InputError, match="must have the columns y0, got y0, y1"):
        fitted.forecast(np.zeros((50, 2)))


def test_bad_input_is_refused():
    model = Forecaster(window=10, horizon=3, training=QUICK)
    with pytest.raises(InputError, match=r"at least 13 rows.*window=10.*got 12"):
        model.fit(np.zeros(12))
    with pytest.raises(InputError, match=r"besides the last 3 that validate, got 10"):
        model.fit(np.arange(13.0))
    with pytest.raises(InputError, match="got infinity"):
        model.fit([1.0, np.inf] * 20)
    with pytest.raises(InputError, match="got object"):
        model.fit(object())
    with pytest.raises(InputError, match=r"transform='log' needs numbers above 0, got -1"):
        Forecaster(transform="log").fit([1.0, -1.0] * 50)
    with pytest.raises(ConfigError, match="unknown column 'z'"):
        Forecaster(columns=["z"]).fit(wave(100))
    with pytest.raises(ConfigError, match="got bidirectional=True"):
        Forecaster(reads="each", bidirectional=True).fit(wave(100))
    with pytest.raises(ConfigError, match="half of season=4, got 3"):
        Forecaster(season=4, harmonics=3).fit(wave(100))
    with pytest.raises(ConfigError, match=r"interval must lie in \(0, 1\), got 80"):
        Forecaster(interval=80).fit(wave(100))
    with pytest.raises(ConfigError, match="horizon must be at least 1, got 0"):
        Forecaster(horizon=0).fit(wave(100))
    with pytest.raises(ConfigError, match="set valid_share"):
        model.fit(wave(100), valid=wave(10))
    with pytest.raises(InputError, match=r"before the first of 65 origins.*got 5"):
        model.backtest(wave(200), origins=65)


def test_the_command_line_forecasts(tmp_path):
    path = tmp_path / "wave.csv"
    path.write_text("when,y\n" + "".join(f"d{i},{y}\n" for i, y in enumerate(wave(90))))
    quick = ["--set", "training.epochs=2", "--set", "window=12", "--set", "model.hidden_size=4"]

    def run(*arguments):
        return CliRunner().invoke(app, ["forecast", str(path), "--json", *arguments])

    out, figure = str(tmp_path / "model"), tmp_path / "wave.png"
    made = run("--horizon", "3", *quick, "--out", out, "--figure", str(figure))
    assert made.exit_code == 0, made.output
    rows = json.loads(made.stdout)
    assert [row["step"] for row in rows] == [1, 2, 3] and figure.stat().st_size > 1000
    assert json.loads(run("--model", out).stdout) == rows
    tested = json.loads(run("--model", out, "--backtest", "2").stdout)
    assert [row["row"] for row in tested] == [84, 87, "mean"]
    assert tested[2]["mae"] == pytest.approx((tested[0]["mae"] + tested[1]["mae"]) / 2)
    refused = run("--model", out, "--horizon", "5")
    assert refused.exit_code == 2 and "own settings" in refused.output
