"""A language model fused into the search of an encoder-decoder."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.decoding import Step, fused
from seqloom.decoding.steps import Numbers
from seqloom.errors import ConfigError
from seqloom.tasks.seq2seq_text import PairText

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

KNOWN = 0.5  # of the words that may be written, how many a language model must know
KNOWN_OF_SHARED = 0.25  # the same where they are those of both sides


def open_language_model(given: Any) -> LanguageModel:
    """The language model, or that of a directory or a name.

    Raises:
        ConfigError: If it is something else.
    """
    from seqloom.tasks.language_model import LanguageModel

    model = LanguageModel.load(given) if isinstance(given, str | PathLike) else given
    if not isinstance(model, LanguageModel):
        raise ConfigError(
            "language_model must be a LanguageModel, its directory or the name of a shipped one, "
            f"got {type(model).__name__}"
        )
    return model


def with_language_model(
    step: Step, state: Any, text: PairText, model: LanguageModel, weight: float, *, rows: int
) -> tuple[Step, Any]:
    """A step with a language model fused in, and where both start from.

    Args:
        step: Of the encoder-decoder.
        state: Where it starts from.
        text: What its ids mean.
        model: A model of the words it writes.
        weight: Lambda of `seqloom.decoding.fused`.
        rows: How many texts there are.
    """
    _check(model, text)
    theirs, ours = model.vocabulary_, text.target_vocabulary
    end = theirs[theirs.specials.eos]
    numbers = theirs.encode(ours.words).astype(np.int64)
    numbers[[text.begin, text.end]] = end
    unknown = theirs[theirs.specials.unk]

    def number(ids: Numbers) -> Numbers:
        found: Numbers = np.where(
            ids < len(numbers), numbers[np.minimum(ids, len(numbers) - 1)], unknown
        )
        return found

    reading = model.engine_.read(np.full((rows, 1), end))
    return fused(step, model.engine_.step, weight, number=number), (state, reading.state)


def _check(model: LanguageModel, text: PairText) -> None:
    """Refuse a model that reads the other way, or other words."""
    model.require_fitted()
    if model.reverse_:
        raise ConfigError("a fused language model reads left to right, got one with reverse=True")
    units = (text.target.config.unit, model.pipeline_.config.unit)
    # What stands between blanks may be anything, pieces too.
    if units[0] != units[1] and "space" not in units:
        raise ConfigError(
            f"language_model must read what is written, unit={units[0]!r}, got one of "
            f"unit={units[1]!r}; fit it to the same words or pieces"
        )
    ours, specials = text.target_vocabulary, text.target_vocabulary.specials.names()
    words = [word for word in ours if word not in specials]
    known = sum(word in model.vocabulary_ for word in words)
    least = KNOWN_OF_SHARED if text.settings.vocabulary.shared else KNOWN
    if known < least * len(words):
        raise ConfigError(
            f"language_model must know at least {least:.0%} of the {len(words):,} words or pieces "
            f"that are written, got {known:,}; fit it to the same words or pieces"
        )
