"""Figures: what was asked for is in them, files are whole, bad input is refused in words."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from seqloom.errors import BackendError, ConfigError, DataError, ShapeError
from seqloom.figures import bars, curve, grouped_bars, heatmap, save, style, tree, word_weights


@dataclass
class Node:
    label: str
    children: tuple[Node, ...] = ()
    word: str | None = None


SENTENCE = Node(
    "S",
    (
        Node("NP", (Node("DT", word="the"), Node("NN", word="dog"))),
        Node("VP", (Node("VBD", word="barked"),)),
        Node(".", word="."),
    ),
)
X = np.arange(1, 6)


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


FIGURES = {
    "curve": lambda: curve({"a": (X, X**2), "b": (X, X)}, title="T", xlabel="x", ylabel="y"),
    "bars": lambda: bars({"a": 1.5, "b": 2}, title="T"),
    "grouped": lambda: grouped_bars({"m": {"a": 1, "b": 2}, "n": {"a": 3}}, title="T"),
    "heatmap": lambda: heatmap([[0.1, 0.9]], ["r"], ["a", "b"], title="T"),
    "words": lambda: word_weights(["a", "b"], [0.2, 0.8], title="T"),
    "tree": lambda: tree(SENTENCE, title="T"),
}
MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.mark.parametrize("suffix", MAGIC)
@pytest.mark.parametrize("kind", FIGURES)
def test_each_kind_is_saved_in_each_format(tmp_path, kind, suffix):
    path = tmp_path / f"figure{suffix}"
    assert save(FIGURES[kind](), path) == path
    data = path.read_bytes()
    assert data.startswith(MAGIC[suffix])
    assert len(data) > 2000
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", FIGURES)
def test_saving_twice_gives_the_same_bytes(tmp_path, kind):
    first = save(FIGURES[kind](), tmp_path / "1.svg").read_bytes()
    assert save(FIGURES[kind](), tmp_path / "2.svg").read_bytes() == first


def test_no_global_state_is_touched(tmp_path):
    before = dict(mpl.rcParams)
    for draw in FIGURES.values():
        save(draw(), tmp_path / "f.svg")
    assert dict(mpl.rcParams) == before


def test_matplotlib_is_imported_only_when_used():
    code = "import seqloom.figures, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kind", FIGURES)
def test_without_matplotlib_the_remedy_is_named(monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BackendError, match=r"pip install 'seqloom\[figures\]'"):
        FIGURES[kind]()


def test_text_in_svg_stays_text(tmp_path):
    svg = save(bars({"first & last": 3}, label="share"), tmp_path / "f.svg").read_text()
    assert "first &amp; last" in svg
    assert "share" in svg


def test_curve_holds_lines_bands_and_names():
    figure = curve(
        {"LSTM": (X, X**2), "_GRU $5 or $6": ([1, 2], [3, np.nan])},
        bands={"LSTM": (X, X**2 + 1)},
        xlabel="epoch",
        ylabel="loss",
        title="Title",
        log_y=True,
    )
    (axes,) = figure.axes
    first, second = axes.get_lines()
    assert first.get_xydata().tolist() == [[x, x * x] for x in range(1, 6)]
    assert second.get_xdata().tolist() == [1, 2]
    assert first.get_color() != second.get_color()
    assert len(axes.findobj(PolyCollection)) == 1
    assert {"LSTM", "_GRU $5 or $6", "epoch", "loss", "Title"} <= set(texts(figure))
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


def test_many_curves_name_a_few():
    figure = curve({f"run {i}": ([0, 1], [i, i]) for i in range(200)})
    assert len(figure.axes[0].get_lines()) == 200
    named = [text for text in texts(figure) if text.startswith("run")]
    assert (named[0], named[-1], len(named)) == ("run 0", "run 199", 14)


@pytest.mark.parametrize("horizontal", [False, True])
def test_bars_hold_values_errors_and_references(horizontal):
    figure = bars(
        {"a": 1.25, "b": -2, "c": 12345},
        errors={"a": 0.5},
        references={"published": 3},
        horizontal=horizontal,
        label="F1",
    )
    (axes,) = figure.axes
    sizes = [p.get_width() if horizontal else p.get_height() for p in axes.patches]
    assert sizes == [1.25, -2, 12345]
    assert {"a", "b", "c", "1.25", "-2", "12,345", "published", "F1"} <= set(texts(figure))
    ends = [line.get_xdata() if horizontal else line.get_ydata() for line in axes.get_lines()]
    assert [3, 3] in [list(end) for end in ends]


def test_grouped_bars_leave_gaps_and_stand_apart():
    figure = grouped_bars({"m": {"a": 1, "b": 2}, "n": {"b": 3}, "k": {"a": 4, "c": 5}})
    (axes,) = figure.axes
    assert [patch.get_height() for patch in axes.patches] == [1, 2, 3, 4, 5]
    spans = sorted((p.get_x(), p.get_x() + p.get_width()) for p in axes.patches)
    assert all(left[1] <= right[0] + 1e-9 for left, right in pairwise(spans))
    assert {"m", "n", "k", "a", "b", "c"} <= set(texts(figure))


def test_numbers_are_left_out_above_forty_bars():
    figure = bars({f"w{i}": i + 0.5 for i in range(200)})
    assert len(figure.axes[0].patches) == 200
    assert "7.5" not in texts(figure)


def test_heatmap_holds_the_matrix_and_the_words():
    matrix = np.array([[0.25, 0.75, np.nan], [1, 0, 0]])
    figure = heatmap(matrix, ["x_1", "$y"], ["a", "b", "a"], title="T", label="weight")
    axes, bar = figure.axes
    (image,) = axes.images
    assert np.array_equal(np.ma.filled(image.get_array(), np.nan), matrix, equal_nan=True)
    assert image.get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "a"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x_1", "$y"]
    assert {"0.25", "0.75", "T"} <= set(texts(figure))
    assert bar.get_ylabel() == "weight"


def test_heatmap_with_negative_numbers_is_symmetric_and_can_be_bare():
    figure = heatmap([[-3, 1]], ["r"], ["a", "b"], annotate=False)
    assert figure.axes[0].images[0].get_clim() == (-3, 3)
    assert "1" not in [text.get_text() for text in figure.axes[0].texts]
    assert not heatmap(np.ones((16, 2)), ["r"] * 16, ["a", "b"]).axes[0].texts


def test_heavier_words_are_darker_and_lines_wrap():
    words = ["word"] * 40
    weights = np.linspace(0, 1, 40)
    figure = word_weights(words, weights, title="T", width=5)
    boxes = figure.findobj(FancyBboxPatch)
    shades = [sum(box.get_facecolor()[:3]) for box in boxes]
    assert len(boxes) == 40
    assert all(a >= b for a, b in pairwise(shades))
    assert len({round(box.get_y(), 3) for box in boxes}) > 1
    assert all(box.get_x() + box.get_width() <= 5 for box in boxes)
    assert texts(figure).count("word") == 40


def test_tree_keeps_the_order_of_its_words():
    figure = tree(SENTENCE, title="A tree")
    words = [t for t in figure.findobj(Text) if t.get_color() == style.PALETTE[0]]
    words.sort(key=lambda text: text.get_position()[0])
    assert [text.get_text() for text in words] == ["the", "dog", "barked", "."]
    assert {"S", "NP", "VP", "DT", "NN", "VBD", "A tree"} <= set(texts(figure))
    assert len(figure.axes[0].get_lines()) == 6  # one a child


def test_tree_labels_do_not_touch():
    low = Node("A-LONG-LABEL", (Node("ANOTHER-LONG-LABEL", (Node("x", word="a"),)),))
    figure = tree(Node("r", (low, low, Node("y", word="extraordinary"), SENTENCE, low)))
    renderer = FigureCanvasAgg(figure).get_renderer()
    places = [t.get_window_extent(renderer) for t in figure.findobj(Text) if t.get_text()]
    for i, first in enumerate(places):
        assert not any(first.overlaps(second) for second in places[i + 1 :])
        assert 0 <= first.x0 < first.x1 <= figure.bbox.width


def test_a_deep_tree_is_no_trouble():
    node = Node("X", word="end")
    for _ in range(1500):
        node = Node("X", (node,))
    assert texts(tree(node)).count("X") == 1501


def test_odd_names_are_shown():
    assert style.shown("a\nb\tc\x07") == "a↵b⇥c\N{REPLACEMENT CHARACTER}"
    assert style.shown("x" * 50) == "x" * 35 + "…"


@pytest.fixture
def no_cjk_font(monkeypatch):
    monkeypatch.setattr(style, "installed_families", lambda: frozenset({"DejaVu Sans"}))
    style._warn_no_font.cache_clear()
    yield
    style._warn_no_font.cache_clear()


def test_without_a_chinese_font_there_is_one_warning(tmp_path, no_cjk_font):
    with pytest.warns(UserWarning) as caught:
        figure = bars({"北京": 1, "上海": 2}, title="城市")
        save(figure, tmp_path / "f.png")
        save(word_weights(["你", "好"], [1, 2]), tmp_path / "g.png")
        save(tree(Node("名", word="词")), tmp_path / "h.pdf")
    (warning,) = caught
    assert "fonts-noto-cjk" in str(warning.message)
    assert ".svg" in str(warning.message)
    assert warning.filename == __file__
    assert "北京" in save(figure, tmp_path / "f.svg").read_text(encoding="utf-8")


def test_english_needs_no_chinese_font(no_cjk_font):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bars({"naïve café": 1}, title="English")


def test_a_chinese_font_is_used_where_installed(monkeypatch):
    monkeypatch.setattr(style, "installed_families", lambda: frozenset({"SimHei", "SimSun"}))
    assert style.families(["abc", "北京"]) == ["DejaVu Sans", "SimHei"]
    assert style.families(["abc"]) == ["DejaVu Sans"]


@pytest.mark.parametrize("text", ["中", "，", "ひ", "한", "𠀀"])
def test_east_asian_text_is_recognized(monkeypatch, text):
    monkeypatch.setattr(style, "installed_families", lambda: frozenset({"SimHei"}))
    assert style.families([text]) == ["DejaVu Sans", "SimHei"]


@pytest.mark.skipif(style.cjk_family() is None, reason="no Chinese font is installed")
def test_chinese_is_drawn_without_a_warning(tmp_path):
    for suffix in MAGIC:
        save(heatmap([[1.0]], ["北京"], ["，"], title="注意力"), tmp_path / f"f{suffix}")


def test_other_missing_characters_give_one_warning(tmp_path):
    with pytest.warns(UserWarning, match="no font used here has \U0001f9ff") as caught:
        save(bars({"\U0001f9ff": 1, "\U0001f9ff again": 2}), tmp_path / "f.png")
    assert len(caught) == 1


N = [1.0, 2.0]
BAD = {  # name: (call, class, what the message says)
    "no series": (lambda: curve({}), ConfigError, "at least one line, got {}"),
    "lengths": (lambda: curve({"a": (N, [1])}), ShapeError, "'a' .* got 2 and 1"),
    "no points": (lambda: curve({"a": ([], [])}), ConfigError, "got 0 points"),
    "all NaN": (lambda: curve({"a": (N, [np.nan] * 2)}), ConfigError, "got 2 points and none"),
    "strings": (lambda: curve({"a": (N, ["x", "y"])}), ConfigError, r"got \['x', 'y'\]"),
    "two axes": (lambda: curve({"a": ([N], [N])}), ShapeError, r"got shape \(1, 2\)"),
    "log of 0": (lambda: curve({"a": (N, [0, 1])}, log_y=True), ConfigError, "got y = 0"),
    "log of -1": (lambda: curve({"a": ([-1, 1], N)}, log_x=True), ConfigError, "got x = -1"),
    "stray band": (lambda: curve({"a": (N, N)}, bands={"b": (N, N)}), ConfigError, "got 'b'"),
    "band length": (
        lambda: curve({"a": (N, N)}, bands={"a": ([1], N)}),
        ShapeError,
        "2 values, got 1 low and 2 high",
    ),
    "no bars": (lambda: bars({}), ConfigError, "at least one bar"),
    "no groups": (lambda: grouped_bars({}), ConfigError, "at least one bar, got {}"),
    "NaN bar": (lambda: bars({"a": np.nan}), ConfigError, "'a' must be finite, got nan"),
    "NaN in group": (lambda: grouped_bars({"m": {"a": np.inf}}), ConfigError, "of 'm' .* got inf"),
    "NaN line": (lambda: bars({"a": 1}, references={"r": np.nan}), ConfigError, "'r' .* got nan"),
    "stray error": (lambda: bars({"a": 1}, errors={"b": 1}), ConfigError, "got 'b'"),
    "error below 0": (lambda: bars({"a": 1}, errors={"a": -2}), ConfigError, "'a' .* got -2"),
    "ragged": (lambda: heatmap([[1, 2], [3]], N, N), ShapeError, r"got rows of \[2, 1\]"),
    "too few names": (
        lambda: heatmap([N, N], ["a"], ["b", "c"]),
        ShapeError,
        r"\(1, 2\) like its names, got \(2, 2\)",
    ),
    "empty": (lambda: heatmap(np.ones((0, 2)), [], ["a", "b"]), ConfigError, r"shape \(0, 2\)"),
    "NaN map": (lambda: heatmap([[np.nan]], ["a"], ["b"]), ConfigError, "got 1 and none finite"),
    "low over high": (
        lambda: heatmap([[1.0]], ["a"], ["b"], low=3, high=2),
        ConfigError,
        "low=3 and high=2",
    ),
    "weights": (lambda: word_weights(["a"], N), ShapeError, r"1, got \(2,\)"),
    "no words": (lambda: word_weights([], []), ConfigError, "got none"),
    "NaN weight": (lambda: word_weights(["a"], [np.nan]), ConfigError, "'a' .* got nan"),
    "suffix": (lambda: save(bars({"a": 1}), "f.doc"), ConfigError, r"got 'f\.doc'"),
    "no suffix": (lambda: save(bars({"a": 1}), "f"), ConfigError, "got 'f'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, kind, message = BAD[case]
    with pytest.raises(kind, match=message):
        call()


def test_a_circle_of_nodes_ends():
    node = Node("a")
    node.children = (node,)
    with pytest.raises(ConfigError, match="at most 5000 nodes"):
        tree(node)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "no" / "f.png"))):
        save(bars({"a": 1}), tmp_path / "no" / "f.png")


def test_the_palette_has_no_repeats():
    assert len({to_hex(color) for color in style.PALETTE}) == len(style.PALETTE)
