"""`seqloom forecast`: what comes after the end of a series, and how such forecasts fared before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, note, print_rows

EXAMPLES = (
    "Example: seqloom forecast sales.csv --horizon 12 --season 12 --set difference=12 "
    "--set transform=log --backtest 5"
)
SHOWN = 6  # horizons of the past in a figure


def run(
    data: Annotated[str, typer.Argument(help="A table of numbers, a row a step: a file, or -.")],
    model: Annotated[
        str | None, typer.Option(help="A fitted model directory; without one, one is fitted now.")
    ] = None,
    horizon: Annotated[int, typer.Option(help="How many rows ahead.", min=1)] = 1,
    season: Annotated[int, typer.Option(help="Rows of a season; 1 for none.", min=1)] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, as window=36 or model.cell=gru or training.seed=1."),
    ] = None,
    backtest: Annotated[
        int, typer.Option(help="Forecast the last rows from so many origins instead.", min=0)
    ] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the first column and its forecast: a .png or .svg.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the fitted model here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast a series: print the median and an interval for each row ahead.

    A first column that holds no numbers names the rows. With --model the settings are the model's.
    """
    from seqloom.data.series import read_series
    from seqloom.tasks.forecaster import Forecaster

    series = read_series(data)
    if model is not None:
        if horizon != 1 or season != 1 or settings or out is not None:
            raise typer.BadParameter("a model has its own settings; leave out --model or these")
        forecaster = Forecaster.load(model)
        series = forecaster.reader_.ordered(series)
    else:
        forecaster = _forecaster(horizon, season, settings or [])
    if backtest:
        tested = forecaster.backtest(series, origins=backtest, refit=model is None)
        found = [(each.row, each.forecast) for each in tested.origins]
        rows: list[dict[str, Any]] = [{**row, "row": int(row["row"])} for row in tested.rows()]
        rows.append({"row": "mean", **{k: v for k, v in tested.metrics().items() if k in rows[0]}})
        print_rows(rows, as_json=as_json)
    else:
        if model is None:
            forecaster.fit(series, out=out)
        found = [(len(series), forecaster.forecast(series))]
        print_rows(found[0][1].rows(), as_json=as_json)
    if figure is not None:
        _draw(series, found, figure)
        note(f"drawn in {figure}")


def _forecaster(horizon: int, season: int, settings: list[str]) -> Any:
    from seqloom.config import apply_overrides
    from seqloom.tasks.forecaster import Forecaster

    values = apply_overrides({"horizon": horizon, "season": season}, settings)
    options = values.pop("model", {})
    return Forecaster(**{**values, **options})


def _draw(series: Any, found: list[tuple[int, Any]], path: Path) -> None:
    """Draw the end of the first column that is forecast, and the forecasts."""
    import numpy as np

    from seqloom.figures import curve, save

    steps, name = len(found[0][1].median), found[0][1].columns[0]
    begin = max(0, found[0][0] - SHOWN * steps)
    actual = series.values[begin:, series.columns.index(name)]
    xs = np.concatenate([np.arange(row, row + steps) for row, _ in found])
    lines = {
        end: np.concatenate([getattr(forecast, end)[:, 0] for _, forecast in found])
        for end in ("median", "lower", "upper")
    }
    share = found[0][1].interval
    label = f"forecast, {share:.0%} interval"
    drawn = curve(
        {name: (np.arange(begin, len(series)), actual), label: (xs, lines["median"])},
        bands={label: (lines["lower"], lines["upper"])},
        xlabel="row",
        ylabel=name,
    )
    save(drawn, path)
