"""Writing with a language model: which ids come next, chosen by chance or by a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqloom.decoding import Limits, beam_search, sample
from seqloom.decoding.steps import as_array
from seqloom.errors import ConfigError
from seqloom.tasks.language_engine import Floats, Ids, LanguageEngine, Reading
from seqloom.tasks.setting_checks import check_number, check_whole


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How to go on from a prompt; `LanguageModel.generate` says what each setting means."""

    max_words: int = 50
    min_words: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    beam: int | None = None
    length_penalty: float = 0.0
    no_repeat: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("max_words", 1), ("min_words", 0), ("top_k", 0), ("no_repeat", 0)):
            check_whole(self, name, least)
        if self.beam is not None:
            check_whole(self, "beam", 1)
        for name in ("temperature", "top_p", "length_penalty"):
            check_number(name, getattr(self, name))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise ConfigError(f"seed must be a whole number, got {self.seed!r}")
        if not 0 <= self.min_words <= self.max_words:
            raise ConfigError(
                f"min_words must lie between 0 and max_words={self.max_words}, got {self.min_words}"
            )
        if self.beam is None and self.length_penalty:
            raise ConfigError(
                f"length_penalty ranks what a beam found, got {self.length_penalty} without beam; "
                "give beam"
            )
        if self.beam is not None:
            for name, given, usual in (
                ("temperature", self.temperature, 1.0),
                ("top_k", self.top_k, 0),
                ("top_p", self.top_p, 1.0),
            ):
                if given != usual:
                    raise ConfigError(
                        f"{name} is of drawing by chance, got {given} with beam={self.beam}, which "
                        f"searches for the likeliest text; leave {name} or beam out"
                    )


def begun(engine: LanguageEngine, ids: Ids, end: int) -> Reading:
    """Read a prompt, which begins a sentence."""
    return engine.read(np.array([[end, *ids.tolist()]]))


def next_log_probs(engine: LanguageEngine, ids: Ids, end: int) -> Floats:
    """The log-probability of every id (V,) after a prompt."""
    found: Floats = as_array(engine.step(*begun(engine, ids, end))[0])[0]
    return found


def write(
    engine: LanguageEngine, ids: Ids, writing: Writing, *, end: int, forbidden: set[int]
) -> list[int]:
    """Ids that go on from a prompt: the prompt is read once, then one step an id."""
    limits = Limits(
        max_length=writing.max_words,
        min_length=writing.min_words,
        stop=end,
        forbidden=forbidden,
        no_repeat=writing.no_repeat,
    )
    last, state = begun(engine, ids, end)
    history = [ids.tolist()]
    if writing.beam is not None:
        found = beam_search(
            engine.step,
            state,
            last.tolist(),
            limits,
            beam=writing.beam,
            length_penalty=writing.length_penalty,
            history=history,
        )
        return list(found[0][0].ids) if found[0] else []
    (drawn,) = sample(
        engine.step,
        state,
        last.tolist(),
        limits,
        seeds=[writing.seed],
        temperature=writing.temperature,
        top_k=writing.top_k,
        top_p=writing.top_p,
        history=history,
    )
    return list(drawn.ids)
