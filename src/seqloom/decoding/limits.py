"""What every decoded sequence must keep to: its length, and ids it may not have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError


def check_whole(**values: object) -> None:
    """Refuse settings that must be whole numbers and are not."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ConfigError(f"{name} must be a whole number, got {value!r}")


def check_numbers(**values: object) -> None:
    """Refuse settings that must be numbers and are not."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ConfigError(f"{name} must be a number, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Rules for a sequence. Where they leave no id with a probability, the sequence ends.

    Args:
        max_length: How many ids to decode at most, the stop among them.
        min_length: How many ids must come before the stop.
        stop: The id that ends a sequence; it is not part of what is returned.
        forbidden: Ids never to decode.
        no_repeat: The length of n-grams that may occur only once; 0 for no such rule.
    """

    max_length: int
    min_length: int = 0
    stop: int | None = None
    forbidden: Collection[int] = ()
    no_repeat: int = 0

    def __post_init__(self) -> None:
        check_whole(
            max_length=self.max_length, min_length=self.min_length, no_repeat=self.no_repeat
        )
        if self.max_length < 1:
            raise ConfigError(f"max_length must be at least 1, got {self.max_length}")
        if not 0 <= self.min_length <= self.max_length:
            raise ConfigError(
                f"min_length must lie between 0 and max_length={self.max_length}, "
                f"got {self.min_length}"
            )
        if self.no_repeat < 0:
            raise ConfigError(f"no_repeat must not be negative, got {self.no_repeat}")

    def check_prefixes(self, prefixes: Sequence[Sequence[int]]) -> None:
        """Refuse a prefix that does not fit."""
        longest = max(map(len, prefixes), default=0)
        if longest > self.max_length:
            raise ConfigError(
                f"a prefix must fit into max_length={self.max_length}, got one of {longest} ids"
            )

    def applied(
        self,
        scores: Any,
        decoded: Sequence[Sequence[int]] | NDArray[np.int64],
        prefixes: Sequence[Sequence[int]],
        history: Sequence[Sequence[int]],
    ) -> Any:
        """The scores (B, V) of the next id, minus infinity for each id that may not come.

        An id that a prefix forces is not subject to the other rules.

        Args:
            scores: Log-probabilities; they are left as they are.
            decoded: The ids of each sequence so far.
            prefixes: How each sequence must begin.
            history: What came before each sequence, whose n-grams are not to be repeated either.
        """
        scores = scores + 0.0  # a copy
        rows = [
            row
            for row, (so_far, prefix) in enumerate(zip(decoded, prefixes, strict=True))
            if len(so_far) < len(prefix)
        ]
        forced = [prefixes[row][len(decoded[row])] for row in rows]
        kept = scores[rows, forced] + 0.0 if rows else None
        if self.forbidden:
            scores[:, sorted(self.forbidden)] = -np.inf
        if self.stop is not None and self.min_length:
            early = [row for row, ids in enumerate(decoded) if len(ids) < self.min_length]
            if early:
                scores[early, self.stop] = -np.inf
        if self.no_repeat:
            for row, so_far in enumerate(decoded):
                repeats = _repeats([*history[row], *so_far], self.no_repeat)
                if repeats:
                    scores[row, repeats] = -np.inf
        if rows:
            scores[rows] = -np.inf
            scores[rows, forced] = kept
        return scores


def _repeats(ids: Sequence[int], size: int) -> list[int]:
    """The ids that would complete an n-gram that is in the sequence already."""
    if len(ids) < size:
        return []
    last = tuple(ids[len(ids) - size + 1 :])
    return [
        ids[end] for end in range(size - 1, len(ids)) if tuple(ids[end - size + 1 : end]) == last
    ]
