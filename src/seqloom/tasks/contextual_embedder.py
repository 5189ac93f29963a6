"""Embedders of words in context: fitting one, taking one out of a language model, reading text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import Architecture, find_architecture, load_model_class
from seqloom.config import from_dict
from seqloom.data.prepared import PrepareConfig
from seqloom.errors import ConfigError, InputError
from seqloom.models.elmo import Elmo, ElmoEncoder
from seqloom.models.transformer_lm import TransformerLM
from seqloom.tasks.context_vectors import (
    ContextVectors,
    ElmoVectors,
    TransformerVectors,
    sentence_layers,
)
from seqloom.tasks.directory import StoredModel, load_weights
from seqloom.tasks.language_engine import FitRequest, Fitted
from seqloom.tasks.language_model import LanguageModel
from seqloom.tasks.neural_language import NeuralLanguage
from seqloom.text.pipeline import TextPipeline
from seqloom.text.sentences import split_sentences
from seqloom.text.vectors import WordVectors
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.embedder import Embedder

Floats = NDArray[np.float32]
Sentence = str | Sequence[str]
WINDOW = 64  # words a step of back-propagation through time while it is trained
LISTED = 12_000  # words of ELMo's vocabulary kept, to be found as neighbours
AT_ONCE = 256  # sentences held while a text is streamed
MIXES = ("mean", "last", "first")


class SentenceVectors(NamedTuple):
    """A sentence and its vectors.

    Args:
        words: Its words.
        layers: The vectors by layer and word, (L, T, D).
    """

    words: tuple[str, ...]
    layers: Floats

    def mix(self, weights: str | int | Sequence[float] = "mean") -> Floats:
        """One vector a word (T, D): the mean of all layers, one of them, or a weighted sum."""
        count = len(self.layers)
        if isinstance(weights, str):
            if weights not in MIXES:
                raise ConfigError(f"a mix must be one of {MIXES}, a layer or weights: {weights!r}")
            if weights == "mean":
                mean: Floats = self.layers.mean(axis=0)
                return mean
            weights = count - 1 if weights == "last" else 0
        if isinstance(weights, int):
            if not -count <= weights < count:
                raise ConfigError(f"a layer must lie in 0..{count - 1}, got {weights}")
            layer: Floats = self.layers[weights]
            return layer
        given = np.asarray(weights, np.float32)
        if given.shape != (count,):
            raise ConfigError(f"a mix must have {count} weights, one a layer, got {list(weights)}")
        found: Floats = np.einsum("l,ltd->td", given, self.layers)
        return found


class ContextEngine:
    """A network of words in context, and how text becomes words.

    Args:
        vectors: The network and how it reads.
        vocabulary: Words it knows; of ELMo, words that are found as neighbours.
        pipeline: How text becomes words.
    """

    def __init__(
        self, vectors: ContextVectors, vocabulary: Vocabulary, pipeline: TextPipeline
    ) -> None:
        self.vectors, self.vocabulary, self.pipeline = vectors, vocabulary, pipeline
        self._table: WordVectors | None = None

    @property
    def table(self) -> WordVectors:
        """The words of the vocabulary with the vectors they have out of context."""
        if self._table is None:
            words = self.vocabulary.words[len(self.vocabulary.specials.names()) :]
            self._table = WordVectors(words, self.embed(words))
        return self._table

    def embed(self, words: Sequence[str]) -> Floats:
        """The vectors of words alone (N, D)."""
        if isinstance(self.vectors, ElmoVectors):
            return self.vectors.word_vectors(words)
        assert isinstance(self.vectors, TransformerVectors)
        matrix = self.vectors.module.embedding.weight.detach().cpu().numpy()
        found: Floats = matrix[self.vocabulary.encode(words)]
        return found

    def is_spelled(self) -> bool:
        """Whether every word has a vector, by its characters."""
        return isinstance(self.vectors, ElmoVectors)

    def sentences(self, sentences: Iterable[Sentence]) -> Iterator[SentenceVectors]:
        """Read sentences, texts or lists of words, some at a time."""
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            raise InputError(
                f"sentences must be several, got {type(sentences).__name__}; put one into a list, "
                "or use embed_text for a text"
            )
        return self._read(enumerate(sentences))

    def _read(self, numbered: Iterator[tuple[int, Sentence]]) -> Iterator[SentenceVectors]:
        while some := list(islice(numbered, AT_ONCE)):
            words = [self._words(sentence, number) for number, sentence in some]
            for own, layers in zip(words, sentence_layers(self.vectors, words), strict=True):
                yield SentenceVectors(tuple(own), layers)

    def text(self, text: str) -> Iterator[SentenceVectors]:
        """Read a text of any length sentence by sentence."""
        language = self.pipeline.config.language
        return self.sentences(each.text for each in split_sentences(text, language))

    def _words(self, sentence: Sentence, number: int) -> list[str]:
        if isinstance(sentence, str):
            return self.pipeline.words(sentence)
        if not isinstance(sentence, Iterable):
            raise InputError(f"sentence {number} must be a text or words, got {sentence!r}")
        words = list(sentence)
        for word in words:
            if not isinstance(word, str):
                raise InputError(f"sentence {number} must be words, got {word!r} among them")
        return words


def fit_context(
    owner: Embedder,
    train: Any,
    valid: Any,
    place: Any,
    *,
    resume: bool,
    callbacks: Sequence[Any],
) -> Fitted:
    """Train the language model an embedder is made of; see `LanguageModel.fit`."""
    asked = {**(owner.vocabulary or {}), "text": owner.text or {}}
    request = FitRequest(
        architecture=find_architecture("lm", owner.arch),
        build_config=owner.build_config,
        build_training=owner.build_training,
        training=owner.training,
        window=WINDOW,
        prepare=from_dict(PrepareConfig, asked),
        asked=asked,
        train=train,
        valid=valid,
        place=place,
        resume=resume,
        callbacks=callbacks,
    )
    return NeuralLanguage.fit(request)


def engine_of(model: Any, vocabulary: Vocabulary, pipeline: TextPipeline) -> ContextEngine:
    """The part of a language model that makes vectors of words in context.

    Raises:
        ConfigError: If it is none that does.
    """
    if isinstance(model, Elmo):
        own = vocabulary.words[len(vocabulary.specials.names()) :][:LISTED]
        counts = None if vocabulary.counts is None else vocabulary.counts[: len(own)]
        listed = Vocabulary(own, counts, specials=vocabulary.specials)
        return ContextEngine(ElmoVectors(model.encoder.eval()), listed, pipeline)
    if isinstance(model, TransformerLM) and model.config.objective == "masked":
        return ContextEngine(TransformerVectors(model.eval(), vocabulary), vocabulary, pipeline)
    raise ConfigError(
        "words in context are read by language models of arch 'elmo' and 'transformer' with "
        f"objective='masked', got {type(model).__name__}"
    )


def open_language_model(model: LanguageModel | str | PathLike[str]) -> LanguageModel:
    """A fitted language model, or that of a directory."""
    found = LanguageModel.load(fspath(model)) if isinstance(model, str | PathLike) else model
    if not isinstance(found, LanguageModel):
        raise ConfigError(f"a LanguageModel or its directory must be given, got {model!r}")
    found.require_fitted()
    return found


def stored_engine(
    architecture: Architecture,
    config: Any,
    vocabulary: Vocabulary,
    pipeline: TextPipeline,
    stored: StoredModel,
) -> ContextEngine:
    """The engine of a model directory."""
    module = load_model_class(architecture)(config)
    load_weights(module, stored)
    module.eval()
    if isinstance(module, ElmoEncoder):
        return ContextEngine(ElmoVectors(module), vocabulary, pipeline)
    return ContextEngine(TransformerVectors(module, vocabulary), vocabulary, pipeline)
