"""Readers taught by others: the probabilities they learn, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from seqloom import Reader
from seqloom.data.examples import Answer, Question
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import encode_training, reader_input
from seqloom.tasks.reader_objective import span_loss
from seqloom.tasks.reader_teaching import ReaderTeachers, ReaderTeachingConfig, open_teachers
from seqloom.tasks.reader_text import read_all

CITIES = [("Ada", "London"), ("Max", "Rome"), ("Eva", "Oslo"), ("Bob", "Paris")]
PASSAGE = " ".join(f"{name} was born in {city}." for name, city in CITIES)
SMALL: dict[str, Any] = {"hidden_size": 16, "embed_size": 12, "dropout": 0.0, "char_size": 6}
FAST = {
    "averaging": "none",
    "device": "cpu",
    "schedule": {"warmup": 0},
    "optimizer": {"rate": 0.01},
}


def asked(answers: list[tuple[str, str]]) -> list[Question]:
    return [
        Question(text, PASSAGE, text, (Answer(answer, PASSAGE.index(answer)),))
        for text, answer in answers
    ]


BORN = asked([(f"Where was {name} born?", city) for name, city in CITIES])
WRONG = asked([(f"Where was {name} born?", name) for name, _ in CITIES])


def reader(epochs: int, **settings: Any) -> Reader:
    given = {"min_count": 1, "valid_share": 0, **SMALL, **settings}
    return Reader(training={**FAST, "epochs": epochs}, **given)


@pytest.fixture(scope="module")
def teacher() -> Reader:
    return reader(100).fit(BORN)


def test_targets_are_the_mean_of_answers_and_of_what_the_teachers_say(teacher: Reader) -> None:
    other = reader(3, arch="rnet-notes").fit(BORN)
    pupil = reader(1)
    train = read_all(BORN, pupil.make_splitter(), "training")
    encoded, _ = encode_training(train, teacher.words_, 9)  # words around the answer alone
    found = ReaderTeachers([teacher, other], 0.25).targets(train, encoded, "cpu")
    assert found.lengths().tolist() == [9] * 4
    for row in range(4):
        by_hand = np.zeros((9, 2))
        for one in (teacher, other):
            known = encode_training(train, one.words_, 9)[0]
            output = one.model_(reader_input(known.batch(np.array([row])).tensors("cpu")))
            start, end = output.start[0].softmax(0), output.end[0].softmax(0)
            by_hand += 0.125 * torch.stack([start, end], dim=1).detach().numpy()
        assert encoded.spans is not None
        for column in range(2):
            by_hand[encoded.spans[row, column], column] += 0.75
        np.testing.assert_allclose(found[row], by_hand, atol=1e-6)


def test_the_loss_of_probabilities_is_the_mean_of_the_losses_of_answers() -> None:
    draw = torch.Generator().manual_seed(0)
    start, end = torch.randn(2, 5, 4, generator=draw, dtype=torch.float64)
    padding = torch.arange(4) >= torch.tensor([4, 2, 3, 1, 4])[:, None]
    scores = [each.masked_fill(padding, -torch.inf) for each in (start, end)]
    output = SpanOutput(scores[0], scores[1], torch.zeros(5, 4, 1))
    first = torch.tensor([[0, 3], [0, 1], [1, 2]])
    second = torch.tensor([[2, 2], [1, 1], [0, 0]])
    sure = [torch.nn.functional.one_hot(each, 4).double().mT for each in (first, second)]
    mixed = 0.3 * sure[0] + 0.7 * sure[1]
    for twice in (None, torch.tensor([2, 0])):
        rows = 3 if twice is None else 5
        part = SpanOutput(*(each[:rows] for each in output))
        by_hand = 0.3 * span_loss(part, first, twice) + 0.7 * span_loss(part, second, twice)
        torch.testing.assert_close(span_loss(part, mixed, twice), by_hand)


def test_a_reader_learns_what_its_teacher_says_and_not_what_is_marked(
    teacher: Reader, tmp_path: Path
) -> None:
    place = teacher.save(tmp_path / "teacher")
    pupil = reader(100, teaching={"teachers": str(place), "share": 1.0}).fit(WRONG)
    assert pupil.evaluate(BORN)["exact"] == 100
    assert pupil.provenance_["teaching"] == {"teachers": ["bidaf"], "share": 1.0}
    alone = reader(100, teaching={"teachers": teacher, "share": 0.0}).fit(WRONG)
    assert alone.evaluate(BORN)["exact"] == 0
    pupil.save(tmp_path / "pupil")
    assert Reader.load(tmp_path / "pupil").predict(BORN) == pupil.predict(BORN)


def test_two_passes_and_other_passages_are_taught_too(teacher: Reader) -> None:
    more = [
        Question(f"{each.id} {n}", text, each.question, (Answer(a.text, text.index(a.text)),))
        for n, text in enumerate((PASSAGE, f"{PASSAGE} Zoe was born in Rome too."))
        for each in BORN
        for a in each.answers
    ]
    settings = {"consistency": 1.0, "other_passages": 1.0}
    pupil = reader(100, teaching={"teachers": [teacher]}, **settings).fit(more)
    assert pupil.evaluate(BORN)["exact"] == 100


def test_a_clone_is_taught_by_the_same_teachers(teacher: Reader) -> None:
    found = clone(reader(1, teaching={"teachers": [teacher]}))
    teachers = open_teachers(found)
    assert teachers is not None
    assert teachers.readers[0].predict(BORN) == teacher.predict(BORN)


def test_a_run_resumes_with_its_own_teachers_alone(teacher: Reader, tmp_path: Path) -> None:
    def pupil(one: Reader) -> Reader:
        made = reader(4, teaching={"teachers": one})
        return made.set_params(training={**FAST, "epochs": 4, "evaluate_every": 1})

    def stop(report: Any) -> None:
        if report.step == 2:
            raise KeyboardInterrupt

    whole = pupil(teacher).fit(BORN, valid=BORN)
    with pytest.raises(KeyboardInterrupt):
        pupil(teacher).fit(BORN, valid=BORN, out=tmp_path / "run", callbacks=[stop])
    with pytest.raises(ConfigError, match="content"):
        pupil(reader(1).fit(BORN)).fit(BORN, valid=BORN, out=tmp_path / "run", resume=True)
    parts = pupil(teacher).fit(BORN, valid=BORN, out=tmp_path / "run", resume=True)
    for name, weight in whole.model_.state_dict().items():
        assert torch.equal(parts.model_.state_dict()[name], weight), name


@pytest.mark.parametrize(
    ("teaching", "message"),
    [
        ({"teachers": []}, "at least one reader, got none"),
        ({"teachers": [3]}, "must be a Reader or a directory, got 3"),
        ({"teachers": ["english-pos"]}, "english-pos"),
        ({"teachers": [Reader()]}, "fit"),
        (3, "teaching must be a table of settings, got 3"),
        (lambda: ReaderTeachingConfig(teachers="english-reader"), "a list, got 'english-reader'"),  # type: ignore[arg-type]
        (lambda: ReaderTeachingConfig(teachers=Reader()), "a list, got Reader"),  # type: ignore[arg-type]
        ({"teachers": ["english-reader"], "share": 2}, "teaching.share.*got 2"),
        ({"teachers": ["english-reader"], "prior": 1.0}, "prior"),
    ],
)
def test_what_is_no_teaching_is_refused(teaching: Any, message: str) -> None:
    from seqloom.errors import SeqloomError

    with pytest.raises(SeqloomError, match=message):
        reader(1, teaching=teaching() if callable(teaching) else teaching).fit(BORN)


def test_a_teacher_that_reads_other_words_is_refused(teacher: Reader) -> None:
    pupil = reader(
        1, text={"unit": "character"}, teaching=ReaderTeachingConfig(teachers=(teacher,))
    )
    with pytest.raises(ConfigError, match=r"fitted with text=.*got"):
        pupil.fit(BORN)
    whole = reader(1, cut_words=False, teaching={"teachers": teacher})
    with pytest.raises(ConfigError, match="cut_words=True, got False"):
        whole.fit(BORN)


def test_targets_lie_end_to_end(teacher: Reader) -> None:
    train = read_all(BORN, teacher.splitter_, "training")
    encoded, _ = encode_training(train, teacher.words_, 400)
    found = ReaderTeachers([teacher], 1.0).targets(train, encoded, "cpu")
    assert isinstance(found, Ragged)
    sums = [row.sum(axis=0) for row in found]
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
