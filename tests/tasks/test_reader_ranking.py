"""Which of several windows has the answer: what tells them apart, and how probable each is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqloom import Reader
from seqloom.data.examples import Answer, Question
from seqloom.tasks.reader_answering import read_windows
from seqloom.tasks.reader_data import encode_texts, encode_windows
from seqloom.tasks.reader_ranking import RankingConfig, read_ranking, window_likeness
from seqloom.tasks.reader_storage import stored_settings
from seqloom.tasks.reader_words import ReaderVocabulary

TEXTS = ["the red cat sat", "a blue dog ran", "Zed saw the red dog"]
ASKED = "where was red Zed seen"


def test_likeness_is_that_of_the_nearest_words_weighed_by_how_rare_they_are() -> None:
    known = ReaderVocabulary.learn(
        [text.split() for text in TEXTS for _ in range(9)], min_count=10, characters=False
    )
    kept = {word: number for number, word in enumerate(known.words.words)}
    assert "red" in kept and "dog" in kept and "cat" not in kept and "zed" not in kept
    texts = encode_texts([text.split() for text in TEXTS], [ASKED.split()], known)
    data, _ = encode_windows(texts, [(0, 0), (1, 0), (2, 0)])
    vectors = torch.randn(len(known.words), 3, generator=torch.Generator().manual_seed(0))
    found = window_likeness(data, np.arange(3), vectors, known.unknown)

    def cosine(one: str, other: str) -> float:
        if one.lower() == other.lower():
            return 1.0
        if one.lower() not in kept or other.lower() not in kept:
            return 0.0
        a, b = vectors[kept[one.lower()]], vectors[kept[other.lower()]]
        return float(torch.nn.functional.cosine_similarity(a, b, dim=0))

    for row, text in enumerate(TEXTS):
        worth = [known.rarity(word) ** 2 for word in ASKED.split()]
        nearest = [max(cosine(word, other) for other in text.split()) for word in ASKED.split()]
        assert found[row] == pytest.approx(np.dot(worth, nearest) / sum(worth), abs=1e-6)
    alone = window_likeness(data, np.array([2]), vectors, known.unknown)
    np.testing.assert_array_equal(alone, found[2:])


CITIES = [("Ada", "London"), ("Max", "Rome"), ("Eva", "Oslo"), ("Bob", "Paris")]
PASSAGE = " ".join(f"{name} was born in {city}." for name, city in CITIES)


@pytest.fixture(scope="module")
def model() -> Reader:
    asked = [
        Question(name, PASSAGE, f"Where was {name} born?", (Answer(city, PASSAGE.index(city)),))
        for name, city in CITIES
    ]
    training = {"epochs": 20, "averaging": "none", "device": "cpu", "optimizer": {"rate": 0.01}}
    sizes: dict[str, Any] = {"hidden_size": 12, "embed_size": 12, "characters": "none"}
    return Reader(min_count=1, valid_share=0, training=training, dropout=0.0, **sizes).fit(asked)


def test_answers_have_the_probability_of_their_window_times_that_within(model: Reader) -> None:
    passages = ["Ada was born in London.", "Nothing of note.", "Max lives in Rome. Rain fell."]
    question = "Where was Max born?"
    ranking = RankingConfig(terms=0.3, reading=0.2, likeness=2.0, log_length=0.5)
    one = model.set_params(ranking=ranking)
    read = read_windows(model, [(passages, question)], window=400, spans=400)
    told = read.features
    np.testing.assert_allclose(told.log_length, np.log([6, 4, 8]))
    scores = 0.3 * told.terms + 0.2 * told.reading + 2 * told.likeness - 0.5 * told.log_length
    chances = np.exp(scores) / np.exp(scores).sum()
    found, compared = one.answer_all([(passages, question)], top=500)[0], 0
    for number, passage in enumerate(passages):
        alone = one.answer_all([(passage, question)], top=500)[0]
        within = {(a.start, a.end): a.probability for a in alone}
        here = [a for a in found if a.passage == number]
        assert here
        for answer in here:
            others = [  # spans that say the same elsewhere are added to an answer
                a for a in passages[:number] + passages[number + 1 :] if answer.text in a
            ]
            if not others and passage.count(answer.text) == 1:
                expected = chances[number] * within[answer.start, answer.end]
                assert answer.probability == pytest.approx(expected, rel=1e-4)
                compared += 1
    assert compared > 10 and sum(a.probability for a in found) <= 1 + 1e-9
    model.set_params(ranking=None)


def test_one_window_is_read_as_it_is_whatever_the_ranking(model: Reader) -> None:
    usual = model.answer(PASSAGE, "Where was Eva born?")
    other = model.set_params(ranking={"reading": 0.0, "log_length": 9.0})
    assert other.answer(PASSAGE, "Where was Eva born?") == usual
    model.set_params(ranking=None)


def test_a_directory_keeps_its_ranking_and_one_that_is_a_number_is_passed_over(
    model: Reader, tmp_path: Path
) -> None:
    kept = model.set_params(ranking={"terms": 2.0}).save(tmp_path / "kept")
    assert read_ranking(Reader.load(kept).ranking) == RankingConfig(terms=2.0)
    model.set_params(ranking=None)
    older = {"ranking": 3.0, "max_windows": 8, "piece": 10, "overlap": 5}
    assert stored_settings(older) == {"piece": 10, "overlap": 5}
    old = {"ranking": {"terms": 0.5, "length": 0.85}, "max_windows": 8, "piece": 10}
    assert stored_settings(old) == {"piece": 10, "max_windows": 8}
