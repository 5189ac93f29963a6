"""Leaving rare n-grams out of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError
from seqloom.ngram.levels import CountLevel, Level, Rows
from seqloom.ngram.words import EOS
from seqloom.ngram.workspace import Workspace


def thresholds_of(prune: Sequence[int], order: int) -> list[int]:
    """The count up to which n-grams are left out, for every order."""
    given = [int(threshold) for threshold in prune]
    if len(given) > order:
        raise ConfigError(
            f"prune must name no more than the {order} orders there are, got {given}; "
            "give a count an order from order 1 on"
        )
    if any(low > high for low, high in pairwise([0, *given])):
        raise ConfigError(
            f"prune must hold counts from 0 on that do not decrease, got {given}; "
            "what a longer n-gram is made of must be kept with it"
        )
    return given + [given[-1] if given else 0] * (order - len(given))


def kept_rows(level: CountLevel, order: int, threshold: int, place: Workspace) -> NDArray[np.bool_]:
    """Which n-grams stay: all if the threshold is 0, and the special words in any case."""
    kept = place.empty(len(level), np.bool_)
    for start, end in place.chunks(len(level)):
        kept[start:end] = (level.count[start:end] > threshold) | (threshold == 0)
    if order == 1:
        kept[: EOS + 1] = True
    return kept


def prune_levels(
    levels: Sequence[Level], kept: Mapping[int, NDArray[np.bool_]], place: Workspace
) -> list[Level]:
    """Leave rows out. The context of an n-gram that is kept is kept, so rows change names only.

    Args:
        levels: The model, by order.
        kept: For each order that loses rows, which of them stay.
        place: Where columns go.
    """
    pruned: list[Level] = []
    words: Rows | None = None
    below: Rows | None = None
    for order, level in enumerate(levels, 1):
        if order not in kept:
            pruned.append(level)
            continue
        keep = kept[order]
        context = _rows(level.context, keep, place, below) if order > 1 else level.context
        word = _rows(level.word, keep, place, words)
        prob = _rows(level.prob, keep, place)
        backoff = _rows(level.backoff, keep, place) if len(level.backoff) else level.backoff
        below = place.empty(len(level), np.uint32)
        at = 0
        for start, end in place.chunks(len(level)):
            part = keep[start:end]
            below[start:end] = at + np.cumsum(part, dtype=np.int64) - part
            at += int(np.count_nonzero(part))
        if order == 1:
            words = below
            word = np.arange(at, dtype=np.uint32)
        pruned.append(Level(context, word, prob, backoff))
    return pruned


def _rows(
    column: NDArray[Any], keep: NDArray[np.bool_], place: Workspace, names: Rows | None = None
) -> NDArray[Any]:
    """The rows of a column that stay, by their new names if it holds names."""
    result = place.empty(int(np.count_nonzero(keep)), column.dtype)
    at = 0
    for start, end in place.chunks(len(column)):
        piece = column[start:end][keep[start:end]]
        result[at : at + len(piece)] = piece if names is None else names[piece]
        at += len(piece)
    return result
