"""Settings of a grammar read off a treebank; light, so that options are checked before any work."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.errors import ConfigError

HIGHEST_HORIZONTAL, HIGHEST_VERTICAL = 3, 2


@dataclass(frozen=True, kw_only=True)
class PcfgConfig:
    """Settings of `PcfgModel` as an architecture.

    Args:
        horizontal: How many of its elder sisters a child depends on, 0 to 3.
        vertical: 1: what a node becomes depends on its own label; 2: on its parent's as well.
        split_tags: Whether words depend on the node above their tag as well as on the tag.
        fallback: The weight of the flat grammar that every sentence has a probability under.
        longest: The words of a sentence that the grammar reads; those after them are predicted by
            the flat grammar alone, as time grows with the cube of the length.
    """

    horizontal: int = 1
    vertical: int = 2
    split_tags: bool = True
    fallback: float = 1e-3
    longest: int = 150

    def __post_init__(self) -> None:
        if not 0 <= self.horizontal <= HIGHEST_HORIZONTAL:
            raise ConfigError(
                f"horizontal must lie between 0 and {HIGHEST_HORIZONTAL}, got {self.horizontal}"
            )
        if not 1 <= self.vertical <= HIGHEST_VERTICAL:
            raise ConfigError(f"vertical must be 1 or {HIGHEST_VERTICAL}, got {self.vertical}")
        if not 0 < self.fallback < 1:
            raise ConfigError(f"fallback must lie between 0 and 1, got {self.fallback}")
        if self.longest < 1:
            raise ConfigError(f"longest must be at least 1, got {self.longest}")
