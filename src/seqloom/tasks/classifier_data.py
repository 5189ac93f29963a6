"""From what a classifier is given to examples it can learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import InputError
from seqloom.tasks.classifier_multilabel import LabelSets, check_columns, indicators, label_names
from seqloom.tasks.classifier_sequences import VectorSequences, WordSequences
from seqloom.tasks.classifier_text import Terms, features_like
from seqloom.tasks.classifier_training import hold_out
from seqloom.tasks.label_shares import LabelShares
from seqloom.tasks.labeled import Labeled, is_pair, read_examples
from seqloom.tasks.labels import class_labels, numbered
from seqloom.tasks.supervised_objective import Examples
from seqloom.tasks.text_features import FeatureConfig, TermLimits, TextFeatures
from seqloom.tasks.unseen_words import know_by_vector
from seqloom.text import TextPipeline
from seqloom.text.vectors import WordVectors

if TYPE_CHECKING:
    from seqloom.tasks.contextual import ContextReader

OWNER = "Classifier"


class TrainingData(NamedTuple):
    """What a classifier learns from.

    Args:
        classes: The labels.
        columns: Whether labels came as a table of 0 and 1.
        terms: What makes features of examples; None for vectors.
        pipeline: How text becomes words, if there is text.
        train: The training examples.
        valid: The validation examples, if there are any.
    """

    classes: NDArray[Any]
    columns: bool
    terms: Terms | None
    pipeline: TextPipeline | None
    train: Examples
    valid: Examples | None


@dataclass(frozen=True)
class ExampleEncoder:
    """How examples are read and encoded.

    Args:
        features: What a text becomes, for architectures of one vector an example.
        limits: Which terms are kept.
        sequences: Whether the architecture reads sequences.
        multilabel: Whether an example has a set of labels.
        max_length: How much of a sequence is read; None for all of it.
        vectors: Where words of the validation data have a vector here, they are known by it.
        context: What reads the context of words, if it is read.
    """

    features: FeatureConfig
    limits: TermLimits
    sequences: bool
    multilabel: bool
    max_length: int | None
    vectors: WordVectors | None = None
    context: ContextReader | None = None

    def read(
        self,
        x: Any,
        y: Any,
        pipeline: Callable[[], TextPipeline],
        *,
        width: int | None = None,
        labeled: bool = True,
    ) -> Labeled:
        """Return examples as they were given; see `read_examples`."""
        return read_examples(
            x,
            y,
            pipeline,
            OWNER,
            width=width,
            labeled=labeled,
            sequences=self.sequences,
            multilabel=self.multilabel,
        )

    def learn(
        self,
        x: Any,
        y: Any,
        valid: Any,
        pipeline: Callable[[], TextPipeline],
        *,
        share: float,
        seed: int,
    ) -> TrainingData:
        """Choose classes and terms by the training examples, and encode all of them.

        Args:
            x: The examples.
            y: Their labels, unless `x` brings them.
            valid: The validation examples; without any, a share of the others.
            pipeline: What makes the text pipeline.
            share: That share.
            seed: What decides which they are.
        """
        given = self.read(x, y, pipeline)
        columns = isinstance(given.y, LabelSets) and given.y.columns is not None
        classes = self._classes(given)
        terms = self._terms(given)
        targets = self.targets(given, classes, "training")
        if valid is None:
            train, checked = hold_out(Examples(features_like(given, terms), targets), share, seed)
            if checked is not None and isinstance(given.y, LabelShares):
                checked = checked._replace(targets=checked.targets.argmax(axis=1))
            return TrainingData(classes, columns, terms, given.pipeline, train, checked)
        own, width = given.pipeline, None
        if not given.is_text:
            width = features_like(given, terms).width
        x, y = valid if is_pair(valid) else (valid, None)
        read = self.read(x, y, lambda: own or pipeline(), width=width)
        if self.vectors is not None and isinstance(terms, WordSequences):
            known = know_by_vector(terms.vocabulary, cast(list[list[str]], read.x), self.vectors)
            terms = terms.knowing(known)
        train = Examples(features_like(given, terms), targets)
        checked = Examples(features_like(read, terms), self.targets(read, classes, "validation"))
        if isinstance(read.y, LabelShares):
            checked = checked._replace(targets=checked.targets.argmax(axis=1))
        return TrainingData(classes, columns, terms, own, train, checked)

    def _classes(self, given: Labeled) -> NDArray[Any]:
        if isinstance(given.y, LabelSets):
            return label_names(given.y)
        assert given.y is not None
        return class_labels(given.y.labels if isinstance(given.y, LabelShares) else given.y)

    def targets(self, given: Labeled, classes: NDArray[Any], what: str) -> NDArray[Any]:
        """Return labels as a model learns them."""
        if isinstance(given.y, LabelSets):
            check_columns(given.y, classes)
            return indicators(given.y.sets, classes, what)
        assert given.y is not None
        if isinstance(given.y, LabelShares):
            return given.y.table(classes, what)
        return numbered(given.y, classes, what)

    def _terms(self, given: Labeled) -> Terms | None:
        x: Any = given.x
        if isinstance(x, np.ndarray):
            return None
        if not given.is_text:
            if self.context is not None:
                raise InputError("contextual is for texts, got sequences of vectors in X")
            return VectorSequences(x[0].shape[1], self.max_length)
        if self.sequences:
            return WordSequences.learn(x, self.limits, self.max_length, self.context)
        return TextFeatures.learn(x, self.features, self.limits)[0]
