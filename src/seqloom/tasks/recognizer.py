"""Recognizers: sequences of vectors to sequences of labels, not aligned with each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from numpy.typing import NDArray

from seqloom.architectures import load_config_class, load_model_class
from seqloom.config import to_dict
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.models.linear import diagonal_basis
from seqloom.tasks.classifier_training import hold_out
from seqloom.tasks.directory import ModelHeader, StoredModel, write_model
from seqloom.tasks.estimator import Estimator, tensor_shapes
from seqloom.tasks.fitting import (
    Callbacks,
    Learned,
    RunSettings,
    fitting,
    origin,
    run_training,
)
from seqloom.tasks.labels import labels_from_dict, labels_to_dict
from seqloom.tasks.recognizer_data import (
    all_labels,
    as_features,
    encode,
    read_labeled,
    read_vectors,
)
from seqloom.tasks.recognizer_reading import (
    Reading,
    Recognition,
    closeness,
    labels_goal,
    recognitions,
)
from seqloom.tasks.setting_checks import check_count
from seqloom.tasks.supervised_objective import Examples

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel
    from seqloom.training import TrainConfig


class Recognizer(Estimator):
    r"""Learns to read labels off sequences of vectors: speech frames, pen strokes, columns of ink.

    Nobody says where in the sequence a label lies. The network gives a label or a blank at each
    step; the probability of the labels is the sum over all ways to lie them out, and that is what
    is trained (connectionist temporal classification, Graves et al. 2006).

    Args:
        arch: "ctc".
        valid_share: The share of the training data that validates where `fit` is given no `valid`;
            None takes 0.1.
        training: Settings of the loop.
        options: Settings of the architecture: `cell`, `hidden_size`, `num_layers`,
            `bidirectional`, `dropout`, ...

    Attributes:
        labels_: The labels, sorted, in an array of their own type.
        n_features_in_: The width of the vectors.

    Examples:
        >>> x = [[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]] * 8
        >>> y = ["ab", "ba"] * 8
        >>> training = {"epochs": 60, "batch": {"batch_size": 4}}
        >>> model = Recognizer(hidden_size=8, valid_share=0, training=training).fit(x, y)
        >>> [found.text for found in model.recognize(x[:2])]
        ['ab', 'ba']
    """

    task: ClassVar[str] = "recognize"
    settings: ClassVar[tuple[str, ...]] = ("valid_share", "training")
    valid_share: float | None
    labels_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        arch: str = "ctc",
        *,
        valid_share: float | None = None,
        training: TrainConfig | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(arch, options, valid_share=valid_share, training=training)

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
            X: Sequences of vectors, (T, D) each, of any lengths.
            y: The labels of each: a list, or a string of a label a character. Some may have none.
            valid: The pair (X, y) that decides which weights are best and when it stops.
            out: A directory for checkpoints and, at the end, the model.
            resume: Whether to go on with an interrupted run in `out`.
            callbacks: Told how it goes; see `seqloom.training`.

        Raises:
            InputError: If a sequence is shorter than its labels need: a step each, and one between
                two that are equal.
        """
        self.build_config(input_size=1, output_size=2)
        share = self._share()
        with fitting(self, out, resume=resume, callbacks=callbacks) as settings:
            given = read_labeled(X, y)
            labels = all_labels(given.y)
            train = encode(given, labels, "training")
            checked: Examples | None = None
            if valid is not None:
                others = read_labeled(*_pair(valid), width=train.features.width)
                checked = encode(others, labels, "validation")
            else:
                train, checked = hold_out(train, share, settings.training.seed)
            run = settings.with_data(self.training, is_checked=checked is not None)
            model, learned = self._learn(train, checked, labels, run)
            self.model_, self.metrics_, self.labels_ = model, learned.metrics, labels
            self.n_features_in_ = train.features.width
            count = len(train.targets)
            self.provenance_ = origin(None, None, run.training, examples=count, **learned.history)
        return self

    def _share(self) -> float:
        share = self.valid_share
        if share is None:
            return float(load_config_class(self.architecture).VALID_SHARE)
        if not (isinstance(share, int | float) and 0 <= share < 1):
            raise ConfigError(f"valid_share must lie in [0, 1), got {share!r}")
        return float(share)

    def _learn(
        self, train: Examples, valid: Examples | None, labels: NDArray[Any], run: RunSettings
    ) -> tuple[Any, Learned]:
        features = train.features
        config = self.build_config(input_size=features.width, output_size=len(labels) + 1)
        run = run.about(model=to_dict(config), examples=len(train.targets), labels=labels.tolist())
        with torch.random.fork_rng():
            torch.manual_seed(run.training.seed)
            model = load_model_class(self.architecture)(config)
            mean, variance = (torch.from_numpy(part) for part in features.moments())
            model.input.standardize(mean, diagonal_basis(variance, 0.0))
            learned = run_training(model, train, valid, labels_goal(), run)
        return model, learned

    # -- use -------------------------------------------------------------------------------------

    def recognize(
        self,
        X: Any,  # noqa: N803
        *,
        beam: int | None = None,
        language: LanguageModel | None = None,
        weight: float = 0.5,
        bonus: float = 0.0,
    ) -> list[Recognition]:
        r"""Return the labels of each sequence.

        Without `beam` and `language` the likeliest label of each step is taken. Else the labels of
        the highest $\ln p(l \mid x) + \lambda \ln p_{LM}(l) + \beta |l|$ are searched for, all
        their alignments counted.

        Args:
            X: Sequences of vectors, (T, D) each.
            beam: How many beginnings the search keeps; 16 where there is a language model.
            language: A fitted `LanguageModel` whose words are the labels.
            weight: Lambda.
            bonus: Beta, which makes up for a language model's liking for short sequences.
        """
        reading = Reading(beam=beam, language=language, weight=weight, bonus=bonus)
        return [found[0] for found in self._read(X, reading, 1)]

    def n_best(
        self,
        X: Any,  # noqa: N803
        n: int,
        *,
        beam: int | None = None,
        language: LanguageModel | None = None,
        weight: float = 0.5,
        bonus: float = 0.0,
    ) -> list[list[Recognition]]:
        """Return the `n` best readings of each sequence, best first; fewer if there are no more.

        The other settings are those of `recognize`.
        """
        check_count("n", n)
        reading = Reading(beam=beam, language=language, weight=weight, bonus=bonus)
        return self._read(X, reading, n)

    def _read(self, x: Any, reading: Reading, n: int) -> list[list[Recognition]]:
        self.require_fitted()
        features = as_features(read_vectors(x, self.n_features_in_))
        return recognitions(self.model_, features, self.labels_, reading, n)

    def predict(self, X: Any) -> list[list[Any]]:  # noqa: N803
        """Return the labels of each sequence, by the likeliest label of each step."""
        return [found.labels for found in self.recognize(X)]

    def predict_lines(self, lines: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For the command line: the labels of each line, a JSON object with the vectors in "x"."""
        for number, line in enumerate(lines, 1):
            try:
                x = json.loads(line)["x"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise DataError(
                    f'a line must be a JSON object with vectors in "x", got {line[:60]!r}',
                    line=number,
                ) from None
            try:
                found = self.recognize([x])[0]
            except DataError as error:
                raise DataError(error.message, line=number) from None
            yield {"labels": found.labels, "log_prob": found.log_prob}

    def evaluate(
        self,
        data: Any,
        y: Any = None,
        *,
        beam: int | None = None,
        language: LanguageModel | None = None,
        weight: float = 0.5,
        bonus: float = 0.0,
    ) -> dict[str, float]:
        """Return how well labels are read; the settings are those of `recognize`.

        Args:
            data: Sequences of vectors, or the pair (X, y).
            y: The labels of each.
            beam: As for `recognize`.
            language: As for `recognize`.
            weight: As for `recognize`.
            bonus: As for `recognize`.

        Returns:
            `error_rate` (edits a label), `exact` (the share of sequences without a mistake) and
            `examples`.
        """
        self.require_fitted()
        x, y = (data, y) if y is not None else _pair(data)
        given = read_labeled(x, y, self.n_features_in_)
        reading = Reading(beam=beam, language=language, weight=weight, bonus=bonus)
        found = [each[0].labels for each in self._read(given.x, reading, 1)]
        return {**closeness(found, given.y), "examples": float(len(found))}

    # -- saving ----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the weights by name, with their shapes."""
        self.require_fitted()
        return tensor_shapes(self.model_)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write a model directory."""
        self.require_fitted()
        header = ModelHeader(
            task=self.task,
            architecture=self.arch_,
            config=to_dict(self.model_.config),
            settings={"labels": labels_to_dict(self.labels_)},
            metrics=self.metrics_,
            provenance=self.provenance_,
        )
        return write_model(directory, header, self.model_.state_dict(), {})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Build the recognizer a directory describes."""
        header = stored.header
        model = cls(header.architecture)
        model.labels_ = labels_from_dict(header.settings["labels"])
        model.n_features_in_ = header.config["input_size"]
        model._restore(stored)
        return model


def _pair(data: Any) -> tuple[Any, Any]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise InputError("examples must be given as the pair (X, y), got something else")
    return data
