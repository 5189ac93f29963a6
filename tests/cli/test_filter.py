"""Sorting lines out by their perplexity."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqloom.cli import app
from seqloom.errors import ConfigError, DataError, SeqloomError
from seqloom.ngram import batch, lines
from seqloom.ngram.estimation import estimate
from seqloom.ngram.filtering import filter_lines
from seqloom.ngram.lines import line_blocks
from seqloom.ngram.model import NgramModel
from seqloom.ngram.stores import write_store
from seqloom.ngram.workspace import Workspace
from seqloom.resources import SHAKESPEARE, read_embedded

SCRIPT = str(Path(sys.executable).with_name("seqloom"))
LINES = [line for line in read_embedded(SHAKESPEARE).splitlines() if line.strip()]
BOUND = 60.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("filter") / "model.store"
    ngrams = estimate(LINES[:2000], order=3, say=lambda _: None)
    write_store(ngrams, path, "hashed", Workspace())
    return path


@pytest.fixture(scope="module")
def model(store):
    return NgramModel.load(store)


def perplexity(model, text):
    """By the definition, from the probability of each word."""
    words = model.score_words(text)
    return math.exp(-sum(word.log_prob for word in words) / len(words))


def run(*arguments, given=b""):
    return subprocess.run(
        [SCRIPT, "filter", *map(str, arguments)], input=given, capture_output=True, check=False
    )


def done(*arguments):
    result = CliRunner().invoke(app, ["filter", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result


def test_keeps_exactly_the_lines_within_bounds(model, store, tmp_path):
    text = LINES[1500:2500]
    (tmp_path / "text").write_text("\n".join(text) + "\n", encoding="utf-8")
    values = [perplexity(model, line) for line in text]
    assert min(values) < 20 < BOUND < max(values)
    for options, expected in (
        (["--below", BOUND], [v < BOUND for v in values]),
        (["--above", 20], [v > 20 for v in values]),
        (["--above", 20, "--below", BOUND], [20 < v < BOUND for v in values]),
        (["--below", BOUND, "--invert"], [v >= BOUND for v in values]),
    ):
        result = done(tmp_path / "text", "--model", store, *options)
        kept = [line for line, keep in zip(text, expected, strict=True) if keep]
        assert result.stdout.splitlines() == kept
        dropped = len(text) - len(kept)
        assert f"kept {len(kept):,} of 1,000 lines, dropped {dropped:,}" in result.stderr


def test_bytes_stay_as_they_are_and_lines_without_words_go(store):
    text = b"First\t Citizen:\r\n\n \r\n\xff\xfe broken \0 bytes\nno end"
    kept = run("-m", store, "--below", 1e9, given=text)
    assert kept.returncode == 0
    assert kept.stdout == b"First\t Citizen:\r\n\xff\xfe broken \0 bytes\nno end"
    assert b"kept 3 of 5 lines, dropped 2" in kept.stderr
    assert run("-m", store, "--below", 1e9, "--invert", given=text).stdout == b""


@pytest.mark.parametrize("block", [1, 7, 1000, 1 << 20])
def test_blocks_make_no_difference(model, tmp_path, monkeypatch, block):
    text = "\n".join(LINES[1900:2100]).encode()
    (tmp_path / "text").write_bytes(text)
    expected = [line for line in text.splitlines() if perplexity(model, line.decode()) < BOUND]
    monkeypatch.setattr(lines, "BLOCK", block)
    monkeypatch.setattr(batch, "STRETCH", 3 * block)
    kept = list(filter_lines(model, line_blocks(tmp_path / "text"), below=BOUND))
    assert b"".join(part.data for part in kept).splitlines() == expected
    numbers = [int(number) for part in kept for number in part.numbers]
    assert [text.splitlines()[number - 1] for number in numbers] == expected
    assert sum(part.lines for part in kept) == 200


def test_json_tells_line_and_perplexity(model, store):
    given = b"First Citizen:\n\nzork zork\n"
    rows = [
        json.loads(row)
        for row in run("-m", store, "--above", 1, "--json", given=given).stdout.splitlines()
    ]
    assert [(row["line"], row["text"]) for row in rows] == [(1, "First Citizen:"), (3, "zork zork")]
    assert [row["perplexity"] for row in rows] == pytest.approx(
        [perplexity(model, "First Citizen:"), perplexity(model, "zork zork")]
    )


def test_a_field_of_records(model, store, tmp_path):
    records = [{"id": i, "text": line} for i, line in enumerate(LINES[1900:2100])]
    records[5]["text"] = "two\nlines"
    written = [json.dumps(record) for record in records]
    (tmp_path / "records.jsonl").write_text("\n".join(written) + "\n")
    result = done(tmp_path / "records.jsonl", "-m", store, "--below", BOUND, "--field", "text")
    assert result.stdout.splitlines() == [
        line
        for line, record in zip(written, records, strict=True)
        if perplexity(model, record["text"].replace("\n", " ")) < BOUND
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"texts": 1}', "got no such field (fields: id, texts)"),
        ('{"text": 1}', "got a int"),
        ("[1]", "got a list"),
        ("{", "must be a JSON object"),
    ],
)
def test_bad_records_are_named_by_line(store, tmp_path, line, message):
    bad = line.replace("{", '{"id": 1, ', 1) if len(line) > 1 else line
    (tmp_path / "r.jsonl").write_text('{"text": "a"}\n' * 3000 + bad + "\n")
    with pytest.raises(DataError) as caught:
        done(tmp_path / "r.jsonl", "-m", store, "--below", BOUND, "--field", "text")
    assert str(caught.value).startswith(f"{tmp_path / 'r.jsonl'}:3001: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [("en", "Speak, speak.", "Speak , speak ."), ("zh", "我来到北京", "我 来到 北京")],
)
def test_text_can_be_tokenized(tmp_path, language, text, words):
    ngrams = estimate([words, "x y z"], order=2, smoothing="witten-bell")
    write_store(ngrams, tmp_path / "m", "hashed", Workspace())
    expected = perplexity(NgramModel.load(tmp_path / "m"), words)
    (tmp_path / "text").write_text(text + "\n", encoding="utf-8")
    result = done(
        *(tmp_path / "text", "-m", tmp_path / "m", "--above", 1),
        *("--tokenize", language, "--json"),
    )
    row = json.loads(result.stdout)
    assert row["text"] == text
    assert row["perplexity"] == pytest.approx(expected)


@pytest.fixture
def heeded():
    """What a shell starts in the background ignores interrupts, and so would our child."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_passes_lines_on_as_they_come_and_stops_on_an_interrupt(store):
    with subprocess.Popen(
        [SCRIPT, "filter", "-m", str(store), "--below", "1e9"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        for _ in range(2):
            process.stdin.write(b"First Citizen:\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"First Citizen:\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert b"Traceback" not in process.stderr.read()


def test_an_endless_stream_whose_reader_goes_away(store):
    command = f"yes First Citizen: | {SCRIPT} filter -m {store} --below 1e9 | head -n 2"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert result.stdout == "First Citizen:\n" * 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("text -m STORE", "give --below or --above"),
        ("text -m STORE --below 0.5", "below 0.5"),
        ("text -m STORE --below 50 --above 50", "above 50"),
        ("text -m STORE --below nan", "below nan"),
        ("nothing -m STORE --below 50", "nothing: no such file"),
        ("text -m nothing --below 50", "nothing: no such file"),
        ("text -m text --below 50", "text"),
        ("- -m - --below 50", "cannot both come"),
    ],
)
def test_bad_input_is_named(store, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a b c\n")
    with pytest.raises(SeqloomError) as caught:
        done(*(store if word == "STORE" else word for word in arguments.split()))
    assert message in str(caught.value)


def test_a_line_without_end_is_refused(model, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 100)
    monkeypatch.setattr(lines, "LONGEST", 1 << 20)
    (tmp_path / "text").write_bytes(b"x" * (1 << 21))
    with pytest.raises(DataError, match="at most 1 MB"):
        list(filter_lines(model, line_blocks(tmp_path / "text"), below=BOUND))


def test_a_filter_needs_a_bound(model):
    with pytest.raises(ConfigError, match="got none"):
        filter_lines(model, [])


def test_broken_text_of_the_web_is_scored_or_named(store, model, tmp_path):
    path = tmp_path / "web.jsonl"
    path.write_text('{"text": "to be \\ud800"}\n{"text": "to be \\ufffd"}\n')
    rows = done("-m", store, path, "--above", 1, "--field", "text", "--json").stdout.splitlines()
    first, second = (json.loads(row)["perplexity"] for row in rows)
    assert first == second == pytest.approx(perplexity(model, "to be \ufffd"))
    path.write_text("[" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"web.jsonl:1: with --field a line must be a JSON object"):
        done("-m", store, path, "--above", 1, "--field", "text")


def test_what_a_model_finds_impossible_has_no_perplexity_in_json(tmp_path):
    path, text = tmp_path / "ml.store", tmp_path / "text.txt"
    ngrams = estimate(["a b", "b a"], order=2, smoothing="maximum-likelihood", say=lambda _: None)
    write_store(ngrams, path, "hashed", Workspace())
    text.write_text("a b\na a\n")
    rows = [
        json.loads(row)
        for row in done("-m", path, text, "--above", 1, "--json").stdout.splitlines()
    ]
    assert [row["perplexity"] for row in rows] == [pytest.approx(2.0), None]  # 1/2 each
    assert done("-m", path, text, "--below", 1e308).stdout == "a b\n"


def test_a_mark_before_the_first_line_is_kept_and_not_scored(store, model, tmp_path):
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbf" + LINES[0].encode() + b"\n")
    (row,) = done("-m", store, path, "--above", 1, "--json").stdout.splitlines()
    assert json.loads(row)["perplexity"] == pytest.approx(perplexity(model, LINES[0]))
    kept = run("-m", store, path, "--above", 1)
    assert kept.stdout == path.read_bytes()
