"""Settings of a counted language model; light, so that options can be checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from seqloom.errors import ConfigError
from seqloom.ngram.methods import Smoothing, smoothing
from seqloom.ngram.workspace import LEAST, parse_size

HIGHEST_ORDER = 8
_OF_SMOOTHINGS = ("delta", "cutoff", "weights", "backoff")


@dataclass(frozen=True, kw_only=True)
class NgramConfig:
    """Settings of `NgramModel` as an architecture.

    Args:
        order: The length of the longest n-grams, 1 to 8.
        smoothing: How counts become probabilities; `seqloom.ngram.methods` has the equations.
        prune: By order, the count up to which n-grams are left out; the last holds for the rest.
            That of order 1 is 0: which words are known is a matter of the vocabulary.
        delta: What "add-delta" adds to every count.
        cutoff: The highest count that "good-turing" discounts.
        weights: Those of the orders in "jelinek-mercer", from order 1 on; found on the validation
            text if not given.
        backoff: What "stupid-backoff" pays for a shorter history.
        memory: The most memory to hold while counting, in bytes or as "2G"; half of the machine's
            if not given. What does not fit goes to temporary files.
    """

    order: int = 5
    smoothing: str = "modified-kneser-ney"
    prune: tuple[int, ...] = ()
    delta: float | None = None
    cutoff: int | None = None
    weights: tuple[float, ...] | None = None
    backoff: float | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.order <= HIGHEST_ORDER:
            raise ConfigError(f"order must lie between 1 and {HIGHEST_ORDER}, got {self.order}")
        self.method()
        if self.weights is not None and len(self.weights) != self.order:
            raise ConfigError(
                f"weights must be as many as the order, {self.order}, got {list(self.weights)}"
            )
        if len(self.prune) > self.order or any(a > b for a, b in pairwise([0, *self.prune])):
            raise ConfigError(
                f"prune must hold up to {self.order} counts from 0 on that do not decrease, "
                f"got {list(self.prune)}"
            )
        if self.prune and self.prune[0]:
            raise ConfigError(
                f"prune must begin with 0, got {list(self.prune)}; to leave words out set "
                "min_count of the vocabulary"
            )
        if self.memory is not None and parse_size(self.memory) < LEAST:
            raise ConfigError(f"memory must be at least {LEAST >> 20}M, got {self.memory!r}")

    def method(self) -> Smoothing:
        """The smoothing these settings name; an option that is not of it is refused."""
        given = {name: getattr(self, name) for name in _OF_SMOOTHINGS}
        return smoothing(self.smoothing, **{k: v for k, v in given.items() if v is not None})
