"""Tiny models, and one server for the tests that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Server

from seqloom import Classifier, Embedder, LanguageModel, RelationClassifier, Tagger, Translator
from seqloom.data.examples import Answer, Question
from seqloom.tasks.reader import Reader

TEXTS = ["the cat sat on the mat", "the dog sat on the rug", "a cat saw a dog"] * 8
PASSAGE = "Ada was born in London. Max was born in Rome."
TRAINING = {"epochs": 1, "device": "cpu"}


@pytest.fixture(scope="session")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that needs no torch."""
    return (
        LanguageModel("ngram", order=3, smoothing="witten-bell")
        .fit(TEXTS)
        .save(tmp_path_factory.mktemp("counted") / "ngram")
    )


@pytest.fixture(scope="session")
def models(counted: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each task, by its name."""
    place = tmp_path_factory.mktemp("models")
    fitted = {
        "lstm": LanguageModel("lstm", hidden_size=8, num_layers=1, training=TRAINING).fit(TEXTS),
        "back": LanguageModel("lstm", hidden_size=8, reverse=True, training=TRAINING).fit(TEXTS),
        "kinds": Classifier("att-blstm", embed_size=8, hidden_size=8, training=TRAINING).fit(
            TEXTS, ["mat", "rug", "none"] * 8
        ),
        "tags": Tagger("cnn", valid_share=0, training=TRAINING).fit(
            [["the", "cat"], ["a", "dog"]], [["B-X", "I-X"], ["O", "B-Y"]]
        ),
        "relations": RelationClassifier(
            "att-blstm", embed_size=8, hidden_size=8, training=TRAINING, valid_share=0
        ).fit(
            ["<e1>cats</e1> eat <e2>fish</e2>", "<e2>fish</e2> fears <e1>cats</e1>"],
            ["eat(e1,e2)", "fear(e2,e1)"],
        ),
        "translator": Translator("seq2seq", embed_size=8, hidden_size=8, training=TRAINING).fit(
            [("a b", "b a"), ("b c", "c b")] * 4
        ),
        "vectors": Embedder(vector_size=8, sample=0).fit(TEXTS),
        "reader": Reader("bidaf", hidden_size=8, valid_share=0, min_count=1, training=TRAINING).fit(
            [Question("1", PASSAGE, "Where was Ada born?", (Answer("London", 16),))]
        ),
    }
    return {"ngram": counted, **{name: one.save(place / name) for name, one in fitted.items()}}


@pytest.fixture(scope="session")
def server(models: dict[str, Path]) -> Iterator[Server]:
    """A server of all of them that refuses slow bodies after a second, and nobody for the load."""
    options = ("--body-timeout", 1, "--max-wait", 60_000)
    with Server(*models.values(), "textrank", *options) as running:
        yield running
