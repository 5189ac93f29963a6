"""`seqloom answer` on files, several questions, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqloom import Reader
from seqloom.cli import app
from seqloom.data.examples import Answer, Question
from seqloom.errors import InputError

RUNNER = CliRunner()
PASSAGE = "Ada was born in London.\nMax was born in Rome."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    asked = [
        Question("1", PASSAGE, "Where was Ada born?", (Answer("London", 16),)),
        Question("2", PASSAGE, "Where was Max born?", (Answer("Rome", 40),)),
    ]
    training = {
        "epochs": 60,
        "averaging": "none",
        "device": "cpu",
        "schedule": {"warmup": 0},
        "optimizer": {"rate": 0.01},
    }
    reader = Reader(hidden_size=24, dropout=0.0, valid_share=0, min_count=1, training=training)
    return str(reader.fit(asked).save(tmp_path_factory.mktemp("reader") / "model"))


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = tmp_path / "page.txt"
    path.write_text(PASSAGE)
    return str(path)


def test_one_question_many_questions_and_json(model: str, page: str, tmp_path: Path) -> None:
    given = ["answer", "--model", model, "--passage", page]
    result = RUNNER.invoke(app, [*given, "Where was Max born?"])
    assert (result.exit_code, result.stdout) == (0, "Rome\n")
    both = tmp_path / "questions.txt"
    both.write_text("Where was Max born?\n\nWhere was Ada born?\n")
    result = RUNNER.invoke(app, [*given, "--questions", str(both)])
    assert result.stdout == "Rome\nLondon\n"
    result = RUNNER.invoke(app, [*given, "Where was Ada born?", "--top", "3", "--json"])
    found = json.loads(result.stdout)
    assert found["question"] == "Where was Ada born?" and len(found["answers"]) == 3
    first = found["answers"][0]
    assert PASSAGE[first["start"] : first["end"]] == first["text"] == "London"
    assert first["passage"] == page
    result = RUNNER.invoke(app, [*given, "Where was Ada born?", "--top", "2"])
    assert result.stdout.splitlines()[0].endswith(f"\tLondon\t{page}:16")
    result = RUNNER.invoke(app, [*given, "Where was Ada?", "--questions", str(both)])
    assert result.exit_code == 2 and "give a question or --questions" in result.stderr
    result = RUNNER.invoke(app, ["answer", "--model", model, "--passage", "-"], input="Ada.")
    assert result.exit_code == 2 and "standard input has the questions" in result.stderr
    result = RUNNER.invoke(app, [*given, "Where?", "--top", "3", "--threshold", "1"])
    assert result.stdout == "\n"
    result = RUNNER.invoke(app, [*given, "Where was Ada born?", "--threshold", "1"])
    assert result.stdout == "\n"


def test_attention_is_drawn(model: str, page: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "map.png"
    given = ["answer", "--model", model, "--passage", page, "--attention", str(picture)]
    result = RUNNER.invoke(app, [*given, "Where was Ada born?"])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_model_that_comes_along_reads_english(tmp_path: Path) -> None:
    path = tmp_path / "normans.txt"
    path.write_text(
        "The Normans were the people who in the 10th and 11th centuries gave their name to "
        "Normandy, a region in France. They were descended from Norse raiders who, under their "
        "leader Rollo, agreed to swear fealty to King Charles III of West Francia."
    )
    asked = tmp_path / "questions.txt"
    asked.write_text("In what country is Normandy located?\nWho was the leader of the raiders?\n")
    result = RUNNER.invoke(app, ["answer", "--passage", str(path), "--questions", str(asked)])
    assert result.stdout == "France\nRollo\n"


def test_bad_usage(model: str, page: str) -> None:
    result = RUNNER.invoke(app, ["answer", "--model", model, "Who?"])
    assert result.exit_code == 2 and "name a file to search" in result.output
    result = RUNNER.invoke(app, ["answer", "--model", model, "--passage", page, " "])
    assert isinstance(result.exception, InputError)
    assert "question 1 must have at least one word" in str(result.exception)
