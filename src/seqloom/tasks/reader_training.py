"""Training a reader: words, windows and a network, and what it is chosen by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from seqloom.architectures import load_model_class
from seqloom.config import to_dict
from seqloom.data.examples import Question
from seqloom.errors import InputError
from seqloom.metrics.reading import score_answers
from seqloom.tasks.contextual import context_reader
from seqloom.tasks.fitting import RunSettings, run_objective
from seqloom.tasks.pretrained import open_vectors
from seqloom.tasks.reader_data import encode_texts, encode_training, encode_windows
from seqloom.tasks.reader_objective import ReadingObjective
from seqloom.tasks.reader_others import OtherPassages
from seqloom.tasks.reader_spans import SPANS, as_answer, find_spans, joined, merge_windows
from seqloom.tasks.reader_start import continued
from seqloom.tasks.reader_text import ReadQuestions
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.tasks.relation_words import begin_with, finish
from seqloom.tasks.unseen_words import extend_words
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader
    from seqloom.tasks.reader_teaching import ReaderTeachers


class FittedReader(NamedTuple):
    """What training gives.

    Args:
        model: The network, on the CPU.
        known: What it knows of words.
        metrics: What it reached.
        history: How it went.
    """

    model: Any
    known: ReaderVocabulary
    metrics: dict[str, Any]
    history: dict[str, Any]


def set_apart(
    whole: ReadQuestions, share: float, seed: int
) -> tuple[ReadQuestions, ReadQuestions | None]:
    """Return what to learn from and what to choose on: other articles, the same for one seed."""
    chosen = held_out(whole.examples, share, seed)
    inside = [i for i, each in enumerate(whole.examples) if article(each) not in chosen]
    outside = [i for i, each in enumerate(whole.examples) if article(each) in chosen]
    if not inside or not outside:
        return whole, None
    return whole.part(inside), whole.part(outside)


def article(example: Question) -> str:
    """What a question is about; where it has no article, passages are told apart."""
    return example.title or example.passage


def articles(data: ReadQuestions) -> list[str]:
    """The article of each passage."""
    found = [""] * len(data.passages)
    for example, passage in zip(data.examples, data.which, strict=True):
        found[passage] = article(example)
    return found


def held_out(examples: Sequence[Question], share: float, seed: int) -> set[str]:
    """Return articles drawn at random until they have about a share of the questions."""
    sizes = Counter(map(article, examples))
    names = sorted(sizes)
    wanted, taken = share * len(examples), 0
    chosen: set[str] = set()
    for place in np.random.default_rng([seed, 1]).permutation(len(names)).tolist():
        if taken + sizes[names[place]] > wanted * 1.1:
            continue
        chosen.add(names[place])
        taken += sizes[names[place]]
        if taken >= wanted:
            break
    return chosen


class Checked:
    """Questions with answers to measure a reader on, every passage read whole.

    Args:
        owner: The reader.
        data: The questions.
        known: What it knows of words.
    """

    def __init__(self, owner: Reader, data: ReadQuestions, known: ReaderVocabulary) -> None:
        self.owner, self.data = owner, data
        pairs = [(passage, question) for question, passage in enumerate(data.which)]
        texts = encode_texts(data.passages_words(), data.questions, known)
        self.encoded = encode_windows(texts, pairs)[0]
        self.answers = {each.id: [answer.text for answer in each.answers] for each in data.examples}

    def predictions(self, model: nn.Module) -> dict[str, str]:
        """The best answer to each question, by its id."""
        found = find_spans(model, self.encoded, self.owner.max_words, SPANS)
        answers = {}
        for i, example in enumerate(self.data.examples):
            spans = self.data.passages[self.data.which[i]].spans
            merged = merge_windows(self.encoded, found, np.array([i]), SPANS)
            said = [as_answer(one, spans, example.passage) for one in merged]
            answers[example.id] = joined(said, self.owner.rules)[0].text
        return answers

    def content(self) -> tuple[Any, ...]:
        """What decides how good answers are: questions and passages, and the true answers."""
        passages = list(dict.fromkeys(each.passage for each in self.data.examples))
        return self.encoded, passages, self.answers

    def measure(self, model: nn.Module) -> dict[str, float]:
        """Exact match and F1 by the official rules, over all questions."""
        scores = score_answers(self.predictions(model), self.answers, self.owner.rules)
        return {"exact": scores["exact"], "f1": scores["f1"]}


def learn_to_read(
    owner: Reader,
    train: ReadQuestions,
    valid: ReadQuestions | None,
    run: RunSettings,
    *,
    begun: Reader | None = None,
    teachers: ReaderTeachers | None = None,
) -> FittedReader:
    """Train a network; it ends with the weights that are best on `valid`.

    Args:
        owner: Whose settings count; it is not changed.
        train: The training data.
        valid: The validation data, if there is any.
        run: The settings of the loop and where it runs.
        begun: A fitted reader to go on from; by default the network is new.
        teachers: Fitted readers to learn from beside the answers.
    """
    from seqloom.training.runtime import Runtime

    vectors = None if owner.vectors is None else open_vectors(owner.vectors)
    known = _choose_words(owner, train, valid, vectors) if begun is None else begun.words_
    training = run.training
    device = Runtime(training.device, training.precision).device
    if known.context is not None:
        known.context.to(device)
    encoded, left_out = encode_training(train, known, owner.max_length)
    if not len(encoded):
        raise InputError("the training data must have answers to learn from, got none")
    checked = None if valid is None else Checked(owner, valid, known)
    history: dict[str, Any] = {
        "misaligned": len(train.misaligned),
        "mended": train.mended,
        "left_out": left_out,
        "words": len(known.words),
    }
    targets = None
    if teachers is not None:
        targets = teachers.targets(train, encoded, device)
        history["teaching"] = teachers.facts
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        if begun is None:
            model = _new_network(owner, known, vectors)
            if vectors is not None:
                history["words_with_vectors"] = begin_with(
                    model, known.words, vectors, tuned=owner.tune_vectors, seed=training.seed
                )
        else:
            model = continued(owner, begun)
            history["start"] = {"metrics": begun.metrics_, "provenance": begun.provenance_}
        others = None
        if owner.other_passages:
            others = OtherPassages(encoded, articles(train), owner.other_passages, training.seed)
        objective = ReadingObjective(
            encoded,
            (lambda _: {}) if checked is None else checked.measure,
            replace(training.batch, seed=training.batch.seed + training.seed),
            others,
            consistency=owner.consistency,
            targets=targets,
        )
        facts: dict[str, Any] = {
            "model": to_dict(model.config),
            "questions": len(encoded),
            "vocabulary": known.words.hash,
        }
        for name in ("other_passages", "consistency"):
            if getattr(owner, name):
                facts[name] = getattr(owner, name)
        if known.context is not None:
            facts["context"] = known.context.digest
            known.context.attach(model)
        noted = replace(run, facts=facts).noting(
            {
                "train": (encoded, articles(train) if owner.other_passages else None),
                "valid": None if checked is None else checked.content(),
                "vectors": None if vectors is None else model.input.embedding.weight,
                "start": None if begun is None else begun.model_.state_dict(),
                **({} if teachers is None else {"teachers": (teachers.weights(), teachers.share)}),
            },
            tune_vectors=owner.tune_vectors,
            max_words=owner.max_words,
            rules=owner.rules,
        )
        learned = run_objective(model, objective, noted)
    if known.context is not None:
        known.context.finish(model)
        known.context.to("cpu")
    finish(model)
    model.input.embedding.weight.requires_grad_(True)
    if vectors is not None and owner.unseen_vectors:
        known.words = extend_words(model, known.words, vectors, owner.unseen_vectors)
    model.eval()
    return FittedReader(model, known, learned.metrics, {**history, **learned.history})


def _choose_words(
    owner: Reader, train: ReadQuestions, valid: ReadQuestions | None, vectors: WordVectors | None
) -> ReaderVocabulary:
    """What a new reader knows of words."""
    known = ReaderVocabulary.learn(
        [*train.texts()],
        min_count=owner.min_count,
        vectors=vectors,
        others=() if valid is None else valid.texts(),
        characters=owner.reads_spelling,
    )
    known.context = context_reader(owner.contextual)
    return known


def _new_network(owner: Reader, known: ReaderVocabulary, vectors: WordVectors | None) -> Any:
    """A network of the sizes that its words ask for."""
    sizes: dict[str, Any] = {
        "vocab_size": len(known.words),
        "char_vocab_size": len(known.characters) if known.characters else 0,
    }
    if vectors is not None and not owner.sets("embed_size"):
        sizes["embed_size"] = vectors.size
    if known.context is not None:
        sizes["context"] = known.context.options
    return load_model_class(owner.architecture)(owner.build_config(**sizes))
