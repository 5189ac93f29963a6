"""From a series to what a network reads and learns, and back from what it says to forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.data.ragged import Ragged
from seqloom.data.series import Series, read_series
from seqloom.errors import ConfigError, InputError, one_of
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.supervised_objective import Examples

Floats = NDArray[np.float64]
TRANSFORMS = ("none", "log", "sqrt")
GAPS = ("refuse", "interpolate")


@dataclass(frozen=True, kw_only=True)
class SeriesConfig:
    """How a series is read; `Forecaster` says what each setting means."""

    horizon: int = 1
    window: int = 24
    season: int = 1
    difference: int = 0
    harmonics: int = 0
    transform: Literal["none", "log", "sqrt"] = "none"
    columns: tuple[str, ...] | None = None
    gaps: Literal["refuse", "interpolate"] = "refuse"
    interval: float = 0.8

    def __post_init__(self) -> None:
        for name in ("horizon", "window", "season"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("difference", "harmonics"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.harmonics and self.season < 2 * self.harmonics:
            raise ConfigError(
                f"harmonics must be at most half of season={self.season}, got {self.harmonics}"
            )
        if self.transform not in TRANSFORMS:
            raise ConfigError(one_of("transform", self.transform, TRANSFORMS))
        if self.gaps not in GAPS:
            raise ConfigError(one_of("gaps", self.gaps, GAPS))
        if not 0 < self.interval < 1:
            raise ConfigError(f"interval must lie in (0, 1), got {self.interval}")
        twice = _repeated(self.columns or ())
        if twice is not None:
            raise ConfigError(f"columns must name each column once, got {twice!r} twice")

    @property
    def levels(self) -> tuple[float, float, float]:
        """The levels of the quantiles: the ends of the interval, and the median between."""
        half = (1 - self.interval) / 2
        return half, 0.5, 1 - half

    @property
    def lag(self) -> int:
        """How many steps before lies what a forecast is a difference from."""
        return max(self.difference, 1)

    @property
    def rows_needed(self) -> int:
        """Rows that a forecast needs."""
        return max(self.window + self.difference, self.lag)


def as_series(given: Any) -> Series:
    """Return a path, an array (T,) or (T, D), a data frame or a `Series` as a series.

    Raises:
        InputError: If it is none of these, or empty, or has two columns of one name.
    """
    if knows_its_place(given):
        series = given if isinstance(given, Series) else read_series(given)
    else:
        series = _from_numbers(given)
    twice = _repeated(series.columns)
    if twice is not None:
        raise InputError(f"a series must have a name for each column, got {twice!r} twice")
    return series


def knows_its_place(given: Any) -> bool:
    """Whether a series says how many rows of the whole come before it; numbers alone do not."""
    return isinstance(given, Series | str | PathLike)


def position_names(count: int) -> tuple[str, ...]:
    """The names of columns that have none of their own."""
    return tuple(f"y{i}" for i in range(count))


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _from_numbers(given: Any) -> Series:
    names: tuple[str, ...] | None = None
    if hasattr(given, "columns"):
        names = tuple(map(str, given.columns))
        given = given.to_numpy()
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "a series must be a file, numbers (T,), a table (T, D) or a data frame of numbers, got "
            f"{type(given).__name__}"
        ) from None
    if values.ndim not in (1, 2) or not values.size:
        raise InputError(
            f"a series must be (steps,) or (steps, columns), none of them 0, got {values.shape}"
        )
    table = values.reshape(len(values), -1)
    return Series(table, names or position_names(table.shape[1]))


class View(NamedTuple):
    """A series as a network sees it.

    Args:
        inputs: What is read at each row from row `difference` on, (T, F); 0 before.
        values: The transformed columns that are forecast, (T, N).
    """

    inputs: Floats
    values: Floats


@dataclass(frozen=True)
class SeriesReader:
    """How series of some columns are read.

    Args:
        config: The settings.
        columns: The names of all columns.
        start: How many rows of the whole series come before the first one of `fit`, from which
            harmonics count.
    """

    config: SeriesConfig
    columns: tuple[str, ...]
    start: int = 0

    def __post_init__(self) -> None:
        for name in self.config.columns or ():
            if name not in self.columns:
                raise ConfigError(one_of("column", name, self.columns))

    @property
    def targets(self) -> list[int]:
        """Which columns are forecast."""
        return [self.columns.index(name) for name in self.config.columns or self.columns]

    @property
    def output_size(self) -> int:
        """Numbers of a forecast."""
        return self.config.horizon * len(self.targets) * len(self.config.levels)

    def ordered(self, series: Series) -> Series:
        """Return a series with its columns in the order of these.

        They are found by name. Where one side has no names of its own (an array), they are taken
        in the order they have.

        Raises:
            InputError: If it has other columns.
        """
        if set(series.columns) == set(self.columns):
            places = [series.columns.index(name) for name in self.columns]
            return replace(series, values=series.values[:, places], columns=self.columns)
        unnamed = position_names(len(self.columns))
        same_count = len(series.columns) == len(self.columns)
        if not same_count or unnamed not in (series.columns, self.columns):
            raise InputError(
                f"the series must have the columns {', '.join(self.columns)}, got "
                f"{', '.join(series.columns)}"
            )
        return replace(series, columns=self.columns)

    def checked(self, series: Series, rows: int, why: str) -> Series:
        """Return a series in the order of the columns, without gaps.

        Raises:
            InputError: If it has other columns, fewer rows than `rows`, or gaps that are refused.
        """
        series = self.ordered(series)
        if len(series) < rows:
            config = self.config
            raise InputError(
                f"the series must have at least {rows} rows {why} (window={config.window}, "
                f"difference={config.difference}, horizon={config.horizon}), got {len(series)}; "
                "give more rows or a smaller window"
            )
        return Series(_filled(series, self.config.gaps), series.columns, None, series.start)

    def view(self, series: Series) -> View:
        """Return a checked series as the network sees it."""
        config, lag = self.config, self.config.difference
        inputs = series.values.copy()
        values = self._transformed(inputs[:, self.targets])
        inputs[:, self.targets] = values
        if lag:
            inputs[lag:] -= inputs[:-lag].copy()
            inputs[:lag] = 0.0
        places = series.start - self.start + np.arange(len(inputs))
        phase = 2 * np.pi * places / config.season
        waves = [f(j * phase) for j in range(1, config.harmonics + 1) for f in (np.sin, np.cos)]
        return View(np.column_stack([inputs, *waves]), values)

    def _transformed(self, values: Floats) -> Floats:
        kind = self.config.transform
        lowest = values.min()
        if kind == "log":
            if lowest <= 0:
                raise InputError(f"transform='log' needs numbers above 0, got {lowest:g}")
            return np.log(values)
        if kind == "sqrt":
            if lowest < 0:
                raise InputError(f"transform='sqrt' needs numbers not below 0, got {lowest:g}")
            return np.sqrt(values)
        return values.copy()

    def _restored(self, values: Floats) -> Floats:
        match self.config.transform:
            case "log":
                return np.exp(values)
            case "sqrt":
                return np.square(np.maximum(values, 0.0))
            case _:
                return values

    def base(self, values: Floats, origins: NDArray[np.int64]) -> Floats:
        """Return what forecasts after some rows are differences from, (..., h, N).

        Of step k after row t it is the last known value a multiple of the lag before.
        """
        steps, lag = np.arange(1, self.config.horizon + 1), self.config.lag
        back = steps - lag * -(-steps // lag)
        found: Floats = values[np.asarray(origins)[..., None] + back]
        return found

    def windows(self, view: View, origins: NDArray[np.int64], *, each: bool) -> Examples:
        """Return the windows that end at some rows, and what comes after them.

        Targets are differences from `base`, (n, h N), or with `each` after every row of the
        window, (n, w, h N).
        """
        config = self.config
        places = origins[:, None] + np.arange(1 - config.window, 1)  # (n, w)
        features = self.features(view, origins)
        rows = places if each else origins
        ahead = rows[..., None] + np.arange(1, config.horizon + 1)
        targets = view.values[ahead] - self.base(view.values, rows)
        return Examples(features, targets.reshape(*rows.shape, -1).astype(np.float32))

    def features(self, view: View, origins: NDArray[np.int64]) -> Sequences:
        """Return the windows that end at some rows."""
        places = origins[:, None] + np.arange(1 - self.config.window, 1)
        rows = view.inputs[places].astype(np.float32)
        return Sequences(Ragged.of(list(rows), np.float32), rows.shape[-1])

    def quantiles(self, scores: Floats, view: View, origins: NDArray[np.int64]) -> Floats:
        """Return what a network says after some rows as quantiles of the series, (n, h, N, 3)."""
        shape = (len(origins), self.config.horizon, len(self.targets), len(self.config.levels))
        ordered = np.sort(scores.reshape(shape), axis=-1)
        return self._restored(ordered + self.base(view.values, origins)[..., None])


def _filled(series: Series, gaps: str) -> Floats:
    """The values with straight lines over gaps; gaps at the ends are refused in any case."""
    values = series.values
    if np.isinf(values).any():
        raise InputError("a series must hold finite numbers, got infinity")
    holes = np.isnan(values)
    if not holes.any():
        return values
    row, column = (int(place) for place in np.argwhere(holes)[0])
    where = f"row {row}" if series.times is None else f"row {row} ({series.times[row]})"
    if gaps == "refuse":
        raise InputError(
            f"a series must have no gaps, got {int(holes.sum())} missing numbers (the first in "
            f"{where} of column {series.columns[column]!r}); fill them, or set gaps='interpolate'"
        )
    filled = values.copy()
    places = np.arange(len(values))
    for number, name in enumerate(series.columns):
        real = ~holes[:, number]
        if not (real[0] and real[-1]):
            raise InputError(
                f"column {name!r} must not begin or end with a gap, which no straight line fills; "
                "cut the series there"
            )
        filled[:, number] = np.interp(places, places[real], values[real, number])
    return filled
