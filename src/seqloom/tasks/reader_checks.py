"""Settings of readers that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqloom.errors import BackendError, ConfigError, one_of
from seqloom.metrics.reading import RULES
from seqloom.tasks.reader_others import CHOICES
from seqloom.tasks.reader_ranking import read_ranking
from seqloom.tasks.setting_checks import check_flags, check_number, check_whole
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
    for name in LEARNING:
        check_whole(reader, name, 1)
    if not (isinstance(reader.valid_share, int | float) and 0 <= reader.valid_share < 1):
        raise ConfigError(f"valid_share must lie in [0, 1), got {reader.valid_share!r}")
    check_number("consistency", reader.consistency)
    check_number("other_passages", reader.other_passages, CHOICES)
    check_unseen(reader.unseen_vectors)
    check_flags(reader, "cut_words", "tune_vectors")
    if reader.tune_vectors and reader.vectors is None and reader.start is None:
        raise ConfigError("tune_vectors=True trains given vectors, got vectors=None")


def check_use(reader: Reader) -> None:
    """Refuse settings that no question can be answered with.

    Raises:
        ConfigError: Naming the setting.
    """
    for name in USE:
        check_whole(reader, name, 1)
    check_whole(reader, "overlap", 0)
    if reader.overlap >= reader.piece:
        raise ConfigError(
            f"overlap must lie between 0 and the piece of {reader.piece}, got {reader.overlap!r}"
        )
    read_ranking(reader.ranking)
    if not isinstance(reader.rules, str) or reader.rules not in RULES:
        raise ConfigError(one_of("rules", str(reader.rules), RULES))


def check_device(device: object) -> None:
    """Refuse a device that torch does not have here.

    Raises:
        BackendError: Naming it.
    """
    import torch

    try:
        torch.empty(1, device=device)  # type: ignore[call-overload]
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise BackendError(
            f"device must be one that torch sees here, such as 'cpu', got {device!r}: {reason}"
        ) from None
