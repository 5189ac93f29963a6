"""Language models side by side on one text."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.decoding.steps import as_array
from seqloom.errors import ConfigError, DataError
from seqloom.metrics import bits_per, perplexity
from seqloom.metrics.bootstrap import paired_bootstrap
from seqloom.tasks.corpus import TextSource, text_examples
from seqloom.tasks.language_engine import Floats
from seqloom.tasks.measuring import WORDS, measured
from seqloom.text.pipeline import Unit

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

CONTEXTS = (1, 2, 4, 8, 16, 32, 64)
PIECE = 100  # contexts read side by side


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One model in a league.

    Args:
        name: What it was called.
        arch: Its architecture.
        word_perplexity: Perplexity a word of the text, the end of each sentence being one.
        perplexity: Perplexity a token of the model's own.
        bits_per_character: Bits a character of the text, the end of each sentence being one.
        ratio: `word_perplexity` divided by that of the best model.
        low: The lower end of the 95 % interval of `ratio`, by a paired bootstrap over sentences.
        high: The upper end.
        unknown: The share of its tokens that are unknown words.
        parameters: How many numbers it holds: weights, or n-grams.
        seconds: How long fitting it took, if that is known.
        words_per_second: How fast it scored the text.
    """

    name: str
    arch: str
    word_perplexity: float
    perplexity: float
    bits_per_character: float
    ratio: float
    low: float
    high: float
    unknown: float
    parameters: int
    seconds: float | None
    words_per_second: float


def common_unit(models: Sequence[LanguageModel]) -> Unit:
    """The unit to count words in: that of the first model whose tokens are words, or "word"."""
    units = [model.pipeline_.config.unit for model in models]
    return next((unit for unit in units if unit in WORDS), "word")


def compare(
    models: Mapping[str, LanguageModel],
    data: TextSource,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Standing]:
    """Measure models on one text; the best comes first.

    Models with different units (words, characters, subwords) compare by `word_perplexity` and
    `bits_per_character`, which divide the loss of the whole text by the same numbers. Models with
    different vocabularies do not quite: what one calls unknown the other has to spell.

    Args:
        models: Fitted models by name.
        data: A file, "NAME:SPLIT" of a named data set, or texts.
        resamples: How often the bootstrap draws.
        seed: Of chance.
    """
    if not models:
        raise ConfigError("there must be a model to compare, got none")
    for model in models.values():
        model.require_fitted()
    unit = common_unit(list(models.values()))
    texts = list(text_examples(data))
    losses: dict[str, Floats] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name, model in models.items():
        text = measured(texts, model.reader, unit)
        model.engine_.stream(text.ids[: int(text.tokens[0])])  # what is slow the first time
        began = time.perf_counter()
        logs = model.engine_.stream(text.ids)[0]
        seconds = time.perf_counter() - began
        starts = np.concatenate([[0], np.cumsum(text.tokens)[:-1]])
        losses[name] = -np.add.reduceat(logs, starts)
        sizes = text.words
        total, words = float(losses[name].sum()), float(sizes.sum())
        unk = model.vocabulary_[model.vocabulary_.specials.unk]
        rows[name] = {
            "name": name,
            "arch": model.arch_,
            "word_perplexity": perplexity(total, words),
            "perplexity": perplexity(total, len(text.ids)),
            "bits_per_character": bits_per(total, float(text.characters.sum())),
            "unknown": float((text.ids == unk).mean()),
            "parameters": sum(math.prod(shape) for shape in model.shapes().values()),
            "seconds": model.provenance_.get("seconds"),
            "words_per_second": words / seconds,
        }
    best = min(rows, key=lambda name: rows[name]["word_perplexity"])
    found = []
    for name in sorted(rows, key=lambda name: float(rows[name]["word_perplexity"])):
        low, high = 0.0, 0.0
        if name != best and np.isfinite(losses[name]).all():
            low, high = paired_bootstrap(
                losses[name], losses[best], sizes, resamples=resamples, seed=seed
            )
        ratio = rows[name]["word_perplexity"] / rows[best]["word_perplexity"]
        found.append(Standing(**rows[name], ratio=ratio, low=math.exp(low), high=math.exp(high)))
    return found


def by_context(
    model: LanguageModel,
    data: TextSource,
    lengths: Sequence[int] | None = None,
    *,
    positions: int = 1000,
    seed: int = 0,
) -> dict[int | None, float]:
    """How the perplexity of a model falls with the length of context it may use.

    Words are drawn from the text, the same for every length. Before each, a state that knows
    nothing reads the last k tokens of the text alone; so a longer memory than k is of no use.

    Args:
        model: A fitted model.
        data: A file, "NAME:SPLIT" of a named data set, or texts.
        lengths: The lengths k; by default 1, 2, 4, ... 64, as far as the text is twice as long.
        positions: How many words to draw.
        seed: Of chance.

    Returns:
        The perplexity a token by length; under None that with all there is, on the same words.
    """
    model.require_fitted()
    ids = measured(text_examples(data), model.reader, None).ids
    if lengths is None:
        lengths = [k for k in CONTEXTS if k == 1 or 2 * k <= len(ids)]
    if not lengths or min(lengths) < 1 or positions < 1:
        raise ConfigError(
            f"lengths and positions must be at least 1, got {list(lengths)} and {positions}"
        )
    longest = max(lengths)
    if len(ids) <= longest:
        raise DataError(
            f"a context of {longest} tokens needs a longer text, got {len(ids)} tokens; give "
            "shorter lengths"
        )
    chance = np.random.default_rng(seed)
    places = np.arange(longest, len(ids))
    if len(places) > positions:
        places = np.sort(chance.choice(places, positions, replace=False))
    found: dict[int | None, float] = {}
    for k in lengths:
        total = 0.0
        for begin in range(0, len(places), PIECE):
            at = places[begin : begin + PIECE]
            reading = model.engine_.read(ids[at[:, None] + np.arange(-k, 0)])
            logs = as_array(model.engine_.step(reading.last, reading.state)[0])
            total -= float(logs[np.arange(len(at)), ids[at]].sum())
        found[k] = perplexity(total, len(places))
    whole = model.engine_.stream(ids[: places[-1] + 1])[0]
    found[None] = perplexity(-float(whole[places].sum()), len(places))
    return found
