"""Drawing sequences from a model, one id after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from seqloom.decoding.limits import Limits, check_numbers, check_whole
from seqloom.decoding.steps import Floats, Step, as_array, check_ends, check_rows, largest, reorder
from seqloom.errors import ConfigError


def chances(
    log_probs: ArrayLike, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> Floats:
    r"""The distribution that ids are drawn from, in this order: temperature, top k, top p.

    $$p'(w) \propto p(w)^{1/\tau}$$

    Of this the k likeliest ids are kept, and of these the fewest, likeliest first, whose
    probabilities reach p in sum.

    Papers: Fan et al. (2018), "Hierarchical Neural Story Generation" (top k); Holtzman et al.
    (2020), "The Curious Case of Neural Text Degeneration", equations 2 and 3 (top p).

    Args:
        log_probs: (V,) log-probabilities.
        temperature: Below 1 for likelier ids; 0 leaves the likeliest alone.
        top_k: How many ids to keep; 0 for all.
        top_p: The probability that the ids kept must reach.

    Returns:
        Probabilities, or zeros where nothing is possible.
    """
    check_sampling(temperature, top_k, top_p)
    scores = np.array(log_probs, np.float64)
    best = scores.max(initial=-np.inf)
    if best == -np.inf:
        return np.zeros_like(scores)
    if temperature == 0:
        only = np.zeros_like(scores)
        only[scores.argmax()] = 1
        return only
    with np.errstate(over="ignore"):  # a low temperature leaves the likeliest alone
        weights: Floats = np.exp((scores - best) / temperature)
    order = np.argsort(-weights, kind="stable")
    if top_k:
        weights[order[top_k:]] = 0
    weights /= weights.sum()
    if top_p < 1:
        reached = np.cumsum(weights[order])
        kept = int(np.searchsorted(reached, top_p * (1 - 1e-12))) + 1
        weights[order[kept:]] = 0
        weights /= weights.sum()
    return weights


def check_sampling(temperature: float, top_k: int, top_p: float) -> None:
    """Refuse settings that make no sense."""
    check_numbers(temperature=temperature, top_p=top_p)
    check_whole(top_k=top_k)
    if not 0 <= temperature < np.inf:
        raise ConfigError(f"temperature must not be negative or infinite, got {temperature}")
    if top_k < 0:
        raise ConfigError(f"top_k must not be negative, got {top_k}")
    if not 0 < top_p <= 1:
        raise ConfigError(f"top_p must lie above 0 and not above 1, got {top_p}")


@dataclass(frozen=True)
class Drawn:
    """A sequence that was drawn.

    Args:
        ids: The sequence, without the stop.
        log_prob: The sum of the log-probabilities of its ids, and of the stop if it was drawn, as
            the step gives them: before temperature, top k, top p and what limits forbid.
        ended: Whether the stop was drawn; if not, the sequence was as long as allowed, or nothing
            could go on from it.
    """

    ids: tuple[int, ...]
    log_prob: float
    ended: bool


def sample(
    step: Step,
    state: Any,
    first: Sequence[int],
    limits: Limits,
    *,
    seeds: Sequence[int],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    max_lengths: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    history: Sequence[Sequence[int]] | None = None,
) -> list[Drawn]:
    """Draw sequences side by side; each is what it would be alone. One step an id.

    Args:
        step: The model.
        state: Where it starts from, one row a sequence.
        first: The id that came before each sequence; it is not returned.
        limits: What the sequences keep to.
        seeds: Of chance, one a sequence.
        temperature: As `chances` has it.
        top_k: As `chances` has it.
        top_p: As `chances` has it.
        max_lengths: Of each sequence, if they differ; none above `limits.max_length`.
        prefixes: How each sequence must begin; part of what is returned.
        history: What came before each sequence, for `limits.no_repeat`.
    """
    check_sampling(temperature, top_k, top_p)
    if len(seeds) != len(first):
        raise ConfigError(f"seeds must be one a sequence, {len(first)}, got {len(seeds)}")
    for seed in seeds:
        check_whole(seed=seed)
    draws = [np.random.default_rng(seed % (1 << 64)) for seed in seeds]

    def choose(scores: Any, rows: Sequence[int]) -> list[_Choice | None]:
        if temperature == 0 or top_k == 1:
            return _likeliest(scores)
        found: list[_Choice | None] = []
        for log_probs, row in zip(as_array(scores), rows, strict=True):
            shares = chances(log_probs, temperature=temperature, top_k=top_k, top_p=top_p)
            reached = np.cumsum(shares)
            point = draws[row].random() * reached[-1]
            id_ = int(np.searchsorted(reached, point, side="right"))
            found.append(_Choice(id_, float(log_probs[id_])) if reached[-1] > 0 else None)
        return found

    starts = _Starts(max_lengths, prefixes, history)
    return _decode(step, state, first, limits, choose, starts=starts)


def greedy(
    step: Step,
    state: Any,
    first: Sequence[int],
    limits: Limits,
    *,
    max_lengths: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    history: Sequence[Sequence[int]] | None = None,
) -> list[list[int]]:
    """Take the likeliest id each time; the arguments are those of `sample`."""

    def choose(scores: Any, _rows: Sequence[int]) -> list[_Choice | None]:
        return _likeliest(scores)

    starts = _Starts(max_lengths, prefixes, history)
    found = _decode(step, state, first, limits, choose, starts=starts)
    return [list(each.ids) for each in found]


class _Choice(NamedTuple):
    """An id, and its log-probability."""

    id: int
    log_prob: float


def _likeliest(scores: Any) -> list[_Choice | None]:
    values, ids = largest(scores, 1)
    pairs = zip(values[:, 0].tolist(), ids[:, 0].tolist(), strict=True)
    return [_Choice(id_, value) if value > -np.inf else None for value, id_ in pairs]


class _Starts(NamedTuple):
    """What is given of each sequence."""

    max_lengths: Sequence[int] | None
    prefixes: Sequence[Sequence[int]] | None
    history: Sequence[Sequence[int]] | None


def _decode(
    step: Step,
    state: Any,
    first: Sequence[int],
    limits: Limits,
    choose: Callable[[Any, Sequence[int]], list[_Choice | None]],
    *,
    starts: _Starts,
) -> list[Drawn]:
    """Go on until every sequence has stopped; those that have leave the batch."""
    forced = check_rows("prefixes", starts.prefixes, len(first))
    before = check_rows("history", starts.history, len(first))
    limits.check_prefixes(forced)
    ends = check_ends(starts.max_lengths, len(first), limits.max_length)
    decoded: list[list[int]] = [[] for _ in first]
    log_probs, ended = [0.0] * len(first), [False] * len(first)
    rows, last = list(range(len(first))), [int(id_) for id_ in first]
    for _ in range(limits.max_length):
        if not rows:
            break
        scores, state = step(np.array(last, np.int64), state)
        scores = limits.applied(
            scores,
            [decoded[row] for row in rows],
            [forced[row] for row in rows],
            [before[row] for row in rows],
        )
        chosen = choose(scores, rows)
        alive, last = [], []
        for place, choice in enumerate(chosen):
            if choice is None:
                continue
            row = rows[place]
            log_probs[row] += choice.log_prob
            if choice.id == limits.stop:
                ended[row] = True
                continue
            decoded[row].append(choice.id)
            if len(decoded[row]) < ends[row]:
                alive.append(place)
                last.append(choice.id)
        if len(alive) < len(rows):
            rows, state = [rows[place] for place in alive], reorder(state, alive)
    return [
        Drawn(tuple(ids), log_prob, stopped)
        for ids, log_prob, stopped in zip(decoded, log_probs, ended, strict=True)
    ]
