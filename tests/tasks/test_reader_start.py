"""Readers that learn further: from the weights and the words of a fitted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.base import clone

from seqloom import Reader
from seqloom.data.examples import Answer, Question
from seqloom.errors import ConfigError

CITIES = [("Ada", "London"), ("Max", "Rome"), ("Eva", "Oslo"), ("Bob", "Paris")]
PASSAGE = " ".join(f"{name} was born in {city}." for name, city in CITIES)
WORK = "Ada sings in Rome. Max paints in Oslo. Eva runs in Zurich."
FAST = {
    "averaging": "none",
    "device": "cpu",
    "schedule": {"warmup": 0},
    "optimizer": {"rate": 0.01},
}
SMALL: dict[str, Any] = {"hidden_size": 16, "embed_size": 12, "dropout": 0.0, "char_size": 6}


def asked(passage: str, answers: list[tuple[str, str]]) -> list[Question]:
    return [
        Question(text, passage, text, (Answer(answer, passage.index(answer)),))
        for text, answer in answers
    ]


BORN = asked(PASSAGE, [(f"Where was {name} born?", city) for name, city in CITIES])
WORKS = asked(WORK, [("Who sings?", "Ada"), ("Who paints?", "Max"), ("Who runs?", "Eva")])


@pytest.fixture(scope="module")
def first() -> Reader:
    training = {**FAST, "epochs": 40}
    return Reader(min_count=1, valid_share=0, training=training, **SMALL).fit(BORN)


def further(start: Any, epochs: int, **settings: Any) -> Reader:
    return Reader(start=start, valid_share=0, training={**FAST, "epochs": epochs}, **settings)


def test_the_first_update_begins_where_the_other_reader_ended(first: Reader) -> None:
    still = {**FAST, "epochs": 1, "optimizer": {"name": "sgd", "rate": 1e-12}}
    again = Reader(start=first, valid_share=0, dropout=0.0, training=still).fit(WORKS)
    weights = again.model_.state_dict()
    for name, weight in first.model_.state_dict().items():
        torch.testing.assert_close(weights[name], weight, rtol=0, atol=1e-8)
    assert again.predict(BORN) == first.predict(BORN)
    assert again.words_.words.words == first.words_.words.words


def test_it_learns_what_is_new_and_leaves_the_other_as_it_was(
    first: Reader, tmp_path: Path
) -> None:
    place = first.save(tmp_path / "first")
    before = {name: weight.clone() for name, weight in first.model_.state_dict().items()}
    for start in (first, place, str(place)):
        again = further(start, 60, dropout=0.0).fit(WORKS)
        assert again.evaluate(WORKS)["exact"] == 100
    for name, weight in first.model_.state_dict().items():
        assert torch.equal(weight, before[name])
    assert again.provenance_["start"]["provenance"]["questions"] == len(BORN)
    again.save(tmp_path / "again")
    assert Reader.load(tmp_path / "again").predict(WORKS) == again.predict(WORKS)


@pytest.mark.parametrize("tuned", [False, True])
def test_vectors_of_words_are_trained_where_asked(first: Reader, *, tuned: bool) -> None:
    again = further(first, 3, tune_vectors=tuned).fit(BORN)
    weight = again.model_.input.embedding.weight
    assert torch.equal(weight, first.model_.input.embedding.weight) is not tuned
    assert weight.requires_grad


def test_options_that_are_given_count_though_they_are_defaults(first: Reader) -> None:
    assert first.model_.config.dropout == 0.0
    assert further(first, 1).fit(BORN).model_.config.dropout == 0.0
    assert further(first, 1, dropout=0.2).fit(BORN).model_.config.dropout == 0.2
    assert clone(further(first, 1)).fit(BORN).model_.config.dropout == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vectors": "glove"}, "leave vectors out"),
        ({"contextual": "english-elmo"}, "leave contextual out"),
        ({"min_count": 3}, "leave min_count out"),
        ({"unseen_vectors": 7}, "leave unseen_vectors out"),
        ({"rules": "cmrc"}, "fitted with rules='squad', got 'cmrc'"),
        ({"cut_words": False}, "fitted with cut_words=True, got False"),
        ({"text": {"unit": "character"}}, "fitted with text="),
        ({"arch": "rnet-notes"}, "fitted with arch='bidaf', got 'rnet-notes'"),
        ({"hidden_size": 20}, "make another network than that of start: context"),
        ({"start": 3}, "start must be a reader, a model directory or a name, got 3"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    first: Reader, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        further(**{"start": first, "epochs": 1, **settings}).fit(BORN)
