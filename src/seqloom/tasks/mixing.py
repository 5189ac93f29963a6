"""Several language models as one: each says how likely a word is, and the mean counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.architectures import Architecture
from seqloom.decoding.steps import as_array
from seqloom.errors import ConfigError, DataError
from seqloom.metrics import perplexity
from seqloom.ngram.mixing import fit_shares
from seqloom.tasks.corpus import TextSource, text_examples
from seqloom.tasks.directory import StoredModel, provenance, read_model
from seqloom.tasks.language_engine import FitRequest, Floats, Ids, Reading, origin
from seqloom.tasks.measuring import measured
from seqloom.tasks.parts import check_alike
from seqloom.tasks.setting_checks import check_number
from seqloom.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel


@dataclass(frozen=True, kw_only=True)
class MixConfig:
    """Settings of a mixture.

    Args:
        weights: One a model, from 0 on, 1 in all.
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        total = math.fsum(self.weights)
        if not all(weight >= 0 for weight in self.weights) or not abs(total - 1) <= 1e-6:
            raise ConfigError(
                f"weights must be at least 0 and sum to 1, got {list(self.weights)}, which sum to "
                f"{total:g}; divide them by their sum"
            )


class MixedLanguage:
    r"""The engine of a mixture of language models.

    $$p(w \mid h) = \sum_i \lambda_i \, p_i(w \mid h)$$

    Paper: Jelinek and Mercer (1980), "Interpolated Estimation of Markov Source Parameters from
    Sparse Data".

    Args:
        models: The models, which read text into the same ids.
        config: Their weights.
    """

    def __init__(self, models: Sequence[LanguageModel], config: MixConfig) -> None:
        if len(models) != len(config.weights):
            raise ConfigError(
                f"weights must be one a model, {len(models)}, got {len(config.weights)}: "
                f"{list(config.weights)}"
            )
        check_alike(models)
        self.model = tuple(models)
        self._config = config
        self._engines = [model.engine_ for model in models]
        with np.errstate(divide="ignore"):
            self._logs = np.log(np.array(config.weights))

    @classmethod
    def fit(cls, request: FitRequest) -> NoReturn:
        """Refuse: there is nothing to fit but the weights."""
        raise ConfigError(
            f"a mixture is made of fitted models, got fit of arch={request.architecture.name!r}; "
            "use seqloom.mix(models, heldout)"
        )

    # -- use -------------------------------------------------------------------------------------

    def loss(self, ids: Ids) -> tuple[float, int]:
        """Each model reads the text in its own way."""
        return -math.fsum(self.stream(ids)[0]), len(ids)

    def log_probs(self, sequences: Sequence[Ids]) -> list[tuple[float, ...]]:
        """The natural log-probability of each id."""
        said = [engine.log_probs(sequences) for engine in self._engines]
        return [
            tuple(self.mixed([np.array(row) for row in rows]).tolist())
            for rows in zip(*said, strict=True)
        ]

    def stream(self, ids: Ids, reading: Reading | None = None) -> tuple[Floats, Reading]:
        """Each model reads the text in its own way."""
        said, states = [], []
        for number, engine in enumerate(self._engines):
            own = None if reading is None else Reading(reading.last, reading.state[number])
            logs, after = engine.stream(ids, own)
            said.append(logs)
            states.append(after.state)
        return self.mixed(said), Reading(after.last, tuple(states))

    def read(self, ids: NDArray[Any]) -> Reading:
        """Every model reads."""
        readings = [engine.read(ids) for engine in self._engines]
        return Reading(readings[0].last, tuple(reading.state for reading in readings))

    def step(self, ids: NDArray[Any], state: Any) -> tuple[Floats, Any]:
        """Every model reads one more id of each text."""
        said, states = [], []
        for engine, own in zip(self._engines, state, strict=True):
            logs, after = engine.step(ids, own)
            said.append(as_array(logs))
            states.append(after)
        return self.mixed(said), tuple(states)

    def mixed(self, said: Sequence[Floats]) -> Floats:
        """The log-probabilities of the mixture, from those of each model."""
        total = np.full(said[0].shape, -np.inf)
        for weight, logs in zip(self._logs, said, strict=True):
            if weight > -np.inf:
                np.logaddexp(total, weight + logs, out=total)
        return total

    # -- saving ----------------------------------------------------------------------------------

    def parts(self) -> dict[str, LanguageModel]:
        """The models, by the names of their directories."""
        return {f"part-{number}": model for number, model in enumerate(self.model, 1)}

    def config(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": list(self._config.weights)}

    def weights(self) -> None:
        """None of its own."""
        return

    def files(self) -> dict[str, Any]:
        """None of its own."""
        return {}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of each model."""
        return {
            f"{part}/{name}": shape
            for part, model in self.parts().items()
            for name, shape in model.shapes().items()
        }

    @classmethod
    def restore(
        cls,
        architecture: Architecture,  # noqa: ARG003 (there is but one)
        config: MixConfig,
        vocabulary: Vocabulary,
        stored: StoredModel,
    ) -> Self:
        """The mixture of a model directory."""
        return cls(stored_parts(stored, vocabulary), config)


def stored_parts(stored: StoredModel, vocabulary: Vocabulary) -> list[LanguageModel]:
    """The models that a model directory holds, in order."""
    from seqloom.tasks.language_model import LanguageModel

    names = sorted(stored.models, key=lambda name: int(name.rpartition("-")[2]))
    models = [LanguageModel.from_stored(read_model(stored.models[name])) for name in names]
    for name, model in zip(names, models, strict=True):
        if model.vocabulary_ != vocabulary:
            raise DataError("has other words than the model that holds it", stored.place / name)
    return models


def composed(engine: Any, arch: str, like: LanguageModel, **facts: Any) -> LanguageModel:
    """A language model of an engine that is made of others, which reads text as one of them."""
    from seqloom.tasks.language_model import LanguageModel

    model = LanguageModel(arch, text=like.pipeline_.config, reverse=like.reverse_)
    model.arch_, model.window_, model.reverse_ = model.arch, model.window, model.reverse
    model.pipeline_, model.vocabulary_ = like.pipeline_, like.vocabulary_
    model.engine_, model.model_ = engine, engine.model
    model.metrics_ = facts.pop("metrics", {})
    model.provenance_ = provenance("numpy", **facts)
    return model


def word_log_probs(models: Sequence[LanguageModel], text: TextSource) -> Floats:
    """(M, T) what each model says of each word of a text, read as `evaluate` reads it.

    Raises:
        DataError: If the text is empty.
        ConfigError: If a model gives no probabilities.
    """
    ids = measured(text_examples(text), models[0].reader, None).ids
    return np.stack([model.engine_.stream(ids)[0] for model in models])


def _checked(weights: Any) -> tuple[float, ...]:
    """Weights as numbers; their sum is the affair of `MixConfig`."""
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise ConfigError(f"weights must be a list of numbers, one a model, got {weights!r}")
    found = tuple(weights)
    for number, weight in enumerate(found, 1):
        check_number(f"weight {number}", weight)
    return tuple(map(float, found))


def best_shares(logs: Floats) -> list[float]:
    """The weights under which a text is most probable, given (M, T) log-probabilities of its words.

    What all models give a probability of 0 is left out. No model alone is better than the mixture
    on the text: where EM has not quite arrived at one alone, it is taken.

    Raises:
        DataError: If nothing is left.
    """
    logs = logs[:, logs.max(axis=0) > -np.inf]
    if not logs.size:
        raise DataError(
            "heldout must hold a word that a model gives a probability, got none; give a text like "
            "those of the models"
        )
    # EM works with ratios, so each word may be scaled by its best model.
    probs = np.exp(logs - logs.max(axis=0))
    found = fit_shares(probs)
    with np.errstate(divide="ignore"):
        totals = np.log(np.array([*np.eye(len(logs)), found]) @ probs).sum(axis=1)
    best = int(totals.argmax())
    return found if totals[best] <= totals[-1] else np.eye(len(logs))[best].tolist()


def mix(
    models: Sequence[LanguageModel],
    heldout: TextSource | None = None,
    *,
    weights: Sequence[float] | None = None,
) -> LanguageModel:
    """Interpolate language models of any kind; the result is one too.

    The weights are those under which a held-out text is most probable, found by expectation
    maximization over the probabilities of its words. Two counted models can also be mixed into one
    that is stored once: `seqloom ngram mix`.

    Args:
        models: Fitted models that read text into the same ids: same text settings, same
            vocabulary, same direction. Fit them to the same prepared text to be sure.
        heldout: A text that no model was fitted to.
        weights: The weights themselves, instead of a text.

    Raises:
        ConfigError: If the models differ in how they read, with the difference, or are no
            distributions (stupid back-off).

    Examples:
        >>> from seqloom import LanguageModel
        >>> text = ["a rose is a rose"] * 9
        >>> one = LanguageModel("ngram", order=1, smoothing="witten-bell").fit(text)
        >>> two = LanguageModel("ngram", order=2, smoothing="witten-bell").fit(text)
        >>> mix([one, two], ["is a rose"]).score("a rose").total < 0
        True
    """
    if not models:
        raise ConfigError("mix needs at least one model, got none; give a list of models")
    if (weights is None) == (heldout is None):
        what = "neither" if weights is None else "both"
        raise ConfigError(f"mix needs either heldout or weights, got {what}; give one of them")
    check_alike(models)
    metrics = {}
    if weights is None:
        assert heldout is not None
        logs = word_log_probs(models, heldout)
        weights = best_shares(logs)
        engine = MixedLanguage(models, MixConfig(weights=tuple(weights)))
        mixed = engine.mixed(list(logs))
        metrics["heldout_perplexity"] = perplexity(-math.fsum(mixed), len(mixed))
    else:
        engine = MixedLanguage(models, MixConfig(weights=_checked(weights)))
    for model in models:
        model.engine_.stream(np.array([model.reader.end], np.int32))  # refused if no distribution
    return composed(engine, "mix", models[0], metrics=metrics, heldout=origin(heldout))
