"""Forecasters: fit one to a series, and ask it what comes next and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.architectures import load_config_class, load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.series import Series
from seqloom.errors import ConfigError, InputError
from seqloom.models.linear import diagonal_basis
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import (
    Callbacks,
    Learned,
    RunSettings,
    fitting,
    origin,
    run_training,
)
from seqloom.tasks.forecaster_results import Backtest, Forecast, Origin
from seqloom.tasks.forecaster_series import (
    SeriesConfig,
    SeriesReader,
    View,
    as_series,
    knows_its_place,
)
from seqloom.tasks.forecaster_training import (
    Parts,
    conformal_offsets,
    cut,
    last_scores,
    quantile_goal,
    target_moments,
)
from seqloom.tasks.supervised_objective import Examples

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Forecaster(Estimator):
    r"""Learns what comes next in a series of numbers, of one column or several.

    A recurrent network reads the last `window` rows and gives quantiles of each of the next
    `horizon` rows at once: the median, and the ends of an interval. The quantiles are trained by
    the pinball loss, which assumes no distribution and lets intervals widen with the step and the
    state; on the rows that validate the ends are then moved so that the interval covers the share
    it names (conformalized quantile regression). Inputs and targets are scaled inside.

    It knows rows, no calendar. A season is a number of rows.

    Args:
        arch: "recurrent".
        horizon: How many rows ahead.
        window: How many rows are read before a forecast.
        season: Rows of a season, for `harmonics` and for the naive forecast that errors are
            compared with; 1 for none.
        difference: Read differences to the row so many rows before, and forecast them: 1 for a
            series that drifts, `season` for one whose seasons grow. With 0 the numbers themselves
            are read, and forecasts are differences to the last row.
        harmonics: How many sine and cosine waves of the season are read, too: for a season that is
            longer than the window. Rows are then counted from the first row of `fit`.
        transform: "log" or "sqrt" of the columns that are forecast, undone at the end; "none".
        columns: The names of those that are forecast; by default all. The others are read.
        gaps: What is done about missing numbers: "refuse", or "interpolate" by straight lines.
        interval: The share of cases that an interval is to cover.
        valid_share: The share of the rows, the last, that decides when training stops and that
            intervals are calibrated on; None takes 0.2. With 0 there is neither.
        training: Settings of the loop.
        options: Settings of the architecture: `cell`, `hidden_size`, `reads` ("last" or "each"),
            `num_layers`, `dropout`, ...

    Attributes:
        columns_: The names of the columns of the series.
        reader_: How the series was read; settings that change after `fit` change nothing of it.
        offsets_: By column that is forecast, how far the ends of intervals were moved, in units of
            the spread of what is forecast.

    Examples:
        >>> wave = np.sin(np.arange(120) / 4)
        >>> model = Forecaster(horizon=3, window=12, training={"epochs": 30}).fit(wave)
        >>> errors = model.forecast(wave).median[:, 0] - np.sin(np.arange(120, 123) / 4)
        >>> bool(np.abs(errors).max() < 0.2)
        True
    """

    task: ClassVar[str] = "forecast"
    settings: ClassVar[tuple[str, ...]] = (
        "horizon",
        "window",
        "season",
        "difference",
        "harmonics",
        "transform",
        "columns",
        "gaps",
        "interval",
        "valid_share",
        "training",
    )
    columns: Sequence[str] | None
    valid_share: float | None
    columns_: tuple[str, ...]
    reader_: SeriesReader
    offsets_: NDArray[np.float64]

    def __init__(
        self,
        arch: str = "recurrent",
        *,
        horizon: int = 1,
        window: int = 24,
        season: int = 1,
        difference: int = 0,
        harmonics: int = 0,
        transform: Literal["none", "log", "sqrt"] = "none",
        columns: Sequence[str] | None = None,
        gaps: Literal["refuse", "interpolate"] = "refuse",
        interval: float = 0.8,
        valid_share: float | None = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            horizon=horizon,
            window=window,
            season=season,
            difference=difference,
            harmonics=harmonics,
            transform=transform,
            columns=columns,
            gaps=gaps,
            interval=interval,
            valid_share=valid_share,
            training=training,
        )

    def series_config(self) -> SeriesConfig:
        """Return how a series is read; wrong settings are refused."""
        names = [name for name in self.settings if name not in ("valid_share", "training")]
        values = {name: getattr(self, name) for name in names}
        if isinstance(self.columns, str):
            raise ConfigError(f"columns must be a list of names, got {self.columns!r}")
        if self.columns is not None:
            values["columns"] = tuple(self.columns)
        return from_dict(SeriesConfig, values)

    # -- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        series: Any,
        valid: None = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from a series. Progress is shown where there is an `out`.

        Args:
            series: Numbers (T,), a table (T, D), a data frame, a file or "NAME:SPLIT" (see
                `seqloom.data.series.read_series`). Rows follow each other at equal steps.
            valid: None: the last rows of the series validate; see `valid_share`.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.

        Raises:
            InputError: If the series is too short for the window, or has gaps that are refused.
        """
        if valid is not None:
            raise ConfigError(
                f"the last rows of the series validate, got valid={valid!r}; set valid_share"
            )
        config = self.series_config()
        reads = self.build_config(input_size=1, output_size=1).reads
        share = self._share()
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            given = as_series(series)
            reader = SeriesReader(config, given.columns, given.start)
            rows = config.difference + config.window + config.horizon
            view = reader.view(reader.checked(given, rows, "to learn from"))
            parts = cut(reader, view, share, each=reads == "each")
            run = settings.with_data(self.training, is_checked=parts.valid is not None)
            model, learned = self._learn(reader, parts, run.about(rows=len(given)))
            self.model_, self.metrics_ = model, learned.metrics
            self.reader_, self.columns_ = reader, given.columns
            self.offsets_ = self._calibrated(reader, parts.valid)
            facts = {"rows": len(given), **learned.history}
            self.provenance_ = origin(series, None, run.training, **facts)
        return self

    def _share(self) -> float:
        share = self.valid_share
        if share is None:
            return float(load_config_class(self.architecture).VALID_SHARE)
        if not (isinstance(share, int | float) and 0 <= share < 1):
            raise ConfigError(f"valid_share must lie in [0, 1), got {share!r}")
        return float(share)

    def _learn(self, reader: SeriesReader, parts: Parts, run: RunSettings) -> tuple[Any, Learned]:
        features, levels = parts.train.features, reader.config.levels
        config = self.build_config(input_size=features.width, output_size=reader.output_size)
        run = replace(run, facts={**run.facts, "model": to_dict(config), "series": to_dict(reader)})
        with torch.random.fork_rng():
            torch.manual_seed(run.training.seed)
            model = load_model_class(self.architecture)(config)
            mean, variance = (torch.from_numpy(part) for part in features.moments())
            model.input.standardize(mean, diagonal_basis(variance, 0.0))
            model.rescale(*target_moments(parts.train, len(levels)))
            goal = quantile_goal(model.scale, levels)
            learned = run_training(model, parts.train, parts.valid, goal, run)
        return model, learned

    def _calibrated(self, reader: SeriesReader, valid: Examples | None) -> NDArray[np.float64]:
        count = len(reader.targets)
        if valid is None:
            return np.zeros(count)
        scores, scale = last_scores(self.model_, valid), self.model_.scale.numpy()
        return conformal_offsets(scores, valid.targets, scale, reader.config.interval, count)

    # -- use -------------------------------------------------------------------------------------

    def forecast(self, series: Any, *, start: int | None = None) -> Forecast:
        """Return what comes after the end of a series.

        Args:
            series: As `fit` takes it; of its rows the last `window + difference` count.
            start: How many rows lie between the first row of `fit` and that of this series; only
                `harmonics` look at it. 0 unless the series is a file, or a part of one.
        """
        self.require_fitted()
        given, reader = self._placed(series, start), self.reader_
        view = reader.view(reader.checked(given, reader.config.rows_needed, "for a forecast"))
        return self._forecasts(reader, view, np.array([len(given) - 1]))[0]

    def predict_lines(self, lines: Sequence[str]) -> NoReturn:
        """For the command line: a series is no list of lines."""
        raise ConfigError(
            f"a forecast is of a whole series, got {len(lines)} lines; use seqloom forecast"
        )

    def _placed(self, series: Any, start: int | None = None) -> Series:
        """A series that knows how far it is from the one of `fit`."""
        given = as_series(series)
        if start is None and knows_its_place(series):
            return given
        return replace(given, start=self.reader_.start + (start or 0))

    def _forecasts(
        self, reader: SeriesReader, view: View, origins: NDArray[np.int64]
    ) -> list[Forecast]:
        """The forecasts after some rows."""
        config, count = reader.config, len(reader.targets)
        examples = Examples(reader.features(view, origins), origins)
        scores = last_scores(self.model_, examples).reshape(len(origins), config.horizon, count, -1)
        moved = self.offsets_[:, None] * self.model_.scale.numpy().reshape(scores.shape[1:])
        scores = np.sort(scores, axis=-1)
        middle = scores[..., 1]
        scores[..., 0] = np.minimum(scores[..., 0] - moved[..., 0], middle)
        scores[..., -1] = np.maximum(scores[..., -1] + moved[..., -1], middle)
        found = reader.quantiles(scores, view, origins)
        names = tuple(reader.columns[place] for place in reader.targets)
        return [
            Forecast(each[..., 1], each[..., 0], each[..., 2], config.interval, names)
            for each in found
        ]

    def evaluate(self, series: Any, *, origins: int = 5) -> dict[str, float]:
        """Return how good forecasts of the last rows are, without fitting anew.

        It is honest where the model was fitted to the rows before: all but the last
        `origins * horizon`.

        Args:
            series: As `fit` takes it.
            origins: How many forecasts are made, `horizon` rows apart, the last of the last rows.

        Returns:
            What `Backtest.metrics` has.
        """
        return self.backtest(series, origins=origins, refit=False).metrics()

    def backtest(self, series: Any, *, origins: int = 5, refit: bool = True) -> Backtest:
        """Forecast the last rows of a series as if they had not come yet.

        Paper: Tashman (2000), "Out-of-Sample Tests of Forecasting Accuracy", International Journal
        of Forecasting 16(4), for rolling origins.

        Args:
            series: As `fit` takes it.
            origins: From how many rows forecasts are made, `horizon` rows apart.
            refit: Whether a new model with the same settings is fitted to the rows before each
                origin; this one stays as it is. Else this one makes all forecasts.

        Raises:
            InputError: If the series is too short for so many origins.
        """
        if origins < 1:
            raise ConfigError(f"origins must be at least 1, got {origins}")
        if refit:
            given = as_series(series)
            reader = SeriesReader(self.series_config(), given.columns)
        else:
            self.require_fitted()
            given, reader = self._placed(series), self.reader_
        config = reader.config
        first = len(given) - origins * config.horizon
        needed = max(config.rows_needed, config.season + 1)
        if first < needed:
            raise InputError(
                f"the series must have at least {needed} rows before the first of {origins} "
                f"origins {config.horizon} rows apart, got {first}; ask for fewer origins"
            )
        whole = reader.checked(given, needed, "for a back-test")
        truth = whole.values[:, reader.targets]
        found = []
        for row in range(first, len(given), config.horizon):
            before = given.rows(0, row)
            model = self if not refit else self._again().fit(before)
            forecast = model.forecast(before)
            actual = truth[row : row + config.horizon]
            found.append(Origin(row, forecast, actual, truth[:row], config.season))
        return Backtest(tuple(found))

    def _again(self) -> Self:
        """A new one with the same settings."""
        return type(self)(**self.get_params(deep=False))

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={
                "series": to_dict(self.reader_.config),
                "columns": list(self.reader_.columns),
                "start": self.reader_.start,
                "offsets": self.offsets_.tolist(),
            },
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        return write_model(directory, header, self.model_.state_dict(), {})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the forecaster a directory describes."""
        settings = stored.header.settings
        model = cls(stored.header.architecture, **settings["series"])
        config = from_dict(SeriesConfig, settings["series"])
        model.columns_ = tuple(settings["columns"])
        model.reader_ = SeriesReader(config, model.columns_, settings.get("start", 0))
        model.offsets_ = np.array(settings["offsets"], np.float64)
        model._restore(stored)
        return model
