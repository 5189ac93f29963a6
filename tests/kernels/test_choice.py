"""`auto` takes the faster backend by the table, and a backend that can."""

from __future__ import annotations

import json

import pytest
import torch

from made_up import MadeUp
from seqloom.errors import DataError
from seqloom.kernels import choice, measured
from seqloom.nn.recurrent import Recurrent


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of the user's own; what `auto` took is read off the backends that ran."""
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path))
    measured.load_table.cache_clear()
    monkeypatch.setattr(choice, "_said", set())
    yield lambda ratios: measured.save_table({"measured": "2026-01-02", "ratios": ratios})
    measured.load_table.cache_clear()


def taken(monkeypatch, layer, *inputs):
    found = []
    with monkeypatch.context() as patched:
        for name, backend in list(choice.BACKENDS.items()):

            def run(*given, name=name, backend=backend):
                found.append(name)
                return backend.run(*given)

            patched.setitem(choice.BACKENDS, name, backend._replace(run=run))
        layer(*inputs)
    return found[0]


def test_the_table_that_comes_with_the_package_has_every_line(table):
    lines = measured.load_table()["ratios"]
    for cell in ("rnn_tanh", "rnn_relu", "gru", "lstm"):
        for training in (True, False):
            for rows in (1, 32):
                for ragged in (True, False):
                    line = choice.line_of(cell, rows, training=training, ragged=ragged)
                    assert len(lines[line]) >= 3


@pytest.mark.parametrize(("ratio", "expected"), [(0.8, "cpu"), (1.2, "torch")])
def test_it_takes_the_faster_one_and_says_so_once(table, monkeypatch, capsys, ratio, expected):
    table({"lstm training many whole": {"64": ratio}})
    layer, x = Recurrent("lstm", 3, 64), torch.zeros(8, 2, 3)
    assert taken(monkeypatch, layer, x) == expected
    said = capsys.readouterr().err
    assert f"LSTM runs on backend {expected!r}, by the measurements of 2026-01-02" in said
    assert f"cpu takes {ratio:.2f} of torch's time" in said
    layer(x)
    assert not capsys.readouterr().err


def test_what_torch_lacks_runs_on_the_cpu_backend(table, monkeypatch):
    table({})
    x = torch.zeros(8, 2, 3)
    assert taken(monkeypatch, Recurrent(MadeUp, 3, 4), x) == "cpu"
    assert taken(monkeypatch, Recurrent("lstm", 3, 4, clip=1.0), x) == "cpu"
    assert taken(monkeypatch, Recurrent("lstm", 3, 4), x) == "torch"  # not measured
    half = Recurrent(MadeUp, 3, 4).bfloat16()
    assert taken(monkeypatch, half, x.bfloat16()) == "reference"
    assert half(x.bfloat16()).outputs.dtype == torch.bfloat16  # auto never changes the type


def test_between_measured_sizes_it_is_between_their_ratios(table):
    table({"gru training many whole": {"64": 2.0, "256": 0.5, "1024": 0.5}})
    line = "gru training many whole"
    assert choice.ratio(line, 64) == choice.ratio(line, 10) == 2.0
    assert choice.ratio(line, 128) == pytest.approx(1.0)
    assert choice.ratio(line, 5000) == 0.5
    assert choice.ratio("gru training few whole", 64) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"ratios": 3}', '{"ratios": {"a": {"x": 1}}}', "x" * (1 << 21),
             '{"measured": "", "ratios": {"a": {"1": -1}}}'],
)  # fmt: skip
def test_a_damaged_table_is_named(table, text):
    table({})
    measured.own_table().write_text(text)
    measured.load_table.cache_clear()
    with pytest.raises(
        DataError, match=r"backends.json.*make it again with `seqloom bench --tune`"
    ):
        measured.load_table()


def test_a_saved_table_is_whole(table):
    path = table({"lstm training few whole": {"8": 1.5}})
    assert json.loads(path.read_text())["ratios"]["lstm training few whole"] == {"8": 1.5}
    assert [p.name for p in path.parent.iterdir()] == ["backends.json"]


class Elsewhere:
    """A tensor on a card, as far as a choice looks at it."""

    def __init__(self, batch: int, dtype: torch.dtype) -> None:
        self.device, self.dtype, self.batch = torch.device("cuda"), dtype, batch

    def __len__(self) -> int:
        return self.batch


@pytest.fixture
def on_a_card(table, monkeypatch):
    """What `auto` takes for a layer on a card, by a table of its own."""

    def take(cell, ratios, *, batch=16, dtype=torch.bfloat16, lengths=None, size=128, able=None):
        measured.save_table(
            {"ratios": {}, "gpu": {"measured": "2026-01-02", "ratios": ratios}, "measured": ""}
        )
        layer = Recurrent(cell, 8, size).to(dtype)
        for name in choice.BACKENDS:
            fast = name in (able or ("reference", "torch", "triton"))
            if name == "torch" and not layer._kind.torch_name:
                fast = False
            backend = choice.BACKENDS[name]._replace(why_not=lambda *_, f=fast: "" if f else "no")
            monkeypatch.setitem(choice.BACKENDS, name, backend)
        x = Elsewhere(batch, dtype)
        job = layer._direction(torch.zeros(1, 1, 8, dtype=dtype), [], 0, "")
        return choice.choose("auto", layer._kind, x, lengths, [job])

    return take


def test_on_a_card_the_nearest_point_measured_decides(on_a_card):
    line = {"lstm bf16 training": {"16 128": 0.2, "256 1024": 1.3}}
    assert on_a_card("lstm", line) == "triton"
    assert on_a_card("lstm", line, batch=200, size=900) == "torch"
    assert on_a_card("lstm", line, batch=200, size=900, lengths=torch.ones(200)) == "triton"


def test_on_a_card_what_was_not_measured_runs_by_torch_and_what_torch_lacks_by_us(on_a_card):
    assert on_a_card("lstm", {}) == "torch"
    assert on_a_card("lstm", {}, lengths=torch.ones(16)) == "triton"  # torch would pack it
    assert on_a_card("peephole-lstm", {}) == "triton"
    assert on_a_card(MadeUp, {}, able=("reference",)) == "reference"


def test_the_table_of_the_package_has_cards_and_tiles(table):
    found = measured.load_table()
    assert found["gpu"]["ratios"]["lstm bf16 training"]["16 128"] < 1
    assert len(found["tiles"]) >= 24
