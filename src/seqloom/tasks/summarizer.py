"""Summarizers that choose sentences, or write summaries: use one as it is, or fit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError, InputError
from seqloom.extract.choice import Length, choose, steer
from seqloom.extract.config import ReadingConfig
from seqloom.extract.features import feature_table
from seqloom.extract.keywords import Keyword, find_keywords
from seqloom.extract.learning import count_frequencies, fit_weights
from seqloom.extract.reading import Document, Reader, Tagger
from seqloom.extract.scorers import Features, Scorer
from seqloom.extract.streams import work_in_order
from seqloom.extract.summary import ChosenSentence, Summary
from seqloom.metrics.rouge import rouge
from seqloom.tasks.directory import ModelHeader, StoredModel, provenance, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.seq2seq_results import Written
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.summarizer_input import (
    checked_examples,
    checked_text,
    checked_texts,
    is_long,
)
from seqloom.tasks.summary_examples import Documents
from seqloom.text import TextConfig
from seqloom.text.language import detect_language
from seqloom.text.words import Segmenter

if TYPE_CHECKING:
    from seqloom.tasks.abstractive import Writer
    from seqloom.tasks.fitting import Callbacks
    from seqloom.training import TrainConfig

LEARNED = "learned.json"
WRITING = ("seq2seq", "pointer", "transformer")  # networks, which write summaries


class Summarizer(Estimator):
    """Summarizes texts by their own sentences, or in words of its own.

    English and Chinese are told apart by themselves. `textrank`, `lexrank`, `tfidf`, `lead` and
    `features` work without fitting. `fit` gives `tfidf` and `lexrank` the document frequencies of
    texts, and `features` weights learned from texts with summaries. `seq2seq`, `pointer` and
    `transformer` write; they must be fitted to texts with summaries.

    Args:
        arch: "textrank", "lexrank", "tfidf", "lead" or "features"; "seq2seq", "pointer" or
            "transformer".
        reading: How a text becomes sentences and terms: a `ReadingConfig` or a part of one.
        segmenter: What cuts Chinese text instead of rjieba.
        tagger: Gives the words of a sentence their parts of speech, for `reading.keep_tags`.
        text: Of networks: how text becomes words, a `TextConfig` or the part of one that differs.
        vocabulary: Of networks: which words are known, as `PairVocabulary` has it.
        max_source: Of networks: how many words of a text are read; the rest is cut off.
        label_smoothing: Of networks: share of a target that is spread over all words.
        contextual: Of networks: vectors of words in context beside those of the text, as of
            `seqloom.Translator`.
        training: Of networks: settings of the loop.
        options: Settings of the architecture.

    Examples:
        >>> text = "Cats sleep. Cats and dogs sleep a lot. Fish swim. Dogs bark at cats."
        >>> summary = Summarizer("textrank").summarize(text, sentences=1)
        >>> summary.text, summary[0].start, text[summary[0].start : summary[0].end]
        ('Cats and dogs sleep a lot.', 12, 'Cats and dogs sleep a lot.')
    """

    task: ClassVar[str] = "summarize"
    settings: ClassVar[tuple[str, ...]] = (
        "training",
        "reading",
        "segmenter",
        "tagger",
        "text",
        "vocabulary",
        "max_source",
        "label_smoothing",
        "contextual",
    )

    reading: ReadingConfig | Mapping[str, Any] | None
    segmenter: Segmenter | None
    tagger: Tagger | None
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    max_source: int | None
    label_smoothing: float
    contextual: Any
    writer_: Writer | None

    def __init__(
        self,
        arch: str = "textrank",
        *,
        reading: ReadingConfig | Mapping[str, Any] | None = None,
        segmenter: Segmenter | None = None,
        tagger: Tagger | None = None,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        max_source: int | None = None,
        label_smoothing: float = 0.0,
        contextual: Any = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            training=training,
            reading=reading,
            segmenter=segmenter,
            tagger=tagger,
            text=text,
            vocabulary=vocabulary,
            max_source=max_source,
            label_smoothing=label_smoothing,
            contextual=contextual,
        )
        self.metrics_ = {}
        self.provenance_ = {}
        self._prepare()

    def _prepare(self) -> None:
        """Build what reads and what scores, as the settings say."""
        self.writer_ = None
        if self.arch in WRITING:
            from seqloom.tasks.abstractive import Writer

            self.writer_ = Writer(self)
            self.__dict__.pop("model_", None)
            return
        for name in ("text", "vocabulary", "max_source", "contextual"):
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} belongs to networks that write summaries, got it with "
                    f"arch={self.arch!r}; leave it out"
                )
        if self.training:
            raise ConfigError(
                "training belongs to models trained by gradients, got it with "
                f"arch={self.arch!r}, which is fitted in one go; leave training out"
            )
        given = self.reading
        config = (
            given
            if isinstance(given, ReadingConfig)
            else from_dict(ReadingConfig, given or {}, where="reading")
        )
        self._reader = Reader(config, segmenter=self.segmenter, tagger=self.tagger)
        self.arch_ = self.arch
        self.model_: Scorer = load_model_class(self.architecture)(self.build_config())

    def set_params(self, **params: Any) -> Self:
        """Change settings; what was learned is forgotten."""
        super().set_params(**params)
        self._prepare()
        return self

    # -- use -------------------------------------------------------------------------------------

    def summarize(
        self,
        text: Documents,
        *,
        sentences: int | None = None,
        words: int | None = None,
        characters: int | None = None,
        ratio: float | None = None,
        threshold: float | None = None,
        diversity: float = 0.0,
        query: str | None = None,
        query_weight: float = 0.5,
        **search: Any,
    ) -> Summary | Written:
        """Return the best sentences of a text, in its order, or what a network writes of it.

        Args:
            text: A text, or several on one subject, which are summarized together.
            sentences: At most so many sentences; 5 if no limit is given.
            words: At most so many words.
            characters: At most so many characters.
            ratio: At most this share of the sentences, but at least one.
            threshold: Only sentences that score at least so many times the mean.
            diversity: How much likeness to what was chosen counts against a sentence, 0 to 1.
            query: What the summary should be about.
            query_weight: How much the query counts, 0 to 1.
            search: Of networks, which take none of the above: `beam`, `min_length`, ... as
                `seqloom.tasks.seq2seq_search.Search` has it.

        Raises:
            InputError: If there is no text, or none of the query's words is in it.
        """
        text = checked_text(text)
        given = {
            "sentences": sentences, "words": words, "characters": characters, "ratio": ratio,
            "threshold": threshold,
        }  # fmt: skip
        if self.writer_ is not None:
            about = {"query": query, "query_weight": query_weight, "diversity": diversity}
            return self.writer_.write([text], {**given, **about, **search})[0]
        for name, value in search.items():
            raise ConfigError(
                f"arch={self.arch!r} chooses sentences and searches for none, got {name}={value!r}"
            )
        length = Length(**given)  # type: ignore[arg-type]
        document, scores = self._scored(text, query, query_weight)
        chosen = choose(document, scores, length, self._reader, diversity)
        return self._summary(document, scores, chosen)

    def every_sentence(
        self, text: Documents, *, query: str | None = None, query_weight: float = 0.5
    ) -> Summary:
        """Return all sentences of a text with their scores, those that repeat others too.

        Args:
            text: A text, or several on one subject.
            query: As for `summarize`.
            query_weight: As for `summarize`.
        """
        if self.writer_ is not None:
            raise ConfigError(
                f"arch={self.arch!r} writes summaries and scores no sentences; use 'textrank'"
            )
        document, scores = self._scored(checked_text(text), query, query_weight)
        return self._summary(document, scores, list(range(len(document))))

    def _scored(
        self, text: Any, query: str | None, query_weight: float
    ) -> tuple[Document, NDArray[np.float64]]:
        document = self._reader.read(text)
        scores = self.model_.scores(document)
        if query is not None:
            scores = steer(document, scores, query, self._reader, query_weight)
        return document, scores

    def summarize_all(
        self, texts: Iterable[Documents], *, threads: int | None = None, **options: Any
    ) -> Iterator[Summary | Written]:
        """Summarize a stream of texts on all cores; summaries come in the order of the texts.

        Scoring runs side by side, reading does not, as all texts share one table of words: a second
        core helps with long texts, and short ones are not handed to it.

        Args:
            texts: Texts, or lists of texts to be summarized together.
            threads: How many to work on at once; as many as there are cores if left out.
            options: As of `summarize`.
        """
        if self.writer_ is not None:
            yield from self.writer_.stream(checked_texts(texts), options)
            return
        yield from work_in_order(
            lambda text: self.summarize(text, **options),
            checked_texts(texts),
            threads,
            is_long=is_long,
        )

    def keywords(
        self, text: Documents, count: int = 10, *, window: int = 2, phrases: bool = True
    ) -> list[Keyword]:
        """Return the keywords of a text by TextRank on its words.

        Args:
            text: A text, or several taken together.
            count: How many to return at most.
            window: How near to each other words must stand to be neighbors, at least 2.
            phrases: Whether keywords that stand side by side make a phrase.
        """
        if self.writer_ is not None:
            raise ConfigError(
                f"keywords come of reading sentences, got arch={self.arch!r}; use 'textrank'"
            )
        check_count("count", count)
        check_count("window", window, 2)
        document = self._reader.read(checked_text(text))
        return find_keywords(document, self._reader, count, window=window, phrases=phrases)

    def _summary(self, document: Document, scores: Any, chosen: list[int]) -> Summary:
        @lru_cache(maxsize=1)
        def table() -> dict[str, Any]:
            if isinstance(self.model_, Features):
                return self.model_.table(document)
            return feature_table(document, self.model_.idf)

        def features(index: int) -> dict[str, float]:
            return {name: float(values[index]) for name, values in table().items()}

        sentences = []
        for i in chosen:
            start, end = document.span(i)
            source = document.sources[i]
            text = document.texts[source][start:end]
            sentences.append(
                ChosenSentence(text, start, end, i, source, float(scores[i]), features)
            )
        return Summary(tuple(sentences), len(document), document.texts)

    # -- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        train: Any,
        references: Sequence[str | Sequence[str]] | None = None,
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn document frequencies (`tfidf`, `lexrank`), the weights of features, or to write.

        Args:
            train: Pairs of a text and its summary (or several), a file of pairs or "NAME:SPLIT";
                texts alone are enough for document frequencies.
            references: The summaries of `train`, if it holds texts alone.
            valid: As `train`, to measure the result on.
            out: A directory to save the model to.
            resume: Of networks: whether to go on with an interrupted run in `out`.
            callbacks: Of networks: told how it goes; see `seqloom.training`.
        """
        if self.writer_ is not None:
            held = None if valid is None else checked_examples(valid, None)
            self.writer_.fit(
                checked_examples(train, references),
                held,
                (train, valid),
                out,
                resume=resume,
                callbacks=callbacks,
            )
            return self
        if resume:
            raise ConfigError(
                f"resume belongs to models trained by gradients, got it with arch={self.arch!r}; "
                "leave it out"
            )
        if self.arch in ("lead", "textrank"):
            raise ConfigError(
                f"arch={self.arch!r} learns nothing from examples; use it as it is, or choose "
                "'features', 'tfidf' or 'lexrank'"
            )
        self._prepare()
        examples = list(checked_examples(train, references))
        model = self.model_
        if isinstance(model, Features):
            if any(not summaries for _, summaries in examples):
                raise InputError("every text must have a summary to learn from, got one without")
            pairs = ((self._reader.read(text), summaries) for text, summaries in examples)
            learned = fit_weights(pairs, model.config.l2, model.config.keywords)
            model.weights, model.cues = learned
        else:
            model.idf = count_frequencies(self._reader.read(text) for text, _ in examples)
        self.provenance_ = provenance("numba", examples=len(examples))
        self.metrics_ = {}
        if valid is not None:
            self.metrics_ = {f"valid_{k}": v for k, v in self.evaluate(valid).items()}
        if out is not None:
            self.save(out)
        return self

    def evaluate(
        self, data: Any, references: Sequence[str | Sequence[str]] | None = None, **options: Any
    ) -> dict[str, float]:
        """Return the mean ROUGE F1 of summaries against their references.

        Args:
            data: As `train` of `fit`.
            references: As of `fit`.
            options: As of `summarize`.

        Returns:
            `rouge_1`, `rouge_2`, `rouge_l` (sentence level), `rouge_lsum` (summary level) and
            `examples`; of networks also `perplexity` and `accuracy` of the references' words.
        """
        if self.writer_ is not None:
            return self.writer_.evaluate(checked_examples(data, references), options)
        rows = []
        for text, summaries in checked_examples(data, references):
            if not summaries:
                raise InputError("every text must have a summary to compare with, got one without")
            summary = self.summarize(text, **options)
            assert isinstance(summary, Summary)
            language = "zh" if detect_language(summaries[0]) == "zh" else "en"
            found = rouge([s.text for s in summary], summaries, language=language)
            rows.append({name: value.f1 for name, value in found.items()})
        if not rows:
            raise InputError("there must be an example to evaluate on, got none")
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        return {**means, "examples": float(len(rows))}

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return what was learned by name, with its size."""
        if self.writer_ is not None:
            self.require_fitted()
            return tensor_shapes(self.model_)
        model = self.model_
        found: dict[str, tuple[int, ...]]
        found = {} if model.idf is None else {"document frequencies": (len(model.idf),)}
        if isinstance(model, Features):
            found |= {"weights": (len(model.weights),), "cues": (len(model.cues),)}
        return found

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory. A segmenter or tagger handed in must be handed in again."""
        if self.writer_ is not None:
            self.require_fitted()
            return self.writer_.save(directory)
        model = self.model_
        learned: dict[str, Any] = {"idf": model.idf}
        if isinstance(model, Features):
            learned |= {"weights": dict(model.weights), "cues": dict(model.cues)}
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.build_config()),
            settings={"reading": to_dict(self._reader.config)},
            metrics=self.metrics_,
            provenance=self.provenance_ or provenance("numba"),
        )
        numbers = sum(shape[0] for shape in self.shapes().values())
        return write_model(directory, header, None, {LEARNED: learned}, numbers=numbers)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the summarizer a directory describes."""
        if stored.header.architecture in WRITING:
            from seqloom.tasks.abstractive import Writer

            settings = Writer.stored_settings(stored)
            writing = cls(stored.header.architecture, **settings)
            assert writing.writer_ is not None
            writing.writer_.load(stored)
            return writing
        reading = from_dict(ReadingConfig, stored.header.settings["reading"], where="reading")
        tagger = _no_tagger if reading.keep_tags else None
        model = cls(stored.header.architecture, reading=reading, tagger=tagger)
        model._take_over(stored)
        model._prepare()
        learned = stored.json(LEARNED)
        model.model_.idf = learned["idf"]
        if isinstance(model.model_, Features):
            model.model_.weights, model.model_.cues = learned["weights"], learned["cues"]
        return model


def _no_tagger(words: Sequence[str]) -> Sequence[str]:
    raise ConfigError(
        f"this model was saved with keep_tags, got {len(words)} words and no tagger; hand it in "
        "again with set_params(tagger=...)"
    )
