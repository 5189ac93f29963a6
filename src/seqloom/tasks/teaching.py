"""Teaching a classifier by others: what they say of its texts, and of texts that nobody labeled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqloom.config import from_dict
from seqloom.data.examples import LabeledText
from seqloom.data.inputs import read_input
from seqloom.errors import ConfigError, InputError
from seqloom.tasks.classifier_training import set_apart
from seqloom.tasks.label_shares import as_label_shares
from seqloom.tasks.labeled import is_text, opened, texts_and_labels
from seqloom.tasks.labels import class_labels
from seqloom.tasks.setting_checks import check_number

if TYPE_CHECKING:
    from seqloom.tasks.classifier import Classifier

Config = TypeVar("Config")


@dataclass(frozen=True, kw_only=True)
class TeachingConfig:
    r"""How fitted classifiers teach another one.

    A labeled text x with label y is learned with the probabilities

    $$(1 - s) \, [c = y] + s \, \bar p(c \mid x)$$

    where $\bar p$ is the mean of the teachers' probabilities and s the `share`; one of the further
    texts with

    $$\frac{\bar p(c \mid x) \, e^{a [c = z]}}{\sum_k \bar p(k \mid x) \, e^{a [k = z]}}$$

    where z is the label that it has by itself, such as that of the review which a sentence is from,
    and a the `prior`; without such a label, with what the teachers say alone.

    Paper: Hinton, Vinyals and Dean (2015), "Distilling the Knowledge in a Neural Network", NIPS
    workshop, section 2; further texts as in Tang et al. (2019), "Distilling Task-Specific Knowledge
    from BERT into Simple Neural Networks".
    Differs from the papers: probabilities, not the scores before softmax, at a temperature of 1.

    Args:
        teachers: Fitted classifiers with the same labels, their directories, or names of models
            that come with the package.
        texts: Further texts: a list, a file or "NAME:SPLIT"; None for none.
        share: How much of what a labeled text is learned with is theirs.
        prior: How much a label of a further text's own counts; then some must have one.
    """

    teachers: tuple[Any, ...]
    texts: Any = None
    share: float = 0.5
    prior: float = 0.0

    def __post_init__(self) -> None:
        if not self.teachers:
            raise ConfigError("teaching.teachers must name at least one classifier, got none")
        check_number("teaching.share", self.share, 1)
        check_number("teaching.prior", self.prior)


class Taught(NamedTuple):
    """What a classifier learns from when it is taught.

    Args:
        texts: The texts.
        labels: What each is learned with, a label's probability each.
        valid: The validation data, as it was given or set apart here.
        facts: Where it comes from, for the model directory.
    """

    texts: list[str]
    labels: list[dict[Any, float]]
    valid: Any
    facts: dict[str, Any]


def teaching_config(owner: Any) -> TeachingConfig | None:
    """Return how a classifier, of texts or of relations, is to be taught, if it is.

    Raises:
        ConfigError: If it is not made for that, or a setting makes no sense.
    """
    if owner.teaching is not None and getattr(owner, "multilabel", False):
        raise ConfigError("teaching is for one label a text, got multilabel=True")
    return read_teaching(owner.teaching, TeachingConfig)


def read_teaching(given: Any, kind: type[Config]) -> Config | None:
    """Return the setting `teaching` of a task as a whole table.

    Args:
        given: None, such a table, or the settings in it that differ; a single teacher need not
            stand in a list.
        kind: What the table is.

    Raises:
        ConfigError: If it is something else.
    """
    if given is None or isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"teaching must be a table of settings, got {given!r}")
    table = dict(given)
    if isinstance(table.get("teachers"), str | PathLike) or hasattr(table.get("teachers"), "fit"):
        table["teachers"] = [table["teachers"]]
    return from_dict(kind, table, where="teaching")


def taught(
    owner: Classifier,
    config: TeachingConfig,
    x: Any,
    y: Any,
    valid: Any,
    *,
    share: float,
    seed: int,
) -> Taught:
    """Return the texts a classifier learns from, with the probabilities of their labels.

    Args:
        owner: The classifier.
        config: How it is taught.
        x: Its texts, as `fit` takes them.
        y: Their labels, unless `x` brings them.
        valid: Its validation data; without any, a share of the labeled texts is set apart, which
            are measured by their labels alone.
        share: That share.
        seed: What decides which they are.
    """
    teachers = [open_teacher(type(owner), each) for each in config.teachers]
    texts, labels = _labeled(x, y)
    if not texts:
        raise InputError("there must be at least one text, got none")
    shares = as_label_shares(labels, len(texts))
    classes = class_labels(shares.labels)
    table = shares.table(classes, "training").astype(np.float64)
    if valid is None:
        apart = set_apart(table.argmax(axis=1), share, seed)
        if apart.any():
            own = np.array(classes)[table.argmax(axis=1)][apart]
            valid = [text for text, away in zip(texts, apart, strict=True) if away], own
            texts = [text for text, away in zip(texts, apart, strict=True) if not away]
            table = table[~apart]
    if config.share:
        said = mean_shares(teachers, texts, classes)
        table = (1 - config.share) * table + config.share * said
    more, own_labels = _further(config.texts)
    if more:
        odds = np.log(np.clip(mean_shares(teachers, more, classes), 1e-6, 1.0))
        if config.prior:
            odds += config.prior * _of_own(own_labels, classes)
        chances = np.exp(odds - odds.max(axis=1, keepdims=True))
        table = np.concatenate([table, chances / chances.sum(axis=1, keepdims=True)])
    names = classes.tolist()
    found = [dict(zip(names, row, strict=True)) for row in table.tolist()]
    facts: dict[str, Any] = {
        "teachers": [teacher.arch_ for teacher in teachers],
        "share": config.share,
        "prior": config.prior,
        "further": len(more),
    }
    if isinstance(config.texts, str | PathLike):
        facts["texts"] = fspath(config.texts)
    return Taught([*texts, *more], found, valid, facts)


def open_teacher(kind: type[Any], source: Any) -> Any:
    """Return a fitted model of a kind that gives one probability a class.

    Args:
        kind: The class of the estimator that is taught.
        source: A teacher, its directory, or the name of one that comes with the package.

    Raises:
        ConfigError: If it is none.
    """
    teacher = open_fitted(kind, source)
    decision = getattr(teacher, "decision_", None)
    is_multilabel = decision is not None and decision.multilabel
    if is_multilabel or not hasattr(teacher, "predict_proba"):
        raise ConfigError(
            "a teacher must give one probability a class, which multilabel classifiers and "
            f"perceptrons do not, got arch={teacher.arch_!r}"
        )
    return teacher


def open_fitted(kind: type[Any], source: Any) -> Any:
    """Return a fitted model of a kind that is to teach, given as it is, as its directory or name.

    Raises:
        ConfigError: If it is something else.
    """
    teacher = kind.load(source) if isinstance(source, str | PathLike) else source
    if not isinstance(teacher, kind):
        raise ConfigError(f"a teacher must be a {kind.__name__} or a directory, got {source!r}")
    teacher.require_fitted()
    return teacher


def _labeled(x: Any, y: Any) -> tuple[list[str], list[Any]]:
    """Texts and their labels."""
    x = opened(x)
    if not is_text(x):
        raise InputError("teaching is for texts as they were written, got something else in X")
    texts, labels = texts_and_labels(x, multilabel=False)
    if labels is not None:
        if y is not None:
            raise InputError("labels must be given once, got labeled texts and y as well")
        return texts, [each[0] for each in labels]
    if y is None:
        raise InputError("there must be a label an example, got y=None")
    return texts, list(y)


def _further(source: Any) -> tuple[list[str], list[str | None]]:
    """Texts that were not labeled for this, and the label each has by itself, if it has one."""
    if source is None:
        return [], []
    if isinstance(source, str | PathLike):
        source = read_input(source, "text")
    if not isinstance(source, Iterable) or isinstance(source, Iterator):
        raise ConfigError(
            f"teaching.texts must be a list, a file or NAME:SPLIT, got {type(source).__name__}"
        )
    texts, labels = [], []
    for number, each in enumerate(source):
        text = each if isinstance(each, str) else getattr(each, "text", None)
        if not isinstance(text, str):
            raise InputError(f"teaching.texts must be texts, got {each!r} at {number}")
        texts.append(text)
        has_label = isinstance(each, LabeledText) and len(each.labels) == 1
        labels.append(each.labels[0] if has_label else None)
    return texts, labels


def _of_own(labels: Sequence[str | None], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which class (N, C) is a text's own label."""
    names = classes.tolist()
    unknown = next((each for each in labels if each is not None and each not in names), None)
    if unknown is not None or not any(each is not None for each in labels):
        raise InputError(
            f"teaching.prior is for texts with labels of the training data, {names}, got "
            f"{'none with a label' if unknown is None else repr(unknown)}; set it to 0"
        )
    own: NDArray[np.bool_] = np.array([[each == name for name in names] for each in labels])
    return own


def mean_shares(
    teachers: Sequence[Any], texts: Sequence[Any], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """The mean probability of each class, (N, C), by several teachers."""
    total = np.zeros((len(texts), len(classes)))
    for teacher in teachers:
        known, names = teacher.classes_.tolist(), classes.tolist()
        if set(known) != set(names):
            raise InputError(
                f"a teacher must have the labels of the training data, {names}, got {known}"
            )
        order = [known.index(name) for name in names]
        total += teacher.predict_proba(texts)[:, order]
    mean: NDArray[np.float64] = total / len(teachers)
    return mean
