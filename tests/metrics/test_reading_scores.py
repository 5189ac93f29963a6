"""Exact match and F1 against published predictions, hand computation and difflib."""

from __future__ import annotations

import difflib
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.questions import read_questions
from seqloom.errors import ConfigError, InputError
from seqloom.metrics.reading import (
    AnswerScore,
    best_score,
    cmrc_pieces,
    cmrc_score,
    normalize_answer,
    score_answers,
    squad_score,
)


@pytest.mark.parametrize(
    ("name", "exact", "f1", "unanswered"),
    [("logistic-baseline", 40.0, 51.0, 13), ("match-lstm-ensemble", 67.6, 76.8, 0)],
)
def test_published_predictions_have_their_published_scores(
    shared_data: Path, name: str, exact: float, f1: float, unanswered: int
) -> None:
    folder = shared_data / "squad-v1.1"
    packed = (folder / f"predictions-{name}.json.xz").read_bytes()
    predictions = json.loads(lzma.decompress(packed))
    questions = read_questions(folder / "dev-v1.1.json.xz")
    found = score_answers(predictions, {q.id: [a.text for a in q.answers] for q in questions})
    assert found["exact"] == pytest.approx(exact, abs=0.15)
    assert found["f1"] == pytest.approx(f1, abs=0.05)
    assert (found["questions"], found["unanswered"]) == (10570, unanswered)


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [("The  U.S. Army, an army!", "us army army"), ("a b c", "b c"), ("Theatre", "theatre")],
)
def test_answers_are_normalized(given_text: str, expected: str) -> None:
    assert normalize_answer(given_text) == expected


def test_words_that_occur_twice_count_twice() -> None:
    # said: new york new york; right: new york city. Common 2 of 4 and of 3.
    score = squad_score("New York, New York", "New York City")
    assert score == AnswerScore(0.0, pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)))


def test_the_best_of_all_answers_counts_for_each_measure() -> None:
    assert best_score("in Rome", ["Rome", "the city of Rome", "in Rome"]) == (1.0, 1.0)
    assert best_score("in Rome", ["Rome", "Paris"]) == (0.0, pytest.approx(2 / 3))
    assert best_score("", []) == (1.0, 1.0)
    assert best_score("Rome", []) == (0.0, 0.0)


def test_chinese_answers_are_compared_by_characters() -> None:
    assert cmrc_pieces("在2008年，Los Angeles") == ["在", "2008", "年", "los", "angeles"]
    assert cmrc_score("《红楼梦》", "红楼梦") == (1.0, 1.0)
    # 京大学 of 4 and of 3
    assert cmrc_score("北京大学", "京大学").f1 == pytest.approx(2 * (3 / 4) / (3 / 4 + 1))


@given(st.text("甲乙丙", max_size=8), st.text("甲乙丙", max_size=8))
def test_the_longest_run_is_that_of_difflib(first: str, second: str) -> None:
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    run = matcher.find_longest_match().size
    total = len(first) + len(second)
    expected = 2 * run / total if run else 0.0  # the harmonic mean of run/|a| and run/|b|
    assert cmrc_score(first, second).f1 == pytest.approx(expected)


def test_missing_predictions_count_as_wrong() -> None:
    found = score_answers({"1": "x"}, {"1": ["x"], "2": ["y"], "3": ["z"], "4": ["w"]})
    assert (found["exact"], found["f1"], found["unanswered"]) == (25.0, 25.0, 3.0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least one question to score, got none"):
        score_answers({}, {})
    with pytest.raises(ConfigError, match="'squat'; did you mean 'squad'"):
        best_score("a", ["b"], "squat")
