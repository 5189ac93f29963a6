"""Readers: the stretch of a passage that answers a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from seqloom.config import from_dict, to_dict
from seqloom.errors import ConfigError
from seqloom.metrics.reading import Rules, score_answers
from seqloom.tasks.contextual import saved_context
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import Callbacks, fitting, origin
from seqloom.tasks.pretrained import open_vectors
from seqloom.tasks.reader_answering import answer_questions, look, passages_and_questions
from seqloom.tasks.reader_checks import check_device, check_settings, check_use
from seqloom.tasks.reader_ranking import RankingConfig, read_ranking
from seqloom.tasks.reader_results import AttentionMap, FoundAnswer
from seqloom.tasks.reader_start import open_start
from seqloom.tasks.reader_storage import (
    STORED,
    keep_some_words,
    stored_settings,
    stored_words,
    word_files,
)
from seqloom.tasks.reader_teaching import check_teachers, open_teachers
from seqloom.tasks.reader_text import Misaligned, ReadQuestions, WordSplitter, read_all
from seqloom.tasks.reader_training import learn_to_read, set_apart
from seqloom.tasks.reader_words import ReaderVocabulary
from seqloom.tasks.setting_checks import check_count, check_number
from seqloom.text import TextConfig, TextPipeline

if TYPE_CHECKING:
    from seqloom.tasks.pretrained import VectorSource
    from seqloom.tasks.reader_teaching import ReaderTeachingConfig
    from seqloom.training import TrainConfig


class Reader(Estimator):
    """Learns to answer questions by a stretch of a passage.

    `fit` keeps the weights with the best F1 on the validation data, by the official rules. Every
    answer is exactly what stands in the passage at its offsets.

    Args:
        arch: The architecture; see `seqloom list`.
        text: How text becomes words: a `TextConfig` or the part of one that differs;
            {"unit": "character"} for Chinese characters.
        cut_words: Whether words are cut at hyphens, other symbols and between letters and digits,
            where many answers begin or end.
        min_count: How often a word without a vector must occur to have one learned; a number that
            is rarer is read as its shape.
        vectors: Word vectors to begin with: a file, a data set's name, or what
            `seqloom.tasks.pretrained.open_vectors` takes.
        tune_vectors: Whether they are trained further; words without one are trained anyway.
        unseen_vectors: Whether words that have such a vector and do not occur in the training data
            are known by it. A number: so many of them, those that come first in the file.
        contextual: Vectors of words in context beside those: an `Embedder` of arch "elmo" or
            "transformer", its directory, or a table with more settings; see
            `seqloom.tasks.contextual.ContextualConfig`.
        max_length: Words of a training passage; of a longer one the stretch around the answer is
            read. In use passages of any length are read.
        max_words: The most words of an answer.
        window: The most words that are read at once in use. A longer passage is cut into windows,
            between paragraphs; a paragraph of more words is cut between sentences.
        piece: Words up to which neighboring paragraphs or sentences share a window, about as many
            as training passages have.
        overlap: Words of the window before that are read again, at most; whole paragraphs or
            sentences.
        max_windows: How many windows are read for a question: those that are most probable to have
            the answer before they are read.
        ranking: How probable it is that one of several windows has the answer: a
            `seqloom.tasks.reader_ranking.RankingConfig` or a table of its settings.
        other_passages: How many other passages a training question is read with as well, on
            average (0.5: half of them with one): of the same article or of another, those that have
            much in common with the question. For long documents.
        consistency: Times how far apart the probabilities are that two passes with other units
            dropped give, added to the mean loss of the two (R-Drop, Liang et al. 2021); 0 for one
            pass.
        rules: What exact match and F1 are: "squad" compares words, "cmrc" characters.
        valid_share: The share of the training data, whole articles, that chooses the weights
            where `fit` is given no `valid`.
        training: Settings of the loop.
        start: A fitted reader to learn further from: a `Reader`, its directory or the name of one
            that comes with the package. Its words, their vectors and its settings of text are
            kept; words it does not know stay unknown. `tune_vectors` says whether their vectors
            are trained.
        teaching: Fitted readers to learn from beside the answers: a
            `seqloom.tasks.reader_teaching.ReaderTeachingConfig` or a table of its settings.
        options: Settings of the architecture.

    Examples:
        >>> from seqloom.data.examples import Answer, Question
        >>> passage = "Ada was born in London. Max was born in Rome."
        >>> asked = [Question("1", passage, "Where was Ada born?", (Answer("London", 16),)),
        ...     Question("2", passage, "Where was Max born?", (Answer("Rome", 40),))]
        >>> model = Reader("bidaf", hidden_size=24, valid_share=0, min_count=1, dropout=0.0,
        ...     training={"epochs": 60, "averaging": "none", "device": "cpu",
        ...     "schedule": {"warmup": 0}, "optimizer": {"rate": 0.01}})
        >>> answer = model.fit(asked).answer(passage, "Where was Max born?")
        >>> answer.text, passage[answer.start : answer.end]
        ('Rome', 'Rome')
    """

    task: ClassVar[str] = "answer"
    settings: ClassVar[tuple[str, ...]] = (
        "text",
        "cut_words",
        "min_count",
        "vectors",
        "tune_vectors",
        "unseen_vectors",
        "contextual",
        "max_length",
        "max_words",
        "window",
        "piece",
        "overlap",
        "max_windows",
        "ranking",
        "other_passages",
        "consistency",
        "rules",
        "valid_share",
        "training",
        "start",
        "teaching",
    )
    text: TextConfig | Mapping[str, Any] | None
    cut_words: bool
    min_count: int
    vectors: VectorSource | None
    tune_vectors: bool
    unseen_vectors: bool | int
    contextual: Any
    max_length: int
    max_words: int
    window: int
    piece: int
    overlap: int
    max_windows: int
    ranking: RankingConfig | Mapping[str, Any] | None
    other_passages: float
    consistency: float
    rules: Rules
    valid_share: float
    start: Reader | str | PathLike[str] | None
    teaching: ReaderTeachingConfig | Mapping[str, Any] | None
    words_: ReaderVocabulary
    splitter_: WordSplitter

    def __init__(
        self,
        arch: str = "bidaf",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        cut_words: bool = True,
        min_count: int = 10,
        vectors: VectorSource | None = None,
        tune_vectors: bool = False,
        unseen_vectors: bool | int = True,
        contextual: Any = None,
        max_length: int = 400,
        max_words: int = 20,
        window: int = 400,
        piece: int = 150,
        overlap: int = 50,
        max_windows: int = 16,
        ranking: RankingConfig | Mapping[str, Any] | None = None,
        other_passages: float = 0.0,
        consistency: float = 0.0,
        rules: Rules = "squad",
        valid_share: float = 0.05,
        training: TrainConfig | Mapping[str, Any] | None = None,
        start: Reader | str | PathLike[str] | None = None,
        teaching: ReaderTeachingConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            text=text,
            cut_words=cut_words,
            min_count=min_count,
            vectors=vectors,
            tune_vectors=tune_vectors,
            unseen_vectors=unseen_vectors,
            contextual=contextual,
            max_length=max_length,
            max_words=max_words,
            window=window,
            piece=piece,
            overlap=overlap,
            max_windows=max_windows,
            ranking=ranking,
            other_passages=other_passages,
            consistency=consistency,
            rules=rules,
            valid_share=valid_share,
            training=training,
            start=start,
            teaching=teaching,
        )

    # -- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803 (scikit-learn's name)
        valid: Any = None,
        out: str | PathLike[str] | None = None,
        *,
        resume: bool = False,
        callbacks: Callbacks = (),
    ) -> Self:
        """Learn from questions with answers. Progress is shown where there is an `out`.

        Training questions whose answer is not made of whole words learn the words it touches;
        `provenance_["misaligned"]` counts them and `misaligned` lists them.

        Args:
            X: A file in SQuAD's JSON, "NAME:SPLIT", several of these with "+" between them, or
                `Question` examples.
            valid: What chooses the weights; by default a share of the training data.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        check_settings(self)
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            begun, teachers = open_start(self), open_teachers(self)
            splitter = self.make_splitter() if begun is None else begun.splitter_
            if teachers is not None:
                check_teachers(teachers.readers, splitter)
            train = read_all(X, splitter, "training")
            if valid is None:
                # Which articles choose is the same for all seeds, so that runs can be compared.
                train, checked = set_apart(train, self.valid_share, 0)
            else:
                checked = read_all(valid, splitter, "validation")
            run = settings.with_data(self.training, is_checked=checked is not None)
            fitted = learn_to_read(self, train, checked, run, begun=begun, teachers=teachers)
            self.model_, self.words_, self.metrics_, history = fitted
            self.splitter_ = splitter
            self.provenance_ = origin(X, valid, run.training, questions=len(train), **history)
        return self

    @property
    def reads_spelling(self) -> bool:
        """Whether the characters of words are read; where words are characters, they are not."""
        params = {**self.get_params(), **self.architecture.preset}
        return params["characters"] != "none" and self._text_config().unit != "character"

    def _text_config(self) -> TextConfig:
        if isinstance(self.text, TextConfig):
            return self.text
        return from_dict(TextConfig, self.text or {"language": "en"}, where="text")

    def make_splitter(self) -> WordSplitter:
        """Return what cuts texts into words as the settings say."""
        return WordSplitter(TextPipeline(self._text_config()), cut=self.cut_words)

    # -- use -------------------------------------------------------------------------------------

    def answer(
        self,
        passages: str | Sequence[str],
        question: str,
        *,
        threshold: float = 0.0,
        window: int | None = None,
    ) -> FoundAnswer:
        """Return the answer to a question.

        Args:
            passages: The passage, or several that are searched together. Of long ones the windows
                that have most in common with the question are read.
            question: The question.
            threshold: An answer less probable than this is not given; the answer is "" then.
            window: The most words that are read at once, other than the reader's own number.
        """
        return self.answer_all([(passages, question)], threshold=threshold, window=window)[0][0]

    def answer_all(
        self,
        asked: Sequence[tuple[str | Sequence[str], str]],
        *,
        top: int = 1,
        threshold: float = 0.0,
        window: int | None = None,
    ) -> list[list[FoundAnswer]]:
        """Return the best answers to many questions, the best first; all at once takes less time.

        Args:
            asked: (passage or passages, question) each.
            top: How many answers each, at most.
            threshold: As for `answer`.
            window: As for `answer`.
        """
        self.require_fitted()
        check_use(self)
        size = self.window if window is None else window
        check_count("top", top)
        check_count("window", size)
        check_number("threshold", threshold, 1)
        given = passages_and_questions(asked)
        return answer_questions(self, given, top=top, threshold=threshold, window=size)

    def to(self, device: str) -> Self:
        """Move the network to a device, "cpu" or "cuda"; it answers from there."""
        self.require_fitted()
        check_device(device)
        self.model_.to(device)
        if self.words_.context is not None:
            self.words_.context.to(device)
        return self

    def attention(self, passage: str, question: str) -> AttentionMap:
        """Return which words of a question each word of a passage looked at."""
        self.require_fitted()
        return look(self, passage, question)

    def predict(self, X: Any) -> dict[str, str]:  # noqa: N803
        """Return the answer to each question of a data set, by its id."""
        return self._predict(self._read(X))

    def _read(self, data: Any) -> ReadQuestions:
        self.require_fitted()
        check_use(self)
        return read_all(data, self.splitter_, "evaluation")

    def _predict(self, data: ReadQuestions) -> dict[str, str]:
        from seqloom.tasks.reader_training import Checked

        return Checked(self, data, self.words_).predictions(self.model_)

    def evaluate(self, data: Any) -> dict[str, float]:
        """Return how well questions are answered, by the official rules.

        Args:
            data: As `fit` takes it. Every passage is read whole.

        Returns:
            `exact` and `f1` from 0 to 100 over all `questions`; `aligned`, the share of answers
            that are made of whole words.
        """
        given = self._read(data)
        answers = {each.id: [a.text for a in each.answers] for each in given.examples}
        found = score_answers(self._predict(given), answers, self.rules)
        found.pop("unanswered")
        return {**found, "aligned": 1 - len(given.misaligned) / len(given)}

    def score(self, X: Any) -> float:  # noqa: N803
        """Return the F1, from 0 to 100."""
        return self.evaluate(X)["f1"]

    def predict_lines(self, lines: Sequence[str]) -> Any:  # noqa: ARG002
        """For the command line, which has a verb of its own for readers."""
        raise ConfigError("a reader needs passages and questions; use seqloom answer")

    def keep_words(self, count: int, vectors: VectorSource | None = None) -> Self:
        """Forget all but the most frequent words, for a small model; characters tell others apart.

        Args:
            count: How many are kept.
            vectors: Word vectors, frequent words first, or what names them. Their order counts as
                much as that of the training data then, in turn, for texts about other things: words
                that are frequent in either are kept. Those that the reader lacks are added.
        """
        self.require_fitted()
        opened = None if vectors is None else open_vectors(vectors)
        keep_some_words(self.model_, self.words_, count, opened)
        return self

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        check_use(self)
        known = self.words_
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={
                "text": to_dict(self.splitter_.pipeline.config),
                **{name: getattr(self, name) for name in STORED},
                "ranking": to_dict(read_ranking(self.ranking)),
                "cut_words": self.splitter_.cut,
                **({} if known.context is None else {"contextual": known.context.stored()}),
            },
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        with saved_context(known.context) as models:
            weights = self.model_.state_dict()
            return write_model(directory, header, weights, word_files(known), models)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the reader a directory describes."""
        settings = stored.header.settings
        text = from_dict(TextConfig, settings["text"])
        model = cls(stored.header.architecture, text=text, **stored_settings(settings))
        model.splitter_ = model.make_splitter()
        model.words_ = stored_words(stored)
        if model.words_.context is not None:
            model.contextual = model.words_.context.settings
        model._restore(stored)
        return model


def misaligned(data: Any, reader: Reader | None = None) -> list[Misaligned]:
    """Return the questions whose answer does not begin and end with a reader's words.

    Args:
        data: As `Reader.fit` takes it.
        reader: Whose words; by default those of a new English reader.
    """
    splitter = (reader or Reader()).make_splitter()
    return read_all(data, splitter, "training").misaligned
