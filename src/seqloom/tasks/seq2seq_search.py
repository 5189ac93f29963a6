"""How texts are searched for, or drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from seqloom.config import from_dict
from seqloom.decoding.sampling import check_sampling
from seqloom.errors import ConfigError, one_of
from seqloom.tasks.seq2seq_fusion import open_language_model

LONGEST = 512
LM_WEIGHT = 0.2  # of a fused language model


@dataclass(frozen=True, kw_only=True)
class Search:
    """How texts are searched for, or drawn.

    Args:
        beam: How many texts stay alive; 1 takes the likeliest word each time. A beam wider than
            the vocabulary keeps what there is.
        n_best: How many texts to return for a source.
        length_penalty: Alpha of `seqloom.decoding.beam.length_norm`.
        coverage_penalty: Beta of `seqloom.decoding.coverage`; of models with attention.
        min_length: How many words to write at least.
        max_length: How many at most, the end among them; by default 20 more than twice the items
            of the source and no more than 512, but enough for `min_length` and `prefix`.
        prefix: How every text must begin; of words that the model knows or, of a pointer, that the
            source has.
        no_repeat: The length of runs of words that may come only once; 0 for no such rule.
        temperature: Above 0 draws by chance in place of the search; see `seqloom.decoding.chances`.
        top_k: Of drawing: among the k likeliest words only; 0 for all.
        top_p: Of drawing: among the likeliest words that together have this probability.
        seed: Of drawing; source i has seed + i.
        language_model: A `LanguageModel` of the target's words, fused in; its directory or the name
            of a shipped one will do.
        lm_weight: Its weight, 0.2 if not given; 0 changes nothing. See `seqloom.decoding.fused`.
        replace_unknown: Whether a word the model does not know is the word of the source it looks
            at most, in place of never being written; of models with attention.
        attention: Whether to return where each text looked.
        batch_size: Sources searched for at once.
    """

    beam: int = 5
    n_best: int = 1
    length_penalty: float = 0.6
    coverage_penalty: float = 0.0
    min_length: int = 0
    max_length: int | None = None
    prefix: str = ""
    no_repeat: int = 0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    language_model: Any = None
    lm_weight: float | None = None
    replace_unknown: bool = False
    attention: bool = False
    batch_size: int = 64

    def __post_init__(self) -> None:
        check_sampling(self.temperature, self.top_k, self.top_p)
        self._check_numbers()
        if self.temperature and (self.n_best > 1 or self.coverage_penalty):
            raise ConfigError(
                "n_best and coverage_penalty belong to a search, got temperature="
                f"{self.temperature}; leave one of them out"
            )
        if not self.temperature and (self.top_k or self.top_p < 1):
            raise ConfigError(
                "top_k and top_p belong to drawing by chance, got temperature=0; set temperature"
            )
        if self.lm_weight and self.language_model is None:
            raise ConfigError(f"lm_weight={self.lm_weight} needs a language_model, got None")
        if self.language_model is not None:
            object.__setattr__(self, "language_model", open_language_model(self.language_model))

    def _check_numbers(self) -> None:
        if self.beam < 1 or self.batch_size < 1:
            raise ConfigError(
                f"beam and batch_size must be at least 1, got {self.beam} and {self.batch_size}"
            )
        if self.max_length is not None and self.max_length < 1:
            raise ConfigError(f"max_length must be at least 1, got {self.max_length}")
        if not 1 <= self.n_best <= self.beam:
            raise ConfigError(f"n_best must lie between 1 and beam={self.beam}, got {self.n_best}")
        longest = math.inf if self.max_length is None else self.max_length
        if not 0 <= self.min_length <= longest:
            raise ConfigError(
                f"min_length must lie between 0 and max_length={self.max_length}, got "
                f"{self.min_length}"
            )
        for name in ("length_penalty", "coverage_penalty", "lm_weight"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"{name} must not be negative or infinite, got {value}")
        if self.no_repeat < 0:
            raise ConfigError(f"no_repeat must not be negative, got {self.no_repeat}")

    @property
    def fused_weight(self) -> float:
        """What the language model counts; 0 without one."""
        if self.language_model is None:
            return 0.0
        return LM_WEIGHT if self.lm_weight is None else self.lm_weight

    def longest(self, items: int, begun: int) -> int:
        """How many words a text may have, its end among them.

        Args:
            items: How many items its source has.
            begun: How many words the prefix has.
        """
        if self.max_length is not None:
            return self.max_length
        return max(min(LONGEST, 20 + 2 * items), self.min_length + 1, begun + 1)


def make_search(options: Mapping[str, Any]) -> Search:
    """The search that options describe; an unknown one is refused with the nearest known name."""
    known = [field.name for field in fields(Search)]
    for name in options:
        if name not in known:
            raise ConfigError(one_of("option of a search", name, known))
    return from_dict(Search, options)
