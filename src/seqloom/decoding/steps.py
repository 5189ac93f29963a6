"""What a decoder asks of a model: one step, and a state whose rows can be put in another order.

Scores and states may be NumPy arrays or torch tensors, on any device; nothing here imports torch.
Of the scores only the few best a row leave the device, unless the whole distribution is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Step = Callable[[Numbers, Any], tuple[Any, Any]]
"""Takes the last ids (B,) and a state; returns log-probabilities (B, V) and the next state.

A state is an array or tensor whose first axis is the batch, a tuple of such (a NamedTuple as a
rule, also nested), or None."""


def reorder(state: Any, rows: Sequence[int] | Numbers) -> Any:
    """The state of these rows, in this order; a row may be taken several times, or not at all."""
    if state is None:
        return None
    if isinstance(state, tuple):
        parts = [reorder(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state[np.asarray(rows, np.int64)]


def join(states: Sequence[Any]) -> Any:
    """The rows of several states, one after the other."""
    first = states[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        parts = [join(part) for part in zip(*states, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if hasattr(first, "detach"):
        import torch

        return torch.cat(tuple(states))
    return np.concatenate(states)


def as_array(scores: Any) -> Floats:
    """Scores as a NumPy array in double precision."""
    if hasattr(scores, "detach"):
        scores = scores.detach().double().cpu().numpy()
    return np.asarray(scores, np.float64)


def largest(scores: Any, k: int) -> tuple[Floats, Numbers]:
    """The k largest scores of each row, falling, and where they stand: both (B, k)."""
    k = min(k, scores.shape[1])
    if hasattr(scores, "topk"):
        values, places = scores.topk(k, dim=1)
        return as_array(values), places.cpu().numpy()
    scores = np.asarray(scores, np.float64)
    places = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
    values = np.take_along_axis(scores, places, 1)
    order = np.argsort(-values, axis=1, kind="stable")  # among equals the smaller id first
    return np.take_along_axis(values, order, 1), np.take_along_axis(places, order, 1)


def check_rows(name: str, given: Sequence[Any] | None, rows: int) -> list[list[int]]:
    """One list of ids a sequence; empty ones if none are given."""
    if given is None:
        return [[] for _ in range(rows)]
    if len(given) != rows:
        raise ConfigError(f"{name} must be one a sequence, {rows}, got {len(given)}")
    return [[int(id_) for id_ in each] for each in given]


def check_ends(given: Sequence[int] | None, rows: int, greatest: int) -> Numbers:
    """The greatest length of each sequence; `greatest` if none are given."""
    if given is None:
        return np.full(rows, greatest, np.int64)
    if len(given) != rows:
        raise ConfigError(f"max_lengths must be one a sequence, {rows}, got {len(given)}")
    ends = np.asarray(given, np.int64)
    if rows and not 1 <= ends.min() <= ends.max() <= greatest:
        raise ConfigError(
            f"max_lengths must lie between 1 and limits.max_length={greatest}, got "
            f"{int(ends.min())} to {int(ends.max())}"
        )
    return ends
