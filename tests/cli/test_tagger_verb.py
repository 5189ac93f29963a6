"""`seqloom tag` on lines, columns and Chinese text."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from seqloom import Tagger
from seqloom.cli import app
from seqloom.errors import ConfigError

RUNNER = CliRunner()
ROWS = [["Ada", "sleeps"], ["Bob", "runs"]] * 4
TRAINING = {"epochs": 40, "device": "cpu", "optimizer": {"rate": 0.02}}
SMALL = {"hidden_size": 8, "embed_size": 8, "dropout": 0.0, "embedding_dropout": 0.0}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tags = [["B-PER", "O"]] * len(ROWS)
    tagger = Tagger("cnn", training=TRAINING, word_dropout=0.0, valid_share=0, **SMALL)
    return str(tagger.fit(ROWS, tags).save(tmp_path_factory.mktemp("tag") / "model"))


def written(path, text):
    path.write_text(text)
    return str(path)


def test_tags_spans_columns_and_json(model, tmp_path):
    lines = written(tmp_path / "lines.txt", "Ada sleeps\n\nBob runs\n")
    result = RUNNER.invoke(app, ["tag", model, lines])
    assert result.exit_code == 0, result.output
    assert result.stdout == "Ada\tB-PER\nsleeps\tO\n\nBob\tB-PER\nruns\tO\n\n"
    result = RUNNER.invoke(app, ["tag", model, lines, "--spans"])
    assert result.stdout == "PER\tAda\n\nPER\tBob\n\n"
    words = written(tmp_path / "words.txt", "Ada NNP\nsleeps VBZ\n\nBob NNP\n")
    result = RUNNER.invoke(app, ["tag", model, words, "--columns", "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["words"] for row in rows] == [["Ada", "sleeps"], ["Bob"]]
    assert rows[0]["spans"][0]["type"] == "PER"
    assert all(0 <= share <= 1 for share in rows[0]["probabilities"])
    result = RUNNER.invoke(app, ["tag", model, lines, "--json", "--best", "2"])
    first, second = json.loads(result.stdout.splitlines()[0])["readings"]
    assert first["log_prob"] >= second["log_prob"]


def test_other_spaces_are_words_of_columns(model, tmp_path):
    words = written(tmp_path / "words.txt", "Ada NNP\n\u3000\n\u00a0x\tNN\n\nBob NNP\n")
    result = RUNNER.invoke(app, ["tag", model, words, "--columns", "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line)["words"] for line in result.stdout.splitlines()]
    assert rows == [["Ada", "\u3000", "\u00a0x"], ["Bob"]]


def test_more_readings_than_memory_are_refused(model, tmp_path):
    lines = written(tmp_path / "lines.txt", "Ada sleeps\n")
    result = RUNNER.invoke(app, ["tag", model, lines, "--json", "--best", "999999999"])
    assert isinstance(result.exception, ConfigError)
    assert "best must be at most 1000, got 999999999" in str(result.exception)


def test_a_report_and_the_general_verbs(model, tmp_path):
    path = written(tmp_path / "test.txt", "Ada B-PER\nsleeps O\n\n")
    result = RUNNER.invoke(app, ["tag", model, "--report", path])
    assert "processed 2 tokens with 1 phrases; found: 1 phrases; correct: 1." in result.stdout
    result = RUNNER.invoke(app, ["evaluate", model, path, "--json"])
    assert {"what": "f1", "value": 1.0} in json.loads(result.stdout)
    result = RUNNER.invoke(app, ["predict", model, written(tmp_path / "a", "Bob runs\n"), "--json"])
    assert json.loads(result.stdout)["tagged"] == "Bob/B-PER runs/O"


def test_chinese_lines_are_cut_and_plain_tags_have_no_spans(tmp_path):
    rows = [["我们", "去"], ["去", "北京"]] * 4
    tagger = Tagger("cnn", segment=True, training=TRAINING, valid_share=0, **SMALL)
    place = tagger.fit(rows, [["x", "x"]] * 8).save(tmp_path / "segmenter")
    result = RUNNER.invoke(app, ["tag", str(place), written(tmp_path / "a", "我们去 北京\n")])
    assert result.stdout == "我们 去 北京\n"
    tagger = Tagger("cnn", training={"max_steps": 1, "device": "cpu"}, valid_share=0, **SMALL)
    place = tagger.fit(ROWS, [["N", "V"]] * 8).save(tmp_path / "plain")
    result = RUNNER.invoke(app, ["tag", str(place), str(tmp_path / "a"), "--spans"])
    assert isinstance(result.exception, ConfigError)
