"""Classifiers: fit one to labeled texts or vectors, and ask it for the class of others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.architectures import load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.errors import InputError, NotSeparableWarning
from seqloom.models.linear import Linear
from seqloom.models.perceptron import Perceptron
from seqloom.nn.held import release_rows
from seqloom.tasks.class_scores import decisions
from seqloom.tasks.classifier_data import OWNER, TrainingData
from seqloom.tasks.classifier_decision import Decision
from seqloom.tasks.classifier_explaining import explanations
from seqloom.tasks.classifier_results import Classification
from seqloom.tasks.classifier_sequences import VectorSequences, WordSequences
from seqloom.tasks.classifier_settings import (
    check_data,
    check_settings,
    model_config,
    own_valid_share,
    unseen_vectors,
    word_vectors,
)
from seqloom.tasks.classifier_storage import read_classifier, save_classifier
from seqloom.tasks.classifier_text import Terms, features_like
from seqloom.tasks.classifier_training import class_weights, learn_classes
from seqloom.tasks.contextual import ContextReader, context_reader
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import (
    Callbacks,
    Learned,
    RunSettings,
    fitting,
    origin,
)
from seqloom.tasks.label_shares import LabelShares
from seqloom.tasks.labeled import Labeled, is_pair, read_examples
from seqloom.tasks.pretrained import VectorSource, put_vectors
from seqloom.tasks.scikit import estimator_tags
from seqloom.tasks.supervised_objective import all_scores
from seqloom.tasks.teaching import TeachingConfig, taught, teaching_config
from seqloom.tasks.text_features import TextFeatures
from seqloom.tasks.unseen_words import extend_words
from seqloom.text import TextConfig, TextPipeline
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


class Classifier(Estimator):
    r"""Learns to which of some classes a text, a vector or a sequence of vectors belongs.

    `fit(X, y)` and the rest follow scikit-learn, with X a table of numbers, a list of texts or a
    list of tables; `fit("reviews.csv")` reads labeled texts from a file, a named data set or
    prepared data.

    "softmax", "logistic", "perceptron" and "mlp" see one vector an example, of a text its bag of
    words. Softmax regression minimizes
    $-\sum_i \ln \mathrm{softmax}(W^\top x_i + b)_{y_i} + \frac{l2}{2} \lVert W \rVert^2$; logistic
    regression puts the cross-entropy of one sigmoid a class in place of the first sum. Both are
    convex and are solved to the end by L-BFGS; `l2` is 1 / C of scikit-learn. With two classes,
    softmax regression is logistic regression of twice the C.

    "cnn", "brnn", "blstm", "att-blstm", "joint-attention" and "transformer" read words in order,
    or vectors. A text without a word is read as one unknown word.

    Args:
        arch: One of those.
        features: What a text becomes where words are not read in order: "bag" (its words),
            "ngrams" (runs of up to `max_n` words) or "embedding" (learned word vectors, averaged;
            "mlp" only).
        max_n: The longest run of "ngrams".
        weighting: "count", "binary" or "tfidf".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the terms that are kept.
        vectors: Word vectors to begin with: a file, a store, the name of a data set, a model of
            task "embed" or `WordVectors`.
        tune_vectors: Whether they are trained further; words without one are trained anyway.
        unseen_vectors: Whether words that have such a vector and do not occur in the training data
            are known by it; else they are the unknown word. A number: so many of them, those that
            come first in the file. The model then holds their vectors.
        contextual: Vectors of words in context beside those: an `Embedder` of arch "elmo" or
            "transformer", its directory, or a table with more settings; see
            `seqloom.tasks.contextual.ContextualConfig`.
        max_length: How many words or vectors of an example are read, from its beginning; longer
            ones are cut with a warning. None takes the architecture's own: 1,024 where time grows
            with the square of the length, else no limit.
        multilabel: Whether an example has a set of labels: y is a list of sets, or a table of 0
            and 1.
        threshold: With `multilabel`, how probable a label must be: one number, one a label, or
            "tune" for those with the best F1 on the validation data.
        class_weight: What a mistake on an example of a class weighs: a number a label, or
            "balanced".
        calibrate: Whether probabilities are calibrated on the validation data, by one temperature.
        valid_share: The share of the training data that validates where `fit` is given no `valid`;
            None takes the architecture's own, 0 for linear ones and else 0.1.
        teaching: Fitted classifiers to learn from beside the labels, and texts that nobody labeled:
            a `seqloom.tasks.teaching.TeachingConfig` or a table of its settings.
        training: Settings of the loop. The perceptron follows its own rule and knows `epochs` and
            `seed` alone.
        options: Settings of the architecture: `l2`, `hidden_sizes`, `dropout`, `embed_size`,
            `pooling`, ...

    Attributes:
        classes_: The labels, sorted, in an array of their own type.
        n_features_in_: The width of the vectors, if it was fitted to vectors.
        coef_, intercept_: Weights (classes or 1, features) and intercepts of a linear architecture
            on vectors: `decision_function(X)` is `X @ coef_.T + intercept_`.
        separable_: Of the perceptron: whether it ended without a mistake on its training data. If
            not, `fit` warns with `NotSeparableWarning`.
        decision_: How scores are read: `decision_.temperature` and `decision_.thresholds`.

    Examples:
        >>> texts = ["good film", "bad film", "good plot", "bad plot"]
        >>> model = Classifier("softmax").fit(texts, ["+", "-", "+", "-"])
        >>> model.classify("a good one").label
        '+'
    """

    task: ClassVar[str] = "classify"
    settings: ClassVar[tuple[str, ...]] = (
        "features",
        "max_n",
        "weighting",
        "text",
        "vocabulary",
        "vectors",
        "tune_vectors",
        "unseen_vectors",
        "contextual",
        "max_length",
        "multilabel",
        "threshold",
        "class_weight",
        "calibrate",
        "valid_share",
        "teaching",
        "training",
    )
    features: str
    max_n: int
    weighting: str
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    vectors: VectorSource | None
    tune_vectors: bool
    unseen_vectors: bool | int
    contextual: Any
    max_length: int | None
    multilabel: bool
    threshold: float | str | Mapping[Any, float]
    class_weight: str | Mapping[Any, float] | None
    calibrate: bool
    valid_share: float | None
    teaching: TeachingConfig | Mapping[str, Any] | None
    classes_: NDArray[Any]
    decision_: Decision
    terms_: Terms | None
    n_features_in_: int
    pipeline_: TextPipeline
    features_: TextFeatures | WordSequences
    separable_: bool

    def __init__(
        self,
        arch: str = "softmax",
        *,
        features: str = "bag",
        max_n: int = 2,
        weighting: str = "count",
        text: TextConfig | Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Any] | None = None,
        vectors: VectorSource | None = None,
        tune_vectors: bool = True,
        unseen_vectors: bool | int = False,
        contextual: Any = None,
        max_length: int | None = None,
        multilabel: bool = False,
        threshold: float | str | Mapping[Any, float] = 0.5,
        class_weight: str | Mapping[Any, float] | None = None,
        calibrate: bool = False,
        valid_share: float | None = None,
        teaching: TeachingConfig | Mapping[str, Any] | None = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            arch,
            options,
            features=features,
            max_n=max_n,
            weighting=weighting,
            text=text,
            vocabulary=vocabulary,
            vectors=vectors,
            tune_vectors=tune_vectors,
            unseen_vectors=unseen_vectors,
            contextual=contextual,
            max_length=max_length,
            multilabel=multilabel,
            threshold=threshold,
            class_weight=class_weight,
            calibrate=calibrate,
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
        """Learn from examples. Progress is shown where there is an `out`.

        Args:
            X: A table of numbers (N, D); sequences of vectors (T, D); texts; `LabeledText`s; a
                file, "NAME:SPLIT", or prepared data.
            y: A label an example, or with `multilabel` a set of them, unless `X` brings them. A
                label that is not certain is a table of labels and their probabilities,
                `{"good": 0.8, "bad": 0.2}`: what annotators said, or another model (Hinton et al.
                2015); where such an example validates, its most probable label counts.
            valid: What decides which weights of a network are best and when it stops, calibrates,
                and measures the others: as `X` where that brings labels, else the pair (X, y).
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        encoder = check_settings(self, self.build_training())
        teaching = teaching_config(self)
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            share, seed = own_valid_share(self), settings.training.seed
            unseen = unseen_vectors(self)
            context = context_reader(self.contextual)
            encoder = replace(encoder, vectors=unseen, context=context)
            given, labels, checked = X, y, valid
            facts: dict[str, Any] = {}
            if teaching is not None:
                given, labels, checked, own = taught(
                    self, teaching, X, y, valid, share=share, seed=seed
                )
                share, facts = 0.0, {"teaching": own}
            data = encoder.learn(
                given, labels, checked, self._make_pipeline, share=share, seed=seed
            )
            check_data(self, data)
            run = settings.with_data(self.training, is_checked=data.valid is not None)
            model, learned = self._learn(data, run, unseen, context)
            decision = self._decide(model, data)
            if context is not None:
                context.finish(model)
            if unseen is not None and isinstance(data.terms, WordSequences):
                words = extend_words(model, data.terms.vocabulary, unseen, self.unseen_vectors)
                data = data._replace(terms=data.terms.knowing(words))
            self._forget()
            self.model_, self.metrics_, self.decision_ = model, learned.metrics, decision
            self.classes_, self.terms_ = data.classes, data.terms
            self._set_input(data.terms, data.pipeline, data.train.features.width)
            facts |= {"examples": len(data.train.targets), **learned.history}
            if isinstance(self.vectors, str | PathLike):
                facts["vectors"] = str(self.vectors)
            self.provenance_ = origin(X, valid, run.training, **facts)
            if "mistakes" in self.metrics_:
                self.separable_ = self.metrics_["mistakes"] == 0
        if not getattr(self, "separable_", True):
            warnings.warn(
                f"the perceptron did not set the classes apart within {run.training.epochs} epochs "
                f"({self.metrics_['mistakes']} mistakes in the last); perhaps no linear boundary "
                "does: raise training.epochs, or use arch='softmax' or 'mlp'",
                NotSeparableWarning,
                stacklevel=2,
            )
        return self

    def _learn(
        self,
        data: TrainingData,
        run: RunSettings,
        unseen: WordVectors | None,
        context: ContextReader | None,
    ) -> tuple[Any, Learned]:
        """Build and train a model."""
        seed = run.training.seed
        vectors = word_vectors(self, data.terms, seed, unseen)
        width = None if vectors is None else vectors.matrix.shape[1]
        config = model_config(self, data.train.features, len(data.classes), width, context)
        words = getattr(data.terms, "vocabulary", None)
        facts = {
            "model": to_dict(config),
            "examples": len(data.train.targets),
            "classes": data.classes.tolist(),
            "vocabulary": words and words.hash,
        }
        if context is not None:
            facts["context"] = context.digest
        multilabel = self.multilabel
        weights = class_weights(
            self.class_weight, data.classes, data.train.targets, multilabel=multilabel
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = load_model_class(self.architecture)(config)
            if vectors is not None:
                put_vectors(model.input.embedding, vectors, frozen=not self.tune_vectors)
            if context is not None:
                context.attach(model)
            given = None if vectors is None else model.input.embedding.weight
            run = replace(run, facts=facts).noting(
                {"vectors": given},
                tune_vectors=self.tune_vectors,
                class_weight=None if weights is None else weights.tolist(),
            )
            learned = learn_classes(
                model, self.arch, data.train, data.valid, run, weights=weights,
                multilabel=multilabel,
            )  # fmt: skip
        if vectors is not None:
            release_rows(model.input.embedding)
        return model, learned

    def _decide(self, model: Any, data: TrainingData) -> Decision:
        """Choose how the scores are read."""
        decision = Decision(
            self.arch, data.classes, multilabel=self.multilabel, columns=data.columns
        )
        scores = targets = None
        if data.valid is not None:
            scores, targets = all_scores(model, data.valid.features), data.valid.targets
        decision.fit(scores, targets, calibrate=self.calibrate, threshold=self.threshold)
        return decision

    def _make_pipeline(self) -> TextPipeline:
        if isinstance(self.text, TextConfig):
            return TextPipeline(self.text)
        return TextPipeline(from_dict(TextConfig, self.text or {}, where="text"))

    def _set_input(self, terms: Terms | None, pipeline: TextPipeline | None, width: int) -> None:
        if pipeline is None:
            self.n_features_in_ = width
        else:
            assert not isinstance(terms, VectorSequences) and terms is not None
            self.features_, self.pipeline_ = terms, pipeline

    def _forget(self) -> None:
        """Leave nothing of an earlier fit to another kind of data."""
        for name in ("n_features_in_", "features_", "pipeline_", "separable_"):
            self.__dict__.pop(name, None)

    # -- use -------------------------------------------------------------------------------------

    def _read(self, x: Any, y: Any = None, *, labeled: bool = False) -> Labeled:
        """Read examples of the kind it was fitted to."""
        self.require_fitted()
        if not labeled and isinstance(x, str | PathLike):
            raise InputError(f"X must be a list of texts or a table, got {x!r}; classify takes one")
        width = getattr(self, "n_features_in_", None)
        pipeline = getattr(self, "pipeline_", None) or TextPipeline()
        return read_examples(
            x,
            y,
            lambda: pipeline,
            OWNER,
            width=width,
            labeled=labeled,
            sequences=isinstance(self.terms_, WordSequences | VectorSequences),
            multilabel=self.decision_.multilabel,
        )

    def _scores(self, x: Any) -> NDArray[np.float64]:
        return self._scores_of(self._read(x))

    def _scores_of(self, read: Labeled) -> NDArray[np.float64]:
        scores = all_scores(self.model_, features_like(read, self.terms_))
        wrong = np.argwhere(~np.isfinite(scores))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(
                f"X must have finite scores, got {scores[row, column]} for example {row}; are its "
                "numbers far larger than those learned from?"
            )
        return scores

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the label of each example; with `multilabel` a set each, or a table of 0 and 1.

        Labels come back as they were given to `fit`.
        """
        scores = self._scores(X)
        return self.decision_.predict(scores)

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return one score a class, (N, C); for two classes that of the second alone, (N,)."""
        scores = self._scores(X)
        return scores if self.decision_.multilabel else decisions(scores)

    @property
    def predict_proba(self) -> Callable[[Any], NDArray[np.float64]]:
        """`predict_proba(X)` returns the probability of each class, (N, C), as `classes_` stand.

        With `multilabel` each label has one of its own. The perceptron gives none and has no such
        method.
        """
        arch = self.fitted_architecture.name
        if arch == "perceptron":
            raise AttributeError(
                f"architecture {arch!r} gives no probabilities; use decision_function"
            )
        return self._predict_proba

    def _predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        scores = self._scores(X)
        return self.decision_.probabilities(scores)

    @overload
    def classify(self, texts: str, *, explain: bool = False) -> Classification: ...
    @overload
    def classify(self, texts: Any, *, explain: bool = False) -> list[Classification]: ...
    def classify(
        self, texts: Any, *, explain: bool = False
    ) -> Classification | list[Classification]:
        """Return the class of a text, or of each of several texts, vectors or sequences.

        Args:
            texts: One text, or what `predict` takes.
            explain: Whether to say which words counted, for architectures with attention.

        Raises:
            ConfigError: If the architecture has no attention to explain by.
        """
        if isinstance(texts, str):
            return self.classify([texts], explain=explain)[0]
        read = self._read(texts)
        found = explanations(self.model_, self.terms_, read) if explain else [None] * len(read.x)
        return self.decision_.classify(self._scores_of(read), found)

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the class of each line."""
        for line, found in zip(lines, self.classify(list(lines)), strict=True):
            row = {"label": found.label, "probability": found.probability, "text": line}
            if self.decision_.multilabel:
                row = {"labels": list(found.labels), "probabilities": dict(found.probabilities)}
                row["text"] = line
            yield row

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the accuracy; with `multilabel`, of whole sets."""
        return self.evaluate(X, y)["accuracy"]

    def evaluate(self, data: Any, y: Any = None) -> dict[str, float]:
        """Return how well labeled examples are classified.

        Args:
            data: As `fit` takes them; a pair (X, y) may also be given as one.
            y: A label an example, unless `data` brings them.

        Returns:
            `accuracy`, `macro_f1` (the mean F1 over all labels that occur), `examples`, and of
            probabilities `ece`, the expected calibration error. With `multilabel`, `accuracy` is
            that of whole sets, and `micro_f1` is there instead of `ece`. A label that was never
            learned counts as a mistake.
        """
        self.require_fitted()
        if y is None and is_pair(data):
            data, y = data
        read = self._read(data, y, labeled=True)
        assert read.y is not None
        if isinstance(read.y, LabelShares):
            raise InputError("labels to measure by must be certain, got probabilities in y")
        return self.decision_.measure(self._scores_of(read), read.y)

    # -- weights ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of a linear architecture on vectors."""
        return _one_row_for_two(self._linear("coef_").weight.detach().numpy().T)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Its intercepts."""
        return _one_row_for_two(self._linear("intercept_").bias.detach().numpy())

    def _linear(self, name: str) -> Any:
        model = getattr(self, "model_", None)
        if not isinstance(model, Linear | Perceptron) or not hasattr(self, "n_features_in_"):
            raise AttributeError(
                f"{name} is there after a linear architecture was fitted to vectors, got "
                f"{self.fitted_architecture.name!r}"
            )
        return model

    def __sklearn_tags__(self) -> Any:
        tags = estimator_tags("classifier", strings=True)
        tags.classifier_tags.multi_label = self.multilabel
        return tags

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        return save_classifier(self, directory)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the classifier a directory describes."""
        values, fitted = read_classifier(stored)
        model = cls(stored.header.architecture, **values)
        for name, value in fitted.items():
            setattr(model, name, value)
        model._restore(stored)
        if "mistakes" in model.metrics_:
            model.separable_ = model.metrics_["mistakes"] == 0
        return model


def _one_row_for_two(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of two rows only their difference matters: what speaks for the second class."""
    return weights[1:] - weights[:1] if len(weights) == 2 else weights
