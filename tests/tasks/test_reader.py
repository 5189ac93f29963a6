"""Readers: alignment, fitting, answers from long and several passages, saving, bad input."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom import Embedder, Reader, load
from seqloom.data.examples import Answer, Question
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.tasks import reader_answering as answering
from seqloom.tasks.reader_ranking import RankingConfig, read_ranking
from seqloom.tasks.reader_storage import STORED
from seqloom.tasks.reader_text import WordSplitter, read_all
from seqloom.text import TextConfig, TextPipeline
from seqloom.text.vectors import WordVectors

SPLITTER = WordSplitter(TextPipeline(TextConfig(language="en")))
PEOPLE = [("Ada", "London"), ("Max", "Rome"), ("Eva", "Oslo"), ("Bob", "Paris")]
PASSAGE = " ".join(f"{name} was born in {city}." for name, city in PEOPLE)
QUICK = {
    "epochs": 80,
    "seed": 1,
    "averaging": "none",
    "evaluate_every": 20,
    "device": "cpu",
    "schedule": {"warmup": 0},
    "optimizer": {"rate": 0.01},
}
SMALL: dict[str, Any] = {"hidden_size": 24, "embed_size": 32, "dropout": 0.0, "char_size": 8}


def asked(name: str, city: str, passage: str = PASSAGE, title: str = "") -> Question:
    answer = Answer(city, passage.index(city))
    return Question(name, passage, f"Where was {name} born?", (answer,), title)


QUESTIONS = [asked(*each) for each in PEOPLE]


def new(arch: str = "bidaf", **settings: Any) -> Reader:
    training = {**QUICK, **settings.pop("training", {})}
    values: dict[str, Any] = {"min_count": 1, "valid_share": 0, "overlap": 10, **SMALL, **settings}
    return Reader(arch, training=training, **values)


@pytest.fixture(scope="module")
def model() -> Reader:
    return new().fit(QUESTIONS, valid=QUESTIONS)


# -- learning and answering ------------------------------------------------------------------------


def test_it_learns_and_answers_with_what_stands_in_the_passage(model: Reader) -> None:
    assert model.evaluate(QUESTIONS)["exact"] == 100.0
    assert model.score(QUESTIONS) == 100.0
    assert model.predict(QUESTIONS) == dict(PEOPLE)
    for name, city in PEOPLE:
        found = model.answer(PASSAGE, f"Where was {name} born?")
        assert found.text == city == PASSAGE[found.start : found.end]
        assert 0 < found.probability <= 1
    assert model.provenance_["misaligned"] == 0


@pytest.mark.parametrize(("arch", "size", "seed"), [("rnet-notes", 24, 1), ("rnet-paper", 12, 0)])
def test_both_kinds_of_rnet_learn(arch: str, size: int, seed: int) -> None:
    training = {"seed": seed, "epochs": 80 if seed else 60}
    fitted = new(arch, hidden_size=size, embed_size=32 if seed else 16, training=training)
    fitted.fit(QUESTIONS)
    assert fitted.predict(QUESTIONS) == dict(PEOPLE)


def test_many_answers_are_different_and_probabilities_fall(model: Reader) -> None:
    (found,) = model.answer_all([(PASSAGE, "Where was Eva born?")], top=8)
    assert found[0].text == "Oslo"
    assert len({(each.start, each.end) for each in found}) == len(found) == 8
    chances = [each.probability for each in found]
    assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-6


def test_a_batch_answers_as_each_alone(model: Reader) -> None:
    pairs = [(PASSAGE, f"Where was {name} born?") for name, _ in PEOPLE]
    pairs += [(PASSAGE[:40], "Where?"), ("Rome", "Where was Max born, they asked themselves?")]
    together = model.answer_all(pairs)
    for (passage, question), (found,) in zip(pairs, together, strict=True):
        own = model.answer(passage, question)
        assert (own.text, own.start) == (found.text, found.start)
        assert own.probability == pytest.approx(found.probability, rel=1e-4)


def test_windows_of_a_long_document_find_the_same_words(model: Reader) -> None:
    long = "Nothing of note. " * 30 + PASSAGE
    for window in (30, 60, 10**6):
        found = model.answer(long, "Where was Ada born?", window=window)
        assert long[found.start : found.end] == found.text != ""
    texts = ["Nothing of note here.", PASSAGE]
    several = model.answer(texts, "Where was Ada born?")
    assert texts[several.passage][several.start : several.end] == several.text
    whole = model.answer_all([(PASSAGE, "Where was Ada born?")], top=3, window=10**6)[0]
    short = model.answer_all([(PASSAGE, "Where was Ada born?")], top=3)[0]
    assert [each.text for each in whole] == [each.text for each in short]


def test_long_documents_in_a_batch_are_answered_as_each_alone(model: Reader) -> None:
    long = "Nothing of note.\n\n" * 40 + PASSAGE + "\n\nNothing of note." * 9
    pairs: list[tuple[str | list[str], str]] = [
        (long, "Where was Ada born?"),
        (PASSAGE, "Where was Ada born?"),
        ([PASSAGE[:48], long], "Where was Bob born?"),
        (long, "Where was Eva born?"),
    ]
    together = model.answer_all(pairs, window=30, top=2)
    for (passages, question), found in zip(pairs, together, strict=True):
        alone = model.answer_all([(passages, question)], window=30, top=2)[0]
        assert [(a.text, a.start, a.passage) for a in alone] == [
            (a.text, a.start, a.passage) for a in found
        ]
        np.testing.assert_allclose(
            [a.probability for a in alone], [a.probability for a in found], rtol=1e-4
        )


def test_the_best_paragraph_of_a_long_document_says_what_it_says_alone(
    model: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "ranking", {"terms": 1000.0})
    monkeypatch.setattr(model, "piece", 12)
    monkeypatch.setattr(model, "overlap", 0)
    noise = ["Nothing of note was said.", "Rain fell. It fell on us."] * 40
    for i, (name, city) in enumerate(PEOPLE):
        long = "\n\n".join([*noise[: 9 * i], PASSAGE, *noise[9 * i :]])
        found = model.answer(long, f"Where was {name} born?", window=30)
        alone = model.answer(PASSAGE, f"Where was {name} born?")
        assert found.text == alone.text == city
        assert found.start == alone.start + long.index(PASSAGE)
        assert found.probability == pytest.approx(alone.probability, rel=1e-4)


def test_no_window_is_longer_than_asked_for(model: Reader, monkeypatch: Any) -> None:
    read: list[int] = []
    find = answering.find_spans
    monkeypatch.setattr(
        answering,
        "find_spans",
        lambda network, data, *rest: read.extend(data.sizes) or find(network, data, *rest),
    )
    long = " ".join([PASSAGE] * 12)
    for window, most in ((30, 30), (13, 13), (10**6, 12 * 24)):
        read.clear()
        model.answer(long, "Where was Ada born?", window=window)
        assert 0 < len(read) <= model.max_windows and max(read) <= most
    assert read == [12 * 24]


def test_a_directory_without_pieces_is_searched_as_today(
    model: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("seqloom.tasks.reader.STORED", [n for n in STORED if n != "piece"])
        older.setattr(model, "ranking", {"terms": 0.1})
        older.setattr(model, "window", 70)
        place = model.save(tmp_path / "older")
        older.setattr("seqloom.tasks.reader.STORED", STORED)
        newer = Reader.load(model.save(tmp_path / "newer"))
    assert (newer.window, newer.overlap) == (70, 10)
    assert read_ranking(newer.ranking) == RankingConfig(terms=0.1)
    loaded, usual = Reader.load(place), Reader()
    for name in ("piece", "overlap", "max_windows", "ranking"):
        assert getattr(loaded, name) == getattr(usual, name)
    assert loaded.window == 70


def test_an_improbable_answer_is_not_given(model: Reader) -> None:
    found = model.answer(PASSAGE, "Where was Ada born?", threshold=1.0)
    assert (found.text, found.start, found.end) == ("", 0, 0)
    sure = model.answer(PASSAGE, "Where was Ada born?", threshold=0.01)
    assert sure.text == "London"


def test_attention_is_given_as_data(model: Reader) -> None:
    found = model.attention(PASSAGE, "Where was Ada born?")
    assert found.weights.shape == (len(found.passage), len(found.question)) == (24, 5)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-5)
    word, looked, share = found.most()[0]
    assert word == "Ada" and looked in found.question and share == found.weights[0].max()


def test_saving_and_loading_changes_nothing(model: Reader, tmp_path: Path) -> None:
    place = model.save(tmp_path / "model")
    loaded = load(place)
    assert isinstance(loaded, Reader)
    question = "Where was Max born?"
    assert loaded.answer(PASSAGE, question) == model.answer(PASSAGE, question)
    assert loaded.get_params()["hidden_size"] == 24
    again = loaded.save(tmp_path / "again")
    for path in place.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes()


def test_fewer_words_make_a_smaller_model(model: Reader, tmp_path: Path) -> None:
    place = model.save(tmp_path / "model")
    small = Reader.load(place).keep_words(6)
    assert small.shapes()["input.embedding.weight"] == (8, 32)
    kept = small.words_.words.words[2:]
    assert kept == model.words_.words.words[2:8]
    passage = " ".join(kept)
    same, own = (each.answer(passage, " ".join(kept[:2])) for each in (small, model))
    assert (same.text, same.probability) == (own.text, pytest.approx(own.probability, rel=1e-5))
    again = Reader.load(small.save(tmp_path / "small"))
    assert again.answer(PASSAGE, "Where?") == small.answer(PASSAGE, "Where?")
    with pytest.raises(ConfigError, match="count must be a whole number of at least 1, got 0"):
        small.keep_words(0)


def test_words_that_are_frequent_in_vectors_are_kept_and_added(
    model: Reader, tmp_path: Path
) -> None:
    place, known = model.save(tmp_path / "model"), model.words_.words.words[2:]
    rows = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32)
    vectors = WordVectors(["zebra", known[5], "quagga"], rows)
    small = Reader.load(place).keep_words(5, vectors)
    # in turn: known 0, zebra, known 1, known 5, known 2
    assert small.words_.words.words[2:] == (*known[:3], known[5], "zebra")
    table, old = small.model_.input.embedding.weight, model.model_.input.embedding.weight
    np.testing.assert_array_equal(table[6].detach(), rows[0])
    np.testing.assert_array_equal(table[5].detach(), old[7].detach())  # as it was, not as given
    again = Reader.load(small.save(tmp_path / "small"))
    assert again.answer("A zebra ran.", "Who?") == small.answer("A zebra ran.", "Who?")
    narrow = WordVectors(["zebra"], rows[:1, :5])
    with pytest.raises(ConfigError, match="as wide as this reader's, 32, got 5"):
        small.keep_words(5, narrow)


def test_a_run_that_stopped_goes_on(tmp_path: Path) -> None:
    training = {"epochs": 4, "averaging": "ema", "evaluate_every": 1}
    whole = new(training=training).fit(QUESTIONS, valid=QUESTIONS, out=tmp_path / "whole")

    def stop(report: Any) -> None:
        if report.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        new(training=training).fit(
            QUESTIONS, valid=QUESTIONS, out=tmp_path / "parts", callbacks=[stop]
        )
    parts = new(training=training).fit(
        QUESTIONS, valid=QUESTIONS, out=tmp_path / "parts", resume=True
    )
    question = "Where was Max born?"
    assert parts.answer(PASSAGE, question) == whole.answer(PASSAGE, question)


def test_chinese_is_read_by_characters() -> None:
    passage = "小明生于上海。小红生于北京，后来去了广州。"
    examples = [
        Question("1", passage, "小明生于哪里？", (Answer("上海", 4),)),
        Question("2", passage, "小红生于哪里？", (Answer("北京", 11),)),
    ]
    fitted = new(text={"unit": "character"}, rules="cmrc").fit(examples, valid=examples)
    assert fitted.metrics_["valid_exact"] == 100.0
    found = fitted.answer(passage, "小红生于哪里？")
    assert found.text == "北京" and found.start == 11
    assert fitted.words_.characters is None


def test_several_files_are_read_together(tmp_path: Path) -> None:
    names = [
        squad_file(tmp_path / f"{i}.json", question, str(i)) for i, question in enumerate("ab")
    ]
    data = read_all(f"{names[0]}+{names[1]}", SPLITTER, "training")
    assert [each.id for each in data.examples] == ["0", "1"]


# -- bad input -------------------------------------------------------------------------------------


def squad_file(path: Path, question: str = "Where?", name: str = "q1", **changes: Any) -> str:
    answer = {"text": "Rome", "answer_start": 3, **changes}
    entry = {"id": name, "question": question, "answers": [answer]}
    paragraph = {"context": "In Rome.", "qas": [entry]}
    path.write_text(json.dumps({"data": [{"title": "Cities", "paragraphs": [paragraph]}]}))
    return str(path)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (Question("q1", "In Rome.", " ", (), "Cities"), "question of question 'q1' of article 'Ci"),
        (Question("q1", "\n", "Where?", (), "Cities"), "passage of question 'q1' of article 'Cit"),
        (
            Question("q1", "In Rome.", "Where?", (Answer("Rome", 9),), "Cities"),
            "'q1' of article 'Cities' must lie within the 8 characters of its passage, got 9 to 13",
        ),
        (
            Question("q1", "In Rome.", "Where?", (Answer("Oslo", 3),), "Cities"),
            "'q1' of article 'Cities' must be the text at 3 of its passage, got 'Oslo'",
        ),
    ],
    ids=["no question", "no passage", "outside", "not there"],
)
def test_bad_questions_are_refused_with_article_and_id(example: Question, message: str) -> None:
    with pytest.raises(InputError, match=message):
        new().fit([example])


def test_bad_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "question 'q1' of article 'Cities' is not in the passage: 'Oslo'"
    with pytest.raises(DataError, match=where):
        new().fit(squad_file(tmp_path / "a.json", text="Oslo"))
    (tmp_path / "b.json").write_text('{"data": [{"paragraphs": [{"context": "x"}]}]}')
    with pytest.raises(DataError, match="paragraph 1 of article 1 must have 'qas'"):
        new().fit(str(tmp_path / "b.json"))
    monkeypatch.setattr("seqloom.tasks.reader_text.MAX_CHARACTERS", 5)
    with pytest.raises(InputError, match="at most 5 characters, got 8; split it"):
        new().fit(squad_file(tmp_path / "c.json"))


def test_bad_settings_and_calls_are_refused(model: Reader) -> None:
    with pytest.raises(ConfigError, match="'hiden_size'; did you mean 'hidden_size'"):
        Reader(hiden_size=3)
    with pytest.raises(ConfigError, match="overlap must lie between 0 and the piece of 9, got 9"):
        new(piece=9, overlap=9).fit(QUESTIONS)
    with pytest.raises(ConfigError, match="max_words must be a whole number of at least 1, got 0"):
        new(max_words=0).fit(QUESTIONS)
    with pytest.raises(ConfigError, match=r"window must be a whole number of at least 1, got 2\.5"):
        new(window=2.5).fit(QUESTIONS)
    with pytest.raises(ConfigError, match="other_passages must be a number from 0 to 8, got 'x'"):
        new(other_passages="x").fit(QUESTIONS)
    with pytest.raises(InputError, match="ids of training questions must differ, got 'Ada' twice"):
        new().fit([QUESTIONS[0], QUESTIONS[0]])
    with pytest.raises(ConfigError, match="'squd'; did you mean 'squad'"):
        new(rules="squd").fit(QUESTIONS)
    with pytest.raises(InputError, match="data must be questions about passages, got str"):
        new().fit(["a text"])
    with pytest.raises(InputError, match="must hold at least one question, got none"):
        new().fit([])
    with pytest.raises(InputError, match="got none"):
        new().fit([Question("1", "No answer here.", "Why?", ())])
    with pytest.raises(InputError, match="question 1 must have at least one word, got ''"):
        model.answer(PASSAGE, "")
    with pytest.raises(InputError, match="passage 2 must have at least one word, got ' '"):
        model.answer([PASSAGE, " "], "Where?")
    with pytest.raises(InputError, match="question 1 must come with a passage, got none"):
        model.answer([], "Where?")
    with pytest.raises(InputError, match="must come with a passage or several, got None"):
        model.answer(None, "Where?")
    with pytest.raises(InputError, match=r"must be a pair .*, got \('abc',\)"):
        model.answer_all([("abc",)])
    for top in (0, "3", 2.5):
        with pytest.raises(ConfigError, match=f"top must be a whole .* 1, got {top!r}"):
            model.answer_all([(PASSAGE, "Where?")], top=top)
    with pytest.raises(ConfigError, match="threshold must be a number from 0 to 1, got 2"):
        model.answer(PASSAGE, "Where?", threshold=2)


def test_settings_of_use_are_checked_where_they_are_used(model: Reader, tmp_path: Path) -> None:
    changed = Reader.load(model.save(tmp_path / "model"))
    changed.set_params(max_windows=0)
    with pytest.raises(ConfigError, match="max_windows must be a whole number of at least 1, got"):
        changed.answer(PASSAGE, "Where?")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_words": 0}, "max_words must be a whole number of at least 1, got 0"),
        ({"max_words": "x"}, "max_words must be a whole number of at least 1, got 'x'"),
        ({"rules": "none"}, "rules"),
    ],
)
def test_settings_of_use_are_checked_by_predict_and_evaluate(
    model: Reader, setting: dict[str, Any], message: str
) -> None:
    changed = deepcopy(model).set_params(**setting)
    for use in (changed.predict, changed.evaluate, changed.score):
        with pytest.raises(ConfigError, match=message):
            use(QUESTIONS)


@pytest.mark.parametrize("changes", [{"arch": "rnet"}, {"cut_words": False}])
def test_what_was_fitted_is_saved(model: Reader, changes: dict[str, Any], tmp_path: Path) -> None:
    changed = deepcopy(model).set_params(**changes)
    loaded = Reader.load(changed.save(tmp_path / "model"))
    assert loaded.arch == "bidaf" and loaded.cut_words
    question = "Where was Max born?"
    answers = [each.answer(PASSAGE, question) for each in (model, changed, loaded)]
    assert answers[0] == answers[1] == answers[2]


def test_nothing_asked_is_nothing_answered_and_top_is_bounded_by_the_spans(model: Reader) -> None:
    assert model.answer_all([]) == []
    (found,) = model.answer_all([("Ada was here.", "Where?")], top=10**9)
    assert 1 < len(found) <= 4 * 5 // 2  # the spans of four words


def test_answers_of_files_that_are_elsewhere_are_counted(tmp_path: Path) -> None:
    name = squad_file(tmp_path / "a.json", answer_start=0)
    assert read_all(name, SPLITTER, "training").mended == 1
    assert read_all(squad_file(tmp_path / "b.json"), SPLITTER, "training").mended == 0


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    quick = {"epochs": 1, "batch": {"batch_size": 4}, "device": "cpu"}
    sizes = {"char_size": 4, "filters": ((1, 4),), "projection_size": 6, "hidden_size": 8}
    return Embedder("elmo", training=quick, **sizes).fit([PASSAGE.lower()] * 4)


@pytest.mark.parametrize("tuned", [False, True], ids=["frozen", "tuned"])
def test_words_in_context_stand_beside_words(
    model: Reader, embedder: Embedder, tuned: bool, tmp_path: Path
) -> None:
    training = {"epochs": 2, "evaluate_every": 1}
    fitted = new(training=training, contextual={"model": embedder, "tuned": tuned})
    fitted.fit(QUESTIONS, valid=QUESTIONS)
    wide, plain = (each.shapes()["context.weight_ih_l0"][1] for each in (fitted, model))
    assert wide - plain == 2 * 6  # both directions of the embedder
    loaded = Reader.load(fitted.save(tmp_path / "model"))
    question = "Where was Max born?"
    assert loaded.answer(PASSAGE, question) == fitted.answer(PASSAGE, question)
    pair = fitted.answer_all([(PASSAGE, question), (PASSAGE, "Who?")])[0][0]
    assert pair.probability == pytest.approx(loaded.answer(PASSAGE, question).probability, rel=1e-3)
    with pytest.raises(ConfigError, match="at their input alone"):
        new(contextual={"model": embedder, "insert": ["output"]}).fit(QUESTIONS)
