"""Classifiers taught by others: the probabilities they learn, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom import Classifier
from seqloom.data.examples import LabeledText
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.teaching import TeachingConfig, taught

TEXTS = ["good film", "bad film", "good plot", "bad plot", "fine film", "poor plot"]
LABELS = ["+", "-", "+", "-", "+", "-"]
MORE = ["a fine plot", "a poor film", "a film"]


class Saying(Classifier):
    """A teacher that says what it was told to."""

    def __init__(self, chances: dict[str, float]) -> None:
        super().__init__("softmax")
        self.fit(TEXTS, LABELS)
        self.chances = chances

    @property
    def predict_proba(self) -> Any:
        plus = lambda texts: np.array([self.chances.get(text, 0.5) for text in texts])  # noqa: E731
        return lambda texts: np.stack([plus(texts), 1 - plus(texts)], axis=1)


def learned(config: TeachingConfig, **more: Any) -> Any:
    owner = Saying({})
    given = {"x": TEXTS, "y": LABELS, "valid": (TEXTS, LABELS), "share": 0.0, "seed": 0, **more}
    return taught(owner, config, **given)


def test_labeled_texts_have_the_mean_of_their_label_and_what_the_teachers_say() -> None:
    first, second = Saying({"good film": 0.9, "bad film": 0.3}), Saying({"good film": 0.5})
    found = learned(TeachingConfig(teachers=(first, second), share=0.25))
    assert found.texts == TEXTS
    assert found.labels[0] == pytest.approx({"+": 0.75 + 0.25 * 0.7, "-": 0.25 * 0.3})
    assert found.labels[1] == pytest.approx({"+": 0.25 * 0.4, "-": 0.75 + 0.25 * 0.6})


def test_further_texts_have_what_the_teachers_say_and_the_odds_of_their_own_label() -> None:
    teacher = Saying({MORE[0]: 0.8, MORE[1]: 0.2, MORE[2]: 0.6})
    plain = learned(TeachingConfig(teachers=(teacher,), texts=MORE))
    assert [each["+"] for each in plain.labels[6:]] == pytest.approx([0.8, 0.2, 0.6])
    own = [LabeledText(text, (label,)) for text, label in zip(MORE, "++-", strict=True)]
    found = learned(TeachingConfig(teachers=(teacher,), texts=own, prior=1.0))
    odds = [math.log(p / (1 - p)) + s for p, s in ((0.8, 1), (0.2, 1), (0.6, -1))]
    by_hand = [1 / (1 + math.exp(-each)) for each in odds]
    assert [each["+"] for each in found.labels[6:]] == pytest.approx(by_hand)
    assert found.facts["further"] == 3
    some = [own[0], MORE[1], own[2]]
    partly = learned(TeachingConfig(teachers=(teacher,), texts=some, prior=1.0))
    assert [each["+"] for each in partly.labels[6:]] == pytest.approx([by_hand[0], 0.2, by_hand[2]])


def test_what_is_set_apart_is_measured_by_its_labels() -> None:
    found = learned(TeachingConfig(teachers=(Saying({}),)), valid=None, share=0.34)
    texts, labels = found.valid
    assert sorted([*texts, *found.texts]) == sorted(TEXTS)
    assert len(texts) == 2 and sorted(labels) == ["+", "-"]
    assert all(LABELS[TEXTS.index(t)] == label for t, label in zip(texts, labels, strict=True))


def test_a_classifier_learns_from_texts_that_only_its_teacher_knows(tmp_path: Path) -> None:
    words = [("great", "+"), ("awful", "-"), ("lovely", "+"), ("dull", "-")]
    teacher = Classifier("softmax").fit(
        [f"a {word} film" for word, _ in words for _ in range(3)],
        [label for _, label in words for _ in range(3)],
    )
    place = teacher.save(tmp_path / "teacher")
    file = tmp_path / "more.txt"
    file.write_text("".join(f"{word} story\n" for word, _ in words for _ in range(20)))
    own = ["a great film", "a awful film"] * 4, ["+", "-"] * 4
    for source in (teacher, place, str(place)):
        model = Classifier("softmax", teaching={"teachers": source, "texts": str(file)})
        model.fit(*own)
        assert model.predict(["lovely", "dull"]).tolist() == ["+", "-"]
    assert model.provenance_["teaching"] == {
        "teachers": ["softmax"], "share": 0.5, "prior": 0.0, "further": 80, "texts": str(file)
    }  # fmt: skip
    alone = Classifier("softmax").fit(*own)
    assert abs(alone.predict_proba(["lovely"])[0, 0] - 0.5) < 0.2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"teaching": {"teachers": []}}, ConfigError, "at least one classifier"),
        ({"teaching": {}}, ConfigError, "teachers"),
        ({"teaching": 3}, ConfigError, "teaching must be a table of settings, got 3"),
        ({"teaching": {"teachers": [3]}}, ConfigError, "a Classifier or a directory, got 3"),
        ({"share": 1.5}, ConfigError, "teaching.share must be a number from 0 to 1, got 1.5"),
        ({"prior": -1.0}, ConfigError, "teaching.prior must be a number not below 0, got -1.0"),
        ({"texts": [3]}, InputError, "teaching.texts must be texts, got 3 at 0"),
        ({"multilabel": True, "arch": "logistic"}, ConfigError, "got multilabel=True"),
        ({"arch": "perceptron"}, ConfigError, "learns from labels alone"),
        ({"labels": ["a", "b"] * 3}, InputError, r"must have the labels of the training data"),
        ({"X": np.eye(6)}, InputError, "teaching is for texts"),
        ({"labels": None}, InputError, "must be a label an example"),
        ({"X": [], "labels": []}, InputError, "must be at least one text, got none"),
        ({"texts": 5}, ConfigError, "must be a list, a file or NAME:SPLIT, got int"),
        ({"texts": iter(MORE)}, ConfigError, "NAME:SPLIT, got list_iterator"),
        ({"texts": MORE, "prior": 1.0}, InputError, r"\['\+', '-'\], got none with a label"),
        ({"texts": [LabeledText("a", ("pos",))], "prior": 1.0}, InputError, "got 'pos'; set"),
    ],
)
def test_what_makes_no_sense_is_refused(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"X": TEXTS, "labels": LABELS, **settings}
    x, y = given.pop("X"), given.pop("labels")
    table = {"teachers": [Classifier("softmax").fit(TEXTS, LABELS)]}
    table |= {name: given.pop(name) for name in ("share", "prior", "texts") if name in given}
    with pytest.raises(error, match=message):
        Classifier(**{"arch": "softmax", "teaching": table, **given}).fit(x, y)


def test_a_teacher_is_what_was_fitted_whatever_is_set_since() -> None:
    teacher = Classifier("softmax").fit(TEXTS, LABELS).set_params(arch="mlp", multilabel=True)
    taught_one = Classifier("softmax", teaching={"teachers": teacher}).fit(TEXTS, LABELS)
    assert taught_one.provenance_["teaching"]["teachers"] == ["softmax"]
    several = Classifier("logistic", multilabel=True).fit(TEXTS, [{each} for each in LABELS])
    several.set_params(multilabel=False)
    with pytest.raises(ConfigError, match="multilabel classifiers and perceptrons do not"):
        Classifier("softmax", teaching={"teachers": several}).fit(TEXTS, LABELS)


def test_a_perceptron_cannot_teach() -> None:
    teacher = Classifier("perceptron").fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="perceptrons do not, got arch='perceptron'"):
        Classifier("softmax", teaching={"teachers": [teacher]}).fit(TEXTS, LABELS)
