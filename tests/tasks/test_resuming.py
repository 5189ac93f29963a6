"""Runs that resume: with what they began with, and with nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seqloom import (
    Classifier,
    Forecaster,
    Reader,
    Recognizer,
    Regressor,
    RelationClassifier,
    Tagger,
    Translator,
)
from seqloom.data.batches import EncodedData
from seqloom.data.examples import Answer, Question, Relation
from seqloom.data.features import Bags, Vectors
from seqloom.data.ragged import Ragged
from seqloom.data.relations import parse_marked
from seqloom.errors import ConfigError, StoppedError
from seqloom.tasks import content
from seqloom.tasks.content import content_digest
from seqloom.tasks.supervised_objective import Examples
from seqloom.text.vectors import WordVectors
from seqloom.training.checkpoint import pack_optimizer, unpack_optimizer
from seqloom.training.state import RunState

DRAW = np.random.default_rng(0)
TABLE, LABELS = DRAW.normal(size=(24, 3)), ["a", "b"] * 12
TEXTS = ["good film", "bad film", "a good play here", "a bad play"] * 6
SEQUENCES = [DRAW.normal(size=(6, 2)) for _ in range(8)]
SIGNS = [["x", "y"], ["y"]] * 4
PASSAGE = "Ada was born in London. Max was born in Rome."
WORDS = [["Ada", "went"], ["Max", "sat", "here"]] * 4
TAGS = [["B-PER", "O"], ["B-PER", "O", "O"]] * 4
OTHER_TAGS = [["O", "B-PER"], ["O", "O", "B-PER"]] * 4
SOURCES = ["red green", "blue red", "green blue", "grey red"]
TARGETS = ["A B", "C A", "B C", "D A"]
SERIES = np.sin(np.arange(60) / 3)
VECTORS = {
    name: WordVectors(["good", "bad", "film"], np.float32(scale * np.eye(3)))
    for name, scale in (("one", 1.0), ("other", 2.0))
}


def relations(names: tuple[str, str]) -> list[Relation]:
    texts = ("the <e1>rain</e1> makes <e2>mud</e2>", "a <e1>fire</e1> of <e2>wood</e2>")
    pairs = zip(texts, names, strict=True)
    return [Relation(*parse_marked(text), name) for text, name in pairs] * 8


def questions(cities: tuple[str, str]) -> list[Question]:
    return [
        Question(name, PASSAGE, f"Where was {name} born?", (Answer(city, PASSAGE.index(city)),))
        for name, city in zip(("Ada", "Max"), cities, strict=True)
    ]


def classifier(**settings: Any) -> Classifier:
    return Classifier("mlp", hidden_sizes=(4,), training=QUICK, **settings)


def text_classifier(**settings: Any) -> Classifier:
    return Classifier("cnn", **{"training": QUICK, "vectors": VECTORS["one"], **settings})


def relation_classifier(**settings: Any) -> RelationClassifier:
    return RelationClassifier("brnn", embed_size=4, hidden_size=4, training=QUICK, **settings)


def reader(**settings: Any) -> Reader:
    small: dict[str, Any] = {"hidden_size": 4, "embed_size": 4, "min_count": 1, "valid_share": 0}
    return Reader("bidaf", **{**small, "training": QUICK, **settings})


def tagger(**settings: Any) -> Tagger:
    return Tagger(hidden_size=4, embed_size=4, valid_share=0, training=QUICK, **settings)


def translator(**settings: Any) -> Translator:
    return Translator("seq2seq", embed_size=4, hidden_size=4, training=QUICK, **settings)


def forecaster(**settings: Any) -> Forecaster:
    return Forecaster(horizon=2, window=6, hidden_size=4, training=QUICK, **settings)


QUICK = {"epochs": 3, "device": "cpu", "patience": None, "log_every": 1, "batch": {"batch_size": 4}}
CAUSES = ("Cause-Effect(e1,e2)", "Other")
ASKED = questions(("London", "Rome"))
PAIRS = list(zip(SOURCES, TARGETS, strict=True))
SHUFFLED = list(zip(SOURCES, TARGETS[::-1], strict=True))
VALID = (TABLE[:4], LABELS[:4])
TASKS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "classifier": (classifier, (TABLE, LABELS, VALID)),
    "text classifier": (text_classifier, (TEXTS, LABELS)),
    "relation classifier": (relation_classifier, (relations(CAUSES),)),
    "reader": (reader, (ASKED, ASKED)),
    "tagger": (tagger, (WORDS, TAGS, (WORDS, TAGS))),
    "translator": (translator, (PAIRS,)),
    "forecaster": (forecaster, (SERIES,)),
    "recognizer": (
        lambda: Recognizer(hidden_size=4, training=QUICK),
        (SEQUENCES, SIGNS),
    ),
    "regressor": (lambda: Regressor("linear", training=QUICK), (TABLE, TABLE[:, 0])),
}
OTHER_DATA = [
    ("classifier", (TABLE, LABELS[::-1], VALID), "train"),
    ("classifier", (TABLE + 1, LABELS, VALID), "train"),
    ("classifier", (TABLE, LABELS, (TABLE[:4], LABELS[1:5])), "valid"),
    ("text classifier", (TEXTS, LABELS[::-1]), "train"),
    ("relation classifier", (relations(CAUSES[::-1]),), "train"),
    ("reader", (questions(("Rome", "London")), ASKED), "train"),
    ("reader", (ASKED, questions(("Rome", "London"))), "valid"),
    ("tagger", (WORDS, OTHER_TAGS, (WORDS, TAGS)), "train"),
    ("tagger", (WORDS, TAGS, (WORDS, OTHER_TAGS)), "valid"),
    ("translator", (SHUFFLED,), "train"),
    ("forecaster", (SERIES**2,), "train"),
    ("recognizer", (SEQUENCES, SIGNS[::-1]), "train"),
    ("regressor", (TABLE, TABLE[:, 1]), "train"),
]
OTHER_SETTINGS = [
    ("classifier", {"class_weight": {"a": 2.0}}, "content.class_weight was None"),
    ("text classifier", {"vectors": VECTORS["other"]}, "content.vectors"),
    ("text classifier", {"max_length": 2}, "content.train"),
    ("text classifier", {"valid_share": 0.4}, "content.train"),
    ("text classifier", {"tune_vectors": False}, "content.tune_vectors was True"),
    ("relation classifier", {"other": "Cause-Effect(e1,e2)"}, "content.other was 'Other'"),
    ("reader", {"max_words": 3}, "content.max_words was 20 and is 3"),
    ("reader", {"rules": "cmrc"}, "content.rules was 'squad'"),
    ("tagger", {"constrained": False}, "content.constrained was True"),
]


def strike(report: Any) -> None:
    if report.step == 1:
        os.kill(os.getpid(), signal.SIGTERM)


def begin(name: str, place: Path, **settings: Any) -> None:
    make, data = TASKS[name]
    with pytest.raises(StoppedError):
        make(**settings).fit(*data, out=place, callbacks=[strike])


def check_same(model: Any, other: Any) -> None:
    for name, weight in model.model_.state_dict().items():
        assert torch.equal(weight, other.model_.state_dict()[name]), name


@pytest.mark.parametrize("notes", [True, False], ids=["now", "before content was noted"])
@pytest.mark.parametrize("name", TASKS)
def test_a_run_goes_on_with_what_it_began_with(name, notes, tmp_path, monkeypatch):
    pack = RunState.pack

    def without_content(self, objective, **values):
        found = pack(self, objective, **values)
        known = {k: v for k, v in found.values["settings"].items() if k != "content"}
        return replace(found, values={**found.values, "settings": known})

    make, data = TASKS[name]
    with monkeypatch.context() as patch:
        if not notes:
            patch.setattr(RunState, "pack", without_content)
        begin(name, tmp_path / "cut")
    resumed = make().fit(*data, out=tmp_path / "cut", resume=True)
    check_same(resumed, make().fit(*data))


@pytest.mark.parametrize(("name", "other", "named"), OTHER_DATA)
def test_other_data_is_refused(name, other, named, tmp_path):
    begin(name, tmp_path)
    with pytest.raises(ConfigError, match=rf"content\.{named} was"):
        TASKS[name][0]().fit(*other, out=tmp_path, resume=True)


@pytest.mark.filterwarnings("ignore::seqloom.tasks.classifier_sequences.CutTextWarning")
@pytest.mark.parametrize(("name", "changed", "named"), OTHER_SETTINGS)
def test_other_settings_are_refused(name, changed, named, tmp_path):
    begin(name, tmp_path)
    make, data = TASKS[name]
    with pytest.raises(ConfigError, match=named):
        make(**changed).fit(*data, out=tmp_path, resume=True)


def test_another_start_is_refused(tmp_path):
    one, other = (reader(training={**QUICK, "seed": seed}).fit(ASKED) for seed in (1, 2))
    begin("reader", tmp_path, start=one, min_count=10)
    for changed, named in (({"start": other}, "start"), ({"tune_vectors": True}, "tune_vectors")):
        model = reader(**{"start": one, "min_count": 10, **changed})
        with pytest.raises(ConfigError, match=rf"content\.{named} was"):
            model.fit(ASKED, ASKED, tmp_path, resume=True)
    again, whole = (reader(start=one, min_count=10) for _ in range(2))
    check_same(again.fit(ASKED, ASKED, tmp_path, resume=True), whole.fit(ASKED, ASKED))


def test_another_share_of_a_teacher_is_refused(tmp_path):
    teacher = text_classifier().fit(TEXTS, LABELS)
    begin("text classifier", tmp_path, teaching={"teachers": [teacher], "share": 0.5})
    same, other = (
        text_classifier(teaching={"teachers": [teacher], "share": share}) for share in (0.5, 0.9)
    )
    with pytest.raises(ConfigError, match=r"content\.train was"):
        other.fit(TEXTS, LABELS, out=tmp_path, resume=True)
    same.fit(TEXTS, LABELS, out=tmp_path, resume=True)


def test_the_state_of_other_weights_is_refused():
    def adam(*shapes):
        weights = [nn.Parameter(torch.ones(shape)) for shape in shapes]
        optimizer = torch.optim.Adam(weights)
        sum(weight.sum() for weight in weights).backward()
        optimizer.step()
        return optimizer

    state = pack_optimizer(adam((2, 3), (3,)))
    unpack_optimizer(adam((2, 3), (3,)), *state)
    with pytest.raises(RuntimeError, match="has 1 weights, got state of 1"):
        unpack_optimizer(adam((2, 3)), *state)
    with pytest.raises(RuntimeError, match=r"of weight 1 must be of shape \(4,\), got \(3,\)"):
        unpack_optimizer(adam((2, 3), (4,)), *state)


# -- digests -------------------------------------------------------------------------------------


def test_a_digest_tells_all_data_apart():
    numbers = np.arange(4)
    ragged = Ragged(numbers, np.array([0, 1, 4]))
    values = [
        None, 0, False, 0.0, "", "0", [], {}, [""], ["", ""], [[""], []], [[], [""]], ["a", "b"],
        [["a"], "b"], numbers, numbers.astype(np.int32), numbers[:, None], numbers[:0],
        numbers[0], np.array(["a", "b"]), torch.arange(3), ragged, ragged.flat[::-1],
        Ragged(numbers, np.array([0, 2, 4])), EncodedData({"x": ragged}),
        EncodedData({"y": ragged}),
        Vectors(np.ones((2, 2))), Bags(numbers, np.ones(4), np.array([0, 1, 4]), 4),
        Examples(Vectors(np.ones((2, 2))), numbers), {"a": 1}, {"a": 2}, {"b": 1},
    ]  # fmt: skip
    assert len({content_digest(value) for value in values}) == len(values)


def test_a_digest_is_of_values_not_of_their_place():
    table = np.arange(12.0).reshape(3, 4)
    assert content_digest(np.asfortranarray(table)) == content_digest(table)
    assert content_digest(torch.from_numpy(table)) == content_digest(table)
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})


def test_long_arrays_are_hashed_in_pieces(monkeypatch):
    table = np.arange(600.0).reshape(100, 6)
    whole = content_digest(table)
    monkeypatch.setattr(content, "PIECE", 100)
    assert content_digest(table) == whole


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([None]), [np.ones(2), int]])
def test_what_cannot_be_hashed_is_not_left_out(value):
    with pytest.raises(TypeError, match="must"):
        content_digest(value)


def test_context_counts_by_its_shape():
    halves, offsets = np.ones((4, 2), np.float16), np.array([0, 1, 4])
    assert content_digest(Ragged(halves, offsets)) == content_digest(Ragged(2 * halves, offsets))
    assert content_digest(Ragged(halves, offsets)) != content_digest(
        Ragged(halves[1:], offsets - [0, 0, 1])
    )
