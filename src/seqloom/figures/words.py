"""Weights over words: heat maps and shaded sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.errors import ConfigError, ShapeError
from seqloom.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ANNOTATED = 15  # rows or columns of a heat map whose cells still carry their numbers
_MISSING = "#BBBBBB"


def heatmap(
    matrix: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    label: str = "",
    low: float | None = None,
    high: float | None = None,
    annotate: bool | None = None,
) -> Figure:
    """Draw a matrix over words, as attention of target words (rows) over source words (columns).

    Darker is more; if there are negative numbers, blue is below and red above zero. NaN is grey.

    Args:
        matrix: The numbers, a row a name of `rows`.
        rows: Names of the rows, top to bottom.
        columns: Names of the columns, left to right.
        title: The title.
        label: What the numbers are.
        low: The number with the palest colour; else the least one, or 0 if none is below.
        high: The number with the darkest colour; else the greatest one.
        annotate: Write the numbers in the cells; else done up to 15 x 15.

    Raises:
        ShapeError: If the matrix is ragged or does not fit the names.
        ConfigError: If it is empty or holds no finite number.
    """
    values = _matrix(matrix, len(rows), len(columns))
    low, high = _limits(values, low, high)
    if annotate is None:
        annotate = max(values.shape) <= MAX_ANNOTATED
    fonts = style.families([*rows, *columns, title, label])
    cell, size = _cell(max(values.shape), annotate=annotate)
    probe = style.new_figure(1, 1)
    row_room = max(style.text_width(probe, style.shown(name), size, fonts) for name in rows)
    widest = max(style.text_width(probe, style.shown(name), size, fonts) for name in columns)
    turned = widest > cell * 0.92
    width = max(values.shape[1] * cell, 0.6) + row_room + 1.6
    title_room = style.text_width(probe, style.shown(title, 90), style.TITLE, fonts)
    height = max(values.shape[0] * cell, 1.2) + (widest if turned else 0.25) + 0.8
    figure = style.new_figure(max(width, 2.6, title_room + 0.6), height)
    axes = figure.add_subplot()
    from matplotlib import colormaps

    colors = colormaps["RdBu_r" if low < 0 else "Blues"].with_extremes(bad=_MISSING)
    image = axes.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
    style.name_axes(axes, fonts, title=title)
    axes.xaxis.tick_top()
    upright: dict[str, Any] = {"rotation": 90, "ha": "center"} if turned else {}
    style.name_ticks(axes.xaxis, list(columns), fonts, size, **upright)
    style.name_ticks(axes.yaxis, list(rows), fonts, size)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if cell >= 0.18:
        axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.0)
        axes.tick_params(which="minor", length=0, top=False, bottom=False, left=False)
    bar = figure.colorbar(image, ax=axes, aspect=max(18.0, height / 0.2), pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=style.INK, length=2)
    if label:
        bar.set_label(label, fontfamily=fonts, fontsize=style.SMALL, color=style.INK)
        bar.ax.yaxis.label.set_parse_math(False)
    if annotate:
        _annotate(axes, image, values)
    return figure


def _matrix(matrix: ArrayLike, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    try:
        values = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        found = [
            len(row) if hasattr(row, "__len__") else row for row in cast(Iterable[Any], matrix)
        ]
        raise ShapeError(
            f"matrix must hold numbers in rows of one length, got rows of {found[:10]}"
        ) from None
    if values.shape != (n_rows, n_columns):
        raise ShapeError(
            f"matrix must be ({n_rows}, {n_columns}) like its names, got {values.shape}"
        )
    if not values.size:
        raise ConfigError(f"matrix must hold at least one number, got shape {values.shape}")
    if not np.isfinite(values).any():
        raise ConfigError(f"matrix must hold a finite number, got {values.size} and none finite")
    return np.where(np.isfinite(values), values, np.nan)


def _limits(
    values: NDArray[np.float64], low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the ends of the colour scale: from zero, or the same distance to both sides of it."""
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    if low is None and high is None and least < 0:
        reach = max(-least, most)
        return -reach, reach
    low = min(least, 0.0) if low is None else low
    high = most if high is None else high
    if high < low:
        raise ConfigError(f"high must not be below low, got low={low:g} and high={high:g}")
    return low, high if high > low else low + 1.0


def _cell(longest: int, *, annotate: bool) -> tuple[float, float]:
    """Return the side of a cell in inches and the size of the names in points."""
    if annotate:
        return 0.46, style.SMALL
    for limit, side, size in ((20, 0.34, 9.0), (40, 0.24, 9.0), (80, 0.16, 8.0)):
        if longest <= limit:
            return side, size
    return (0.1, 6.0) if longest <= 250 else (max(20 / longest, 0.01), 2.0)


def _annotate(axes: Any, image: Any, values: NDArray[np.float64]) -> None:
    whole = bool((np.nan_to_num(values) % 1 == 0).all())
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        text = f"{value:.0f}" if whole or abs(value) >= 100 else f"{value:.2f}"
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=8 if len(text) < 6 else 6,
            color=_ink_on(image.cmap(image.norm(value))),
        )


def _ink_on(color: Any) -> str:
    """Return black or white, whichever is read better on a colour."""
    red, green, blue = color[:3]
    return style.INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.52 else "white"


def word_weights(
    words: Sequence[str],
    weights: Sequence[float] | NDArray[np.floating[Any]],
    *,
    title: str = "",
    width: float = 7.2,
    high: float | None = None,
) -> Figure:
    """Draw a text with each word shaded by its weight, as attention over a sentence.

    Args:
        words: The words, in order.
        weights: A number a word; with negative ones blue is below and red above zero.
        title: The title.
        width: Of the figure, in inches; the text is broken into lines to fit.
        high: The weight with the darkest colour; else the greatest one.

    Raises:
        ShapeError: If there are not as many weights as words.
        ConfigError: If there are none, or a weight is not finite.
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(words),):
        raise ShapeError(f"there must be one weight a word, {len(words)}, got {values.shape}")
    if not len(words):
        raise ConfigError("there must be at least one word, got none")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ConfigError(f"the weight of {words[place]!r} must be finite, got {values[place]}")
    low, high = _limits(values, None if high is None or values.min() >= 0 else -high, high)
    size, line, margin = 12.0, 0.36, 0.2
    fonts = style.families([*words, title])
    names = [style.shown(word, 60) or " " for word in words]
    probe = style.new_figure(width, 1)
    widths = [style.text_width(probe, name, size, fonts) + 0.1 for name in names]
    places, n_lines = _wrap(widths, width - 2 * margin)
    if n_lines == 1:  # a short text needs no wide sheet
        title_room = style.text_width(probe, style.shown(title, 90), style.TITLE, fonts)
        used = max(places[-1][0] + widths[-1], title_room, 2.4)
        width = min(width, used + 2 * margin)
    top = margin + (0.4 if title else 0.0)
    height = top + n_lines * line + 0.55 + margin
    figure = style.new_figure(width, height, constrained=False)
    width, height = (float(side) for side in figure.get_size_inches())
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import FancyBboxPatch

    shade = ScalarMappable(Normalize(low, high), colormaps["RdBu_r" if low < 0 else "Blues"])
    if title:
        style_title: dict[str, Any] = {
            "fontsize": style.TITLE,
            "fontfamily": fonts,
            "color": style.INK,
        }
        axes.text(margin, margin, style.shown(title, 90), va="top", parse_math=False, **style_title)
    for name, value, across, (x, row) in zip(names, values, widths, places, strict=True):
        color = shade.to_rgba(value)
        left, middle = margin + x, top + (row + 0.5) * line
        box = FancyBboxPatch(
            (left, middle - 0.14),
            across,
            0.28,
            boxstyle="round,pad=0,rounding_size=0.04",
            facecolor=color,
            edgecolor="none",
        )
        axes.add_patch(box)
        axes.text(
            left + across / 2,
            middle + 0.005,
            name,
            ha="center",
            va="center_baseline",
            fontsize=size,
            fontfamily=fonts,
            color=_ink_on(color),
            parse_math=False,
        )
    _weight_scale(figure, shade, (margin, height), min(2.4, width - 2 * margin))
    return figure


def _wrap(widths: Sequence[float], room: float) -> tuple[list[tuple[float, int]], int]:
    """Return (x, line) of each box, and the number of lines."""
    places: list[tuple[float, int]] = []
    x, row, gap = 0.0, 0, 0.04
    for across in widths:
        if x > 0 and x + across > room:
            x, row = 0.0, row + 1
        places.append((x, row))
        x += across + gap
    return places, row + 1


def _weight_scale(figure: Figure, shade: Any, corner: tuple[float, float], length: float) -> None:
    width, height = (float(side) for side in figure.get_size_inches())
    left = corner[0] + 0.1
    axes = figure.add_axes((left / width, 0.36 / height, (length - 0.2) / width, 0.09 / height))
    bar = figure.colorbar(shade, cax=axes, orientation="horizontal")
    bar.outline.set_visible(False)
    low, high = shade.get_clim()
    middle = 0.0 if low < 0 else (low + high) / 2
    bar.set_ticks([low, middle, high], labels=[f"{tick:.2g}" for tick in (low, middle, high)])
    axes.tick_params(labelsize=8, colors=style.INK, length=2)
