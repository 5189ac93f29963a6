"""Vectors of words, alone or in context: learned from text, compared, handed to other tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.prepared import PrepareConfig
from seqloom.errors import ConfigError, DataError, InputError, ShapeError
from seqloom.tasks.corpus import TextSource, prepared_text, working_folder
from seqloom.tasks.directory import (
    TRAINING,
    ModelHeader,
    StoredModel,
    discard_unbegun,
    prepare_place,
    provenance,
    reopen,
    write_model,
)
from seqloom.tasks.estimator import Estimator
from seqloom.tasks.language_engine import origin
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.word_tables import most_frequent, read_table, write_table
from seqloom.tasks.word_tests import TestSource, check_word, evaluate_vectors, known_word
from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline, Vocabulary
from seqloom.text.vectors import WordVectors, write_vectors

if TYPE_CHECKING:
    from seqloom.tasks.contextual_embedder import ContextEngine, Sentence, SentenceVectors
    from seqloom.tasks.language_model import LanguageModel
    from seqloom.word2vec.model import Progress

VOCABULARY, SUBWORD = "vocabulary.json", "subword.json"
VECTORS, OUTPUT = "vectors.npy", "output.npy"
MIN_COUNT = 5


class Embedder(Estimator):
    """Learns vectors of words from the words around them.

    "word2vec" has a vector for each word. It needs no torch and is not trained by the loop: what
    there is to set of its training are options of the architecture, and `training`, `valid` and
    `resume` are refused.

    "elmo" and "transformer" have vectors for each word of a sentence, one a layer
    (`embed_sentences`), and are trained by the loop as the language models of those names are;
    `from_language_model` takes one out of such a model. Out of context a word of "elmo" has the
    vector its characters make, whether it was ever seen or not, and one of "transformer" that of
    its table.

    Args:
        arch: "word2vec", "elmo" or "transformer".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` (of "word2vec" 5 if not given) and `max_size`; of "word2vec", rarer
            words are passed over, as if the text had not had them.
        training: Settings of the loop; of "word2vec", refused if it is not empty.
        options: Settings of the architecture, such as `vector_size`, `window` or `epochs`.

    Examples:
        >>> texts = ["the cat sat on the mat", "the dog sat on the rug"] * 20
        >>> model = Embedder(vector_size=8, sample=0).fit(texts)
        >>> len(model.nearest("cat", k=3)), len(model.vectors)
        (3, 7)
    """

    task: ClassVar[str] = "embed"
    settings: ClassVar[tuple[str, ...]] = ("text", "vocabulary", "training")
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    vocabulary_: Vocabulary
    pipeline_: TextPipeline
    model_: Any
    engine_: ContextEngine

    def __init__(
        self,
        arch: str = "word2vec",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(arch, options, text=text, vocabulary=vocabulary, training=training)

    @property
    def is_contextual(self) -> bool:
        """Whether a word has vectors in its sentence, not one alone."""
        return not self.fitted_architecture.is_counted

    def fit(
        self,
        train: TextSource,
        valid: TextSource | None = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Sequence[Callable[[Any], object]] = (),
    ) -> Self:
        """Learn from text, which is never held in memory.

        Args:
            train: A file, "NAME:SPLIT" of a named data set, a prepared directory, or texts. Words
                of one text are near each other, those of two are not.
            valid: Of words in context, what decides which weights are best; "word2vec" is judged
                by `evaluate` and takes None.
            out: A directory for the model.
            resume: Whether to go on with an interrupted run in `out`; of "word2vec" False.
            callbacks: Told how far it is.
        """
        if self.architecture.is_counted:
            return self._fit_words(train, valid, out, resume, callbacks)
        from seqloom.tasks.contextual_embedder import engine_of, fit_context

        place = None if out is None else Path(out)
        fitted = fit_context(self, train, valid, place, resume=resume, callbacks=callbacks)
        self._set(engine_of(fitted.engine.model, fitted.vocabulary, fitted.pipeline))
        self.arch_ = self.arch
        self.metrics_, self.provenance_ = fitted.metrics, fitted.provenance
        if place is not None and fitted.writes:
            reopen(place)
            self.save(place)
        fitted.wait()
        return self

    @classmethod
    def from_language_model(cls, model: LanguageModel | str | PathLike[str]) -> Self:
        """Take the layers out of a language model that reads both ways.

        Args:
            model: A fitted `LanguageModel` of arch "elmo", or "transformer" with
                objective="masked", or its directory.
        """
        from seqloom.tasks.contextual_embedder import engine_of, open_language_model

        source = open_language_model(model)
        engine = engine_of(source.model_, source.vocabulary_, source.pipeline_)
        found = cls(source.arch_, text=source.pipeline_.config)
        known = found._option_defaults()
        found._options = {k: v for k, v in source.engine_.config().items() if k in known}
        found._set(engine)
        found.arch_ = source.arch_
        found.metrics_, found.provenance_ = dict(source.metrics_), dict(source.provenance_)
        return found

    def _set(self, engine: ContextEngine) -> None:
        self.engine_, self.model_ = engine, engine.vectors.module
        self.vocabulary_, self.pipeline_ = engine.vocabulary, engine.pipeline

    def _fit_words(
        self,
        train: TextSource,
        valid: Any,
        out: str | PathLike[str] | None,
        resume: bool,
        callbacks: Sequence[Callable[[Progress], object]],
    ) -> Self:
        for name, given in (("training", self.training), ("valid", valid), ("resume", resume)):
            if given:
                raise ConfigError(
                    f"{name} does not belong to arch={self.arch!r}, got {given!r}; its epochs, "
                    "rate and seed are options, and evaluate measures it"
                )
        config = self.build_config()
        words = {"min_count": MIN_COUNT, **(self.vocabulary or {})}
        limits = from_dict(PrepareConfig, {**words, "text": self.text or {}, "ends": False})
        began, place = time.monotonic(), None if out is None else Path(out)
        if place is not None:
            prepare_place(place)
        try:
            with working_folder(place and place / TRAINING) as folder:
                asked = {"text": self.text or {}}
                data = prepared_text(train, folder / "train", limits, asked=asked)
                known, rows = most_frequent(data, limits)
                model = load_model_class(self.architecture).fit(
                    config,
                    data.data.sequences["ids"].flat,
                    data.data.sequences["ids"].offsets,
                    rows,
                    np.array(known.counts),
                    lambda progress: [tell(progress) for tell in callbacks],
                )
                tokens = len(data.data.sequences["ids"].flat)
        except BaseException:
            if place is not None:
                discard_unbegun(place)
            raise
        # Only now, so that a run that failed leaves the estimator as it was.
        self.model_, self.vocabulary_, self.pipeline_ = model, known, data.pipeline
        self.arch_ = self.arch
        self._vectors = WordVectors(known.words, model.vectors)
        self.metrics_ = {}
        self.provenance_ = provenance(
            "numba",
            train=origin(train),
            tokens=tokens,
            seconds=round(time.monotonic() - began, 1),
        )
        if place is not None:
            (place / TRAINING).rmdir()
            self.save(place)
        return self

    # -- use -------------------------------------------------------------------------------------

    @property
    def vectors(self) -> WordVectors:
        """The words with a vector each, the most frequent first; out of context."""
        self.require_fitted()
        return self.engine_.table if self.is_contextual else self._vectors

    def embed_sentences(self, sentences: Iterable[Sentence]) -> Iterator[SentenceVectors]:
        """Return the vectors of each word of sentences in its context, a sentence at a time.

        A sentence is read on its own, whatever came before it. Some are held at a time, so that
        the text may be of any length. A word of more bytes than "elmo" reads keeps its beginning
        and its end; an empty one has a vector too.

        Args:
            sentences: Texts of one sentence, or lists of words.

        Raises:
            ConfigError: If the embedder has vectors of words alone.
        """
        return self._context().sentences(sentences)

    def embed_text(self, text: str) -> Iterator[SentenceVectors]:
        """Return the vectors of each word of a text, sentence by sentence."""
        return self._context().text(text)

    def _context(self) -> ContextEngine:
        self.require_fitted()
        if not self.is_contextual:
            raise ConfigError(
                "words in context are read by arch 'elmo' and 'transformer', got "
                f"{self.arch_!r}; embed has its vectors"
            )
        return self.engine_

    def embed(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of words alone (N, D).

        Raises:
            InputError: If it is one text, which would be read letter by letter.
            DataError: If a word has none, with the known word that is spelled most alike.
        """
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise InputError(f"words must be a list, got {words!r}; write [{words!r}]")
        words = list(words)
        vectors = None if self.is_contextual and self._context().is_spelled() else self.vectors
        if vectors is None:
            for word in words:
                check_word(word)
            return self.engine_.embed(words)
        found = [vectors.vector(self._known(word)) for word in words]
        return np.stack(found) if found else np.zeros((0, vectors.size), np.float32)

    def similarity(self, a: str, b: str) -> float:
        """Return the cosine of two words; `embed` says what of unknown ones."""
        return self.vectors.similarity(self._known(a), self._known(b))

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """Return the k words of greatest cosine with a word, with it."""
        check_word(word)
        check_count("k", k)
        if self.is_contextual and word not in self.vectors and self.engine_.is_spelled():
            return self.vectors.nearest(self.embed([word])[0], k)
        return self.vectors.nearest(self._known(word), k)

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
        """Return the k words that best complete "a is to b as c is to", with their cosines."""
        check_count("k", k)
        return self.vectors.analogy(self._known(a), self._known(b), self._known(c), k)

    def evaluate(self, data: TestSource = "word-similarity") -> dict[str, float]:
        """Measure the vectors on judged similarities or analogies.

        Args:
            data: "word-similarity:wordsim353", "word-similarity:simlex999" or
                "word-similarity:analogies", all three if the split is left out, or a file; see
                `seqloom.tasks.word_tests.evaluate_vectors`.
        """
        return evaluate_vectors(self.vectors, data, self.pipeline_.words)

    def export(self, path: str | PathLike[str], *, format: str = "auto") -> None:
        """Write the vectors for other programs, or as a store; see `seqloom.text.write_vectors`."""
        write_vectors(self.vectors, path, format=format)

    def predict_lines(self, lines: Sequence[str]) -> Iterable[dict[str, Any]]:
        """For the command line: the words nearest to the word of each line."""
        for line in lines:
            near = self.nearest(line.strip(), 5)
            yield {"word": line.strip(), "nearest": " ".join(word for word, _ in near)}

    def _known(self, word: str) -> str:
        return known_word(self.vectors, word, self.pipeline_.words)

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each table, or weight."""
        self.require_fitted()
        if self.is_contextual:
            return {name: tuple(w.shape) for name, w in self.model_.state_dict().items()}
        found: dict[str, tuple[int, ...]] = self.model_.shapes()
        return found

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={"text": to_dict(self.pipeline_.config)},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files: dict[str, Any] = {VOCABULARY: self.vocabulary_.to_dict()}
        if self.pipeline_.subword is not None:
            files[SUBWORD] = self.pipeline_.subword.to_bytes()
        if self.is_contextual:
            return write_model(directory, header, self.model_.state_dict(), files)
        files[VECTORS] = lambda path: write_table(path, self.model_.vectors)
        files[OUTPUT] = lambda path: write_table(path, self.model_.output)
        numbers = self.model_.vectors.size + self.model_.output.size
        return write_model(directory, header, None, files, numbers=numbers)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the model a directory describes."""
        text = from_dict(TextConfig, stored.header.settings["text"])
        model = cls(stored.header.architecture, text=text)
        subword = SubwordTokenizer.load(stored.place / SUBWORD) if text.unit == "subword" else None
        model.pipeline_ = TextPipeline(text, subword=subword)
        model.vocabulary_ = Vocabulary.load(stored.place / VOCABULARY)
        if model.is_contextual:
            from seqloom.tasks.contextual_embedder import stored_engine

            known = (model.vocabulary_, model.pipeline_)
            config = model._take_over(stored)
            model._set(stored_engine(model.architecture, config, *known, stored))
            return model
        tables = [read_table(stored.place / name) for name in (VECTORS, OUTPUT)]
        try:
            model.model_ = load_model_class(model.architecture)(model._take_over(stored), *tables)
            model._vectors = WordVectors(model.vocabulary_.words, tables[0])
        except ShapeError as error:
            raise DataError(f"does not fit the configuration ({error})", stored.place) from None
        return model
