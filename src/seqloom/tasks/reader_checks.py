"""Settings of readers that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.errors import ConfigError, one_of
from seqloom.metrics.reading import RULES
from seqloom.tasks.unseen_words import check_unseen

if TYPE_CHECKING:
    from seqloom.tasks.reader import Reader

POSITIVE = ("min_count", "max_length", "max_words", "window", "piece", "max_windows")


def check_settings(reader: Reader) -> None:
    """Refuse what can be refused before any data is read.

    Raises:
        ConfigError: Naming the setting.
    """
    reader.build_config(vocab_size=8, char_vocab_size=0)
    if not (isinstance(reader.valid_share, int | float) and 0 <= reader.valid_share < 1):
        raise ConfigError(f"valid_share must lie in [0, 1), got {reader.valid_share!r}")
    for name in POSITIVE:
        if getattr(reader, name) < 1:
            raise ConfigError(f"{name} must be at least 1, got {getattr(reader, name)}")
    if not 0 <= reader.overlap < reader.piece:
        raise ConfigError(
            f"overlap must lie between 0 and the piece of {reader.piece}, got {reader.overlap}"
        )
    for name in ("ranking", "consistency"):
        value = getattr(reader, name)
        if not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ConfigError(f"{name} must be a number not below 0, got {value!r}")
    if not 0 <= reader.other_passages <= 1:
        raise ConfigError(f"other_passages must lie in [0, 1], got {reader.other_passages}")
    if reader.rules not in RULES:
        raise ConfigError(one_of("rules", reader.rules, RULES))
    check_unseen(reader.unseen_vectors)
    if reader.tune_vectors and reader.vectors is None:
        raise ConfigError("tune_vectors=True trains given vectors, got vectors=None")
