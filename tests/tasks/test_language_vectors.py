"""Language models that begin with word vectors learned elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import seqloom
from seqloom import Embedder, LanguageModel
from seqloom.errors import ConfigError
from seqloom.tasks.pretrained import embedding_matrix
from seqloom.text import WordVectors, write_vectors

TEXTS = ["the cat sat on the mat", "a dog ran to the cat", "a bird saw the dog"] * 4
WORDS = ["the", "cat", "dog", "a", "zebra"]
ROWS = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
GIVEN = WordVectors(WORDS, ROWS)
SMALL = {
    "hidden_size": 8,
    "training": {"epochs": 2, "optimizer": {"name": "adamw", "rate": 0.05, "weight_decay": 0.1}},
}


def rows_of(model, words):
    table = model.model_.embedding.weight.detach().numpy()
    return table[model.vocabulary_.encode(words)]


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("lstm", {"embed_size": 6}),
        ("nnlm", {"embed_size": 6}),
        ("attention", {"embed_size": 6}),
        ("cnn", {"embed_size": 6, "hidden_size": 8}),
        ("transformer", {"hidden_size": 6, "num_heads": 2, "num_layers": 1}),
    ],
)
def test_frozen_vectors_stay_and_the_others_learn(arch, options, tmp_path):
    settings = {**SMALL, **options, "vectors": GIVEN}
    model = LanguageModel(arch, **settings, tune_vectors=False).fit(TEXTS, out=tmp_path / "lm")
    np.testing.assert_array_equal(rows_of(model, WORDS[:4]), ROWS[:4])
    other = LanguageModel(arch, **settings).fit(TEXTS)
    assert (rows_of(other, WORDS[:4]) != ROWS[:4]).any(axis=1).all()
    drawn = embedding_matrix(model.vocabulary_, GIVEN).matrix
    assert (
        rows_of(model, ["mat", "bird"]) != drawn[model.vocabulary_.encode(["mat", "bird"])]
    ).all()
    loaded = seqloom.load(tmp_path / "lm")
    np.testing.assert_array_equal(rows_of(loaded, WORDS), rows_of(model, WORDS))
    assert loaded.score("the cat sat").total == pytest.approx(model.score("the cat sat").total)


def test_vectors_come_from_an_embedder_a_directory_or_a_file(tmp_path):
    vectors = Embedder(vector_size=6, sample=0, threads=1, vocabulary={"min_count": 1})
    vectors.fit(TEXTS, out=tmp_path / "embedder")
    write_vectors(vectors.vectors, tmp_path / "v.vec")
    found = [
        LanguageModel("rnn", embed_size=6, vectors=source, tune_vectors=False, **SMALL).fit(TEXTS)
        for source in (vectors, tmp_path / "embedder", str(tmp_path / "v.vec"))
    ]
    for model in found:
        np.testing.assert_array_equal(rows_of(model, ["cat", "dog"]), vectors.embed(["cat", "dog"]))
    assert found[1].provenance_["vectors"] == str(tmp_path / "embedder")


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"as wide as the model's, 8, got 6"):
        LanguageModel("lstm", vectors=GIVEN, **SMALL).fit(TEXTS)
    with pytest.raises(ConfigError, match=r"tune_vectors=False .* got tied=True"):
        LanguageModel("lstm", embed_size=6, hidden_size=6, tied=True, vectors=GIVEN,
                      tune_vectors=False).fit(TEXTS)  # fmt: skip
    with pytest.raises(
        ConfigError, match=r"vectors belong to networks, got them with arch='ngram'"
    ):
        LanguageModel("ngram", vectors=GIVEN).fit(TEXTS)


def test_a_run_with_frozen_vectors_resumes(tmp_path):
    settings = {"embed_size": 6, "hidden_size": 8, "vectors": GIVEN, "tune_vectors": False}
    whole = LanguageModel("lstm", **settings, training={"epochs": 4}).fit(TEXTS)
    half = LanguageModel("lstm", **settings, training={"epochs": 4})

    def stop(report):
        if report.epoch >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half.fit(TEXTS, out=tmp_path / "lm", callbacks=[stop])
    half.fit(TEXTS, out=tmp_path / "lm", resume=True)
    np.testing.assert_array_equal(rows_of(half, ["mat", "the"]), rows_of(whole, ["mat", "the"]))
