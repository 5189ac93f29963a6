"""Models side by side: a table whose first column is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.errors import ConfigError, ShapeError
from seqloom.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.34  # inches a row
SHADE = "#F4F4F4"


def interval_table(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    label: str = "",
    title: str = "",
) -> Figure:
    """Draw a row a name: a point with its interval, and beside it what else there is to say.

    The scale is logarithmic, so that equal distances are equal ratios.

    Args:
        rows: (value, low, high) by name, in order; all positive.
        columns: Further columns of text by heading, one entry a row.
        label: What the values are, with their unit.
        title: The title.

    Raises:
        ConfigError: If there is nothing to draw, or a number is not positive and finite.
        ShapeError: If a column is not as long as there are rows.
    """
    if not rows:
        raise ConfigError("rows must hold at least one row, got {}")
    for name, numbers in rows.items():
        if not all(np.isfinite(number) and number > 0 for number in numbers):
            raise ConfigError(f"{name!r} must have positive, finite numbers, got {numbers}")
    columns = dict(columns or {})
    for heading, cells in columns.items():
        if len(cells) != len(rows):
            raise ShapeError(f"column {heading!r} must have {len(rows)} entries, got {len(cells)}")
    fonts = style.families([*rows, label, title])
    probe = style.new_figure(1, 1)
    widths = [
        0.22 + max(style.text_width(probe, text, style.SMALL, fonts) for text in (heading, *cells))
        for heading, cells in columns.items()
    ]
    names = 0.2 + max(style.text_width(probe, style.shown(n), style.SMALL, fonts) for n in rows)
    plot, height = 3.6, ROW * len(rows)
    width = names + plot + sum(widths) + 0.3
    top, bottom = 0.75 if title else 0.4, 0.65
    figure = style.new_figure(width, height + top + bottom, constrained=False)
    total = height + top + bottom
    axes: Any = figure.add_axes((names / width, bottom / total, plot / width, height / total))
    _draw(axes, list(rows.values()), right=1 + sum(widths) / plot)
    style.name_axes(axes, fonts, xlabel=label)
    axes.xaxis.label.set_fontsize(style.SMALL)
    style.name_ticks(axes.yaxis, list(rows), fonts, style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if title:
        figure.text(
            0.15 / width, 1 - 0.2 / total, style.shown(title, 90), fontsize=style.TITLE,
            fontfamily=fonts, color=style.INK, ha="left", va="top", parse_math=False,
        )  # fmt: skip
    at = names + plot
    for (heading, cells), wide in zip(columns.items(), widths, strict=True):
        at += wide
        for place, text in ((-0.72, heading), *enumerate(cells)):
            axes.text(
                (at - names) / plot, place, text, transform=axes.get_yaxis_transform(),
                fontsize=style.SMALL, fontfamily=fonts, ha="right", va="center", clip_on=False,
                color=style.FAINT if place < 0 else style.INK, parse_math=False,
            )  # fmt: skip
    return figure


def _draw(axes: Any, rows: Sequence[tuple[float, float, float]], *, right: float) -> None:
    """Points with their lines; every second row is shaded, as far right as the columns go."""
    axes.set_xscale("log")
    ends = [number for row in rows for number in row]
    low, high = min(ends), max(ends)
    margin = max((high / low) ** 0.06, 1.02)
    axes.set_xlim(low / margin, high * margin)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for place, (value, lower, upper) in enumerate(rows):
        if place % 2 == 0:
            shade = axes.axhspan(place - 0.5, place + 0.5, 0, right + 0.03, color=SHADE, zorder=0)
            shade.set(clip_on=False, linewidth=0)
        color = style.PALETTE[1] if place == 0 else style.PALETTE[0]
        axes.plot([lower, upper], [place, place], color=color, linewidth=2.2, alpha=0.55)
        axes.plot([value], [place], "o", color=color, markersize=6)
    axes.axvline(rows[0][0], color=style.FAINT, linewidth=0.9, linestyle=":")
    _label_ratios(axes.xaxis, low, high)
    axes.grid(axis="x", color=style.GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def context_curves(
    series: Mapping[str, Mapping[int | None, float]], *, label: str = "", title: str = ""
) -> Figure:
    """Draw how a measure falls with the length of context, a line a model; None is "all".

    Args:
        series: By name, the measure by length.
        label: What is measured.
        title: The title.

    Raises:
        ConfigError: If there is nothing to draw, or a number is not positive and finite.
    """
    if not series or not any(series.values()):
        raise ConfigError("series must hold at least one line, got {}")
    for name, values in series.items():
        for length, value in values.items():
            if not (np.isfinite(value) and value > 0):
                raise ConfigError(f"{name!r} must be positive and finite, got {value} at {length}")
    known = sorted({k for values in series.values() for k in values if k is not None})
    lengths: list[int | None] = [*known, None]
    figure = style.new_figure(9.4, 4.6)
    axes: Any = figure.add_subplot()
    axes.set_yscale("log")
    handles = []
    for number, values in enumerate(series.values()):
        color = style.PALETTE[number % len(style.PALETTE)]
        dash = style.DASHES[number // len(style.PALETTE) % len(style.DASHES)]
        places = [i for i, k in enumerate(lengths) if k in values]
        ys = [values[lengths[i]] for i in places]
        (line,) = axes.plot(
            places, ys, dash, color=color, marker="o", markersize=4.5, linewidth=1.8
        )
        handles.append(line)
    names = [str(k) for k in known] + ["all"]
    fonts = style.families([*series, label, title])
    style.name_axes(
        axes, fonts, title=title, xlabel="tokens of context, the rest forgotten", ylabel=label
    )
    style.name_ticks(axes.xaxis, names, fonts, style.SMALL)
    every = [v for values in series.values() for v in values.values()]
    _label_ratios(axes.yaxis, min(every), max(every))
    axes.grid(color=style.GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    if len(series) > 1:
        style.add_legend(figure, axes, handles, list(series), outside=True)
    return figure


def _label_ratios(axis: Any, low: float, high: float) -> None:
    """Plain numbers along a logarithmic scale, whatever its span."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if high / low > 8:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=14))
    else:
        round_numbers = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
        axis.set_major_locator(FixedLocator([n for n in round_numbers if n > 0]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
