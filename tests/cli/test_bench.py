"""`seqloom bench` measures, prints and draws; `--tune` keeps what `auto` chooses by."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from seqloom.cli import app
from seqloom.errors import ConfigError
from seqloom.kernels import choice
from seqloom.nn import timing

SMALL = ["--hidden", "8", "--batch", "4", "--steps", "6", "--repeats", "2"]


def test_a_table_with_ratios_in_one_run(tmp_path):
    picture = tmp_path / "bench.png"
    done = CliRunner().invoke(app, ["bench", "recurrent", *SMALL, "--json", "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["who"] for row in rows} >= {"torch's lstm, padded", "seqloom, auto"}
    assert all(row["from"] <= row["ratio"] <= row["to"] for row in rows)
    peers = [row for row in rows if row["who"].endswith("padded")]
    assert all(row["ratio"] == 1 for row in peers)
    assert len(peers) == 8
    assert picture.stat().st_size > 5000


def test_what_it_does_not_know():
    done = CliRunner().invoke(app, ["bench", "recurent"])
    assert isinstance(done.exception, ConfigError)
    assert "recurrent" in str(done.exception)


def test_tuning_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path))
    tune = timing.tune
    monkeypatch.setattr(timing, "tune", lambda say: tune(say, repeats=1, sizes=(4, 8), steps=3))
    choice.load_table.cache_clear()
    done = CliRunner().invoke(app, ["bench", "--tune"])
    assert done.exit_code == 0, done.output
    table = json.loads((tmp_path / "backends.json").read_text())
    assert len(table["ratios"]) == 32
    assert (
        choice.ratio("lstm training many whole", 4)
        == table["ratios"]["lstm training many whole"]["4"]
    )
    choice.load_table.cache_clear()


@pytest.mark.parametrize("share", [0.59, 0.8])
def test_the_share_that_is_real(share):
    case = timing.Case(batch=32, steps=128, share=share)
    lengths = case.lengths()
    assert lengths is not None
    assert abs(float(lengths.sum()) / (32 * 128) - share) < 0.01
    assert int(lengths.max()) == 128
