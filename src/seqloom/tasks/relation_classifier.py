"""Relation classifiers: how two marked entities of a sentence stand to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import load_config_class, load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.examples import Relation
from seqloom.data.relations import MARKERS, Marked
from seqloom.errors import ConfigError
from seqloom.metrics.relations import OTHER, RelationReport, score_relations
from seqloom.models.entity_distances import EntityDistances
from seqloom.models.entity_states import EntityStates
from seqloom.tasks.classifier_explaining import explanations
from seqloom.tasks.classifier_results import Explanation
from seqloom.tasks.classifier_sequences import WordSequences
from seqloom.tasks.contextual import saved_context, stored_context
from seqloom.tasks.directory import ModelHeader, StoredModel, load_weights, write_model
from seqloom.tasks.estimator import Estimator, merge, tensor_shapes
from seqloom.tasks.fitting import Callbacks, fitting, origin
from seqloom.tasks.labeled import Labeled
from seqloom.tasks.labels import labels_from_dict, labels_to_dict
from seqloom.tasks.relation_results import RelationFound, describe
from seqloom.tasks.relation_teaching import taught_relations
from seqloom.tasks.relation_text import (
    marked_line,
    read_labeled_sentences,
    read_sentences,
    sentence_reader,
)
from seqloom.tasks.relation_training import learn_relations, set_apart
from seqloom.tasks.relation_words import MARKER_IDS
from seqloom.tasks.scikit import estimator_tags
from seqloom.tasks.setting_checks import check_flags, check_whole
from seqloom.tasks.supervised_objective import all_scores
from seqloom.tasks.teaching import TeachingConfig, teaching_config
from seqloom.tasks.text_features import TermLimits
from seqloom.tasks.unseen_words import check_unseen
from seqloom.text import TextConfig, TextPipeline, Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.pretrained import VectorSource
    from seqloom.training import TrainConfig

VOCABULARY = "vocabulary.json"
TRAINING = {
    "epochs": 60,
    "patience": 15,
    "batch": {"batch_size": 10, "max_waste": 0.2},
    "optimizer": {"name": "adadelta", "rate": 1.0},
}
"""As Zhou et al. (2016), section 4.1. AdaDelta leaves the vectors of rare words alone, which Adam
with a penalty in the loss brings to 0 within an epoch."""


class EntitySettings(NamedTuple):
    """The settings of entities a classifier was fitted with, which use and `save` go by."""

    position_size: int
    max_distance: int
    entity_states: bool
    around: int | None
    other: str


class RelationClassifier(Estimator):
    """Learns which relation holds between two marked entities of a sentence.

    The markers <e1>, </e1>, <e2> and </e2> are words of the sequence (the position indicators of
    Zhang and Wang 2015); with `position_size` every word also has a vector for its distance from
    each entity (the position features of Zeng et al. 2014). The networks are those of
    `Classifier`. `fit` keeps the weights of the best official score on the validation data.

    Args:
        arch: "brnn", "blstm", "att-blstm", "cnn", "joint-attention" or "transformer".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the words that are kept.
        vectors: Word vectors to begin with: a file, a data set's name, or what
            `seqloom.tasks.pretrained.open_vectors` takes.
        tune_vectors: Whether they are trained further; words without one are trained anyway.
        unseen_vectors: Whether words that have such a vector and do not occur in the training data
            are known by it; else they are the unknown word. A number: so many of them, those that
            come first in the file.
        contextual: Vectors of words in context beside those: an `Embedder` of arch "elmo" or
            "transformer", its directory, or a table with more settings; see
            `seqloom.tasks.contextual.ContextualConfig`. Markers are no part of the text it reads.
        position_size: Width of a position vector; 0 for none.
        max_distance: The longest distance told from shorter ones.
        entity_states: Whether the scores also read the states at the ends of the entities.
        around: How many words before the first entity and after the second are read, besides those
            between them; all if None.
        other: The label that stands for no relation; it is not in the official score.
        valid_share: The share of the training data that chooses the weights and decides when to
            stop where `fit` is given no `valid`. It is drawn by the seed of `training`.
        teaching: Fitted relation classifiers to learn from beside the labels, and sentences with
            two marked entities that nobody labeled: a `seqloom.tasks.teaching.TeachingConfig` or a
            table of its settings.
        training: Settings of the loop. What is not set is as in Zhou et al. (2016): AdaDelta at
            rate 1.0 and batches of 10, but for "transformer".
        options: Settings of the architecture: `hidden_size`, `pooling`, `dropout`, `l2`, ...

    Attributes:
        classes_: The labels, sorted.
        vocabulary_: The words known.
        entities_: `position_size`, `max_distance`, `entity_states`, `around` and `other` as it was
            fitted with them, which use and `save` go by.

    Examples:
        >>> near = ["<e1>cats</e1> eat <e2>fish</e2>", "<e2>fish</e2> fears <e1>cats</e1>"]
        >>> model = RelationClassifier("cnn", embed_size=8, training={"epochs": 1}, valid_share=0)
        >>> found = model.fit(near, ["eat(e1,e2)", "fear(e2,e1)"]).relate(near[0])
        >>> found.first, found.second
        ('cats', 'fish')
    """

    task: ClassVar[str] = "relate"
    settings: ClassVar[tuple[str, ...]] = (
        "text",
        "vocabulary",
        "vectors",
        "tune_vectors",
        "unseen_vectors",
        "contextual",
        "position_size",
        "max_distance",
        "entity_states",
        "around",
        "other",
        "valid_share",
        "teaching",
        "training",
    )
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    vectors: VectorSource | None
    tune_vectors: bool
    unseen_vectors: bool | int
    contextual: Any
    position_size: int
    max_distance: int
    entity_states: bool
    around: int | None
    other: str
    valid_share: float
    teaching: TeachingConfig | Mapping[str, Any] | None
    classes_: NDArray[Any]
    entities_: EntitySettings
    words_: WordSequences
    pipeline_: TextPipeline

    def __init__(
        self,
        arch: str = "att-blstm",
        *,
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        vectors: VectorSource | None = None,
        tune_vectors: bool = True,
        unseen_vectors: bool | int = True,
        contextual: Any = None,
        position_size: int = 0,
        max_distance: int = 30,
        entity_states: bool = False,
        around: int | None = None,
        other: str = OTHER,
        valid_share: float = 0.1,
        teaching: TeachingConfig | Mapping[str, Any] | None = None,
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
            position_size=position_size,
            max_distance=max_distance,
            entity_states=entity_states,
            around=around,
            other=other,
            valid_share=valid_share,
            teaching=teaching,
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
            X: A file (a table with columns text and label, or the format of SemEval-2010 Task 8),
                "NAME:SPLIT", `Relation`s, or texts with the markers in them.
            y: A label a sentence, unless `X` brings them.
            valid: What chooses the weights: as `X` where that brings labels, else the pair (X, y).
                By default a share of the training data.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        limits = self._check_settings()
        teaching = teaching_config(self)
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            pipeline = self._make_pipeline()
            entities = self._entity_settings()
            most = load_config_class(self.architecture).MAX_LENGTH
            read = sentence_reader(pipeline, entities.around, most)
            train = read_labeled_sentences(X, y, read, "training")
            if valid is None:
                train, checked = set_apart(train, self.valid_share, settings.training.seed)
            else:
                pair = valid if isinstance(valid, tuple) and len(valid) == 2 else (valid, None)
                checked = read_labeled_sentences(pair[0], pair[1], read, "validation")
            run = settings.with_data(self.training, is_checked=checked is not None)
            taught = None
            if teaching is not None:
                taught = taught_relations(type(self), teaching, train, read)
            fitted = learn_relations(self, train, checked, limits, run, taught=taught)
            self.model_, self.words_, self.classes_, self.metrics_, history = fitted
            self.pipeline_, self.entities_ = pipeline, entities
            facts = {"examples": len(train.words), **history}
            self.provenance_ = origin(X, valid, run.training, **facts)
        return self

    def build_training(self) -> TrainConfig:
        """Return the settings of the loop: those of the papers under the user's own.

        A "transformer" has those of its architecture.
        """
        from seqloom.training import TrainConfig

        if isinstance(self.training, TrainConfig) or self.arch == "transformer":
            return super().build_training()
        return from_dict(TrainConfig, merge(TRAINING, self.training_table()), where="training")

    def _check_settings(self) -> TermLimits:
        """Refuse what can be refused before any data is read."""
        check_flags(self, "tune_vectors", "entity_states")
        self.build_config(vocab_size=8, input_size=0, output_size=2)
        if not (isinstance(self.valid_share, int | float) and 0 <= self.valid_share < 1):
            raise ConfigError(f"valid_share must lie in [0, 1), got {self.valid_share!r}")
        check_whole(self, "position_size", 0)
        check_whole(self, "max_distance", 1)
        if self.around is not None:
            check_whole(self, "around", 0)
        if not isinstance(self.other, str):
            raise ConfigError(f"other must be the name of a label, got {self.other!r}")
        check_unseen(self.unseen_vectors)
        if not self.tune_vectors and self.vectors is None:
            raise ConfigError("tune_vectors=False keeps given vectors, got vectors=None")
        return from_dict(TermLimits, self.vocabulary or {}, where="vocabulary")

    def _make_pipeline(self) -> TextPipeline:
        if isinstance(self.text, TextConfig):
            return TextPipeline(self.text)
        return TextPipeline(from_dict(TextConfig, self.text or {}, where="text"))

    def _entity_settings(self) -> EntitySettings:
        return EntitySettings(*(getattr(self, name) for name in EntitySettings._fields))

    def _read(self, sentences: list[Marked]) -> list[list[str]]:
        """The words that are read of sentences, in use."""
        most = load_config_class(self.fitted_architecture).MAX_LENGTH
        return sentence_reader(self.pipeline_, self.entities_.around, most)(sentences)

    def build_network(self, config: Any) -> Any:
        """The network of a configuration, with what is read of the entities if it is wanted."""
        model_class = load_model_class(self.architecture)
        if self.position_size:
            model: Any = EntityDistances(
                model_class,
                config,
                position_size=self.position_size,
                max_distance=self.max_distance,
                markers=MARKER_IDS,
            )
        else:
            model = model_class(config)
        return EntityStates(model, MARKER_IDS[1::2]) if self.entity_states else model

    @property
    def vocabulary_(self) -> Vocabulary:
        """The words known."""
        return self.words_.vocabulary

    # -- use -------------------------------------------------------------------------------------

    def _shares(self, words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """The probabilities of tokenized sentences, (N, C)."""
        self.require_fitted()
        scores = all_scores(self.model_, self.words_(words))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def _marked(self, x: Any) -> tuple[list[Marked], list[list[str]]]:
        self.require_fitted()
        sentences, _ = read_sentences(x)
        return sentences, self._read(sentences)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probability of each label, (N, C), as `classes_` stand."""
        return self._shares(self._marked(X)[1])

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the label of each sentence."""
        chosen = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    @overload
    def relate(self, sentences: str | Relation, *, explain: bool = False) -> RelationFound: ...
    @overload
    def relate(self, sentences: Any, *, explain: bool = False) -> list[RelationFound]: ...
    def relate(
        self, sentences: Any, *, explain: bool = False
    ) -> RelationFound | list[RelationFound]:
        """Return how the entities of a sentence, or of each of several, stand to each other.

        Args:
            sentences: A text with the markers in it, a `Relation`, or several of them.
            explain: Whether to say how much each word counted, which an attention decides.

        Raises:
            ConfigError: If words are to be explained by a model without attention.
        """
        if isinstance(sentences, str | Relation):
            return self.relate([sentences], explain=explain)[0]
        marked, words = self._marked(sentences)
        shares = self._shares(words)
        why: Sequence[Explanation | None] = [None] * len(words)
        if explain:
            given = Labeled(words, None, self.pipeline_)
            why = explanations(self.model_, self.words_, given)
        labels = self.classes_.tolist()
        return [
            describe(sentence, labels, row, reason)
            for sentence, row, reason in zip(marked, shares, why, strict=True)
        ]

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the relation of each line."""
        sentences = [marked_line(line, number) for number, line in enumerate(lines, start=1)]
        for line, found in zip(lines, self.relate(sentences), strict=True):
            yield {
                "label": found.label,
                "probability": found.probability,
                "first": found.first,
                "second": found.second,
                "text": line,
            }

    def report(self, data: Any, y: Any = None) -> RelationReport:
        """Return all that SemEval's official scorer counts; `str` of it is what that prints."""
        self.require_fitted()
        if y is None and isinstance(data, tuple) and len(data) == 2:
            data, y = data
        given = read_labeled_sentences(data, y, self._read, "evaluation")
        chosen = self._shares(given.words).argmax(axis=1)
        predicted = self.classes_[chosen]
        return score_relations(predicted.tolist(), given.labels, other=self.entities_.other)

    def evaluate(self, data: Any, y: Any = None) -> dict[str, float]:
        """Return how well labeled sentences are classified.

        Args:
            data: As `fit` takes them; a pair (X, y) may also be given as one.
            y: A label a sentence, unless `data` brings them.

        Returns:
            `macro_f1` (the official score: the mean F1 of all relations but `other`, a wrong
            direction being wrong), `accuracy`, `macro_f1_directed`, `macro_f1_undirected`,
            `f1/RELATION` of each, and `examples`; from 0 to 1.
        """
        report = self.report(data, y)
        return {**report.metrics(), "examples": float(report.directed.examples)}

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the official score, from 0 to 1."""
        return self.report(X, y).macro_f1

    def __sklearn_tags__(self) -> Any:
        return estimator_tags("classifier", strings=True)

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        context = self.words_.context
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={
                **({} if context is None else {"contextual": context.stored()}),
                "classes": labels_to_dict(self.classes_),
                "text": to_dict(self.pipeline_.config),
                **self.entities_._asdict(),
            },
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        files = {VOCABULARY: self.vocabulary_.to_dict()}
        with saved_context(self.words_.context) as models:
            return write_model(directory, header, self.model_.state_dict(), files, models)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the classifier a directory describes."""
        settings = stored.header.settings
        names = ("position_size", "max_distance", "other")
        text = from_dict(TextConfig, settings["text"])
        given = {name: settings[name] for name in names}
        given |= {"entity_states": settings.get("entity_states", False)}
        given |= {"around": settings.get("around")}
        model = cls(stored.header.architecture, text=text, **given)
        model.pipeline_, model.entities_ = TextPipeline(text), model._entity_settings()
        context = stored_context(stored, MARKERS)
        model.contextual = context and context.settings
        words = Vocabulary.load(stored.place / VOCABULARY)
        model.words_ = WordSequences(words, None, context)
        model.classes_ = labels_from_dict(settings["classes"])
        config = model._take_over(stored)
        model.model_ = model.build_network(config)
        load_weights(model.model_, stored)
        model.model_.eval()
        return model
