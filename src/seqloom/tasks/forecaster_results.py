"""What a forecaster gives: forecasts with intervals, and how good they were at several times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqloom.metrics.forecasting import coverage, mase, seasonal_naive
from seqloom.tasks.notebook import html_table

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forecast:
    """What comes after the end of a series.

    Args:
        median: By step and column, (h, N): what it is as likely to be above as below.
        lower: The lower end of the interval.
        upper: Its upper end.
        interval: The share of cases in which the truth is to lie between them.
        columns: The names of the columns.
    """

    median: Floats
    lower: Floats
    upper: Floats
    interval: float
    columns: tuple[str, ...]

    def rows(self) -> list[dict[str, float | int | str]]:
        """The same as a row a step and column."""
        return [
            {
                "step": step + 1,
                "column": name,
                "forecast": float(self.median[step, number]),
                "lower": float(self.lower[step, number]),
                "upper": float(self.upper[step, number]),
            }
            for step in range(len(self.median))
            for number, name in enumerate(self.columns)
        ]


@dataclass(frozen=True, eq=False)
class Origin:
    """One forecast of a back-test, and what came.

    Args:
        row: How many rows were known.
        forecast: The forecast.
        actual: What came, (h, N).
        history: What was known, (T, N).
        season: Steps of a season.
    """

    row: int
    forecast: Forecast
    actual: Floats
    history: Floats
    season: int

    @property
    def naive(self) -> Floats:
        """The seasonal naive forecast, (h, N)."""
        return seasonal_naive(self.history, len(self.actual), self.season)

    def metrics(self) -> dict[str, float]:
        """Errors of this forecast, the mean over columns."""
        found = self.forecast
        columns = range(self.actual.shape[1])

        def scaled(predicted: Floats) -> float:
            errors = [
                mase(predicted[:, n], self.actual[:, n], self.history[:, n], self.season)
                for n in columns
            ]
            return float(np.mean(errors))

        return {
            "mase": scaled(found.median),
            "naive_mase": scaled(self.naive),
            "mae": float(np.abs(found.median - self.actual).mean()),
            "naive_mae": float(np.abs(self.naive - self.actual).mean()),
            "coverage": coverage(found.lower, found.upper, self.actual),
            "width": float((found.upper - found.lower).mean()),
        }


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts made at several times, each knowing only what came before it."""

    origins: tuple[Origin, ...]

    def rows(self) -> list[dict[str, float]]:
        """The metrics at each time."""
        return [{"row": float(each.row), **each.metrics()} for each in self.origins]

    def metrics(self) -> dict[str, float]:
        """The mean of the metrics over all times.

        Returns:
            `mase` (errors in units of the seasonal naive forecast's in sample), `naive_mase` (the
            same of the seasonal naive forecast made at the same times), `mae` and `naive_mae` in
            the unit of the series, `coverage` and mean `width` of the intervals, and `origins`.
        """
        rows = [each.metrics() for each in self.origins]
        found = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        return {**found, "origins": float(len(rows))}

    def _repr_html_(self) -> str:
        return html_table("Backtest", self.metrics())
