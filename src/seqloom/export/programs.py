"""What is exported of a fitted estimator, by its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from seqloom.config import to_dict
from seqloom.errors import ConfigError
from seqloom.export.program import Program
from seqloom.text import TextPipeline, Vocabulary


def program_of(estimator: Any) -> Program:
    """Return what is exported of a fitted estimator.

    Raises:
        ConfigError: If its task, or its architecture, cannot be exported.
    """
    if estimator.task not in TASKS:
        raise ConfigError(
            f"a model of task {estimator.task!r} cannot be exported to ONNX; those of "
            f"{', '.join(TASKS)} can"
        )
    config = getattr(estimator.model_, "config", None)
    if getattr(config, "context", None) is not None:
        raise ConfigError(
            "a model that reads words in context cannot be exported to ONNX: another model makes "
            "its vectors; fit it without contextual"
        )
    return TASKS[estimator.task](estimator)


def _language(estimator: Any) -> Program:
    from seqloom.export.language import EXPORTED, language_program

    model = estimator.engine_.model
    if not isinstance(model, EXPORTED):
        names = ", ".join(sorted(each.__name__ for each in EXPORTED))
        raise ConfigError(
            f"a language model of arch {estimator.arch_!r} cannot be exported to ONNX; networks "
            f"of {names} can"
        )
    facts = {
        **text_facts(estimator.pipeline_, estimator.vocabulary_),
        "sentence_end": int(estimator.reader.end),
        "reverse": estimator.reverse_,
    }
    return _with_facts(language_program(model), facts)


def _classifier(estimator: Any) -> Program:
    from seqloom.export.classifiers import (
        Reading,
        bag_inputs,
        classifier_program,
        sequence_inputs,
        vector_inputs,
    )
    from seqloom.tasks.classifier_sequences import VectorSequences, WordSequences
    from seqloom.tasks.text_features import TextFeatures

    model, terms, decision = estimator.model_, estimator.terms_, estimator.decision_
    facts: dict[str, Any] = {
        "labels": estimator.classes_.tolist(),
        "multilabel": decision.multilabel,
        "thresholds": None if decision.thresholds is None else decision.thresholds.tolist(),
        "max_length": getattr(terms, "max_length", None),
    }
    if isinstance(terms, WordSequences | VectorSequences):
        inputs = sequence_inputs(model)
    elif isinstance(terms, TextFeatures):
        inputs = bag_inputs()
        facts |= {"features": to_dict(terms.config), **terms.to_dict()}
    else:
        inputs = vector_inputs(model)
    if isinstance(terms, WordSequences | TextFeatures):
        facts |= text_facts(estimator.pipeline_, terms.vocabulary)
    reading: Reading = "logistic" if estimator.arch_ == "logistic" else "softmax"
    if decision.link is None:
        reading = "none"
    elif decision.multilabel:
        reading = "labels"
    program = classifier_program(model, inputs, reading, decision.temperature)
    return _with_facts(program, facts)


def _relations(estimator: Any) -> Program:
    from seqloom.data.relations import MARKERS
    from seqloom.export.classifiers import classifier_program, sequence_inputs

    model = estimator.model_
    facts = {
        **text_facts(estimator.pipeline_, estimator.vocabulary_),
        "labels": estimator.classes_.tolist(),
        "markers": {word: estimator.vocabulary_[word] for word in MARKERS},
    }
    return _with_facts(classifier_program(model, sequence_inputs(model), "softmax"), facts)


def _tagger(estimator: Any) -> Program:
    from seqloom.export.tagging import tagger_program
    from seqloom.tasks.tagger_words import MAX_CHARACTERS

    reader, tags = estimator.reader_, estimator.tags_
    facts: dict[str, Any] = {
        "tags": tags.names,
        "scheme": tags.scheme,
        "inner_scheme": tags.inner,
        "segment": estimator.segment,
    }
    if reader is not None:
        facts |= {
            **text_facts(estimator.pipeline_, reader.words),
            "fold": reader.folds,
            "features": {name: known.to_dict() for name, known in reader.features.items()},
            "characters": reader.characters and reader.characters.to_dict(),
            "max_characters": MAX_CHARACTERS,
        }
    return _with_facts(tagger_program(estimator.model_), facts)


def _reader(estimator: Any) -> Program:
    from seqloom.export.reading import reader_program
    from seqloom.tasks.reader_words import MAX_SPELLING

    known = estimator.words_
    facts = {
        **text_facts(estimator.splitter_.pipeline, known.words),
        "characters": known.characters and known.characters.to_dict(),
        "max_characters": MAX_SPELLING,
    }
    return _with_facts(reader_program(estimator.model_), facts)


TASKS: Mapping[str, Callable[[Any], Program]] = {
    "lm": _language,
    "classify": _classifier,
    "relate": _relations,
    "tag": _tagger,
    "answer": _reader,
}
"""Task to what is exported of it."""


def text_facts(pipeline: TextPipeline, vocabulary: Vocabulary) -> dict[str, Any]:
    """How text becomes ids, as plain values: what a `TextPipeline` and a `Vocabulary` are made of.

    `TextPipeline(from_dict(TextConfig, facts["text"]))` and
    `Vocabulary.from_dict(facts["vocabulary"])` make them again.
    """
    found: dict[str, Any] = {
        "text": to_dict(pipeline.config),
        "vocabulary_hash": vocabulary.hash,
        "vocabulary": vocabulary.to_dict(),
    }
    if pipeline.subword is not None:
        found["subword"] = pipeline.subword.to_bytes().decode()
    return found


def _with_facts(program: Program, facts: Mapping[str, Any]) -> Program:
    return replace(program, facts={**program.facts, **facts})
