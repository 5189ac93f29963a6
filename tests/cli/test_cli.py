"""The command line as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import seqloom
from commands import SCRIPT, call_command, start_command
from seqloom import LanguageModel
from seqloom.architectures import architectures, load_model_class
from seqloom.cli import demo
from seqloom.data import PreparedData
from seqloom.resources import ENGLISH, read_embedded


def test_help_names_every_verb():
    result = start_command("--help")
    assert result.returncode == 0
    for verb in ("list", "doctor", "prepare", "demo", "data"):
        assert verb in result.stdout


def test_version():
    assert start_command("--version").stdout == f"seqloom {seqloom.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [("lsit",), ("prepare",), ("prepare", "x", "--out", "y", "--kind", "poem")]
)
def test_bad_usage_exits_with_2(arguments):
    assert start_command(*arguments).returncode == 2


def test_our_errors_are_one_line_on_stderr_and_exit_with_1(tmp_path):
    result = start_command("prepare", tmp_path / "nothing.txt", "--out", tmp_path / "out")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (f"seqloom: {tmp_path / 'nothing.txt'}: no such file; check the path\n")
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path):
    result = start_command(
        "--debug", "prepare", tmp_path / "nothing.txt", "--out", tmp_path / "out"
    )
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_an_unknown_data_set_names_the_nearest():
    result = start_command("data", "path", "pttb")
    assert result.returncode == 1
    assert "did you mean 'ptb'?" in result.stderr


def test_doctor_reports_versions():
    rows = {
        row["what"]: row["found"] for row in json.loads(start_command("doctor", "--json").stdout)
    }
    assert rows["seqloom"] == seqloom.__version__
    assert rows["python"] == sys.version.split()[0]


def test_demo_counts_both_embedded_texts():
    rows = {row["what"]: row for row in demo.read_both()}
    detected = rows["detected language"]
    assert (detected["English"], detected["Chinese"]) == ("en", "zh")
    # Articles 1 to 30 stand in both texts.
    assert rows["sentences"]["English"] > 90
    assert rows["sentences"]["Chinese"] > 90


@pytest.mark.slow
def test_the_whole_demo_ends_well():
    result = start_command("demo")
    assert result.returncode == 0, result.stderr
    for words in ("lstm", "softmax", "perceptron", "明月"):
        assert words in result.stdout


def test_data_list_tells_what_is_here(shared_data):
    rows = json.loads(call_command("data", "list", "--json").stdout)
    assert {row["name"] for row in rows if row["here"]} == {
        path.name for path in shared_data.iterdir() if path.is_dir()
    }


def test_data_path_and_verify(shared_data):
    assert call_command("data", "path", "sst").stdout == f"{shared_data / 'sst'}\n"
    result = call_command("data", "verify", "mr", "--json")
    assert result.returncode == 0
    assert [row["state"] for row in json.loads(result.stdout)] == ["ok", "ok"]


def test_a_set_that_is_not_here_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SEQLOOM_DATA", raising=False)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path))
    assert "seqloom data get sst" in call_command("data", "path", "sst").stderr
    assert "$SEQLOOM_DATA/squad-v1.1/" in call_command("data", "get", "squad-v1.1").stderr


def test_overlap_by_hand(tmp_path):
    (tmp_path / "train.txt").write_text("a b c d\nx y z\n")
    (tmp_path / "test.txt").write_text("b c d e\nx y z\n")
    arguments = ["data", "overlap", tmp_path / "train.txt", tmp_path / "test.txt", "--n", 3]
    rows = json.loads(call_command(*arguments, "--json").stdout)
    # test trigrams: bcd (seen), cde (not), xyz (seen)
    assert (rows[0]["in test"], rows[0]["also in train"]) == (3, 2)
    (tmp_path / "more.txt").write_text("x y q\n")
    both = json.loads(call_command(*arguments, tmp_path / "more.txt", "--json").stdout)
    assert [row["also in train"] for row in both if row["what"] == "whole sentences"] == [1, 0]
    assert both[3]["test"].endswith("more.txt")


def test_prepare_reads_a_table_and_tells_what_it_left_out(tmp_path):
    table = tmp_path / "reviews.csv"
    table.write_text("stars,review\n5,a fine film\n1,a poor film\n3\n")
    arguments = ["prepare", table, "--kind", "labeled", "--out", tmp_path / "out"]
    fields = ["--field", "text=review", "--field", "label=stars"]
    result = call_command(*arguments, *fields)
    assert result.returncode == 1
    assert f"{table}:4" in result.stderr
    assert not (tmp_path / "out").exists()
    result = call_command(*arguments, *fields, "--skip-bad", "--json")
    assert result.returncode == 0
    assert "1 malformed records were left out" in result.stderr
    prepared = PreparedData.open(tmp_path / "out")
    words, labels = prepared.vocabularies["words"], prepared.vocabularies["labels"]
    assert words.decode(prepared.data.sequences["ids"][1]) == ["a", "poor", "film"]
    assert labels.words == ("1", "5")
    assert prepared.data.values["labels"].tolist() == [[0, 1], [1, 0]]


def test_prepare_settings_and_like(tmp_path):
    text = tmp_path / "poem.txt"
    text.write_text("床前明月光\n疑是地上霜\n", encoding="utf-8")
    first = call_command("prepare", text, "--out", tmp_path / "a", "--set", "text.unit=character")
    assert first.returncode == 0, first.stderr
    second = call_command(
        "prepare", "-", "--out", tmp_path / "b", "--like", tmp_path / "a", input="明月\n"
    )
    assert second.returncode == 0, second.stderr
    prepared = PreparedData.open(tmp_path / "b")
    assert prepared.vocabularies["words"].decode(prepared.data.sequences["ids"].flat) == [
        "明",
        "月",
        "</s>",
    ]


def test_prepare_does_not_learn_pieces_from_what_is_read_once(tmp_path):
    told = ("--set", "text.unit=subword", "--pieces", 300)
    result = call_command("prepare", "-", "--out", tmp_path / "p", *told, input="a b\n")
    assert result.returncode == 1
    assert "learned in a first reading of the text, got - (standard input)" in result.stderr
    assert not (tmp_path / "p").exists()


def test_prepare_names_the_nearest_setting(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("a\n")
    result = call_command("prepare", text, "--out", tmp_path / "o", "--set", "min_cuont=2")
    assert result.returncode == 1
    assert "did you mean 'min_count'?" in result.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{SCRIPT} data list | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in result.stderr


NETWORKS = [
    entry for entry in architectures("lm") if entry.reads == "text" and not entry.is_counted
]


@pytest.mark.parametrize("entry", NETWORKS, ids=lambda entry: entry.name)
def test_the_demo_asks_for_networks_that_can_be_made(entry):
    model = LanguageModel(entry.name, **demo.language_options(entry))
    assert load_model_class(entry)(model.build_config(vocab_size=50)) is not None


def test_the_demo_uses_what_comes_with_the_package():
    rows = {row["model"]: row["says"] for row in demo.use_shipped()}
    assert rows["english-reader"] in read_embedded(ENGLISH)
    assert rows["english-pos"].split() == ["DET", "NOUN", "VERB", "ADP", "PRON", "PUNCT"]
    assert "college" in rows["tatoeba-zh-en"] or "university" in rows["tatoeba-zh-en"]
    assert rows["tang-lstm"].startswith("明月") and len(rows["tang-lstm"]) <= 24
