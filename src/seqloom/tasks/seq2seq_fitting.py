"""What fitting a translator, a writer of summaries and a captioner have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.batches import EncodedData
from seqloom.errors import ConfigError, DataError
from seqloom.tasks.contextual import saved_context, stored_context
from seqloom.tasks.directory import (
    ModelHeader,
    StoredModel,
    load_weights,
    write_model,
)
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.fitting import Callbacks, Learned, RunSettings, fitting, origin, run_objective
from seqloom.tasks.seq2seq_objective import PairGoal, Seq2SeqObjective
from seqloom.tasks.seq2seq_text import Pair, PairText, PairTextSettings, PairVocabulary
from seqloom.text import TextConfig

if TYPE_CHECKING:
    from pathlib import Path


TEXT = "pairs"  # the setting of a model directory that says how pairs are read


class FitOptions(NamedTuple):
    """Where and how a run goes.

    Args:
        out: A directory for checkpoints and, at the end, the model.
        resume: Whether to go on with an interrupted run there.
        callbacks: Told how it goes.
    """

    out: str | PathLike[str] | None
    resume: bool
    callbacks: Callbacks


class Data(NamedTuple):
    """What is fitted to: pairs, and what they were read from, for the model's card."""

    train: list[Pair]
    valid: list[Pair] | None
    names: tuple[Any, Any]


def text_config(given: TextConfig | Mapping[str, Any] | None, where: str) -> TextConfig:
    """Settings of text, however they are given."""
    if isinstance(given, TextConfig):
        return given
    return from_dict(TextConfig, given or {}, where=where)


def text_settings(
    text: Any, target_text: Any, vocabulary: Any, max_source: int | None, *, copying: bool
) -> PairTextSettings:
    """How pairs are read, from an estimator's settings; the target is read as the source if not
    said otherwise.
    """  # noqa: D205
    source = text_config(text, "text")
    settings = {
        "source": source,
        "target": source if target_text is None else text_config(target_text, "target_text"),
        "vocabulary": from_dict(PairVocabulary, vocabulary or {}, where="vocabulary"),
        "max_source": max_source,
        "copying": copying,
    }
    return from_dict(PairTextSettings, settings)


def fit_pairs(
    estimator: Estimator,
    settings: PairTextSettings,
    goal: PairGoal,
    data: Data,
    options: FitOptions,
) -> PairText:
    """Train a network on pairs; the estimator has it, metrics and provenance afterwards.

    Returns:
        How text becomes numbers and back.
    """
    if estimator.build_training().needs_validation and data.valid is None:
        raise ConfigError(
            "training.patience, schedule 'plateau' and averaging 'triggered' need validation data, "
            "got valid=None"
        )
    out, resume, callbacks = options
    with fitting(estimator, out, resume=resume, callbacks=callbacks) as run:
        text = PairText.learn(data.train, settings)
        text.read_in_context(getattr(estimator, "contextual", None))
        train = text.encode(data.train)
        valid = None if data.valid is None else text.encode(data.valid)
        model, learned = _learn(estimator, text, train, valid, goal=goal, run=run)
        estimator.model_, estimator.metrics_ = model, learned.metrics
        facts = {"pairs": len(train), **learned.history}
        estimator.provenance_ = origin(*data.names, run.training, **facts)
        estimator.text_ = text  # type: ignore[attr-defined]
    return text


def _learn(
    estimator: Estimator,
    text: PairText,
    train: EncodedData,
    valid: EncodedData | None,
    *,
    goal: PairGoal,
    run: RunSettings,
) -> tuple[Any, Learned]:
    training = run.training
    config = estimator.build_config(**_sizes(text, train))
    known = (text.source_vocabulary, text.target_vocabulary)
    run = run.about(
        model=to_dict(config),
        goal=to_dict(goal),
        pairs=len(train),
        vocabularies=[None if each is None else each.hash for each in known],
        **({} if text.context is None else {"context": text.context.digest}),
    ).noting({"train": train, "valid": valid})
    batches = replace(training.batch, seed=training.batch.seed + training.seed)
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        model = load_model_class(estimator.architecture)(config)
        if text.source is None:
            flat = np.asarray(train.sequences["source"].flat, np.float64)
            spread = flat.std(axis=0)
            scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
            model.standardize(torch.from_numpy(flat.mean(axis=0)), torch.from_numpy(scale))
        if text.context is not None:
            text.context.attach(model)
        learned = run_objective(model, Seq2SeqObjective(train, valid, batches, goal), run)
    if text.context is not None:
        text.context.finish(model)
    return model, learned


def _sizes(text: PairText, train: EncodedData) -> dict[str, Any]:
    """What the data decides of a model."""
    known = text.source_vocabulary
    context = {} if text.context is None else {"words_in_context": text.context.options}
    return {
        **context,
        "vocab_size": len(text.target_vocabulary),
        "source_vocab_size": 0 if known is None else len(known),
        "input_size": train.sequences["source"].flat.shape[1] if known is None else 0,
        "shared": text.settings.vocabulary.shared,
    }


def save_pairs(estimator: Any, directory: str | PathLike[str], settings: Mapping[str, Any]) -> Path:
    """Write the model directory of a network and how it reads."""
    text: PairText = estimator.text_
    header = ModelHeader(
        task=estimator.task,
        architecture=estimator.arch_,
        config=to_dict(estimator.model_.config),
        settings={
            TEXT: text.to_dict(),
            **settings,
            **({} if text.context is None else {"contextual": text.context.stored()}),
        },
        metrics=estimator.metrics_,
        provenance=estimator.provenance_,
    )
    with saved_context(text.context) as models:
        weights = estimator.model_.state_dict()
        return write_model(directory, header, weights, text.files(), models)


def load_pairs(estimator: Any, stored: StoredModel) -> None:
    """Give an estimator the network of a model directory and how it reads."""
    text = estimator.text_ = PairText.load(stored.header.settings[TEXT], stored)
    if text.source_vocabulary is not None:
        ends = [text.source_vocabulary.specials.eos]
        text.context = stored_context(stored, ends, config="words_in_context")
    if text.context is not None:
        estimator.contextual = text.context.settings
    config = estimator._take_over(stored)
    if config.vocab_size != len(estimator.text_.target_vocabulary):
        raise DataError(
            f"must hold {config.vocab_size} words, got {len(estimator.text_.target_vocabulary)}",
            stored.place / "target.vocabulary.json",
        )
    estimator.model_ = load_model_class(estimator.architecture)(config)
    load_weights(estimator.model_, stored)
    estimator.model_.eval()
