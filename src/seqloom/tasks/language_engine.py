"""What the language model estimator asks of whatever predicts its words.

An engine knows ids, not text: the estimator reads text with a `TextPipeline`, numbers it with a
`Vocabulary`, and hands the numbers on. There are networks (`neural_language`), counts
(`counted_language`), grammars (`grammar_language`), and what is made of fitted models: mixtures
(`mixing`) and caches (`neural_cache`). Only networks and caches import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import COMPOSITES, Architecture, import_place
from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.tasks.corpus import TextSource, TextSources, prepared_text
from seqloom.tasks.directory import StoredModel
from seqloom.tasks.reversal import turned
from seqloom.text.pipeline import TextPipeline
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.pretrained import VectorSource
    from seqloom.training import StepReport, TrainConfig

Ids = NDArray[np.int32]
Floats = NDArray[np.float64]
WINDOW = 35  # the estimator's default: tokens a step of back-propagation through time


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What is to be fitted, to what, and where.

    Args:
        architecture: The entry of the table.
        build_config: Makes the architecture's configuration, given what the data decides.
        build_training: Makes the settings of the loop, for an engine that has one.
        training: These as the user gave them.
        window: Tokens a step of back-propagation through time.
        prepare: How text becomes numbers.
        asked: What of it the user chose, which prepared data must not contradict.
        train: The training text.
        valid: The validation text, if there is one.
        place: The directory of the model, if there is to be one.
        resume: Whether to go on with an interrupted run in it.
        callbacks: Told how training goes.
        reverse: Whether sentences are read from right to left.
        vectors: Word vectors a network begins with, if not its own.
        tune_vectors: Whether those are trained further.
    """

    architecture: Architecture
    build_config: Callable[..., Any]
    build_training: Callable[[], TrainConfig]
    training: TrainConfig | Mapping[str, Any] | None
    window: int
    prepare: PrepareConfig
    train: TextSource
    valid: TextSource | None
    place: Path | None
    resume: bool
    callbacks: Sequence[Callable[[StepReport], object]]
    reverse: bool = False
    vectors: VectorSource | None = None
    tune_vectors: bool = True
    asked: Mapping[str, Any] = field(default_factory=dict)

    def prepared(self, folder: Path) -> tuple[PreparedData, PreparedData | None]:
        """The training and the validation text as numbers, in files under `folder`."""
        data = prepared_text(self.train, folder / "train", self.prepare, asked=self.asked)
        valid = None
        if self.valid is not None:
            valid = prepared_text(self.valid, folder / "valid", like=data)
        if self.reverse:
            return turned(data), valid and turned(valid)
        return data, valid


class Fitted(NamedTuple):
    """What `fit` of an engine gives back.

    Args:
        engine: The engine.
        vocabulary: The words of the training text.
        pipeline: How the text was read.
        metrics: What was reached on the validation text.
        provenance: How it came about, versions included.
        writes: Whether this process writes the model; of several, one does.
        wait: To be called when the model is written.
    """

    engine: LanguageEngine
    vocabulary: Vocabulary
    pipeline: TextPipeline
    metrics: dict[str, float]
    provenance: dict[str, Any]
    writes: bool
    wait: Callable[[], None]


class Reading(NamedTuple):
    """How far texts were read: the last id of each, and the state before it.

    Args:
        last: (B,) ids, which the model has yet to see.
        state: What `step` takes, one row a text; see `seqloom.decoding.Step`.
    """

    last: NDArray[np.int64]
    state: Any


class LanguageEngine(Protocol):
    """A fitted model over the ids of a vocabulary; sequences begin after a sentence's end."""

    model: Any
    """The network or the counted model itself."""

    @classmethod
    def fit(cls, request: FitRequest) -> Fitted:
        """Fit a model; on failure nothing is left in `request.place`."""

    def loss(self, ids: Ids) -> tuple[float, int]:
        """The loss in nats, summed over a text of whole sentences, and over how many ids."""

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id of each sequence, given those before it."""

    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """The log-probability of each id of a text read as `loss` reads it, and how far it got.

        Args:
            ids: The text, or a piece of it.
            reading: Where to go on from; without one, a sentence has just ended.
        """

    def read(self, ids: NDArray[Any]) -> Reading:
        """Read B texts (B, T) of at least one id each, nothing being known of what came before.

        A text that begins with the end of a sentence begins a sentence.
        """

    def step(self, ids: NDArray[Any], state: Any) -> tuple[Any, Any]:
        """Read one more id of each of B texts.

        Returns:
            The log-probability of every id that may come next (B, V), and the state to go on from.
        """

    def config(self) -> dict[str, Any]:
        """The architecture's full configuration."""

    def weights(self) -> Mapping[str, Any] | None:
        """The tensors to save, if there are any."""

    def files(self) -> dict[str, Any]:
        """Further files to save, as `write_model` takes them."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of the model by name, with their shapes."""

    @classmethod
    def restore(
        cls, architecture: Architecture, config: Any, vocabulary: Vocabulary, stored: StoredModel
    ) -> LanguageEngine:
        """The engine of a model directory."""


@runtime_checkable
class HoldsModels(Protocol):
    """An engine that is made of other language models, which are saved inside it."""

    def parts(self) -> Mapping[str, Any]:
        """The models, by the names of their directories."""


@runtime_checkable
class FillsBlanks(Protocol):
    """An engine that sees both sides of a word."""

    def fill_log_probs(self, left: Ids, right: Ids) -> Floats:
        """The log-probability of every id (V,) between two sides of a sentence."""


@runtime_checkable
class ReadsBack(Protocol):
    """An engine that is a language model of the other direction too."""

    def backward_loss(self, ids: Ids) -> tuple[float, int]:
        """As `loss`, of a text whose sentences are turned around."""


def origin(source: Any) -> str | None:
    """Where a text came from, for a model's provenance."""
    if source is None:
        return None
    known = isinstance(source, (str, PathLike, TextSources))
    return str(source) if known else "given in Python"


def engine_class(architecture: Architecture) -> type[LanguageEngine]:
    """The engine of an architecture, imported now."""
    if architecture in COMPOSITES:
        composite: type[LanguageEngine] = import_place(architecture.model)
        return composite
    if architecture.reads == "trees":
        from seqloom.tasks.grammar_language import GrammarLanguage

        return GrammarLanguage
    if architecture.is_counted:
        from seqloom.tasks.counted_language import CountedLanguage

        return CountedLanguage
    from seqloom.tasks.neural_language import NeuralLanguage

    return NeuralLanguage
