"""What a forecaster is trained for, and how its intervals are made to hold."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seqloom.errors import InputError
from seqloom.tasks.forecaster_series import SeriesReader, View
from seqloom.tasks.supervised_objective import Examples, Goal, all_scores

Floats = NDArray[np.float64]


class Parts(NamedTuple):
    """Windows to learn from, and those that validate, if there are any.

    Args:
        train: The former.
        valid: The latter.
        origins: The rows that validating windows end at.
    """

    train: Examples
    valid: Examples | None
    origins: NDArray[np.int64]


def cut(reader: SeriesReader, view: View, share: float, *, each: bool) -> Parts:
    """Cut a series into windows; the last rows validate, and no training target lies in them.

    With `each`, windows to learn from overlap by half, since every row of them is learned from.

    Raises:
        InputError: If nothing is left to learn from.
    """
    config, count = reader.config, len(view.values)
    first = config.difference + config.window - 1  # the first row that a window ends at
    held = max(config.horizon, round(share * count)) if share else 0
    end = count - held
    last = end - 1 - config.horizon  # the last row whose targets are for training
    if last < first:
        raise InputError(
            f"the series must have at least {first + 1 + config.horizon} rows to learn from "
            f"besides the last {held} that validate, got {end}; give more rows, or set a smaller "
            "window, horizon or valid_share"
        )
    origins = np.arange(last, first - 1, -max(config.window // 2, 1) if each else -1)[::-1]
    train = reader.windows(view, origins, each=each)
    if not held:
        return Parts(train, None, np.empty(0, np.int64))
    checked = np.arange(end - 1, count - config.horizon)
    return Parts(train, reader.windows(view, checked, each=False), checked)


def target_moments(train: Examples, levels: int) -> tuple[Tensor, Tensor]:
    """Mean and spread of each target, once a level: (h N levels,) each."""
    flat = torch.from_numpy(train.targets.reshape(-1, train.targets.shape[-1])).double()
    spread = flat.std(dim=0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)
    return flat.mean(dim=0).repeat_interleave(levels), spread.repeat_interleave(levels)


def quantile_goal(scale: Tensor, levels: tuple[float, ...]) -> Goal:
    r"""Return the loss whose best forecasts are quantiles, each target in units of its spread.

    $$\sum_\tau \max(\tau e, (\tau - 1) e), \quad e = (y - \hat y_\tau) / s$$

    averaged over targets, levels and, where there are several, steps.

    Paper: Koenker and Bassett (1978), "Regression Quantiles"; Wen et al. (2017), "A Multi-Horizon
    Quantile Recurrent Forecaster", arXiv:1711.11053.
    """

    def loss(scores: Tensor, targets: Tensor) -> Tensor:
        unit = scale.to(scores).unflatten(0, (-1, len(levels)))
        taus = scores.new_tensor(levels)
        error = (targets[..., None].to(scores) - scores.unflatten(-1, (-1, len(levels)))) / unit
        lost = torch.maximum(taus * error, (taus - 1) * error)
        return lost.mean() * len(scores)

    def evaluation(model: nn.Module, examples: Examples) -> dict[str, float]:
        scores = last_scores(model, examples)
        total = loss(torch.from_numpy(scores), torch.from_numpy(examples.targets))
        return {"loss": float(total) / len(scores)}

    return Goal(loss, None, lambda *_: {}, evaluation=evaluation)


def last_scores(model: nn.Module, examples: Examples) -> Floats:
    """What the network says after the last row of each window, (n, h N levels)."""
    scores = all_scores(model, examples.features)
    return scores[:, -1] if scores.ndim == 3 else scores


def conformal_offsets(
    scores: Floats, targets: NDArray[Any], scale: Floats, interval: float, series: int
) -> Floats:
    r"""Return how much further the ends of intervals must lie, by series in units of `scale`.

    $$E_i = \max(\hat y_{lo} - y_i, \; y_i - \hat y_{hi}), \quad
    Q = \text{the } \lceil (n + 1) c \rceil \text{-th smallest of } E_1 \dots E_n$$

    over all steps of all validating windows, for intervals that are to cover a share c. Q is below
    0 where they were too wide.

    Paper: Romano, Patterson and Candes (2019), "Conformalized Quantile Regression", NeurIPS,
    equations 6 to 8.
    Differs from the paper: windows overlap and are not exchangeable, so the share is what was
    found on the validating rows, not a guarantee.
    """
    ordered = np.sort(scores.reshape(*targets.shape, -1), axis=-1)  # (n, h N, levels)
    unit = scale.reshape(targets.shape[1], -1)[:, 0]
    beyond = np.maximum(ordered[..., 0] - targets, targets - ordered[..., -1]) / unit
    by_series = np.sort(beyond.reshape(-1, series), axis=0)
    rank = min(math.ceil((len(by_series) + 1) * interval), len(by_series))
    return np.asarray(by_series[rank - 1], np.float64)
