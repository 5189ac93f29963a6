"""Vectors of words in context: by batch, alone, in pieces, saved, and out of a language model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqloom import Embedder, LanguageModel
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.tasks import context_vectors
from seqloom.tasks.contextual_embedder import SentenceVectors
from seqloom.tasks.packing import pack_model
from seqloom.text.spellings import BEGIN, END, SENTENCE_END, spell_words

TEXTS = ["the cat sat on the mat", "a dog sat on the rug", "the dog ran to the cat"] * 8
QUICK = {"epochs": 2, "batch": {"batch_size": 4}, "device": "cpu", "optimizer": {"rate": 0.01}}
SMALL = {"char_size": 4, "filters": ((1, 4), (3, 6)), "projection_size": 6, "hidden_size": 8}
SENTENCES = [
    "the cat sat",
    ["a", "dog", "", "x" * 500, "🙂", "苹果"],
    "",
    ["mat"],
    "the dog ran to the cat and the dog",
]


@pytest.fixture(scope="module")
def elmo() -> Embedder:
    return Embedder("elmo", training=QUICK, **SMALL).fit(TEXTS, TEXTS[:3])


@pytest.fixture(scope="module")
def transformer() -> Embedder:
    sizes = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "context_size": 64}
    return Embedder("transformer", training=QUICK, **sizes).fit(TEXTS)


@pytest.fixture(params=["elmo", "transformer"])
def model(request) -> Embedder:
    return request.getfixturevalue(request.param)


def layers(model: Embedder, sentences) -> list:
    return [found.layers for found in model.embed_sentences(sentences)]


def test_vectors_do_not_depend_on_the_batch_or_on_padding(model):
    together = layers(model, SENTENCES)
    assert [len(each) for each in together] == [3] * 5
    for sentence, found in zip(SENTENCES, together, strict=True):
        (alone,) = layers(model, [sentence])
        np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)
        assert np.isfinite(found).all()
    assert together[2].shape[1] == 0 and together[1].shape[1] == 6


def test_a_sentence_has_the_same_bits_whatever_was_read_before(model):
    first = layers(model, SENTENCES)
    layers(model, [TEXTS[1]] * 3)
    for one, again in zip(first, layers(model, SENTENCES), strict=True):
        assert np.array_equal(one, again)


def test_words_in_context_differ_and_the_first_layer_does_not(elmo):
    one, other = layers(elmo, ["the cat sat", "a dog sat"])
    np.testing.assert_allclose(one[0, 2], other[0, 2], rtol=1e-5)
    assert np.abs(one[1:, 2] - other[1:, 2]).max() > 1e-3
    size = elmo.model_.config.projection_size
    np.testing.assert_array_equal(one[0, :, :size], one[0, :, size:])  # {e, e}
    np.testing.assert_allclose(one[0, :, :size], elmo.embed(["the", "cat", "sat"]), rtol=1e-5)


def test_the_layers_are_those_of_the_network_between_two_ends(elmo):
    words = ["the", "cat"]
    spelled = spell_words([*words, "</s>"], 40, {"</s>": SENTENCE_END})
    places = torch.tensor([[2, 0, 1, 2]])
    expected, _ = elmo.model_(torch.from_numpy(spelled), places)
    np.testing.assert_allclose(
        layers(elmo, [words])[0], expected[0, :, 1:-1].detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_long_sentence_in_pieces_equals_the_whole(elmo, monkeypatch):
    words = ["the", "cat", "sat", "on", "a", "rug"] * 5
    (whole,) = layers(elmo, [words])
    monkeypatch.setattr(context_vectors, "PIECE", 7)
    (pieces,) = layers(elmo, [words])
    np.testing.assert_allclose(pieces, whole, rtol=1e-5, atol=1e-6)


def test_a_long_sentence_of_the_transformer_is_cut(transformer, monkeypatch):
    words = ["the", "cat", "sat"] * 50
    (found,) = layers(transformer, [words])
    (first,) = layers(transformer, [words[:63]])
    np.testing.assert_allclose(found[:, :63], first, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(context_vectors, "PIECE", 20)
    np.testing.assert_allclose(layers(transformer, [words])[0], found, rtol=1e-5, atol=1e-6)


def test_a_text_is_streamed_sentence_by_sentence(elmo):
    given = (line for line in [*TEXTS, "the end"])
    found = elmo.embed_sentences(given)
    assert next(found).words == ("the", "cat", "sat", "on", "the", "mat")
    text = "The cat sat. The dog ran."
    assert [each.words for each in elmo.embed_text(text)] == [
        ("The", "cat", "sat", "."),
        ("The", "dog", "ran", "."),
    ]


def test_mixes_are_what_they_say():
    found = SentenceVectors(
        ("a",), np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 9.0]]], np.float32)
    )
    assert found.mix().tolist() == [[3.0, 5.0]]
    assert found.mix("last").tolist() == [[5.0, 9.0]]
    assert found.mix(1).tolist() == [[3.0, 4.0]]
    assert found.mix([1, 0, 2]).tolist() == [[11.0, 20.0]]
    with pytest.raises(ConfigError, match=r"must lie in 0..2, got 3"):
        found.mix(3)
    with pytest.raises(ConfigError, match=r"3 weights, one a layer, got \[1\]"):
        found.mix([1])


def test_saving_and_loading_changes_nothing(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = Embedder.load(tmp_path / "model")
    for one, other in zip(layers(model, SENTENCES), layers(loaded, SENTENCES), strict=True):
        assert np.array_equal(one, other)
    assert loaded.nearest("cat", 3) == model.nearest("cat", 3)


def test_a_language_model_gives_its_layers(tmp_path):
    language = LanguageModel("elmo", training=QUICK, **SMALL).fit(TEXTS, out=tmp_path / "lm")
    found = Embedder.from_language_model(tmp_path / "lm")
    same = Embedder.from_language_model(language)
    assert np.array_equal(layers(found, ["the cat"])[0], layers(same, ["the cat"])[0])
    assert found.get_params()["hidden_size"] == 8
    found.save(tmp_path / "whole")
    packed = Embedder.load(pack_model(tmp_path / "whole", tmp_path / "packed", "int8"))
    np.testing.assert_allclose(
        layers(packed, ["the cat"])[0], layers(found, ["the cat"])[0], atol=0.05
    )
    assert "output" not in {name.split(".")[0] for name in found.shapes()}


def test_words_never_seen_have_neighbours_by_their_characters(elmo):
    assert elmo.nearest("catt", 1)[0][0] in elmo.vocabulary_
    assert elmo.embed(["catt", "苹果"]).shape == (2, 6)
    assert elmo.similarity("cat", "cat") == pytest.approx(1.0)


def test_what_is_refused(elmo, transformer, tmp_path):
    with pytest.raises(ConfigError, match="got 'word2vec'; embed has its vectors"):
        Embedder(vector_size=4, sample=0, vocabulary={"min_count": 1}).fit(TEXTS).embed_sentences(
            []
        )
    with pytest.raises(ConfigError, match="got RecurrentLM"):
        Embedder.from_language_model(LanguageModel("lstm", training=QUICK).fit(TEXTS))
    with pytest.raises(InputError, match="sentence 1 must be words, got 3 among them"):
        list(elmo.embed_sentences(["a", [3]]))
    with pytest.raises(InputError, match="sentence 1 must be a text or words, got 3"):
        list(elmo.embed_sentences(["a", 3]))
    for one in ("a cat", None):
        with pytest.raises(InputError, match="put one into a list, or use embed_text"):
            elmo.embed_sentences(one)
    with pytest.raises(DataError, match="catt"):
        transformer.embed(["catt"])
    with pytest.raises(ConfigError, match="makes word vectors of characters, got vectors"):
        LanguageModel("elmo", vectors=transformer.vectors, training=QUICK, **SMALL).fit(TEXTS)


def test_spellings_by_hand():
    assert spell_words(["ab", ""], 6).tolist() == [
        [BEGIN, 98, 99, END, 0, 0],
        [BEGIN, END, 0, 0, 0, 0],
    ]
    assert spell_words(["苹"], 6).tolist() == [[BEGIN, 0xE8 + 1, 0x8B + 1, 0xB9 + 1, END, 0]]
    assert spell_words(["abcdefgh"], 7).tolist() == [[BEGIN, 98, 99, 100, 104, 105, END]]
    with pytest.raises(ConfigError, match="got size=3"):
        spell_words(["a"], 3)
