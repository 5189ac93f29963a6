"""Words in context in tasks: what they read, the cache, tuning, and the embedder they keep."""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch

from seqloom import Classifier, Embedder, LanguageModel, RelationClassifier, Tagger
from seqloom.data.relations import MARKERS
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.tasks.contextual import ContextReader, ContextualConfig, context_reader
from seqloom.tasks.loading import load

TEXTS = ["the cat sat on the mat", "a dog sat on the rug", "the dog ran to the cat"] * 6
QUICK = {"epochs": 2, "batch": {"batch_size": 4}, "device": "cpu", "optimizer": {"rate": 0.01}}
SMALL = {"char_size": 4, "filters": ((1, 4), (3, 6)), "projection_size": 6, "hidden_size": 8}
WORDS = [text.split() for text in TEXTS]
TAGS = [["D" if word in ("the", "a") else "O" for word in words] for words in WORDS]
LABELS = ["cat" if "cat" in text else "dog" for text in TEXTS]
MARKED = ["<e1>cats</e1> eat <e2>fish</e2>", "the <e2>fish</e2> fears <e1>cats</e1>"] * 4
RELATIONS = ["eat(e1,e2)", "fear(e2,e1)"] * 4


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder("elmo", training=QUICK, **SMALL).fit(TEXTS)


def fitted(task: str, contextual: Any, **more: Any) -> Any:
    sizes = {"hidden_size": 8, "embed_size": 8, "training": QUICK, "contextual": contextual}
    if task == "tag":
        return Tagger("blstm", **{**sizes, **more}).fit(WORDS, TAGS)
    if task == "classify":
        return Classifier("blstm", **{**sizes, **more}).fit(TEXTS, LABELS)
    given = {**sizes, "entity_states": True, "valid_share": 0.25, **more}
    return RelationClassifier("att-blstm", **given).fit(MARKED, RELATIONS)


def said(model: Any) -> Any:
    if isinstance(model, Tagger):
        return [found.probabilities for found in model.tag(WORDS[:4], probabilities=True)]
    return model.predict_proba(TEXTS[:4] if isinstance(model, Classifier) else MARKED).tolist()


@pytest.mark.parametrize("task", ["tag", "classify", "relate"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"insert": ["input", "output"], "layer_norm": True},
        {"tuned": True, "insert": ["output"]},
    ],
    ids=["frozen", "both", "tuned"],
)
def test_a_saved_model_contains_its_embedder(embedder, task, more, tmp_path):
    before = {k: v.clone() for k, v in embedder.model_.state_dict().items()}
    model = fitted(task, {"model": embedder, **more})
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert said(loaded) == said(model)  # bit for bit
    assert (tmp_path / "model" / "embedder" / "weights.safetensors").is_file()
    assert not any("encoder.words" in name for name in model.shapes())
    for name, tensor in embedder.model_.state_dict().items():
        assert torch.equal(tensor, before[name])  # what the user gave is not changed
    kept = Embedder.load(tmp_path / "model" / "embedder").model_.state_dict()
    moved = [name for name, tensor in kept.items() if not torch.equal(tensor, before[name])]
    assert bool(moved) == more.get("tuned", False)
    assert said(loaded) == said(load(loaded.save(tmp_path / "again")))


def test_batches_and_order_never_change_what_is_said(embedder):
    for task, given in (("classify", TEXTS), ("relate", MARKED)):
        model = fitted(task, embedder)
        together = model.predict_proba(given[:3])
        for text, row in zip(given[:3], together, strict=True):
            np.testing.assert_allclose(model.predict_proba([text])[0], row, atol=1e-5)


def test_the_layers_reach_the_network_as_they_are(embedder):
    reader = context_reader(embedder)
    assert reader is not None
    (own,) = embedder.embed_sentences([["the", "cat"]])
    found = reader([["the", "cat"], ["a"]])
    assert found.flat.dtype == np.float16
    assert found[0].shape == (2, 3 * 12)
    expected = np.concatenate([own.layers[k] for k in range(3)], axis=1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4)


def test_markers_are_no_part_of_the_text(embedder):
    reader = context_reader(embedder, MARKERS)
    assert reader is not None
    found = reader([["<e1>", "cats", "</e1>", "eat", "<e2>", "</e2>"], ["<e1>", "<e2>"]])
    (plain,) = context_reader(embedder)([["cats", "eat"]])
    np.testing.assert_array_equal(found[0][[1, 3]], plain)
    assert not found[0][[0, 2, 4, 5]].any() and not found[1].any()


def test_tuned_markers_are_passed_over_too(embedder):
    tuned = ContextReader(ContextualConfig(model=embedder, tuned=True), embedder, MARKERS)
    tuned.vectors.module.eval()
    words = [["<e1>", "cats", "</e1>", "eat"], ["the", "cat"]]
    rows = tuned(words)
    padded, lengths = rows.pad([0, 1])
    with torch.no_grad():
        layers = tuned._run(torch.from_numpy(padded), torch.from_numpy(lengths))
    expected = context_reader(embedder, MARKERS)(words)
    for b, n in enumerate(lengths.tolist()):
        own = layers[b].transpose(0, 1).flatten(1).numpy()
        np.testing.assert_allclose(own[:n], expected[b], atol=1e-3)
        assert not own[n:].any()


def test_the_cache_is_used_again_and_told_from_others(embedder, tmp_path, monkeypatch):
    settings = ContextualConfig(model=embedder, cache=str(tmp_path / "cache"))
    first = ContextReader(settings, embedder)(WORDS)
    (file,) = (tmp_path / "cache").iterdir()
    monkeypatch.setattr(ContextReader, "_fill", None)  # nothing is computed from here on
    again = ContextReader(settings, embedder)(WORDS)
    assert np.array_equal(first.flat, again.flat) and np.array_equal(first.offsets, again.offsets)
    monkeypatch.undo()
    ContextReader(settings, embedder)(WORDS[:2])
    other = Embedder("elmo", training={**QUICK, "seed": 1}, **SMALL).fit(TEXTS)
    ContextReader(settings, other)(WORDS)
    assert len(list((tmp_path / "cache").iterdir())) == 3
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match="no cache of layers"):
        ContextReader(settings, embedder)(WORDS)


def test_a_model_with_a_cache_says_the_same(embedder, tmp_path):
    cached = fitted("tag", {"model": embedder, "cache": str(tmp_path)})
    assert said(cached) == said(fitted("tag", embedder))


def test_an_embedder_that_is_missing_or_another_one_is_refused(embedder, tmp_path):
    place = fitted("tag", embedder).save(tmp_path / "model")
    other = Embedder("elmo", training={**QUICK, "seed": 1}, **SMALL).fit(TEXTS)
    kept = tmp_path / "kept"
    shutil.copytree(place, kept)
    shutil.rmtree(place / "embedder")
    with pytest.raises(DataError, match="embedder"):
        load(place)
    other.save(place / "embedder")
    with pytest.raises(DataError, match="is not the model this one was saved with"):
        load(place)
    weights = kept / "embedder" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    with pytest.raises(DataError, match="altered"):
        load(kept)


def test_a_language_model_or_its_directory_may_be_given(embedder, tmp_path):
    language = LanguageModel("elmo", training=QUICK, **SMALL).fit(TEXTS, out=tmp_path / "lm")
    reader = context_reader(tmp_path / "lm")
    assert reader is not None
    own = Embedder.from_language_model(language)
    assert np.array_equal(reader(WORDS[:2]).flat, context_reader(own)(WORDS[:2]).flat)


def test_what_is_refused(embedder, tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        fitted("tag", tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="got 3"):
        fitted("classify", 3)
    with pytest.raises(ConfigError, match=r"unknown setting 'contextual.tune'.*tuned"):
        fitted("relate", {"model": embedder, "tune": True})
    words = Embedder(vector_size=4, sample=0, vocabulary={"min_count": 1}).fit(TEXTS)
    with pytest.raises(ConfigError, match="got 'word2vec'; give its vectors as vectors="):
        fitted("tag", words)
    with pytest.raises(ConfigError, match="have no cache, got 'here'"):
        fitted("tag", {"model": embedder, "tuned": True, "cache": "here"})
    with pytest.raises(ConfigError, match="reads characters, got contextual"):
        Tagger(contextual=embedder, segment=True).fit(["一 二"])
    with pytest.raises(ConfigError, match="contextual is for architectures that read words"):
        Classifier("softmax", contextual=embedder).fit(TEXTS, LABELS)
    at_output = {"model": embedder, "insert": ["output"]}
    with pytest.raises(
        ConfigError, match="CNNClassifierConfig takes words in context at its input"
    ):
        Classifier("cnn", contextual=at_output).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="got pooling='last'"):
        fitted("classify", at_output, pooling="last")
    with pytest.raises(ConfigError, match="with position_size words in context go to the input"):
        fitted("relate", at_output, position_size=3)
    with pytest.raises(InputError, match="contextual is for words, got sequences of vectors"):
        Tagger(contextual=embedder).fit([np.zeros((2, 3))] * 4, [["a", "b"]] * 4)


def test_positions_and_convolutions_read_them_at_the_input(embedder):
    model = fitted("relate", embedder, position_size=3)
    assert model.predict_proba(MARKED).shape == (8, 2)
    model = Classifier("cnn", contextual=embedder, embed_size=8, training=QUICK)
    assert model.fit(TEXTS, LABELS).predict_proba(TEXTS[:2]).shape == (2, 2)


def test_the_header_says_how_the_embedder_is_used(embedder, tmp_path):
    header = json.loads((fitted("tag", embedder).save(tmp_path / "m") / "seqloom.json").read_text())
    assert header["config"]["context"]["num_layers"] == 3
    assert header["settings"]["contextual"] == {
        "tuned": False,
        "insert": ["input"],
        "layer_norm": False,
        "dropout": 0.5,
    }
    assert list(header["models"]) == ["embedder"]
