"""Taggers: a tag for each word of a sentence, or each vector of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError, InputError, one_of
from seqloom.metrics.spans import PREFIXES, Scheme, SpanReport, score_spans
from seqloom.tasks.contextual import saved_context
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import (
    Callbacks,
    fitting,
    origin,
)
from seqloom.tasks.scikit import estimator_tags
from seqloom.tasks.segmenter import CharacterIndex, CompiledCutter, cut_texts
from seqloom.tasks.setting_checks import check_count, check_flags
from seqloom.tasks.tagger_objective import best_tags
from seqloom.tasks.tagger_reading import MOST_READINGS, TagSet, describe_tags, predict_tags
from seqloom.tasks.tagger_results import Tagged, found_spans
from seqloom.tasks.tagger_storage import reader_files, stored_reader
from seqloom.tasks.tagger_text import read_sentences, read_tagged_sentences
from seqloom.tasks.tagger_training import learn_tags, set_apart, tag_metrics
from seqloom.tasks.tagger_words import FEATURES, TokenReader
from seqloom.tasks.text_features import TermLimits
from seqloom.tasks.unseen_words import check_unseen
from seqloom.text import TextConfig, TextPipeline

if TYPE_CHECKING:
    from seqloom.tasks.pretrained import VectorSource
    from seqloom.training import TrainConfig

STORED = ("fold", "scheme", "encode", "segment")


class Tagger(Estimator):
    """Learns a tag for each word: parts of speech, chunks, entities, slots, the edges of words.

    `fit` keeps the weights that are best on the validation data: by the F1 of spans as conlleval
    counts it where tags mark spans, else by accuracy.

    Args:
        arch: "blstm" (recurrent layers of any cell in both directions) or "cnn" (windows).
        text: How `tag` makes words of a text: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the words that are kept.
        vectors: Word vectors to begin with: a file, a data set's name, or what
            `seqloom.tasks.pretrained.open_vectors` takes.
        tune_vectors: Whether they are trained further; words without one are trained anyway.
        unseen_vectors: Whether words that have such a vector and do not occur in the training data
            are known by it; else they are the unknown word. A number: so many of them, those that
            come first in the file.
        contextual: Vectors of words in context beside those: an `Embedder` of arch "elmo" or
            "transformer", its directory, or a table with more settings; see
            `seqloom.tasks.contextual.ContextualConfig`.
        features: Further features of words: "shape", "prefix", "suffix", "next", "last".
        fold: Whether words are looked up in lower case with 0 for each digit. Characters and
            features see them as they are.
        scheme: How tags mark spans: "auto" finds it, "iob1", "bio", "bioes", "bmes" or "none".
        encode: The scheme spans are trained in, None for that of the data. What is returned is in
            the scheme of the data.
        constrained: Whether a CRF gives illegal sequences of tags probability 0.
        illegal: What happens to illegal tags in training data: "error", or "repair" to read them
            as conlleval does.
        segment: Whether to learn where the words of a text without blanks are: sentences are read
            as their characters, tags are not needed, and `cut` gives words.
        valid_share: The share of the training data that chooses the weights where `fit` is given no
            `valid`. It is drawn by the seed of `training`.
        training: Settings of the loop.
        options: Settings of the architecture: `output` ("crf" or "softmax"), `cell`, `hidden_size`,
            `characters` ("cnn", "rnn" or "none"), `dropout`, ...

    Attributes:
        tags_: The tags.
        reader_: The words, features and characters known.

    Examples:
        >>> sentences = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
        >>> tags = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
        >>> model = Tagger("cnn", valid_share=0, training={"epochs": 30, "device": "cpu"})
        >>> model.fit(sentences, tags).tag("a cat barks").tags
        ('DET', 'NOUN', 'VERB')
    """

    task: ClassVar[str] = "tag"
    settings: ClassVar[tuple[str, ...]] = (
        "text",
        "vocabulary",
        "vectors",
        "tune_vectors",
        "unseen_vectors",
        "contextual",
        "features",
        "fold",
        "scheme",
        "encode",
        "constrained",
        "illegal",
        "segment",
        "valid_share",
        "training",
    )
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    vectors: VectorSource | None
    tune_vectors: bool
    unseen_vectors: bool | int
    contextual: Any
    features: Sequence[str]
    fold: bool
    scheme: Any
    encode: Scheme | None
    constrained: bool
    illegal: str
    segment: bool
    valid_share: float
    tags_: TagSet
    reader_: TokenReader | None
    pipeline_: TextPipeline
    _cutter: Callable[[list[str]], list[NDArray[np.int64]]] | None = None

    def __init__(
        self,
        arch: str = "blstm",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        vectors: VectorSource | None = None,
        tune_vectors: bool = True,
        unseen_vectors: bool | int = True,
        contextual: Any = None,
        features: Sequence[str] = (),
        fold: bool = True,
        scheme: Scheme | Literal["auto", "none"] = "auto",
        encode: Scheme | None = None,
        constrained: bool = True,
        illegal: Literal["error", "repair"] = "error",
        segment: bool = False,
        valid_share: float = 0.1,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            text=text,
            vocabulary=vocabulary,
            vectors=vectors,
            tune_vectors=tune_vectors,
            unseen_vectors=unseen_vectors,
            contextual=contextual,
            features=features,
            fold=fold,
            scheme=scheme,
            encode=encode,
            constrained=constrained,
            illegal=illegal,
            segment=segment,
            valid_share=valid_share,
            training=training,
        )

    # -- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803 (scikit-learn's name)
        y: Any = None,
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from sentences. Progress is shown where there is an `out`.

        Args:
            X: A file (one word a line and its tag in the last column, or CoNLL-U), "NAME:SPLIT",
                `TaggedTokens`, lists of words, or sequences of vectors (T, D).
            y: A list of tags a sentence, unless `X` brings them.
            valid: What chooses the weights: as `X` where that brings tags, else the pair (X, y).
                By default a share of the training data.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        limits = self._check_settings()
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            pipeline = self._make_pipeline()
            train = read_tagged_sentences(X, y, "training", segment=self.segment)
            if valid is None:
                train, checked = set_apart(train, self.valid_share, settings.training.seed)
            else:
                pair = valid if isinstance(valid, tuple) and len(valid) == 2 else (valid, None)
                checked = read_tagged_sentences(
                    pair[0], pair[1], "validation", segment=self.segment
                )
            run = settings.with_data(self.training, is_checked=checked is not None)
            if checked is not None and checked.are_vectors != train.are_vectors:
                raise InputError("training and validation data must be both words or both vectors")
            fitted = learn_tags(self, train, checked, limits, run)
            self.model_, self.reader_, self.tags_, self.metrics_, history = fitted
            self.pipeline_, self._cutter = pipeline, None
            self.provenance_ = origin(X, valid, run.training, sentences=len(train), **history)
        return self

    def _check_settings(self) -> TermLimits:
        """Refuse what can be refused before any data is read."""
        check_flags(self, "tune_vectors", "fold", "constrained", "segment")
        sizes = {"vocab_size": 8, "input_size": 0, "output_size": 2, "char_vocab_size": 0}
        self.build_config(**sizes, feature_sizes=())
        if not (isinstance(self.valid_share, int | float) and 0 <= self.valid_share < 1):
            raise ConfigError(f"valid_share must lie in [0, 1), got {self.valid_share!r}")
        for name, known in (
            ("scheme", ("auto", "none", *PREFIXES)),
            ("encode", (None, *PREFIXES)),
            ("illegal", ("error", "repair")),
        ):
            if getattr(self, name) not in known:
                names = [each for each in known if each is not None]
                raise ConfigError(one_of(name, getattr(self, name), names))
        if isinstance(self.features, str):
            raise ConfigError(f"features must be a list of names, got {self.features!r}")
        for name in self.features:
            if name not in FEATURES:
                raise ConfigError(one_of("feature", name, FEATURES))
        check_unseen(self.unseen_vectors)
        if not self.tune_vectors and self.vectors is None:
            raise ConfigError("tune_vectors=False keeps given vectors, got vectors=None")
        if self.contextual is not None and self.segment:
            raise ConfigError("a tagger that cuts reads characters, got contextual; leave it out")
        return from_dict(TermLimits, self.vocabulary or {}, where="vocabulary")

    @property
    def reads_spelling(self) -> bool:
        """Whether the characters of words are read; where words are characters, they are not."""
        return self.get_params()["characters"] != "none" and not self.segment

    def _make_pipeline(self) -> TextPipeline:
        if isinstance(self.text, TextConfig):
            return TextPipeline(self.text)
        given = {"unit": "character"} if self.segment and self.text is None else self.text
        return TextPipeline(from_dict(TextConfig, given or {}, where="text"))

    # -- use -------------------------------------------------------------------------------------

    def _predict(self, items: Sequence[Any]) -> list[list[str]]:
        return predict_tags(self.model_, self.reader_, self.tags_, items)

    def predict(self, X: Any) -> list[list[str]]:  # noqa: N803
        """Return the tags of each sentence, given as lists of words or sequences of vectors."""
        self.require_fitted()
        width = None if self.reader_ is not None else self.model_.config.input_size
        return self._predict(read_sentences(X, width=width).items)

    @overload
    def tag(self, sentences: str, *, probabilities: bool = False, best: int = 1) -> Tagged: ...
    @overload
    def tag(self, sentences: Any, *, probabilities: bool = False, best: int = 1) -> Any: ...
    def tag(self, sentences: Any, *, probabilities: bool = False, best: int = 1) -> Any:
        """Return the tags of a sentence, or of each of several.

        Args:
            sentences: A text, a list of texts, or a list of sentences, each a list of words or a
                sequence of vectors.
            probabilities: Whether to say how probable each tag is, over all sequences of tags.
            best: How many readings to give, the best first, at most 1000. What is read alike counts
                as one, with its probabilities added up.

        Returns:
            A `Tagged` of one text, else a list of them. A sentence without words has no tags.
        """
        self.require_fitted()
        if isinstance(sentences, str):
            return self.tag([sentences], probabilities=probabilities, best=best)[0]
        given = list(sentences)
        if self.reader_ is not None and given and all(isinstance(one, str) for one in given):
            tokens = [self.pipeline_(text) for text in given]
            words = [list(each.words) for each in tokens]
            found = self._describe(words, probabilities, best)
            return [
                _with_spans(one, self.tags_, text, each.spans)
                for one, text, each in zip(found, given, tokens, strict=True)
            ]
        width = None if self.reader_ is not None else self.model_.config.input_size
        items = read_sentences(given, width=width).items if given else []
        return [_with_spans(one, self.tags_) for one in self._describe(items, probabilities, best)]

    def _describe(self, items: Sequence[Any], probabilities: bool, best: int) -> list[Tagged]:
        check_count("best", best)
        if best > MOST_READINGS:
            raise ConfigError(f"best must be at most {MOST_READINGS}, got {best}")
        if probabilities or best > 1:
            found = describe_tags(self.model_, self.reader_, self.tags_, items, best)
            return found if probabilities else [replace(one, probabilities=None) for one in found]
        words = [tuple(item) if self.reader_ is not None else () for item in items]
        rows = self._predict(items)
        return [Tagged(each, tuple(row)) for each, row in zip(words, rows, strict=True)]

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the tagged words of each line."""
        if self.segment:
            for line, words in zip(lines, self.cut_all(lines), strict=True):
                yield {"words": " ".join(words), "text": line}
            return
        for line, found in zip(lines, self.tag(list(lines)), strict=True):
            yield {"tagged": " ".join(f"{word}/{tag}" for word, tag in found), "text": line}

    def cut(self, text: str) -> list[str]:
        """Return the words of a text, blanks included, of a tagger fitted with `segment=True`.

        With this method it is a `seqloom.text.words.Segmenter`: `TextPipeline(segmenter=model)`.
        """
        return self.cut_all([text])[0]

    def cut_all(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of each text; many at once take less time."""
        self.require_fitted()
        if not self.segment:
            raise ConfigError("a tagger that cuts is fitted with segment=True, got segment=False")
        if self._cutter is None:
            self._cutter = self._make_cutter()
        return cut_texts(texts, self.tags_.names, self._cutter)

    def _make_cutter(self) -> Callable[[list[str]], list[NDArray[np.int64]]]:
        """What tags the characters of texts, the quickest there is."""
        model, reader = self.model_, self.reader_
        assert reader is not None
        if CompiledCutter.fits(model, reader):
            return CompiledCutter(model, reader)
        read = CharacterIndex(reader) if CharacterIndex.fits(reader) else reader
        return lambda texts: best_tags(model, read(texts))

    def report(self, data: Any, y: Any = None) -> SpanReport:
        """Return what conlleval counts; `str` of it is what that prints."""
        return score_spans(*self._compare(data, y))

    def _compare(self, data: Any, y: Any) -> tuple[list[list[str]], list[list[str]]]:
        self.require_fitted()
        if y is None and isinstance(data, tuple) and len(data) == 2:
            data, y = data
        width = None if self.reader_ is not None else self.model_.config.input_size
        given = read_tagged_sentences(data, y, "evaluation", segment=self.segment, width=width)
        assert given.tags is not None
        return self._predict(given.items), given.tags

    def evaluate(self, data: Any, y: Any = None) -> dict[str, float]:
        """Return how well sentences are tagged.

        Args:
            data: As `fit` takes them; a pair (X, y) may also be given as one.
            y: A list of tags a sentence, unless `data` brings them.

        Returns:
            `accuracy`, `sentences` and `words`; where tags mark spans also `f1`, `precision` and
            `recall` as conlleval counts them and `f1/TYPE` of each type; from 0 to 1.
        """
        predicted, gold = self._compare(data, y)
        found = tag_metrics(predicted, gold, self.tags_)
        return {**found, "sentences": float(len(gold)), "words": float(sum(map(len, gold)))}

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the F1 of spans, or the accuracy where tags mark none."""
        found = self.evaluate(X, y)
        return found["accuracy" if self.tags_.scheme is None else "f1"]

    def __sklearn_tags__(self) -> Any:
        return estimator_tags(None, strings=True)

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        reader, tags = self.reader_, self.tags_
        context = None if reader is None else reader.context
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={
                "tags": {"names": tags.names, "scheme": tags.scheme, "inner": tags.inner},
                "text": to_dict(self.pipeline_.config),
                "features": [] if reader is None else [*reader.features],
                **{name: getattr(self, name) for name in STORED},
                **({} if context is None else {"contextual": context.stored()}),
            },
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files = {} if reader is None else reader_files(reader)
        with saved_context(context) as models:
            return write_model(directory, header, self.model_.state_dict(), files, models)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the tagger a directory describes."""
        settings = stored.header.settings
        text = from_dict(TextConfig, settings["text"])
        names = settings["features"]
        given = {name: settings[name] for name in STORED}
        model = cls(stored.header.architecture, text=text, features=names, **given)
        model.pipeline_ = TextPipeline(text)
        model.tags_ = TagSet(**settings["tags"])
        model.reader_ = stored_reader(stored)
        if model.reader_ is not None and model.reader_.context is not None:
            model.contextual = model.reader_.context.settings
        model._restore(stored)
        return model


def _with_spans(
    found: Tagged,
    tags: TagSet,
    text: str | None = None,
    offsets: Sequence[tuple[int, int]] | None = None,
) -> Tagged:
    """The same with what its tags mark."""
    if tags.scheme is None:
        return found
    spans = found_spans(found.words, found.tags, text, offsets)
    return Tagged(found.words, found.tags, spans, found.probabilities, found.alternatives)
