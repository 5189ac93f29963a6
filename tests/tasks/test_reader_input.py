"""What readers are given: questions and settings that make no sense, passages that come twice."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom import Reader
from seqloom.data.examples import Answer, Question
from seqloom.errors import BackendError, ConfigError, InputError
from seqloom.tasks.reader_data import encode_training
from seqloom.tasks.reader_text import WordSplitter, read_all
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.text import TextConfig, TextPipeline

SPLITTER = WordSplitter(TextPipeline(TextConfig(language="en")))
PASSAGE = "Ada was born in London. Max was born in Rome."
ASKED = Question("1", PASSAGE, "Where was Max born?", (Answer("Rome", 40),), "T")
WHERE = "of question '1' of article 'T'"


def new(**settings: Any) -> Reader:
    sizes = {"hidden_size": 6, "embed_size": 5, "char_size": 4}
    training = {"epochs": 1, "averaging": "none", "device": "cpu"}
    return Reader(min_count=1, valid_share=0, training=training, **{**sizes, **settings})


@pytest.fixture(scope="module")
def model() -> Reader:
    return new().fit([ASKED])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"passage": None}, f"the passage {WHERE} must be a text, got NoneType"),
        ({"passage": [PASSAGE]}, f"the passage {WHERE} must be a text, got list"),
        ({"question": 3}, f"the question {WHERE} must be a text, got int"),
        ({"id": ["1"]}, r"the id of question \['1'\] of article 'T' must be a text, got list"),
        ({"title": 4}, "the title of question '1' of article 4 must be a text, got int"),
        ({"answers": None}, f"the answers {WHERE} must be a tuple, got None"),
        ({"answers": "Rome"}, f"the answers {WHERE} must be a tuple, got 'Rome'"),
        ({"answers": (("Rome", 40),)}, f"an answer {WHERE} must be an Answer, got \\('Rome', 40"),
    ],
)
def test_questions_that_are_not_made_of_texts_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {name: getattr(ASKED, name) for name in Question.__slots__}
    with pytest.raises(InputError, match=message):
        read_all([Question(**{**given, **changes})], SPLITTER, "training")


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("Rome", "40", f"the start of an answer {WHERE} must be a whole number, got '40'"),
        ("Rome", None, f"the start of an answer {WHERE} must be a whole number, got None"),
        ("da", True, f"the start of an answer {WHERE} must be a whole number, got True"),
        ("Rome", float("nan"), f"the start of an answer {WHERE} must be a whole number, got nan"),
        (None, 40, f"an answer {WHERE} must have a text, got None"),
        ("", 40, f"an answer {WHERE} must have a text, got ''"),
        (" ", 3, f"an answer {WHERE} must have a text, got ' '"),
        ("Oslo", 40, f"an answer {WHERE} must be the text at 40 of its passage, got 'Oslo'"),
        ("Rome", 10**40, f"an answer {WHERE} must lie within the 45 characters of its passage"),
    ],
)
def test_every_answer_must_be_where_it_says(text: Any, start: Any, message: str) -> None:
    for answers in ((Answer(text, start),), (*ASKED.answers, Answer(text, start))):
        example = Question("1", PASSAGE, ASKED.question, answers, "T")
        with pytest.raises(InputError, match=message):
            read_all([example], SPLITTER, "training")


def test_a_start_may_be_a_number_of_numpy() -> None:
    answer = Answer("Rome", np.int64(40))  # type: ignore[arg-type]
    data = read_all([Question("1", PASSAGE, "Where?", (answer,))], SPLITTER, "training")
    assert data.spans == [(10, 10)]


@pytest.mark.parametrize("asked", [None, 3])
def test_what_is_no_list_of_questions_is_refused(model: Reader, asked: Any) -> None:
    with pytest.raises(InputError, match=f"what is asked must be a list of pairs, got {asked}"):
        model.answer_all(asked)


def test_passages_without_end_are_refused(model: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.tasks.reader_text.MAX_CHARACTERS", 44)
    with pytest.raises(InputError, match="passage 2 must have at most 44 characters, got 45"):
        model.answer(["Ada.", PASSAGE], "Who?")
    with pytest.raises(InputError, match=f"the passage {WHERE} must have at most 44 char"):
        model.evaluate([ASKED])


def test_a_passage_that_comes_twice_is_read_once(model: Reader) -> None:
    other = "Eva was born in Oslo. Bob was born in Paris."
    for passages, places in (((PASSAGE, PASSAGE), (0, 0)), ((PASSAGE, other, PASSAGE), (0, 1))):
        once = model.answer_all([([*dict.fromkeys(passages)], ASKED.question)], top=5)[0]
        twice = model.answer_all([(passages, ASKED.question)], top=5)[0]
        assert {each.passage for each in twice} <= {*places}
        for found, alone in zip(twice, once, strict=True):
            assert (found.text, found.start, found.passage) == (
                alone.text,
                alone.start,
                alone.passage,
            )
            assert found.probability == pytest.approx(alone.probability, rel=1e-5)
    both = [((PASSAGE, PASSAGE), ASKED.question), ((other, PASSAGE), "Who?")]
    for found_of, each in zip(model.answer_all(both, top=500), both, strict=True):
        assert sum(found.probability for found in found_of) <= 1 + 1e-6
        best = model.answer(*each)
        assert each[0][best.passage][best.start : best.end] == best.text


@pytest.mark.parametrize("name", ["cut_words", "tune_vectors"])
def test_what_must_be_true_or_false_is(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be true or false, got 'False'"):
        new(**{name: "False"}, vectors="nowhere").fit([ASKED])


def test_a_ranking_that_leaves_no_probability_is_refused(model: Reader) -> None:
    far = "Zoe went to Berlin. " * 9
    sure = deepcopy(model).set_params(ranking={"likeness": 1e6})
    found = sure.answer([far, PASSAGE], ASKED.question)
    assert found.passage == 1 and 0 < found.probability <= 1
    for given, message in (
        ({"terms": 1e308}, r"ranking\.terms must be a number from 0 to 1e\+06, got 1e\+308"),
        ({"log_length": -1.0}, r"ranking\.log_length must be a number .* got -1\.0"),
        ({"term": 1.0}, r"unknown setting.*did you mean 'terms'"),
        (3.0, r"ranking must be a table of settings, got 3\.0"),
    ):
        with pytest.raises(ConfigError, match=message):
            deepcopy(model).set_params(ranking=given).answer([far, PASSAGE], ASKED.question)


def test_the_longest_training_passage_may_be_of_any_length() -> None:
    data = read_all([ASKED], SPLITTER, "training")
    known = ReaderVocabulary.learn([*data.texts()], min_count=1)
    whole, huge = (encode_training(data, known, most)[0] for most in (12, 10**30))
    assert whole.sizes.tolist() == huge.sizes.tolist() == [12]
    assert whole.spans is not None and huge.spans is not None
    assert whole.spans.tolist() == huge.spans.tolist() == [[10, 10]]


@pytest.mark.parametrize(
    "setting", [{"rules": {"squad"}}, {"max_words": object()}, {"window": 2.5}]
)
def test_a_reader_that_cannot_be_used_is_not_saved(
    model: Reader, setting: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting))):
        deepcopy(model).set_params(**setting).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("count", ["6", 1.5, True, 0])
def test_a_number_of_words_to_keep_is_a_whole_number(model: Reader, count: Any) -> None:
    with pytest.raises(ConfigError, match="count must be a whole number of at least 1, got"):
        deepcopy(model).keep_words(count)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", ["cpu"]])
def test_a_device_that_is_not_there_is_refused(model: Reader, device: Any) -> None:
    with pytest.raises(BackendError, match="device must be one that torch sees here"):
        model.to(device)
    assert model.to("cpu").answer(PASSAGE, "Where?").passage == 0
