"""Forecasts of three series from 5 origins each, beside the seasonal naive forecast.

python benchmarks/forecasting.py --seeds 3
python benchmarks/forecasting.py --chosen-on --series sunspots --set window=132

A model is fitted anew to the rows before each origin. With --chosen-on the rows from the first of
these origins on are cut off: that is where settings were chosen.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from seqloom.config import apply_overrides
from seqloom.data.series import GapWarning, read_series
from seqloom.figures import curve, save
from seqloom.tasks.recipe import load_recipe

SERIES = ("airline", "sunspots", "temperatures")
ORIGINS = 5


def forecaster(name, seed, settings):
    """The recipe's forecaster, some settings replaced."""
    recipe = load_recipe(f"{name}-forecast")
    model = recipe.estimator(seed=seed)
    for key, value in apply_overrides({}, settings).items():
        values = value if key == "model" else {key: value}
        model.set_params(**values)
    return model


def draw(name, tested, series, folder):
    """The end of the series, the forecasts with their intervals, and the naive ones."""
    origins = tested.origins
    steps = len(origins[0].actual)
    xs = np.arange(origins[0].row, origins[-1].row + steps)
    begin = max(0, xs[0] - 3 * steps)
    median, lower, upper = (
        np.concatenate([getattr(each.forecast, end)[:, 0] for each in origins])
        for end in ("median", "lower", "upper")
    )
    naive = np.concatenate([each.naive[:, 0] for each in origins])
    label = f"forecast, {origins[0].forecast.interval:.0%} interval"
    lines = {
        "actual": (np.arange(begin, len(series)), series.values[begin:, 0]),
        label: (xs, median),
        "seasonal naive": (xs, naive),
    }
    figure = curve(
        lines, bands={label: (lower, upper)}, xlabel="row", ylabel=series.columns[0], title=name
    )
    save(figure, folder / f"forecast-{name}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", nargs="+", default=SERIES, choices=SERIES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--origins", type=int, default=ORIGINS)
    parser.add_argument("--chosen-on", action="store_true")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--also", type=int, help="MASE by a season of so many rows, too")
    parser.add_argument("--figures", type=Path, help="a folder for a figure a series")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", GapWarning)
    print("| series | seed | MASE | naive MASE | MAE | naive MAE | coverage of 80% | width | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.series:
        series = read_series(f"time-series:{name}")
        rows = []
        for seed in range(arguments.seeds):
            model = forecaster(name, seed, arguments.settings)
            if arguments.chosen_on and not seed:
                series = series.rows(0, len(series) - ORIGINS * model.horizon)
            began = time.perf_counter()
            tested = model.backtest(series, origins=arguments.origins)
            found = {**tested.metrics(), "seconds": time.perf_counter() - began}
            rows.append(found)
            show(name, seed, found)
            if arguments.also:
                others = [replace(each, season=arguments.also).metrics() for each in tested.origins]
                mean = {key: np.mean([row[key] for row in others]) for key in others[0]}
                show(f"{name}, season {arguments.also}", seed, {**found, **mean})
            if arguments.figures and not seed:
                draw(name, tested, series, arguments.figures)
        if len(rows) > 1:
            show(name, "mean", {key: float(np.mean([row[key] for row in rows])) for key in rows[0]})


def show(name, seed, found):
    print(
        f"| {name} | {seed} | {found['mase']:.3f} | {found['naive_mase']:.3f} | "
        f"{found['mae']:.2f} | {found['naive_mae']:.2f} | {found['coverage']:.0%} | "
        f"{found['width']:.1f} | {found['seconds']:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
