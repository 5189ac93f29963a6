"""The house style: colours, sizes, fonts (Chinese too), and how a figure is saved."""

from __future__ import annotations

import inspect
import re
import secrets
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.errors import BackendError, ConfigError, DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers; their yellow is too pale for lines.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
DASHES = ("-", "--", ":", "-.")
INK, FAINT, GRID = "#222222", "#777777", "#DDDDDD"
TITLE, LABEL, SMALL = 13.0, 11.0, 9.0  # font sizes in points
MAX_LABEL = 36  # characters of a name shown before it is cut
MAX_INCHES = 60.0
SUFFIXES = (".png", ".svg", ".pdf")

LATIN_FAMILY = "DejaVu Sans"  # comes with matplotlib
CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Heiti SC",
    "Heiti TC",
    "STHeiti",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "Source Han Sans",
    "Source Han Sans JP",
    "Droid Sans Fallback",
    "AR PL UMing CN",
    "AR PL UKai CN",
    "SimSun",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
    "Arial Unicode MS",
)
_CJK = re.compile(
    "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_CJK_FILE = re.compile(r"cjk|wqy|sourcehan|noto\w*(sc|tc|jp)\b|droidsansfallback|uming|ukai", re.I)
_MISSING = re.compile(r"Glyph (\d+) ")
_SAVING = threading.Lock()  # matplotlib keeps how SVG text is written in a global setting


def new_figure(width: float, height: float, *, constrained: bool = True) -> Figure:
    """Return an empty figure of a size in inches, on no screen and in no global list.

    Raises:
        BackendError: If matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    size = (min(width, MAX_INCHES), min(height, MAX_INCHES))
    engine = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1) if constrained else None
    return Figure(figsize=size, layout=engine, facecolor="white")


def require_matplotlib() -> None:
    """Raise BackendError, with the remedy, if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401 (imported when used)
    except ImportError:
        raise BackendError(
            "figures need matplotlib, got none; pip install 'seqloom[figures]'"
        ) from None


def shown(text: str, limit: int = MAX_LABEL) -> str:
    """Return a name as it is drawn: white space made visible, long names cut."""
    text = text.replace("\r\n", "\n").replace("\n", "↵").replace("\t", "⇥")
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def families(texts: Iterable[str]) -> list[str]:
    """Return the font families for these texts: one for Latin, and one for Chinese if needed.

    Where there is none for Chinese, one warning says what to do.
    """
    if not any(_CJK.search(text) for text in texts):
        return [LATIN_FAMILY]
    family = cjk_family()
    if family is None:
        _warn_no_font()
        return [LATIN_FAMILY]
    return [LATIN_FAMILY, family]


def cjk_family() -> str | None:
    """Return the first family with Chinese characters that is installed, or None."""
    installed = installed_families()
    return next((family for family in CJK_FAMILIES if family in installed), None)


@cache
def installed_families() -> frozenset[str]:
    """Return the families matplotlib can draw with, fonts newer than its own list included."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    names = {font.name for font in manager.ttflist}
    if names.isdisjoint(CJK_FAMILIES):
        listed = {Path(font.fname) for font in manager.ttflist}
        for path in map(Path, font_manager.findSystemFonts()):
            if path not in listed and _CJK_FILE.search(path.name):
                try:
                    manager.addfont(path)
                except (OSError, RuntimeError):  # a font FreeType cannot read is as good as none
                    continue
        names = {font.name for font in manager.ttflist}
    return frozenset(names)


@cache
def _warn_no_font() -> None:
    warnings.warn(
        "no font with Chinese characters is installed, so they are drawn as boxes; install one "
        "(Debian, Ubuntu: fonts-noto-cjk; Fedora: google-noto-sans-cjk-fonts) or save as .svg, "
        "which is shown with the reader's fonts",
        UserWarning,
        stacklevel=_callers_level(),
    )


def _callers_level() -> int:
    """Return the stacklevel, for whoever calls this, of the first frame outside this room."""
    here = str(Path(__file__).parent)
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def _gathered_warnings(missing: set[str]) -> Iterator[None]:
    """Gather the characters matplotlib says no font has; let other warnings through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for item in caught:
        found = _MISSING.match(str(item.message))
        if found:
            missing.add(chr(int(found[1])))
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)


def text_width(figure: Figure, text: str, size: float, names: list[str]) -> float:
    """Return the width of a text in inches, as it will be drawn (or, without a font, would be)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.font_manager import FontProperties

    renderer = FigureCanvasAgg(figure).get_renderer()
    properties = FontProperties(family=names, size=size)
    wide = 0
    if names == [LATIN_FAMILY]:
        wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
        text = "".join(char for char in text if unicodedata.east_asian_width(char) not in "WF")
    with _gathered_warnings(set()):
        pixels, _, _ = renderer.get_text_width_height_descent(text, properties, False)
    return float(pixels) / float(figure.dpi) + wide * size / 72


def name_axes(
    axes: Any, names: list[str], *, title: str = "", xlabel: str = "", ylabel: str = ""
) -> None:
    """Give axes their title and labels, taken literally ("$" is no formula), and thin frames."""
    for text, setter, size in (
        (title, partial(axes.set_title, pad=10), TITLE),
        (xlabel, axes.set_xlabel, LABEL),
        (ylabel, axes.set_ylabel, LABEL),
    ):
        if text:
            setter(shown(text, 90), fontsize=size, fontfamily=names, color=INK, parse_math=False)
    axes.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)


def name_ticks(axis: Any, labels: list[str], names: list[str], size: float, **layout: Any) -> None:
    """Put one tick with a literal name at each of 0, 1, 2, ..."""
    axis.set_ticks(range(len(labels)))
    axis.set_ticklabels(
        [shown(label) for label in labels], fontfamily=names, fontsize=size, parse_math=False
    )
    for label in axis.get_ticklabels():
        label.update(layout)


def add_legend(
    figure: Figure, axes: Any, handles: list[Any], labels: list[str], *, outside: bool = False
) -> None:
    """Add a legend of literal names: beside the axes if it is large or asked to be `outside`."""
    names = families(labels)
    blank = ["x"] * len(labels)
    style = {"fontsize": SMALL, "labelcolor": INK}
    if outside or len(handles) > 6 or max(len(shown(label)) for label in labels) > 24:
        legend = figure.legend(handles, blank, loc="outside right upper", frameon=False, **style)
    else:
        legend = axes.legend(handles, blank, loc="best", framealpha=0.85, edgecolor=GRID, **style)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_fontfamily(names)
        text.set_text(shown(label))


def save(figure: Figure, path: str | PathLike[str]) -> Path:
    """Write a figure as .png, .svg or .pdf, whole or not at all; return the path.

    Text in an .svg stays text: it can be searched and is shown with the reader's fonts.

    Raises:
        ConfigError: If the name ends otherwise.
        DataError: If the file cannot be written.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(f"a figure's name must end in {', '.join(SUFFIXES)}, got {place.name!r}")
    import matplotlib as mpl

    missing: set[str] = set()
    # Type 3, because Noto's Chinese fonts are collections that type 42 writes without their glyphs.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "seqloom", "pdf.fonttype": 3}
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    temporary = place.with_name(f".{place.stem}.{secrets.token_hex(4)}{suffix}")
    try:
        with _SAVING, mpl.rc_context(settings), _gathered_warnings(missing):
            figure.savefig(temporary, format=suffix[1:], dpi=160, metadata=metadata)
        temporary.replace(place)
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror or error})", place) from None
    finally:
        temporary.unlink(missing_ok=True)
    other = sorted(char for char in missing if not _CJK.match(char))
    if other and suffix != ".svg":
        warnings.warn(
            f"no font used here has {' '.join(other[:10])}, drawn as boxes; save as .svg, which "
            "is shown with the reader's fonts",
            UserWarning,
            stacklevel=2,
        )
    return place
