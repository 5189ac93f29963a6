"""The verb `summarize`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from seqloom.cli import app
from seqloom.errors import ConfigError, DataError

TEXT = "The river flooded the town. Boats left the flooded town. A cake was eaten by the river.\n"


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "a.txt"
    place.write_text(TEXT, encoding="utf-8")
    return str(place)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["summarize", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_file_and_standard_input(file):
    assert run(file, "--arch", "lead", "--sentences", "1") == "The river flooded the town.\n"
    assert run(file, "--sentences", "3").count("\n") == 3
    command = [sys.executable, "-m", "seqloom", "summarize", "--arch", "lead", "--sentences", "1"]
    piped = subprocess.run(command, input=TEXT, capture_output=True, text=True, check=True)
    assert piped.stdout == "The river flooded the town.\n"


def test_json_has_offsets_into_the_file_with_its_markup(tmp_path):
    page = "<html><body><p>Cats &amp; dogs <b>sleep</b>. Fish swim.</p></body></html>"
    file = tmp_path / "a.html"
    file.write_text(page, encoding="utf-8")
    found = json.loads(run(str(file), "--arch", "lead", "--sentences", "1", "--json"))
    (sentence,) = found["sentences"]
    assert sentence["text"] == "Cats & dogs sleep."
    assert page[sentence["start"] : sentence["end"]] == "Cats &amp; dogs <b>sleep</b>."
    assert found["of"] == 2 and sentence["features"]["first"] == 1.0


def test_highlight_marks_the_original(tmp_path):
    file = tmp_path / "a.md"
    file.write_text("# Title\n\nOne is here. Two is there.\n", encoding="utf-8")
    shown = run(str(file), "--arch", "lead", "--sentences", "1", "--highlight")
    assert "[[One is here.]] Two is there." in shown


def test_keywords_a_query_and_several_files(tmp_path, file):
    rows = json.loads(run(file, "--keywords", "2", "--json"))
    assert len(rows) == 2 and {"text", "score", "occurrences"} == set(rows[0])
    assert "cake" in run(file, "--sentences", "1", "--query", "cake", "--diversity", "0.1")
    for name in ("a", "b"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    both = json.loads(run(str(tmp_path / "a"), str(tmp_path / "b"), "--json"))
    assert both["of"] == 6
    assert {row["file"] for row in both["sentences"]} == {str(tmp_path / "a")}, "the rest repeats"


def test_a_fitted_model_can_be_used(tmp_path, file):
    from seqloom import Summarizer

    Summarizer("tfidf").fit(["The river.", "A cake."], out=tmp_path / "m")
    assert run(file, "--model", str(tmp_path / "m"), "--sentences", "1").count("\n") == 1
    with pytest.raises(ConfigError, match="its own arch, got --arch lead with one"):
        run(file, "--model", str(tmp_path / "m"), "--arch", "lead")
    with pytest.raises(ConfigError, match="--language zh"):
        run(file, "--model", str(tmp_path / "m"), "--language", "zh")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--arch", "lexrank"], "its own arch, got --arch lexrank with one"),
        (["--highlight"], "--highlight marks chosen sentences, got it with arch='pointer'"),
        (["--sentences", "2"], "sentences chooses sentences, got 2 .*; use max_length"),
        (["--diversity", "0.5"], r"diversity chooses sentences, got 0\.5 .*; leave it out"),
        (["--query", "cake"], "query chooses sentences, got 'cake' .*; leave it out"),
        (["--keywords", "3"], "keywords come of reading sentences, got arch='pointer'"),
    ],
)
def test_a_model_that_writes_refuses_what_chooses_sentences(file, options, message):
    with pytest.raises(ConfigError, match=message):
        run(file, "--model", "debian-pointer", *options)


def test_a_model_that_writes_takes_a_length_and_a_beam(file):
    from seqloom import Summarizer

    model = Summarizer.load("debian-pointer")
    for options in ({"max_length": 3}, {"beam": 1}, {"max_length": 4, "beam": 9}):
        given = [str(x) for k, v in options.items() for x in (f"--{k.replace('_', '-')}", v)]
        expected = model.summarize(TEXT, **options)
        assert run(file, "--model", "debian-pointer", *given) == f"{expected.text}\n"
        assert len(expected.words) <= options.get("max_length", 99)
    with pytest.raises(ConfigError, match="searches for none, got max_length=3"):
        run(file, "--max-length", "3")


def test_what_a_model_that_writes_cuts_is_said(tmp_path, file):
    long = tmp_path / "long.txt"
    long.write_text("a library for web pages " * 100, encoding="utf-8")
    for name, said in ((str(long), True), (file, False)):
        given = ["summarize", name, "--model", "debian-pointer", "--beam", "1"]
        result = CliRunner().invoke(app, given)
        assert ("longer than the model reads, and cut" in result.stderr) == said


def test_an_architecture_that_writes_must_be_fitted(file):
    with pytest.raises(ConfigError, match="must be fitted first, got --arch pointer; name one"):
        run(file, "--arch", "pointer")


def test_what_is_no_text_is_refused(tmp_path, file):
    place = tmp_path / "a.bin"
    place.write_bytes(b"\xff\xd8\x00\x01")
    with pytest.raises(DataError, match="not UTF-8: byte 0xff"):
        run(str(place))
    place.write_bytes(b" \n")
    with pytest.raises(DataError, match="a sentence to choose from"):
        run(str(place))
    with pytest.raises(ConfigError, match="unknown markup 'pdf'"):
        run(file, "--markup", "pdf")
