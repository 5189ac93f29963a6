"""Settings of readers that make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom.errors import ConfigError, one_of
from seqloom.metrics.reading import RULES
from seqloom.tasks.unseen_words import check_unseen

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader

LEARNING = ("min_count", "max_length")
USE = ("max_words", "window", "piece", "max_windows")


def check_settings(reader: Reader) -> None:
    """Refuse what can be refused before any data is read.

    Raises:
        ConfigError: Naming the setting.
    """
    reader.build_config(vocab_size=8, char_vocab_size=0)
    check_use(reader)
    check_whole(reader, LEARNING)
    if not (isinstance(reader.valid_share, int | float) and 0 <= reader.valid_share < 1):
        raise ConfigError(f"valid_share must lie in [0, 1), got {reader.valid_share!r}")
    check_number("consistency", reader.consistency)
    check_number("other_passages", reader.other_passages, 1)
    check_unseen(reader.unseen_vectors)
    if reader.tune_vectors and reader.vectors is None:
        raise ConfigError("tune_vectors=True trains given vectors, got vectors=None")


def check_use(reader: Reader) -> None:
    """Refuse settings that no question can be answered with.

    Raises:
        ConfigError: Naming the setting.
    """
    check_whole(reader, USE)
    if not _is_whole(reader.overlap) or not 0 <= reader.overlap < reader.piece:
        raise ConfigError(
            f"overlap must lie between 0 and the piece of {reader.piece}, got {reader.overlap!r}"
        )
    check_number("ranking", reader.ranking)
    if not isinstance(reader.rules, str) or reader.rules not in RULES:
        raise ConfigError(one_of("rules", str(reader.rules), RULES))


def check_whole(reader: Reader, names: Sequence[str]) -> None:
    """Refuse settings that are no whole numbers above 0."""
    for name in names:
        check_count(name, getattr(reader, name))


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number above 0."""
    if not _is_whole(value) or value < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_number(name: str, value: Any, most: float = inf) -> None:
    """Refuse what is no finite number from 0 to `most`."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most or value == inf:
        bounds = "not below 0" if most == inf else f"from 0 to {most:g}"
        raise ConfigError(f"{name} must be a number {bounds}, got {value!r}")
