"""Training a tagger: words, tags and constraints to a network, and what it is chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seqloom.architectures import load_model_class
from seqloom.config import to_dict
from seqloom.data.ragged import Ragged
from seqloom.errors import InputError
from seqloom.metrics.spans import (
    OUTSIDE,
    convert_tags,
    find_scheme,
    join_tag,
    score_spans,
    split_tag,
)
from seqloom.nn.crf import CRF
from seqloom.tasks.classifier_sequences import SPECIALS
from seqloom.tasks.contextual import ContextReader, context_reader
from seqloom.tasks.fitting import Learned, RunSettings, run_objective
from seqloom.tasks.pretrained import open_vectors
from seqloom.tasks.relation_words import begin_with, choose_words, finish
from seqloom.tasks.tagger_objective import TaggingObjective, best_tags
from seqloom.tasks.tagger_reading import TagSet, read_items
from seqloom.tasks.tagger_text import TaggedSentences, legal
from seqloom.tasks.tagger_words import TokenReader, folded
from seqloom.tasks.text_features import TermLimits
from seqloom.tasks.unseen_words import extend_words
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.tasks.tagger import Tagger


class FittedTagger(NamedTuple):
    """What training gives.

    Args:
        model: The network, on the CPU.
        reader: How words are read; None for vectors.
        tags: Its tags.
        metrics: What it reached.
        history: How it went.
    """

    model: Any
    reader: TokenReader | None
    tags: TagSet
    metrics: dict[str, Any]
    history: dict[str, Any]


def set_apart(
    whole: TaggedSentences, share: float, seed: int
) -> tuple[TaggedSentences, TaggedSentences | None]:
    """Return what to learn from and what to choose on, the same for the same seed."""
    count = int(share * len(whole))
    if not count:
        return whole, None
    order = np.random.default_rng([seed, 1]).permutation(len(whole))
    return whole.part(np.sort(order[count:])), whole.part(np.sort(order[:count]))


def choose_tags(owner: Tagger, train: TaggedSentences) -> tuple[TagSet, TaggedSentences]:
    """Return the tags to train with, and the training data with them.

    Where no sentence of one word would have a legal tag, that of such a span is known of each type.

    Raises:
        InputError: If there is one tag alone, or the tags of a sentence are illegal.
    """
    assert train.tags is not None
    seen = {tag for row in train.tags for tag in row}
    scheme = find_scheme(seen) if owner.scheme == "auto" else owner.scheme
    scheme = None if scheme == "none" else scheme
    inner = scheme
    if scheme is None and owner.encode is not None:
        raise InputError(
            f"encode={owner.encode!r} needs tags that mark spans, got tags such as {min(seen)!r}; "
            "leave it out, or name their scheme"
        )
    if scheme is not None:
        train = legal(train, scheme, repair=owner.illegal == "repair")
        inner = scheme if owner.encode is None else owner.encode
    assert train.tags is not None
    tags = train.tags
    if inner is not None and inner != scheme:
        tags = [convert_tags(row, inner) for row in tags]
    names = {tag for row in tags for tag in row}
    if len(names) < 2:
        raise InputError(f"there must be at least two tags to tell apart, got {sorted(names)}")
    if inner in ("bioes", "bmes"):
        names |= _single_tags(names)
    return TagSet(sorted(names), scheme, inner), replace(train, tags=tags)


def _single_tags(names: set[str]) -> set[str]:
    """The tags of spans of one word, where no tag may stand alone: all lengths are legal then."""
    pairs = {split_tag(name) for name in names}
    if any(prefix in (OUTSIDE, "S") for prefix, _ in pairs):
        return set()
    return {join_tag("S", kind) for _, kind in pairs}


def tag_metrics(predicted: list[list[str]], gold: list[list[str]], tags: TagSet) -> dict[str, Any]:
    """Return how good tags are: `f1` of spans where they mark some, and `accuracy`."""
    report = score_spans(predicted, gold)
    if tags.scheme is None:
        return {"accuracy": report.accuracy}
    return report.metrics()


def learn_tags(
    owner: Tagger,
    train: TaggedSentences,
    valid: TaggedSentences | None,
    limits: TermLimits,
    run: RunSettings,
) -> FittedTagger:
    """Train a new network; it ends with the weights that are best on `valid`.

    Args:
        owner: Whose settings count; it is not changed.
        train: The training data.
        valid: The validation data, if there is any.
        limits: Which words of the training data are kept.
        run: The settings of the loop and where it runs.
    """
    tags, train = choose_tags(owner, train)
    assert train.tags is not None
    vectors = None if owner.vectors is None else open_vectors(owner.vectors)
    context = context_reader(owner.contextual)
    reader, sizes = _reading(owner, (train, valid), limits, vectors, context)
    sizes["output_size"] = len(tags.names)
    config = owner.build_config(**sizes)
    facts = {"model": to_dict(config), "sentences": len(train), "tags": tags.names}
    if context is not None:
        facts["context"] = context.digest
    if reader is not None:
        facts["vocabulary"] = reader.words.hash
    seed, history = run.training.seed, {}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = load_model_class(owner.architecture)(config)
        if vectors is not None and reader is not None:
            share = begin_with(model, reader.words, vectors, tuned=owner.tune_vectors, seed=seed)
            history["words_with_vectors"] = share
        given = None if vectors is None or reader is None else model.input.embedding.weight
        noted = replace(run, facts=facts).noting(
            {"vectors": given},
            tune_vectors=owner.tune_vectors,
            constrained=owner.constrained,
            schemes=[tags.scheme, tags.inner],
        )
        limited = tags.constraints() if owner.constrained else None
        if limited is not None and isinstance(model.output, CRF):
            model.output.constrain(*limited)
        if reader is None:
            _standardize(model, train.items)
        if context is not None:
            context.attach(model)
        learned = _run(model, reader, tags, (train, valid), noted)
    if context is not None:
        context.finish(model)
    if reader is not None:
        finish(model)
    if vectors is not None and owner.unseen_vectors and reader is not None:
        reader.words = extend_words(model, reader.words, vectors, owner.unseen_vectors)
    model.eval()
    found = {**history, **learned.history}
    return FittedTagger(model, reader, tags, learned.metrics, found)


def _reading(
    owner: Tagger,
    data: tuple[TaggedSentences, TaggedSentences | None],
    limits: TermLimits,
    vectors: WordVectors | None,
    context: ContextReader | None,
) -> tuple[TokenReader | None, dict[str, Any]]:
    """How sentences are read, None for vectors, and the sizes a network has for it."""
    train, valid = data
    sizes: dict[str, Any] = {"vocab_size": 0, "input_size": 0, "char_vocab_size": 0}
    sizes["feature_sizes"] = ()
    if train.are_vectors:
        if context is not None:
            raise InputError("contextual is for words, got sequences of vectors in X")
        return None, sizes | {"input_size": train.items[0].shape[1]}
    others = [] if valid is None or not owner.unseen_vectors else valid.items
    words = [folded(rows) if owner.fold else rows for rows in (train.items, others)]
    reader = TokenReader(
        choose_words(words[0], limits, words[1], vectors, SPECIALS),
        folds=owner.fold,
        features=TokenReader.learn_features(train.items, owner.features),
        characters=TokenReader.learn_characters(train.items) if owner.reads_spelling else None,
        context=context,
    )
    sizes["vocab_size"] = len(reader.words)
    sizes["feature_sizes"] = tuple(map(len, reader.features.values()))
    sizes["char_vocab_size"] = len(reader.characters) if reader.characters else 0
    if vectors is not None and not owner.sets("embed_size"):
        sizes["embed_size"] = vectors.size
    if context is not None:
        sizes["context"] = context.options
    return reader, sizes


def _standardize(model: Any, items: Sequence[NDArray[np.float32]]) -> None:
    """Let every coordinate of given vectors have mean 0 and deviation 1 on the training data."""
    flat = np.concatenate(items).astype(np.float64)
    deviation = flat.std(axis=0)
    scale = 1 / np.where(deviation > 0, deviation, 1.0)
    model.input.standardize(torch.from_numpy(flat.mean(axis=0)), torch.from_numpy(scale))


def _run(
    model: nn.Module,
    reader: TokenReader | None,
    tags: TagSet,
    data: tuple[TaggedSentences, TaggedSentences | None],
    settings: RunSettings,
) -> Learned:
    training = settings.training
    train, valid = data
    numbers = {name: i for i, name in enumerate(tags.names)}
    assert train.tags is not None
    targets = Ragged.of([[numbers[tag] for tag in row] for row in train.tags], np.int32)
    checked = None if valid is None else read_items(reader, valid.items)

    def measure(network: nn.Module) -> dict[str, float]:
        if checked is None or valid is None or valid.tags is None:
            return {}
        predicted = [tags.outward(row) for row in best_tags(network, checked)]
        found = tag_metrics(predicted, valid.tags, tags)
        return {name: value for name, value in found.items() if "/" not in name}

    items = read_items(reader, train.items)
    objective = TaggingObjective(
        items,
        targets,
        measure,
        "accuracy" if tags.scheme is None else "f1",
        replace(training.batch, seed=training.batch.seed + training.seed),
    )
    gold = None
    if valid is not None and valid.tags is not None:
        gold = checked, [tag for row in valid.tags for tag in row]
    return run_objective(
        model, objective, settings.noting({"train": (items, targets), "valid": gold})
    )
