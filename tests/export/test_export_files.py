"""What is written is enough to use a model elsewhere, and what cannot be written is refused."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx_running import run, session
from typer.testing import CliRunner

import seqloom
from seqloom.cli import app
from seqloom.config import from_dict
from seqloom.errors import ConfigError, DataError
from seqloom.export import export_int8, export_onnx
from seqloom.export.programs import program_of
from seqloom.nn.context import ContextOptions
from seqloom.text import TextConfig, TextPipeline, Vocabulary

TEXTS = ["a good film", "what a bad, bad film", "good", "bad acting and bad music"] * 5
LABELS = ["+", "-", "+", "-"] * 5


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(0)
    model = seqloom.Classifier(
        "cnn", widths=(2,), calibrate=True, training={"epochs": 2, "patience": None}
    )
    return model.fit(TEXTS, LABELS, valid=(TEXTS[:4], LABELS[:4]))


@pytest.fixture(scope="module")
def exported(classifier, tmp_path_factory):
    return export_onnx(classifier, tmp_path_factory.mktemp("onnx") / "inside" / "film.onnx")


def encoded(description, texts):
    """Ids and lengths, made of nothing but the description."""
    pipeline = TextPipeline(from_dict(TextConfig, description["text"]))
    vocabulary = Vocabulary.from_dict(description["vocabulary"])
    rows = [vocabulary.encode(pipeline(text).words) for text in texts]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for place, row in zip(ids, rows, strict=True):
        place[: len(row)] = row
    return {"ids": ids, "lengths": np.array([len(row) for row in rows])}


def test_the_description_is_enough_to_classify(classifier, exported):
    description = json.loads(exported.description.read_text(encoding="utf-8"))
    texts = ["good music", "a bad, bad film and bad acting", "unheard words"]
    found = run(session(str(exported.graph)), encoded(description, texts))
    np.testing.assert_allclose(
        found["probabilities"], classifier.predict_proba(texts), atol=1e-4, rtol=0
    )
    assert description["labels"] == ["+", "-"]
    assert description["recurrences"] == {}
    named = {each["name"]: each for each in description["inputs"]}
    assert named["ids"]["axes"] == ["batch", "steps"]
    assert named["ids"]["type"] == "int64"


def test_the_graph_says_what_it_is_of(classifier, exported):
    graph = onnx.load(exported.graph)
    said = {each.key: each.value for each in graph.metadata_props}
    assert said["seqloom.task"] == "classify"
    assert said["seqloom.architecture"] == "cnn"
    assert said["seqloom.vocabulary_hash"] == classifier.terms_.vocabulary.hash
    assert json.loads(said["seqloom.text"])["unit"] == "word"
    assert graph.producer_name == "seqloom"
    description = json.loads(exported.description.read_text(encoding="utf-8"))
    content = exported.graph.read_bytes()
    assert description["graph"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert description["opset"] == graph.opset_import[0].version


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    torch.manual_seed(0)
    model = seqloom.LanguageModel("lstm", hidden_size=72, num_layers=1, training={"epochs": 1})
    return model.fit(TEXTS).save(tmp_path_factory.mktemp("lm") / "model")


def test_the_command_writes_graphs_full_and_of_int8_products(language_model, tmp_path):
    full, small = tmp_path / "full.onnx", tmp_path / "small.onnx"
    for path, more in ((full, []), (small, ["--products", "int8"])):
        result = CliRunner().invoke(
            app, ["export", str(language_model), "--onnx", str(path), *more]
        )
        assert result.exit_code == 0, result.output
    model = seqloom.load(language_model)
    description = json.loads(small.with_suffix(".json").read_text(encoding="utf-8"))
    assert description["products"] == "int8"
    assert description["recurrences"] == {"LSTM": 1}
    assert small.stat().st_size < 0.6 * full.stat().st_size
    # The log-probability of each word and of the end, as `score` has it.
    vocabulary = Vocabulary.from_dict(description["vocabulary"])
    end = description["sentence_end"]
    words = vocabulary.encode(["what", "a", "bad", "film"])
    zeros = np.zeros((1, 1, 72), np.float32)
    feed = {"ids": np.array([[end, *words]]), "lengths": np.array([5])}
    feed |= {"state_h": zeros, "state_c": zeros}
    right = np.array(model.score("what a bad film").log_probs)
    for path, exact in ((full, 1e-4), (small, 0.05)):
        logs = run(session(str(path)), feed)["log_probs"][0]
        found = logs[np.arange(5), [*words, end]]
        np.testing.assert_allclose(found, right, atol=exact, rtol=0)


def test_int8_weights_are_loaded_as_any_model(language_model, tmp_path):
    place = export_int8(language_model, tmp_path / "int8")
    before, after = (p / "weights.safetensors" for p in (language_model, place))
    assert after.stat().st_size < 0.5 * before.stat().st_size
    scores = [seqloom.load(each).score("a bad film").total for each in (language_model, place)]
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    assert scores[1] != scores[0]


def test_the_command_names_what_is_missing(language_model):
    result = CliRunner().invoke(app, ["export", str(language_model)])
    assert isinstance(result.exception, ConfigError)
    assert "--onnx FILE.onnx or --int8 DIRECTORY" in str(result.exception)


def test_what_cannot_be_exported_is_named(tmp_path):
    counted = seqloom.LanguageModel("ngram", order=2).fit(TEXTS)
    with pytest.raises(ConfigError, match="'ngram' cannot be exported to ONNX; networks of"):
        export_onnx(counted, tmp_path / "x.onnx")
    summarizer = seqloom.Summarizer("lead")
    with pytest.raises(ConfigError, match="task 'summarize' cannot be exported to ONNX; those of"):
        export_onnx(summarizer, tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_words_in_context_is_refused(tmp_path):
    model = seqloom.Classifier("cnn")
    context = ContextOptions(size=2, num_layers=2)
    config = SimpleNamespace(context=context)
    model.model_ = SimpleNamespace(config=config)
    with pytest.raises(ConfigError, match="reads words in context cannot be exported"):
        export_onnx(model, tmp_path / "x.onnx")


def test_relations_and_tags_are_described():
    sentences = ["<e1>cats</e1> eat <e2>fish</e2>", "<e2>fish</e2> fears <e1>cats</e1>"]
    training = {"epochs": 1, "device": "cpu"}
    relations = seqloom.RelationClassifier("cnn", embed_size=8, training=training, valid_share=0)
    program = program_of(relations.fit(sentences, ["eat(e1,e2)", "fear(e2,e1)"]))
    told = program.facts
    known = Vocabulary.from_dict(told["vocabulary"])
    words = ["<e1>", "cats", "</e1>", "eat", "<e2>", "fish", "</e2>"]
    assert [told["markers"][word] for word in words if "<" in word] == [2, 3, 4, 5]
    with torch.no_grad():
        _, shares = program.network(torch.tensor(known.encode(words))[None], torch.tensor([7]))
    np.testing.assert_allclose(shares, relations.predict_proba(sentences[:1]), atol=1e-5)
    assert told["labels"] == ["eat(e1,e2)", "fear(e2,e1)"]

    tagger = seqloom.Tagger("cnn", valid_share=0, features=["shape"], training=training)
    tagger.fit([["the", "Cat", "sleeps"]] * 2, [["D", "N", "V"]] * 2)
    told = program_of(tagger).facts
    assert told["tags"] == ["D", "N", "V"]
    assert Vocabulary.from_dict(told["features"]["shape"]).encode(["Xx"]).tolist() == [
        tagger.reader_.features["shape"]["Xx"]
    ]
    assert told["vocabulary_hash"] == tagger.reader_.words.hash
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out": "x.bin"}, "must end in .onnx, got 'x.bin'"),
        ({"out": "x.onnx", "products": "int4"}, "'int4'"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(arguments, message):
    with pytest.raises(ConfigError, match=message):
        export_onnx("no-such-model", **arguments)


def test_a_place_that_cannot_be_written(classifier, tmp_path, exported):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        export_onnx(classifier, blocked / "film.onnx")
