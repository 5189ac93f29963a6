"""Classifiers: fit one to labeled texts or vectors, and ask it for the class of others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.architectures import load_config_class, load_model_class
from seqloom.config import from_dict, to_dict
from seqloom.data.features import Bags, Features, Vectors
from seqloom.errors import ConfigError, InputError, NotSeparableWarning
from seqloom.models.linear import Linear
from seqloom.models.perceptron import Perceptron
from seqloom.tasks.class_scores import LINKS, chosen, class_metrics, decisions
from seqloom.tasks.classifier_text import TextSide, features_like, read_text_side
from seqloom.tasks.classifier_training import check_perceptron, hold_out, learn_classes
from seqloom.tasks.directory import ModelHeader, StoredModel, reopen, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import Callbacks, RunSettings, origin, training_place
from seqloom.tasks.labeled import Labeled, is_pair, read_examples
from seqloom.tasks.labels import class_labels, labels_from_dict, labels_to_dict, numbered
from seqloom.tasks.scikit import estimator_tags
from seqloom.tasks.supervised_objective import Examples, all_scores
from seqloom.tasks.text_features import FeatureConfig, TermLimits, TextFeatures
from seqloom.text import TextConfig, TextPipeline

if TYPE_CHECKING:
    from seqloom.training import TrainConfig


@dataclass(frozen=True)
class Classification:
    """The class of one text or vector.

    Args:
        label: The most probable class.
        probability: How probable it is; None where the architecture gives no probabilities.
        probabilities: Of every class, the most probable first.
    """

    label: Any
    probability: float | None
    probabilities: Mapping[Any, float]


class Classifier(Estimator):
    r"""Learns to which of some classes a text or a vector belongs.

    `fit(X, y)` and the rest follow scikit-learn, with X a table of numbers or a list of texts;
    `fit("reviews.csv")` reads labeled texts from a file, a named data set or prepared data.

    Softmax regression minimizes
    $-\sum_i \ln \mathrm{softmax}(W^\top x_i + b)_{y_i} + \frac{l2}{2} \lVert W \rVert^2$; logistic
    regression puts the cross-entropy of one sigmoid a class in place of the first sum. Both are
    convex and are solved to the end by L-BFGS; `l2` is 1 / C of scikit-learn. With two classes,
    softmax regression is logistic regression of twice the C.

    Args:
        arch: "softmax", "logistic", "perceptron" or "mlp".
        features: What a text becomes: "bag" (its words), "ngrams" (runs of up to `max_n` words) or
            "embedding" (learned word vectors, averaged; "mlp" only).
        max_n: The longest run of "ngrams".
        weighting: "count", "binary" or "tfidf".
        text: How text becomes words: a `TextConfig` or the part of one that differs.
        vocabulary: `min_count` and `max_size` of the terms that are kept.
        valid_share: The share of the training data that decides when to stop where `fit` is given
            no `valid`; None takes the architecture's own, 0.1 for "mlp" and else 0.
        training: Settings of the loop. The perceptron follows its own rule and knows `epochs` and
            `seed` alone.
        options: Settings of the architecture: `l2`, `hidden_sizes`, `dropout`, `embed_size`.

    Attributes:
        classes_: The labels, sorted, in an array of their own type.
        n_features_in_: The width of the vectors, if it was fitted to vectors.
        coef_, intercept_: Weights (classes or 1, features) and intercepts of a linear architecture
            on vectors: `decision_function(X)` is `X @ coef_.T + intercept_`.
        separable_: Of the perceptron: whether it ended without a mistake on its training data. If
            not, `fit` warns with `NotSeparableWarning`.

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
        "valid_share",
        "training",
    )
    features: str
    max_n: int
    weighting: str
    text: TextConfig | Mapping[str, Any] | None
    vocabulary: Mapping[str, Any] | None
    valid_share: float | None
    classes_: NDArray[Any]
    n_features_in_: int
    pipeline_: TextPipeline
    features_: TextFeatures
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
        valid_share: float | None = None,
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
        """Learn from examples. Progress is shown where there is an `out`.

        Args:
            X: A table of numbers (N, D); texts; `LabeledText`s; a file, "NAME:SPLIT", or prepared
                data.
            y: A label an example, unless `X` brings them.
            valid: What decides which weights of an "mlp" are best and when it stops, and measures
                the others: as `X` where that brings labels, else the pair (X, y).
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.
        """
        from seqloom.training.runtime import Runtime

        training = self.build_training()
        features = self._check_settings(training)
        runtime = Runtime(training.device, training.precision)
        with training_place(out, resume=resume, is_main=runtime.is_main) as place:
            given = self._read(X, y, self._make_pipeline)
            assert given.y is not None
            classes = class_labels(given.y)
            terms, train = self._encode(given, classes, features)
            checked = self._valid_examples(valid, given, classes, terms, train.features.width)
            if checked is None:
                train, checked = hold_out(train, self._valid_share(), training.seed)
            training = self._training_for(training, checked)
            config = self._config(train.features, len(classes))
            facts = {
                "model": to_dict(config),
                "examples": len(train.targets),
                "classes": classes.tolist(),
                "vocabulary": terms and terms.vocabulary.hash,
            }
            settings = RunSettings(training, place, resume, callbacks, facts)
            with torch.random.fork_rng():
                torch.manual_seed(training.seed)
                model = load_model_class(self.architecture)(config)
                learned = learn_classes(model, self.arch, train, checked, settings)
        # Only now, so that a run that failed leaves the estimator as it was.
        self._forget()
        self.model_, self.classes_, self.metrics_ = model, classes, learned.metrics
        if terms is None:
            self.n_features_in_ = train.features.width
        else:
            assert given.pipeline is not None
            self.features_, self.pipeline_ = terms, given.pipeline
        count = len(train.targets)
        self.provenance_ = origin(X, valid, training, examples=count, **learned.history)
        if "mistakes" in self.metrics_:
            self.separable_ = self.metrics_["mistakes"] == 0
        if place is not None and runtime.is_main:
            reopen(place)
            self.save(place)
        runtime.wait()
        if not getattr(self, "separable_", True):
            warnings.warn(
                f"the perceptron did not set the classes apart within {training.epochs} epochs "
                f"({self.metrics_['mistakes']} mistakes in the last); perhaps no linear boundary "
                "does: raise training.epochs, or use arch='softmax' or 'mlp'",
                NotSeparableWarning,
                stacklevel=2,
            )
        return self

    def _check_settings(self, training: TrainConfig) -> FeatureConfig:
        """Refuse what can be refused before any data is read."""
        wanted = {"features": self.features, "max_n": self.max_n, "weighting": self.weighting}
        features = from_dict(FeatureConfig, wanted)
        if features.features == "embedding" and self.arch != "mlp":
            raise ConfigError(
                "features='embedding' learns word vectors, which only architecture 'mlp' does, got "
                f"{self.arch!r}; use arch='mlp' (hidden_sizes=() for a softmax layer alone)"
            )
        self._config(None, 2)
        from_dict(TermLimits, self.vocabulary or {}, where="vocabulary")
        share = self.valid_share
        if share is not None and not (isinstance(share, int | float) and 0 <= share < 1):
            raise ConfigError(f"valid_share must lie in [0, 1), got {share!r}")
        if self.arch == "perceptron":
            check_perceptron(training)
        return features

    def _config(self, features: Features | None, classes: int) -> Any:
        """The configuration for some features and classes."""
        from_data: dict[str, Any] = {
            "input_size": 1 if features is None else features.width,
            "output_size": 1 if self.arch == "logistic" and classes == 2 else classes,
        }
        if self.arch == "mlp":
            on_text = isinstance(features, Bags)
            from_data["embedded"] = on_text and self.features == "embedding"
        return self.build_config(**from_data)

    def _make_pipeline(self) -> TextPipeline:
        if isinstance(self.text, TextConfig):
            return TextPipeline(self.text)
        return TextPipeline(from_dict(TextConfig, self.text or {}, where="text"))

    def _read(
        self,
        x: Any,
        y: Any,
        pipeline: Callable[[], TextPipeline],
        *,
        width: int | None = None,
        labeled: bool = True,
    ) -> Labeled:
        return read_examples(x, y, pipeline, type(self).__name__, width=width, labeled=labeled)

    def _encode(
        self, given: Labeled, classes: NDArray[Any], config: FeatureConfig
    ) -> tuple[TextFeatures | None, Examples]:
        """Return the features of the training data, and the terms of text they are made of."""
        assert given.y is not None
        targets = numbered(given.y, classes, "training")
        if isinstance(given.x, np.ndarray):
            return None, Examples(Vectors(given.x), targets)
        limits = from_dict(TermLimits, self.vocabulary or {}, where="vocabulary")
        terms, bags = TextFeatures.learn(given.x, config, limits)
        return terms, Examples(bags, targets)

    def _valid_examples(
        self,
        valid: Any,
        given: Labeled,
        classes: NDArray[Any],
        terms: TextFeatures | None,
        width: int,
    ) -> Examples | None:
        if valid is None:
            return None
        x, y = valid if is_pair(valid) else (valid, None)
        pipeline = given.pipeline
        read = self._read(x, y, lambda: pipeline or self._make_pipeline(), width=width)
        assert read.y is not None
        features = features_like(read, terms)
        return Examples(features, numbered(read.y, classes, "validation"))

    def _valid_share(self) -> float:
        if self.valid_share is not None:
            return self.valid_share
        return float(getattr(load_config_class(self.architecture), "VALID_SHARE", 0.0))

    def _training_for(self, training: TrainConfig, valid: Examples | None) -> TrainConfig:
        """Drop the architecture's own patience where nothing can be validated.

        What was asked for and cannot be had is refused.
        """
        if valid is not None or not training.needs_validation:
            return training
        changed = replace(training, patience=None)
        asked = to_dict(training) if is_dataclass(self.training) else self.training or {}
        if changed.needs_validation or asked.get("patience") is not None:
            raise ConfigError(
                "training.patience and schedule 'plateau' need validation data, got valid=None; "
                "give some or raise valid_share"
            )
        return changed

    def _forget(self) -> None:
        """Leave nothing of an earlier fit to another kind of data."""
        for name in ("n_features_in_", "features_", "pipeline_", "separable_"):
            self.__dict__.pop(name, None)

    # -- use -------------------------------------------------------------------------------------

    def _scores(self, x: Any) -> NDArray[np.float64]:
        self.require_fitted()
        if isinstance(x, str | PathLike):
            raise InputError(f"X must be a list of texts or a table, got {x!r}; classify takes one")
        read = self._read(
            x,
            None,
            self._fitted_pipeline,
            width=getattr(self, "n_features_in_", None),
            labeled=False,
        )
        return self._scores_of(read)

    def _fitted_pipeline(self) -> TextPipeline:
        return getattr(self, "pipeline_", None) or TextPipeline()

    def _scores_of(self, read: Labeled) -> NDArray[np.float64]:
        return all_scores(self.model_, features_like(read, getattr(self, "features_", None)))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the label of each text or vector."""
        scores = self._scores(X)
        labels: NDArray[Any] = self.classes_[chosen(scores)]
        return labels

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return one score a class, (N, C); for two classes that of the second alone, (N,)."""
        return decisions(self._scores(X))

    @property
    def predict_proba(self) -> Callable[[Any], NDArray[np.float64]]:
        """`predict_proba(X)` returns the probability of each class, (N, C), as `classes_` stand.

        The perceptron gives none and has no such method.
        """
        if self.arch not in LINKS:
            raise AttributeError(
                f"architecture {self.arch!r} gives no probabilities; use decision_function"
            )
        return self._predict_proba

    def _predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        found: NDArray[np.float64] = LINKS[self.arch].probabilities(self._scores(X))
        return found

    @overload
    def classify(self, texts: str) -> Classification: ...
    @overload
    def classify(self, texts: Any) -> list[Classification]: ...
    def classify(self, texts: Any) -> Classification | list[Classification]:
        """Return the class of a text, or of each of several texts or vectors."""
        if isinstance(texts, str):
            return self.classify([texts])[0]
        scores = self._scores(texts)
        labels = self.classes_.tolist()
        numbers = chosen(scores)
        if self.arch not in LINKS:
            return [Classification(labels[i], None, {}) for i in numbers]
        found = []
        for i, row in zip(numbers, LINKS[self.arch].probabilities(scores), strict=True):
            order = np.argsort(-row, kind="stable")
            shares = {labels[j]: float(row[j]) for j in order}
            found.append(Classification(labels[i], float(row[i]), shares))
        return found

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the class of each line."""
        for line, found in zip(lines, self.classify(list(lines)), strict=True):
            yield {"label": found.label, "probability": found.probability, "text": line}

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the accuracy."""
        return self.evaluate(X, y)["accuracy"]

    def evaluate(self, data: Any, y: Any = None) -> dict[str, float]:
        """Return how well labeled examples are classified.

        Args:
            data: As `fit` takes them; a pair (X, y) may also be given as one.
            y: A label an example, unless `data` brings them.

        Returns:
            `accuracy`, `macro_f1` (the mean F1 over all labels that occur) and `examples`. A label
            that was never learned counts as a mistake.
        """
        self.require_fitted()
        if y is None and is_pair(data):
            data, y = data
        width = getattr(self, "n_features_in_", None)
        read = self._read(data, y, self._fitted_pipeline, width=width)
        assert read.y is not None
        predicted = self.classes_[chosen(self._scores_of(read))]
        return {**class_metrics(predicted, read.y), "examples": float(len(read.y))}

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
                f"{self.arch!r}"
            )
        return model

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
        settings: dict[str, Any] = {"classes": labels_to_dict(self.classes_), "input": "vectors"}
        files: dict[str, Any] = {}
        if hasattr(self, "features_"):
            side = TextSide(self.pipeline_, self.features_)
            settings |= {"input": "text", **side.settings()}
            files = side.files()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch,
            config=to_dict(self.model_.config),
            settings=settings,
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        return write_model(directory, header, self.model_.state_dict(), files)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the classifier a directory describes."""
        header, settings = stored.header, stored.header.settings
        if settings["input"] == "text":
            side = read_text_side(stored)
            config = side.pipeline.config
            model = cls(header.architecture, **to_dict(side.features.config), text=config)
            model.pipeline_, model.features_ = side
        else:
            model = cls(header.architecture)
            model.n_features_in_ = header.config["input_size"]
        model.classes_ = labels_from_dict(settings["classes"])
        model._restore(stored)
        if "mistakes" in model.metrics_:
            model.separable_ = model.metrics_["mistakes"] == 0
        return model


def _one_row_for_two(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of two rows only their difference matters: what speaks for the second class."""
    return weights[1:] - weights[:1] if len(weights) == 2 else weights
