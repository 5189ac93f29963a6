"""The verbs of n-gram files with the directory of a language model: its words, its direction."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from seqloom import LanguageModel
from seqloom.cli import app
from seqloom.errors import ConfigError

TEXTS = ["The Cat sat on the mat.", "A dog ran!", "The bird saw a fish.", "A cat ate it."] * 6
ASKED = ["the cat sat.", "A <unk> DOG ran!", "zebra\u00a0fish", "A\u3000bird, ␣ on ␛ it."]
READ = {
    "word": {"text": {"unit": "word", "normalizer": {"lowercase": True}}},
    "character": {"text": {"unit": "character"}},
    "space": {"text": {"unit": "space"}},
    "reverse": {"text": {"unit": "space"}, "reverse": True},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place, found = tmp_path_factory.mktemp("directories"), {}
    for name, settings in READ.items():
        model = LanguageModel("ngram", order=3, smoothing="witten-bell", **settings)
        found[name] = model.fit(TEXTS), str(model.save(place / name))
    return found


def done(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("how", READ)
def test_lines_are_scored_as_the_model_scores_them(how, models, tmp_path):
    model, place = models[how]
    text, records = tmp_path / "text.txt", tmp_path / "records.jsonl"
    text.write_text("\n".join(ASKED) + "\n", encoding="utf-8")
    records.write_text("".join(json.dumps({"text": line}) + "\n" for line in ASKED))
    expected = [model.score(line) for line in ASKED]
    rows = done("filter", text, "-m", place, "--above", 1, "--json").splitlines()
    found = [json.loads(row) for row in rows]
    assert [row["text"] for row in found] == ASKED
    assert [row["perplexity"] for row in found] == pytest.approx([s.perplexity for s in expected])
    again = done("filter", records, "-m", place, "--above", 1, "--json", "--field", "text")
    values = [json.loads(row)["perplexity"] for row in again.splitlines()]
    assert values == pytest.approx([s.perplexity for s in expected])
    *lines, summary = map(json.loads, done("ngram", "query", place, text, "--json").splitlines())
    for line, score in zip(lines, expected, strict=True):
        assert line["log10"] == pytest.approx(score.total / math.log(10))
        said = [value / math.log(10) for value in score.log_probs]
        if model.reverse:  # a score has the words in the order of the text, a query as read
            said = [*said[-2::-1], said[-1]]
        assert [word["log10"] for word in line["words"]] == pytest.approx(said)
        assert line["oov"] == sum(score.unknown)
    whole = model.evaluate(ASKED)
    assert summary["perplexity"] == pytest.approx(whole["perplexity"])
    assert summary["tokens"] == whole["tokens"]


def test_text_that_a_model_cuts_itself_is_not_cut_before(models, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a dog.\n")
    with pytest.raises(ConfigError, match="unit='word' cuts text itself, got --tokenize"):
        done("filter", path, "-m", models["word"][1], "--below", 9, "--tokenize", "en")
    assert done("filter", path, "-m", models["space"][1], "--below", 9e9, "--tokenize", "en")


def test_models_that_read_text_in_different_ways_are_not_mixed(models, tmp_path):
    out = ("--weights", "0.5 0.5", "--store", tmp_path / "both.store")
    for one, other, difference in (
        ("word", "character", "text.unit was 'word' and is 'character'"),
        ("space", "reverse", "reverse was False and is True"),
    ):
        with pytest.raises(ConfigError, match=difference):
            done("ngram", "mix", models[one][1], models[other][1], *out)
    done("ngram", "mix", models["space"][1], models["space"][1], *out)
    held_out = tmp_path / "dev.txt"
    held_out.write_text("\n".join(ASKED) + "\n", encoding="utf-8-sig")
    other = LanguageModel("ngram", order=1, smoothing="witten-bell", **READ["word"]).fit(TEXTS)
    found = CliRunner().invoke(
        app,
        ["ngram", "mix", models["word"][1], str(other.save(tmp_path / "one")), "--held-out",
         str(held_out), "--store", str(tmp_path / "found.store")],
    )  # fmt: skip
    from seqloom import mix

    weights = mix([models["word"][0], other], ASKED).engine_.config()["weights"]
    said = [
        float(line.split()[1].rstrip(":")) for line in found.stderr.splitlines() if "weight" in line
    ]
    assert said == pytest.approx(weights, abs=1e-3)
