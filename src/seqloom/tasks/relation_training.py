"""Training a relation classifier: the loss of its scores, and the official score to choose by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seqloom.config import to_dict
from seqloom.data.features import Vectors
from seqloom.data.relations import MARKERS
from seqloom.errors import InputError, one_of
from seqloom.metrics.relations import OTHER, score_relations
from seqloom.tasks.classifier_sequences import WordSequences
from seqloom.tasks.classifier_training import class_goal, hold_out
from seqloom.tasks.contextual import context_reader
from seqloom.tasks.fitting import Learned, RunSettings, run_objective
from seqloom.tasks.labels import class_labels, numbered
from seqloom.tasks.pretrained import open_vectors
from seqloom.tasks.relation_teaching import TaughtRelations
from seqloom.tasks.relation_text import LabeledSentences
from seqloom.tasks.relation_words import (
    begin_with,
    choose_words,
    finish,
    relation_examples,
)
from seqloom.tasks.supervised_objective import Examples, Goal, SupervisedObjective
from seqloom.tasks.text_features import TermLimits
from seqloom.tasks.unseen_words import extend_words

if TYPE_CHECKING:
    from seqloom.tasks.relation_classifier import RelationClassifier

METRIC = "macro_f1"


def set_apart(
    whole: LabeledSentences, share: float, seed: int
) -> tuple[LabeledSentences, LabeledSentences | None]:
    """Return what to learn from and what to choose on, None if that would be nothing."""
    labels = np.array(whole.labels)
    targets = numbered(labels, class_labels(labels), "training")
    kept, apart = split_by_seed(targets, share, seed)
    return whole.part(kept), whole.part(apart) if len(apart) else None


def split_by_seed(
    targets: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the examples to learn from and of those to choose on.

    A share of every class is set apart, the same one for the same seed.
    """
    places = Vectors(np.arange(len(targets), dtype=np.float64)[:, None])
    kept, apart = hold_out(Examples(places, targets), share, seed)
    nothing = np.zeros(0, np.int64)
    return _places(kept), nothing if apart is None else _places(apart)


def _places(examples: Examples) -> NDArray[np.int64]:
    assert isinstance(examples.features, Vectors)
    return examples.features.x[:, 0].astype(np.int64)


class FittedRelations(NamedTuple):
    """What training gives.

    Args:
        model: The network, on the CPU.
        words: Its words, and how they are read.
        classes: Its labels.
        metrics: What it reached.
        history: How it went.
    """

    model: Any
    words: WordSequences
    classes: NDArray[Any]
    metrics: dict[str, Any]
    history: dict[str, Any]


def learn_relations(
    owner: RelationClassifier,
    train: LabeledSentences,
    valid: LabeledSentences | None,
    limits: TermLimits,
    run: RunSettings,
    *,
    taught: TaughtRelations | None = None,
) -> FittedRelations:
    """Train a new network; it ends with the weights of the best official score on `valid`.

    Args:
        owner: Whose settings count; it is not changed.
        train: The training data.
        valid: The validation data, if there is any.
        limits: Which words of the training data are kept.
        run: The settings of the loop and where it runs.
        taught: What it learns in place of the training data's labels alone, if others teach it.
    """
    classes = class_labels(np.array(train.labels))
    _check_other(owner.other, classes)
    read = train.words if taught is None else taught.words
    vectors = None if owner.vectors is None else open_vectors(owner.vectors)
    others = [] if valid is None or not owner.unseen_vectors else valid.words
    words = choose_words(read, limits, others, vectors)
    context = context_reader(owner.contextual, MARKERS)
    sizes = {"vocab_size": len(words), "input_size": 0, "output_size": len(classes)}
    if vectors is not None and not owner.sets("embed_size"):
        sizes["embed_size"] = vectors.size
    if context is not None:
        sizes["context"] = context.options  # type: ignore[assignment]
    config = owner.build_config(**sizes)
    facts = {
        "model": to_dict(config),
        "examples": len(read),
        "classes": classes.tolist(),
        "vocabulary": words.hash,
        "positions": [owner.position_size, owner.max_distance, owner.entity_states, owner.around],
    }
    if context is not None:
        facts["context"] = context.digest
    terms = WordSequences(words, None, context)
    if taught is None:
        examples = relation_examples(train, terms, classes, "training")
    else:
        examples = Examples(terms(taught.words), taught.shares)
    checked = None if valid is None else relation_examples(valid, terms, classes, "validation")
    seed = run.training.seed
    history: dict[str, Any] = {} if taught is None else {"teaching": taught.facts}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = owner.build_network(config)
        if vectors is not None:
            share = begin_with(model, words, vectors, tuned=owner.tune_vectors, seed=seed)
            history["words_with_vectors"] = share
        given = None if vectors is None else model.input.embedding.weight
        noted = replace(run, facts=facts).noting(
            {"train": examples, "valid": checked, "vectors": given},
            tune_vectors=owner.tune_vectors,
            other=owner.other,
        )
        if context is not None:
            context.attach(model)
        goal = _goal_of(model, owner, classes)
        learned = _run(model, examples, checked, goal, noted)
    if context is not None:
        context.finish(model)
    finish(model)
    if vectors is not None and owner.unseen_vectors:
        words = extend_words(model, words, vectors, owner.unseen_vectors)
        terms = terms.knowing(words)
    model.eval()
    return FittedRelations(model, terms, classes, learned.metrics, {**history, **learned.history})


def _check_other(other: str, classes: NDArray[Any]) -> None:
    """Refuse a name for what is no relation that no sentence has, unless it is the usual one.

    Were it misspelled, what is no relation would be measured like one.
    """
    known = classes.tolist()
    if other != OTHER and other not in known:
        raise InputError(
            f"other must be a label of the training data: {one_of('label', other, known)}"
        )


def _goal_of(model: nn.Module, owner: RelationClassifier, classes: NDArray[Any]) -> Goal:
    def metrics(scores: NDArray[Any], targets: NDArray[Any]) -> dict[str, float]:
        predicted, actual = classes[scores.argmax(axis=1)], classes[targets]
        report = score_relations(predicted.tolist(), actual.tolist(), other=owner.other)
        return {METRIC: report.macro_f1, "accuracy": report.directed.accuracy}

    return replace(class_goal(model, owner.arch, None, multilabel=False), metrics=metrics)


def _run(
    model: nn.Module, train: Examples, valid: Examples | None, goal: Goal, settings: RunSettings
) -> Learned:
    training = settings.training
    batches = replace(training.batch, seed=training.batch.seed + training.seed)
    objective = SupervisedObjective(train, valid, goal, batches)
    objective.metric, objective.higher_is_better = METRIC, True
    learned = run_objective(model, objective, settings)
    if goal.constrain is not None:
        goal.constrain(model)
    return learned
