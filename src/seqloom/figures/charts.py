"""Curves and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ConfigError, ShapeError
from seqloom.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LEGEND = 14  # with more series only some are named, evenly spread
MAX_NUMBERS = 40  # with more bars the numbers on them are left out

Floats = NDArray[np.float64]


def curve(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Draw lines: a name and (xs, ys) each; NaN leaves a gap.

    Args:
        series: The lines by name.
        bands: For some of the names, (low, high) around the line: a spread, an interval.
        xlabel: What x is, with its unit.
        ylabel: What y is, with its unit.
        title: The title.
        log_x: Use a logarithmic scale for x.
        log_y: Use a logarithmic scale for y.

    Raises:
        ConfigError: If there is nothing to draw, or a log scale meets a number <= 0.
        ShapeError: If xs, ys, low and high are not of one length.
    """
    lines = {name: _points(name, pair, log_x=log_x, log_y=log_y) for name, pair in series.items()}
    if not lines:
        raise ConfigError("series must hold at least one line, got {}")
    spreads = _spreads(bands or {}, lines)
    figure = style.new_figure(7.2, 4.4)
    axes: Any = figure.add_subplot()
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    handles = []
    for number, (name, (xs, ys)) in enumerate(lines.items()):
        color, dash = _pen(number, len(lines))
        marker = "o" if len(xs) <= 25 and len(lines) <= MAX_LEGEND else ""
        (line,) = axes.plot(xs, ys, dash, color=color, marker=marker, markersize=4, linewidth=1.8)
        handles.append(line)
        if name in spreads:
            low, high = spreads[name]
            axes.fill_between(xs, low, high, color=color, alpha=0.18, linewidth=0)
    if not log_x and all((xs[np.isfinite(xs)] % 1 == 0).all() for xs, _ in lines.values()):
        axes.xaxis.get_major_locator().set_params(integer=True)  # no half epochs
    axes.grid(color=style.GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    fonts = style.families([xlabel, ylabel, title])
    style.name_axes(axes, fonts, title=title, xlabel=xlabel, ylabel=ylabel)
    names = list(lines)
    if len(names) > 1:
        spread = np.linspace(0, len(names) - 1, min(len(names), MAX_LEGEND)).round().astype(int)
        chosen = list(dict.fromkeys(spread.tolist()))
        style.add_legend(figure, axes, [handles[i] for i in chosen], [names[i] for i in chosen])
    return figure


def _pen(number: int, count: int) -> tuple[Any, str]:
    if count <= len(style.PALETTE) * len(style.DASHES) and count <= MAX_LEGEND:
        color = style.PALETTE[number % len(style.PALETTE)]
        return color, style.DASHES[number // len(style.PALETTE)]
    from matplotlib import colormaps

    return colormaps["viridis"](0.95 * number / max(count - 1, 1)), "-"


def _points(
    name: str, pair: tuple[ArrayLike, ArrayLike], *, log_x: bool, log_y: bool
) -> tuple[Floats, Floats]:
    xs, ys = _floats(name, pair[0]), _floats(name, pair[1])
    if xs.shape != ys.shape:
        raise ShapeError(f"series {name!r} must have as many xs as ys, got {len(xs)} and {len(ys)}")
    real = np.isfinite(xs) & np.isfinite(ys)
    if not real.any():
        raise ConfigError(
            f"series {name!r} must hold a finite point, got {len(xs)} points and none finite"
        )
    for values, is_log, axis in ((xs, log_x, "x"), (ys, log_y, "y")):
        if is_log and (values[real] <= 0).any():
            raise ConfigError(
                f"series {name!r} must be positive on a log scale, got {axis} = "
                f"{values[real].min():g}; drop log_{axis}"
            )
    return xs, ys


def _spreads(
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]], lines: Mapping[str, tuple[Floats, Floats]]
) -> dict[str, tuple[Floats, Floats]]:
    spreads = {}
    for name, (low, high) in bands.items():
        if name not in lines:
            raise ConfigError(f"a band must be named as a series, got {name!r}")
        lower, upper = _floats(name, low), _floats(name, high)
        if not lower.shape == upper.shape == lines[name][0].shape:
            raise ShapeError(
                f"the band of {name!r} must have {len(lines[name][0])} values, got "
                f"{len(lower)} low and {len(upper)} high"
            )
        spreads[name] = (lower, upper)
    return spreads


def _floats(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{name!r} must hold numbers, got {str(values)[:60]}") from None
    if array.ndim != 1:
        raise ShapeError(f"{name!r} must be a plain list of numbers, got shape {array.shape}")
    return array


def bars(
    values: Mapping[str, float],
    *,
    errors: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    horizontal: bool = False,
    numbers: bool = True,
    label: str = "",
    title: str = "",
) -> Figure:
    """Draw a bar a name.

    Args:
        values: The bars, in order.
        errors: Half the length of the error bar of some of the names.
        references: Lines across all bars, such as {"published": 71.7}.
        horizontal: Lay the bars down, which suits long names.
        numbers: Write each value at its bar (left out above 40 bars).
        label: What the values are, with their unit.
        title: The title.

    Raises:
        ConfigError: If there is nothing to draw, or a value is not finite.
    """
    groups = {"": dict(values)}
    spread = {"": dict(errors)} if errors else None
    return grouped_bars(
        groups,
        errors=spread,
        references=references,
        horizontal=horizontal,
        numbers=numbers,
        label=label,
        title=title,
    )


def grouped_bars(
    values: Mapping[str, Mapping[str, float]],
    *,
    errors: Mapping[str, Mapping[str, float]] | None = None,
    references: Mapping[str, float] | None = None,
    horizontal: bool = False,
    numbers: bool = True,
    label: str = "",
    title: str = "",
) -> Figure:
    """Draw several series of bars side by side: {series: {name: value}}, as {"LSTM": {"PTB": 78}}.

    A name missing from a series leaves a gap. The other arguments are those of `bars`.

    Raises:
        ConfigError: If there is nothing to draw, or a value is not finite.
    """
    names = list(dict.fromkeys(name for series in values.values() for name in series))
    _check_bars(values, names, errors or {}, references or {})
    total = len(names) * len(values)
    figure = style.new_figure(*_bar_figure_size(len(names), total, horizontal=horizontal))
    axes = figure.add_subplot()
    thickness = 0.8 / len(values)
    across = (float(figure.get_size_inches()[0]) - 1.5) / len(names)
    room = None if horizontal else across if len(values) == 1 else across * thickness
    handles, margin = [], 0.14
    for number, (series, heights) in enumerate(values.items()):
        spread = (errors or {}).get(series, {})
        present = [name for name in names if name in heights]
        places = [names.index(name) + (number + 0.5) * thickness - 0.4 for name in present]
        container = _draw_bars(
            axes,
            places,
            [float(heights[name]) for name in present],
            [float(spread.get(name, np.nan)) for name in present] if spread else None,
            thickness=thickness * (0.94 if len(values) > 1 else 1),
            color=_pen(number, len(values))[0],
            horizontal=horizontal,
        )
        handles.append(container)
        if numbers and total <= MAX_NUMBERS:
            upright = _write_numbers(axes, container, [heights[n] for n in present], room)
            margin = max(margin, 0.28 if upright else 0.0)
    _finish_bars(figure, axes, names, horizontal=horizontal, label=label, title=title)
    axes.margins(x=margin) if horizontal else axes.margins(y=margin)
    labels = list(values) if len(values) > 1 else []
    handles = handles if labels else []
    for number, (name, value) in enumerate((references or {}).items()):
        draw = axes.axvline if horizontal else axes.axhline
        dash = style.DASHES[1 + number % 3]
        handles.append(draw(value, color=style.INK, linestyle=dash, linewidth=1.3))
        labels.append(name)
    if labels:
        style.add_legend(figure, axes, handles, labels, outside=True)
    return figure


def _check_bars(
    values: Mapping[str, Mapping[str, float]],
    names: Sequence[str],
    errors: Mapping[str, Mapping[str, float]],
    references: Mapping[str, float],
) -> None:
    if not names:
        raise ConfigError(f"values must hold at least one bar, got {dict(values)}")
    for series, heights in (*values.items(), ("references", references), *errors.items()):
        for name, value in heights.items():
            if not np.isfinite(_floats(name, [value])).all():
                where = f" of {series!r}" if series else ""
                raise ConfigError(f"{name!r}{where} must be finite, got {value}")
    for series, heights in errors.items():
        for name, value in heights.items():
            if name not in values.get(series, {}):
                raise ConfigError(f"an error bar must belong to a bar, got {name!r}")
            if value < 0:
                raise ConfigError(f"the error of {name!r} must not be negative, got {value}")


def _bar_figure_size(names: int, total: int, *, horizontal: bool) -> tuple[float, float]:
    if horizontal:
        return 7.2, 1.2 + max(0.19 * total, 0.3 * min(names, 40), 0.8)
    return max(4.2 if total < 4 else 6.4, min(0.16 * total + 1.5, 40)), 4.4


def _draw_bars(
    axes: Any,
    places: Sequence[float],
    heights: Sequence[float],
    errors: Sequence[float] | None,
    *,
    thickness: float,
    color: Any,
    horizontal: bool,
) -> Any:
    whisker = {"elinewidth": 1.1, "capsize": 2.5, "ecolor": style.INK}
    if horizontal:
        return axes.barh(places, heights, thickness, xerr=errors, color=color, error_kw=whisker)
    return axes.bar(places, heights, thickness, yerr=errors, color=color, error_kw=whisker)


def _write_numbers(axes: Any, container: Any, values: Sequence[float], room: float | None) -> bool:
    """Write each value at its bar; tell whether they stand upright, `room` inches being too few."""
    texts = [_number(value) for value in values]
    size = style.SMALL if len(values) <= 20 and (room is None or room > 0.18) else 7.0
    latin = [style.LATIN_FAMILY]
    widest = max((style.text_width(axes.figure, text, size, latin) for text in texts), default=0.0)
    turned = room is not None and widest > 0.95 * room
    axes.bar_label(
        container, texts, padding=3, fontsize=size, color=style.INK, rotation=90 if turned else 0
    )
    return turned


def _finish_bars(
    figure: Figure, axes: Any, names: list[str], *, horizontal: bool, label: str, title: str
) -> None:
    fonts = style.families([*names, label, title])
    size = style.SMALL if len(names) <= 60 else 7.0
    if horizontal:
        style.name_axes(axes, fonts, title=title, xlabel=label)
        style.name_ticks(axes.yaxis, names, fonts, size)
        axes.invert_yaxis()
        axes.set_ylim(len(names) - 0.45, -0.55)
        axes.grid(axis="x", color=style.GRID, linewidth=0.7)
        axes.axvline(0, color=style.FAINT, linewidth=0.8)
    else:
        style.name_axes(axes, fonts, title=title, ylabel=label)
        room = (float(figure.get_size_inches()[0]) - 1.2) / len(names)
        widest = max(style.text_width(figure, style.shown(name), size, fonts) for name in names)
        turned: dict[str, Any] = {}
        if widest > room * 0.95:
            steep = room < 0.3
            turned = {"rotation": 90 if steep else 40, "rotation_mode": "anchor", "ha": "right"}
            turned["va"] = "center" if steep else "top"
        style.name_ticks(axes.xaxis, names, fonts, size, **turned)
        axes.set_xlim(-0.55 if len(names) > 1 else -1, len(names) - (0.45 if len(names) > 1 else 0))
        axes.grid(axis="y", color=style.GRID, linewidth=0.7)
        axes.axhline(0, color=style.FAINT, linewidth=0.8)
    axes.set_axisbelow(True)


def _number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
