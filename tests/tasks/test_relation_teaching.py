"""Relation classifiers taught by others: what they learn, from which sentences, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import REPOSITORY
from seqloom import Classifier, RelationClassifier
from seqloom.data.examples import Relation
from seqloom.data.relations import Marked, mark, parse_marked
from seqloom.errors import ConfigError, DataError, InputError, NotFittedError, SeqloomError
from seqloom.tasks.relation_teaching import TaughtRelations, taught_relations
from seqloom.tasks.relation_text import LabeledSentences
from seqloom.tasks.teaching import TeachingConfig

LABELS = ["Cause(e1,e2)", "Cause(e2,e1)", "Other"]
TEXTS = [
    "<e1>dust</e1> causes <e2>fire</e2>",
    "<e1>heat</e1> comes from <e2>fire</e2>",
    "<e1>dust</e1> and <e2>heat</e2>",
]
MORE = ["<e1>rain</e1> makes <e2>rust</e2>", "<e2>rain</e2> makes <e1>rust</e1>"]
FAST: dict[str, Any] = {"epochs": 1, "device": "cpu", "batch": {"batch_size": 4}}


def small(**settings: Any) -> RelationClassifier:
    given = {"num_maps": 4, "embed_size": 4, "valid_share": 0, "training": FAST, **settings}
    return RelationClassifier("cnn", **given)


class Saying(RelationClassifier):
    """A teacher that says what it was told to, of labels in an order of its own."""

    def __init__(self, chances: dict[str, list[float]], order: tuple[int, ...] = (0, 1, 2)) -> None:
        super().__init__("cnn", num_maps=2, embed_size=2, valid_share=0, training=FAST)
        self.fit(TEXTS, LABELS)
        self.classes_ = np.array(LABELS)[[*order]]
        self.chances, self.order = chances, [*order]

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        flat = [1 / 3] * 3
        found = [self.chances.get(mark(*each), flat) for each in X]
        return np.array(found)[:, self.order]


def read(sentences: list[Marked]) -> list[list[str]]:
    return [each.text.split() for each in sentences]


def learned(**settings: Any) -> TaughtRelations:
    sentences = [parse_marked(text) for text in TEXTS]
    train = LabeledSentences(read(sentences), LABELS, sentences)
    return taught_relations(RelationClassifier, TeachingConfig(**settings), train, read)


@pytest.fixture(scope="module")
def teacher() -> RelationClassifier:
    settings = {**FAST, "epochs": 30, "optimizer": {"name": "adam", "rate": 0.05}}
    texts = [*TEXTS, *MORE, "<e1>rain</e1> with <e2>rust</e2>"] * 4
    return small(training=settings).fit(texts, [*LABELS, *LABELS] * 4)


def test_labeled_sentences_have_the_mean_of_their_label_and_what_the_teachers_say() -> None:
    first = Saying({TEXTS[0]: [0.6, 0.3, 0.1], TEXTS[2]: [0.0, 0.2, 0.8]})
    second = Saying({TEXTS[0]: [0.2, 0.1, 0.7]}, order=(2, 0, 1))
    found = learned(teachers=(first, second), share=0.25)
    assert found.words[0] == ["dust", "causes", "fire"] and len(found.words) == 3
    by_hand = [
        [0.75 + 0.25 * 0.4, 0.25 * 0.2, 0.25 * 0.4],
        [0.25 / 3, 0.75 + 0.25 / 3, 0.25 / 3],
        [0.25 / 6, 0.25 * (0.1 + 1 / 6), 0.75 + 0.25 * (0.4 + 1 / 6)],
    ]
    np.testing.assert_allclose(found.shares, by_hand, rtol=1e-6)


def test_further_sentences_have_what_the_teachers_say_whatever_the_share() -> None:
    first = Saying({MORE[0]: [0.9, 0.1, 0.0], MORE[1]: [0.1, 0.8, 0.1]})
    second = Saying({MORE[0]: [0.5, 0.1, 0.4], MORE[1]: [0.3, 0.6, 0.1]}, order=(1, 2, 0))
    for share in (0.0, 0.5):
        found = learned(teachers=(first, second), texts=MORE, share=share)
        np.testing.assert_allclose(found.shares[3:], [[0.7, 0.1, 0.2], [0.2, 0.7, 0.1]], rtol=1e-6)
        assert found.words[3:] == [["rain", "makes", "rust"]] * 2
        assert found.facts == {"teachers": ["cnn", "cnn"], "share": share, "further": 2}
    plain = learned(teachers=(first,), texts=[], share=0.0)
    np.testing.assert_array_equal(plain.shares, np.eye(3))


def test_further_sentences_come_from_lists_and_files_with_or_without_labels(tmp_path: Path) -> None:
    marked = [parse_marked(text) for text in MORE]
    teacher = Saying({MORE[0]: [0.9, 0.1, 0.0], MORE[1]: [0.1, 0.8, 0.1]})
    files = {
        "lines.txt": f"{MORE[0]}\n\n{MORE[1]}\n",
        "text.csv": f"text\n{MORE[0]}\n{MORE[1]}\n",
        "labeled.csv": f"label,text\nx,{MORE[0]}\ny,{MORE[1]}\n",
        "text.jsonl": "".join(f'{{"text": "{text}"}}\n' for text in MORE),
        "SEMEVAL.TXT": f'1\t"{MORE[0]}"\nx\n\n2\t"{MORE[1]}"\ny\nComment:\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    for source in (
        np.array(MORE),
        [Relation(*each, "another label") for each in marked],
        [tuple(each) for each in marked],
        *(tmp_path / name for name in files),
    ):
        found = learned(teachers=(teacher,), texts=source)
        np.testing.assert_allclose(found.shares[3:], [[0.9, 0.1, 0], [0.1, 0.8, 0.1]], rtol=1e-6)
    assert found.facts["texts"] == str(tmp_path / "SEMEVAL.TXT")


def test_a_classifier_learns_from_sentences_that_only_its_teacher_knows(
    teacher: RelationClassifier, tmp_path: Path
) -> None:
    place = teacher.save(tmp_path / "teacher")
    taught = {"teachers": str(place), "texts": MORE * 10}
    settings = {**FAST, "epochs": 20, "optimizer": {"name": "adam", "rate": 0.05}}
    pupil = small(teaching=taught, training=settings).fit(TEXTS * 4, LABELS * 4)
    assert pupil.predict(MORE).tolist() == teacher.predict(MORE).tolist() == LABELS[:2]
    assert "rust" in pupil.vocabulary_
    facts = {"teachers": ["cnn"], "share": 0.5, "further": 20}
    assert pupil.provenance_["teaching"] == facts
    again = RelationClassifier.load(pupil.save(tmp_path / "pupil"))
    np.testing.assert_array_equal(again.predict_proba(MORE), pupil.predict_proba(MORE))


def test_what_validates_is_measured_by_its_labels(teacher: RelationClassifier) -> None:
    turned = [LABELS[1], LABELS[0], LABELS[2]]
    pupil = small(teaching={"teachers": teacher, "share": 1.0}, valid_share=0.5)
    pupil.fit(TEXTS * 8, turned * 8)
    predicted = pupil.predict(TEXTS).tolist()
    right = np.mean([found == label for found, label in zip(predicted, turned, strict=True)])
    assert pupil.metrics_["valid_accuracy"] == pytest.approx(right)
    assert pupil.provenance_["examples"] == 12


def test_a_run_resumes_with_its_own_teachers_and_sentences_alone(
    teacher: RelationClassifier, tmp_path: Path
) -> None:
    class StoppedError(Exception):
        """Ends a run."""

    def stop(report: Any) -> None:
        if report.step >= 10:
            raise StoppedError

    def pupil(**teaching: Any) -> RelationClassifier:
        return small(teaching={"texts": MORE, **teaching}, training=FAST | {"epochs": 4})

    def go_on(one: RelationClassifier) -> RelationClassifier:
        return one.fit(TEXTS * 4, LABELS * 4, out=tmp_path / "run", resume=True)

    whole = pupil(teachers=teacher).fit(TEXTS * 4, LABELS * 4)
    with pytest.raises(StoppedError):
        pupil(teachers=teacher).fit(TEXTS * 4, LABELS * 4, out=tmp_path / "run", callbacks=[stop])
    other = small().fit(TEXTS, LABELS)
    for changed in (
        {"teachers": other},
        {"teachers": [teacher, other]},
        {"teachers": teacher, "share": 0.4},
        {"teachers": teacher, "texts": MORE[::-1]},
        {"teachers": teacher, "texts": None},
    ):
        with pytest.raises(ConfigError, match="resume"):
            go_on(pupil(**changed))
    parts = go_on(pupil(teachers=teacher))
    np.testing.assert_array_equal(parts.predict_proba(MORE), whole.predict_proba(MORE))


def test_the_example_of_the_page_runs() -> None:
    page = (REPOSITORY / "docs" / "relations.md").read_text(encoding="utf-8")
    part = page.partition("## Taught by others")[2]
    code = part.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    for given in ("hidden_size=8", "teaching=taught"):
        code = code.replace(given, f"{given}, training={FAST}")
    exec(code, names)
    assert names["model"].provenance_["teaching"]["further"] == 10


def test_a_clone_is_taught_by_the_same_teachers(teacher: RelationClassifier) -> None:
    base = pytest.importorskip("sklearn.base")
    model = small(teaching={"teachers": teacher, "texts": MORE})
    copy = base.clone(model).fit(TEXTS, LABELS)
    alike = model.fit(TEXTS, LABELS).predict_proba(MORE)
    np.testing.assert_array_equal(copy.predict_proba(MORE), alike)


@pytest.mark.parametrize(
    ("teaching", "error", "message"),
    [
        (3, ConfigError, "teaching must be a table of settings, got 3"),
        ({}, ConfigError, "teachers"),
        ({"teachers": []}, ConfigError, "at least one classifier, got none"),
        ({"teachers": [3]}, ConfigError, "a RelationClassifier or a directory, got 3"),
        ({"teachers": RelationClassifier("cnn")}, NotFittedError, "has not been fitted"),
        ({"teachers": "udhr-langid"}, SeqloomError, "relate"),
        ({"teacher": 1}, ConfigError, "did you mean 'teachers'"),
        ({"share": 1.5}, ConfigError, "teaching.share must be a number from 0 to 1, got 1.5"),
        ({"share": "half"}, ConfigError, "teaching.share"),
        ({"prior": 1.0}, ConfigError, r"no label of their own, got prior=1\.0"),
        ({"texts": 5}, ConfigError, "must be a list, a file or NAME:SPLIT, got int"),
        ({"texts": iter(MORE)}, ConfigError, "NAME:SPLIT, got list_iterator"),
        (
            {"texts": [*MORE, "rain"]},
            InputError,
            r"teaching\.texts: sentence 2: .* got none in 'ra",
        ),
        ({"texts": [None]}, InputError, r"teaching\.texts: sentence 0 must be .* got None"),
        ({"texts": "missing.txt"}, DataError, "missing.txt: no such file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    teacher: RelationClassifier, teaching: Any, error: type[Exception], message: str
) -> None:
    if isinstance(teaching, dict) and teaching and "teachers" not in teaching:
        teaching = {"teachers": teacher, **teaching}
    with pytest.raises(error, match=message):
        small(teaching=teaching).fit(TEXTS, LABELS)


def test_a_data_set_without_entities_is_refused(
    teacher: RelationClassifier, shared_data: Path
) -> None:
    with pytest.raises(DataError, match="must hold sentences with two entities"):
        small(teaching={"teachers": teacher, "texts": "sst:train"}).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lines.txt", f"{MORE[0]}\n\nrain makes rust\n", r"lines\.txt:3: .* got none in 'rain"),
        ("rows.csv", f"text\n{MORE[0]}\n<e1></e1> is <e2>a</e2>\n", r"rows\.csv:3: .* be empty"),
        ("rows.csv", f"clause\n{MORE[0]}\n", r"rows\.csv:1: must have a column 'text'"),
        ("rows.jsonl", '{"text": null}\n', r"rows\.jsonl:1: 'text' must be a text, got None"),
        ("empty.txt", "\n", r"empty\.txt"),
    ],
)
def test_a_wrong_sentence_of_a_file_is_named_by_its_place(
    teacher: RelationClassifier, tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    taught = {"teachers": teacher, "texts": tmp_path / name}
    with pytest.raises(DataError, match=message):
        small(teaching=taught).fit(TEXTS, LABELS)


def test_teachers_have_the_labels_of_the_training_data_and_are_of_its_kind(
    teacher: RelationClassifier,
) -> None:
    with pytest.raises(InputError, match=r"labels of the training data, \['a', 'b', 'c'\], got"):
        small(teaching={"teachers": teacher}).fit(TEXTS, ["a", "b", "c"])
    reads_plain_texts = Classifier("softmax").fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="must be a RelationClassifier or a directory, got Class"):
        small(teaching={"teachers": reads_plain_texts}).fit(TEXTS, LABELS)


def test_further_sentences_that_are_too_long_are_told_from_the_others(
    teacher: RelationClassifier,
) -> None:
    long = f"<e1>rain</e1>{' makes' * 1100} <e2>rust</e2>"
    pupil = RelationClassifier(
        "transformer", teaching={"teachers": teacher, "texts": [*MORE, long]}, training=FAST
    )
    with pytest.raises(InputError, match=r"teaching\.texts: sentence 2: .* got 1106"):
        pupil.fit(TEXTS, LABELS)
