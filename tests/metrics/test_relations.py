"""The scorer of SemEval-2010 Task 8 against the official program's own output and by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seqloom.data.datasets.archives import extract
from seqloom.data.datasets.store import dataset_file
from seqloom.data.relations import SEMEVAL_LABELS, read_answers, read_relations
from seqloom.errors import DataError, InputError, ShapeError
from seqloom.metrics.relations import relation_name, score_relations

CE1, CE2 = "Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"
CW1, CW2 = "Component-Whole(e1,e2)", "Component-Whole(e2,e1)"


@pytest.fixture
def fixtures(shared_data, tmp_path) -> Path:
    """The files that came with the official scorer, unpacked."""
    packed = dataset_file("semeval2010-task8", "scorer-fixtures.tar")
    return extract(packed, tmp_path / "fixtures")[0].parent


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_the_report_is_the_official_programs_to_the_letter(fixtures, number):
    """Keys of 40, 8,000, 10 and 6 examples; skipped ones, and labels the key does not have."""
    key = read_answers(fixtures / f"answer_key{number}.txt")
    proposed = read_answers(fixtures / f"proposed_answer{number}.txt")
    report = score_relations([proposed.get(name) for name in key], list(key.values()))
    printed = (fixtures / f"result_scores{number}.txt").read_text()
    assert str(report) == printed
    assert f"macro-averaged F1 = {100 * report.macro_f1:.2f}% >>>" in printed


def test_the_answers_its_format_checker_refuses_are_refused(fixtures):
    with pytest.raises(DataError, match=r":2: unknown label 'Message-Topc\(e1,e2\)' of example 6"):
        read_answers(fixtures / "proposed_answer4.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tOther\n2 Other\n", ":2: must be a number, a tab and a label, got '2 Other'"),
        ("1\tOther\nx\tOther\n", ":2: must be a number, a tab and a label"),
        ("1\tCause-Effect(e1, e2)\n", r":1: unknown label 'Cause-Effect\(e1, e2\)' of example 1"),
        ("1\tOther\n\n1\tOther\n", ":3: example 1 must be answered once"),
        ("\n", "no answer was found"),
    ],
)
def test_malformed_answers_are_refused_with_their_line(tmp_path, text, message):
    place = tmp_path / "answers.txt"
    place.write_text(text)
    with pytest.raises(DataError, match=message):
        read_answers(place)


def test_the_large_key_is_the_training_data(fixtures, shared_data):
    relations = read_relations(shared_data / "semeval2010-task8/TRAIN_FILE.TXT.xz")
    assert {r.id: r.label for r in relations} == read_answers(fixtures / "answer_key2.txt")


@pytest.mark.parametrize("file", ["TRAIN_FILE.TXT.xz", "TEST_FILE_FULL.TXT.xz"])
def test_the_truth_scores_all(shared_data, file):
    labels = [r.label for r in read_relations(shared_data / "semeval2010-task8" / file)]
    report = score_relations(labels, labels)
    assert report.macro_f1 == report.directed.macro_f1 == report.undirected.macro_f1 == 1
    assert len(report.official.labels) == 10
    turned = [x.translate(str.maketrans("12", "21")) for x in labels]
    report = score_relations(turned, labels)
    assert (report.macro_f1, report.undirected.macro_f1) == (0, 1)


def test_by_hand():
    key = [CE1, CE1, CE2, CW1, CW2, "Other"]
    report = score_relations([CE1, CE2, CE2, "Other", None, CW1], key)
    cause, whole = report.official.scores["Cause-Effect"], report.official.scores["Component-Whole"]
    assert (cause.precision, cause.recall) == (2 / 3, 2 / 3)  # one of three in the wrong direction
    assert (whole.precision, whole.recall) == (0, 0)
    assert report.macro_f1 == pytest.approx(1 / 3)
    assert report.directed.accuracy == pytest.approx(2 / 6)
    assert report.undirected.macro_f1 == pytest.approx(1 / 2)
    assert report.metrics()["f1/Cause-Effect"] == pytest.approx(2 / 3)
    assert report.metrics()["f1/Other"] == 0


def official(predicted: list[str], key: list[str]) -> float:
    """The rules in words, counted by a loop."""
    total = 0.0
    names = {relation_name(label) for label in key} - {"Other"}
    for name in names:
        true = sum(p == k for p, k in zip(predicted, key, strict=True) if relation_name(k) == name)
        found = sum(relation_name(p) == name for p in predicted)
        there = sum(relation_name(k) == name for k in key)
        total += 2 * true / (found + there)
    return total / len(names)


@pytest.mark.parametrize("seed", range(5))
def test_random_predictions_against_a_loop_and_scikit_learn(seed):
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    chance = random.Random(seed)
    key = chance.choices(SEMEVAL_LABELS, k=300)
    predicted = [k if chance.random() < 0.4 else chance.choice(SEMEVAL_LABELS) for k in key]
    report = score_relations(predicted, key)
    assert report.macro_f1 == pytest.approx(official(predicted, key))
    assert report.directed.accuracy == pytest.approx(sklearn_metrics.accuracy_score(key, predicted))

    def theirs(key: list[str], predicted: list[str]) -> float:
        labels = sorted({*key} - {"Other"})
        found = sklearn_metrics.f1_score(
            key, predicted, labels=labels, average="macro", zero_division=0
        )
        return float(found)

    assert report.directed.macro_f1 == pytest.approx(theirs(key, predicted))
    undirected = theirs(*([relation_name(x) for x in side] for side in (key, predicted)))
    assert report.undirected.macro_f1 == pytest.approx(undirected)


def test_another_name_for_no_relation():
    report = score_relations(["none", "r(e1,e2)"], ["r(e1,e2)", "r(e1,e2)"], other="none")
    assert report.macro_f1 == pytest.approx(2 / 3)
    assert list(report.official.scores) == ["r"]


@pytest.mark.parametrize(
    ("predicted", "actual", "message"),
    [
        (["r"], [None], "label 0 of the key must be a text, got None"),
        ([1, 2], ["r", "r"], "prediction 0 must be a text, got 1"),
        (["r", float("nan")], ["r", "r"], "prediction 1 must be a text, got nan"),
    ],
)
def test_labels_that_are_no_texts_are_refused(predicted, actual, message):
    with pytest.raises(InputError, match=message):
        score_relations(predicted, actual)


def test_lengths_must_agree():
    with pytest.raises(ShapeError, match="got 1 and 2"):
        score_relations(["Other"], ["Other", "Other"])
