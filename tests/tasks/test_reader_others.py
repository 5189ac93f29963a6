"""Questions that are read with a passage without the answer as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from seqloom import Reader
from seqloom.data.examples import Answer, Question
from seqloom.errors import ConfigError
from seqloom.models.reader_parts import SpanOutput
from seqloom.tasks.reader_data import encode_training
from seqloom.tasks.reader_objective import span_loss
from seqloom.tasks.reader_others import OtherPassages, foreign_passages, nearest_passages
from seqloom.tasks.reader_text import WordSplitter, read_all
from seqloom.tasks.reader_training import articles
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.text import TextConfig, TextPipeline

PEOPLE = [("Ada", "London"), ("Max", "Rome"), ("Eva", "Oslo"), ("Bob", "Paris"), ("Kim", "Seoul")]
TITLES = ["a", "b", "a", "a", "c"]  # Max and Kim have an article of their own


def questions(titles: list[str]) -> list[Question]:
    found = []
    for (name, city), title in zip(PEOPLE, titles, strict=True):
        passage = f"{name} was born in {city}, and lives there."
        answer = Answer(city, passage.index(city))
        found.append(Question(name, passage, f"Where was {name} born?", (answer,), title))
    return found


def others(share: float = 1.0, seed: int = 0) -> OtherPassages:
    splitter = WordSplitter(TextPipeline(TextConfig(language="en")))
    data = read_all(questions(TITLES), splitter, "training")
    known = ReaderVocabulary.learn([*data.texts()], min_count=1, characters=False)
    return OtherPassages(encode_training(data, known, 400)[0], articles(data), share, seed)


def test_the_loss_is_that_of_both_passages_side_by_side():
    """Against torch's cross-entropy over the scores of both in one row."""
    chance = torch.Generator().manual_seed(0)
    start, end = (torch.randn(5, 7, generator=chance).double() for _ in range(2))
    start[3, 5:] = end[3, 5:] = float("-inf")  # the padding of a shorter passage
    spans, twice = torch.tensor([[1, 2], [0, 6], [3, 3]]), torch.tensor([2, 0])
    output = SpanOutput(start, end, torch.zeros(0))
    expected = torch.zeros((), dtype=torch.float64)
    for scores, true in ((start, spans[:, 0]), (end, spans[:, 1])):
        expected += functional.cross_entropy(torch.cat([scores[0], scores[4]]), true[0])
        expected += functional.cross_entropy(scores[1], true[1])
        expected += functional.cross_entropy(torch.cat([scores[2], scores[3]]), true[2])
    assert_close(span_loss(output, spans, twice), expected)
    alone = SpanOutput(start[:3], end[:3], torch.zeros(0))
    none = torch.zeros(0, dtype=torch.int64)
    assert_close(span_loss(alone, spans, none), span_loss(alone, spans))
    scores = start.clone().requires_grad_()
    span_loss(SpanOutput(scores, end, torch.zeros(0)), spans, twice).backward()
    assert scores.grad is not None and scores.grad[:, :5].isfinite().all()


def test_a_question_may_have_several_other_passages():
    """Against torch's cross-entropy over the scores of all in one row, and its gradient."""
    chance = torch.Generator().manual_seed(1)
    start, end = (10 * torch.randn(6, 4, generator=chance).double() for _ in range(2))
    spans, again = torch.tensor([[1, 2], [0, 3]]), torch.tensor([1, 0, 1, 1])
    rows = ((0, 3), (1, 2, 4, 5))

    def by_hand(start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        losses = [
            functional.cross_entropy(torch.cat([scores[row] for row in rows[place]]), true)
            for scores, column in ((start, 0), (end, 1))
            for place, true in enumerate(spans[:, column])
        ]
        return torch.stack(losses).sum()

    def ours(start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        return span_loss(SpanOutput(start, end, torch.zeros(0)), spans, again)

    both = start.requires_grad_(), end.requires_grad_()
    assert_close(ours(*both), by_hand(*both))
    gradients = [torch.autograd.grad(loss(*both), both) for loss in (ours, by_hand)]
    assert_close(*gradients)


def test_several_others_are_different_passages():
    drawn = others(2.5)
    counts = np.zeros(5)
    for number in range(300):
        rows, which = drawn.draw(np.arange(5), 0, number)
        assert len({*zip(rows.tolist(), which.tolist(), strict=True)}) == len(rows)
        assert not (which == rows).any()
        here = np.bincount(rows, minlength=5)
        assert here.min() >= 1 and here.max() <= 3
        counts += here
    # By hand: of the first question's 4 passages all are as probable, drawn from twice or thrice.
    expected = (4 * (1 - 0.75**2) + 4 * (1 - 0.75**3)) / 2
    assert counts[0] / 300 == pytest.approx(expected, abs=0.15)


def test_another_passage_is_of_the_article_or_of_another_one():
    drawn = others()
    index = np.arange(5)
    seen = []
    for number in range(400):
        rows, which = drawn.draw(index, 0, number)
        assert rows.tolist() == [0, 1, 2, 3, 4] and not (which == rows).any()
        seen += zip(rows.tolist(), which.tolist(), strict=True)
    assert len(set(seen)) == 20  # every other passage comes
    same = [TITLES[passage] == TITLES[row] for row, passage in seen if TITLES[row] == "a"]
    assert 0.45 < np.mean(same) < 0.55
    again = [others(seed=seed).draw(index, 3, 8)[1].tolist() for seed in (0, 0, 1)]
    assert again[0] == again[1] == drawn.draw(index, 3, 8)[1].tolist()
    counts = [len(others(0.3).draw(index, 0, number)[0]) for number in range(200)]
    assert 0.2 < np.mean(counts) / 5 < 0.4


def test_those_with_most_in_common_with_the_question_are_drawn_from():
    """By hand: six of nine other passages say where somebody was born, two of them say who."""
    texts = [f"Ada was born in Rome and Max knew {i}." for i in range(2)]
    texts += [f"Somebody was born somewhere in {i}." for i in range(6)]
    texts += ["It rains.", "Nothing more is known of it.", "Ada was born in Oslo."]
    examples = [
        Question(str(i), text, "Where was Ada born?", (), "a") for i, text in enumerate(texts)
    ]
    examples[10] = Question("10", texts[10], "Where was Ada born?", (Answer("Oslo", 16),), "a")
    splitter = WordSplitter(TextPipeline(TextConfig(language="en")))
    data = read_all(examples, splitter, "training")
    known = ReaderVocabulary.learn([*data.texts()], min_count=1, characters=False)
    encoded = encode_training(data, known, 400)[0]
    near = nearest_passages(encoded, np.zeros(11, np.int64))
    assert near.shape == (1, 8)
    assert sorted(near[0, :2].tolist()) == [0, 1]
    assert sorted(near[0, 2:].tolist()) == [2, 3, 4, 5, 6, 7]
    assert (foreign_passages(encoded, np.zeros(11, np.int64)) == -1).all()
    apart = np.array([1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0])  # one that says who is of another article
    assert foreign_passages(encoded, apart)[0, 0] == 0


def test_a_batch_has_questions_first_and_then_some_of_them_again():
    drawn = others(0.5)
    index = np.array([4, 2, 0])
    number = next(n for n in range(99) if drawn.draw(index, 0, n)[0].tolist() == [1, 2])
    batch = drawn.batch(index, 0, number)
    rows, which = drawn.draw(index, 0, number)
    assert len(batch) == 3 and rows.tolist() == batch.values["asked_again"].tolist() == [1, 2]
    assert batch.values["spans"].shape == (3, 2)
    words, passages, asked = batch.values["forms"], batch["passage"], batch["question"]
    for row, (question, passage) in enumerate(
        zip([4, 2, 0, 2, 0], [4, 2, 0, *which.tolist()], strict=True)
    ):
        texts = drawn.data.texts
        expected = texts.forms[texts.passages[passage]]
        assert words[passages.values[row, : passages.lengths[row]]].tolist() == expected.tolist()
        expected = texts.forms[texts.questions[question]]
        assert words[asked.values[row, : asked.lengths[row]]].tolist() == expected.tolist()


RAW = {"terms": 0.0, "reading": 1.0, "likeness": 0.0, "log_length": 0.0}  # what the network says


def new(share: Any) -> Reader:
    training = {
        "epochs": 300, "seed": 0, "averaging": "none", "device": "cpu",
        "schedule": {"warmup": 0}, "optimizer": {"rate": 0.002},
    }  # fmt: skip
    sizes = {"hidden_size": 16, "embed_size": 24, "characters": "none", "dropout": 0.0}
    settings = {"min_count": 1, "valid_share": 0, "ranking": RAW, "other_passages": share}
    return Reader("bidaf", training=training, **settings, **sizes)


def test_a_reader_learns_which_passage_has_the_answer():
    data = questions(["a"] * 5)
    model = new(1.0).fit(data)
    passages = [each.passage for each in data]
    found = model.answer_all([(passages, each.question) for each in data])
    assert [each[0].text for each in found] == [city for _, city in PEOPLE]
    assert min(each[0].probability for each in found) > 0.9


@pytest.mark.parametrize("count", [-0.1, 9])
def test_bad_counts_are_refused(count):
    with pytest.raises(
        ConfigError, match=f"other_passages must be a number from 0 to 8, got {count}"
    ):
        new(count).fit(questions(TITLES))
