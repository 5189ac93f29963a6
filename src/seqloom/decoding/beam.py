"""Beam search: the likeliest sequences, a few kept alive at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqloom.decoding.limits import Limits, check_numbers, check_whole
from seqloom.decoding.steps import (
    Floats,
    Numbers,
    Step,
    as_array,
    check_ends,
    check_rows,
    largest,
    reorder,
)
from seqloom.errors import ConfigError

Penalty = Callable[[Any], Any]
"""Takes the state after a step; returns a number a row (B,), none above 0 (see `coverage`)."""


@dataclass(frozen=True)
class Hypothesis:
    """A sequence that a beam search found.

    Args:
        ids: The sequence, without the stop.
        log_prob: The sum of the log-probabilities of its ids, and of the stop if it ended.
        score: What it was ranked by.
        ended: Whether it ended with the stop; if not, it was as long as allowed.
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float
    ended: bool


HIGHEST_NORM = 700.0  # logarithm of what log-probabilities are divided by at most
CANDIDATES = 1 << 25  # continuations of all texts of a search in one step


def length_norm(length: int, penalty: float) -> float:
    r"""What the log-probability of a sequence is divided by.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$

    Paper: Wu et al. (2016), "Google's Neural Machine Translation System", equation 14.
    """
    return float(((5 + length) / 6) ** penalty)


def coverage(attended: Any, lengths: Any, weight: float) -> Floats:
    r"""What a sequence loses for the parts of its source that it paid little attention to.

    $$cp(X, Y) = \beta \sum_{i=1}^{|X|} \log \min\left(\sum_{j=1}^{|Y|} p_{ij}, 1\right)$$

    where $p_{ij}$ is the attention of word j to part i of the source.

    Paper: Wu et al. (2016), equation 14.
    Differs from the paper: a sum below 1e-10 counts as that, so that no score is infinite.

    Args:
        attended: The sums over j, (B, S).
        lengths: How many parts of each row are real, (B,).
        weight: Beta.
    """
    sums = np.clip(as_array(attended), 1e-10, 1.0)
    real = np.arange(sums.shape[1]) < as_array(lengths)[:, None]
    found: Floats = weight * np.where(real, np.log(sums), 0.0).sum(axis=1)
    return found


def beam_search(
    step: Step,
    state: Any,
    first: Sequence[int],
    limits: Limits,
    *,
    beam: int = 4,
    n_best: int = 1,
    length_penalty: float = 0.0,
    penalty: Penalty | None = None,
    max_lengths: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    history: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    r"""Search for the sequences of the highest score, for a batch of beginnings at once.

    $$s(Y) = \frac{\log P(Y)}{lp(Y)} + cp(Y)$$

    where the length of a sequence counts its stop. In each step every sequence alive is continued
    by every id; the `beam` likeliest that do not stop stay alive, and those that stop are kept if
    they are among the `beam` likeliest of all. A search ends when `beam` sequences have stopped,
    when none that is alive can still be better than the `n_best` found, or at its greatest length,
    where those alive count too. One call of `step` serves all sequences of all searches. A beam
    wider than the vocabulary keeps what there is, up to `CANDIDATES` continuations of a search in a
    step.

    Args:
        step: The model.
        state: Where it starts from, one row a search.
        first: The id that came before each sequence; it is not returned.
        limits: What the sequences keep to.
        beam: How many sequences stay alive.
        n_best: How many to return.
        length_penalty: Alpha; 0 ranks by probability, above 0 favours longer sequences.
        penalty: cp, of the state after a sequence's last step; it ranks what was found.
        max_lengths: Of each search, if they differ; none above `limits.max_length`.
        prefixes: How each sequence must begin; part of what is returned.
        history: What came before each sequence, for `limits.no_repeat`.

    Returns:
        By search, the sequences found, best first; fewer than `n_best` if there are no more.

    Raises:
        ConfigError: If a setting is none, or the beam is wider than memory should hold.
    """
    check_whole(beam=beam, n_best=n_best)
    check_numbers(length_penalty=length_penalty)
    if beam < 1:
        raise ConfigError(f"beam must be at least 1, got {beam}")
    if not 1 <= n_best <= beam:
        raise ConfigError(f"n_best must lie between 1 and beam={beam}, got {n_best}")
    if not 0 <= length_penalty < np.inf:
        raise ConfigError(f"length_penalty must not be negative or infinite, got {length_penalty}")
    if length_penalty * math.log((5 + limits.max_length) / 6) > HIGHEST_NORM:
        raise ConfigError(
            f"length_penalty must leave the norm of {limits.max_length} words a finite number, got "
            f"{length_penalty:g}; 0 to 1 is usual"
        )
    forced = check_rows("prefixes", prefixes, len(first))
    before = check_rows("history", history, len(first))
    limits.check_prefixes(forced)
    ends = check_ends(max_lengths, len(first), limits.max_length)
    found = _Found(len(first), n_best, length_penalty)
    alive = _begin(len(first))
    last = np.array(first, np.int64)
    for length in range(1, limits.max_length + 1):
        if not len(alive.owners):
            break
        scores, state = step(last, state)
        _check_width(beam, scores.shape[1])
        scores = limits.applied(
            scores,
            alive.ids,
            [forced[owner] for owner in alive.owners],
            [before[owner] for owner in alive.owners],
        )
        values, ids = largest(scores, beam + 1)  # of a row's best, one may be the stop
        lost = np.zeros(len(alive.owners)) if penalty is None else as_array(penalty(state))
        found.keep_dead(alive, values)
        grown = _grow(alive, values, ids, lost, stop=limits.stop, beam=beam)
        found.keep_ended(grown.ended)
        rows, alive = grown.rows, grown.alive
        late = ends[alive.owners] <= length
        found.keep(alive, np.flatnonzero(late))
        going = np.flatnonzero(~late & ~found.is_done(alive, beam, ends)[alive.owners])
        rows, alive = rows[going], alive.part(going)
        state, last = reorder(state, rows), alive.ids[:, -1]
    return found.ranked()


def most_searches(beam: int, ids: int) -> int:
    """How many searches of a beam over so many ids memory should hold at once; at least 1."""
    return max(1, CANDIDATES // (beam * ids))


def _check_width(beam: int, ids: int) -> None:
    if beam * ids > CANDIDATES:
        raise ConfigError(
            f"beam must be at most {CANDIDATES // ids:,} with {ids:,} words to choose from, got "
            f"{beam:,}"
        )


class _Sequences(NamedTuple):
    """Sequences of one length; those of a search stand side by side, the likeliest first."""

    owners: Numbers  # (R,) which search each belongs to
    ids: Numbers  # (R, length)
    log_probs: Floats  # (R,)
    penalties: Floats  # (R,)

    def part(self, rows: Numbers) -> _Sequences:
        return _Sequences(
            self.owners[rows], self.ids[rows], self.log_probs[rows], self.penalties[rows]
        )


class _Grown(NamedTuple):
    """What became of the sequences alive in one step.

    Args:
        alive: Those that go on.
        rows: The row each of them goes on from.
        ended: Those that stopped, without the stop.
    """

    alive: _Sequences
    rows: Numbers
    ended: _Sequences


def _begin(searches: int) -> _Sequences:
    zeros = np.zeros(searches)
    return _Sequences(np.arange(searches), np.zeros((searches, 0), np.int64), zeros, zeros)


def _grow(
    alive: _Sequences,
    values: Floats,
    ids: Numbers,
    lost: Floats,
    *,
    stop: int | None,
    beam: int,
) -> _Grown:
    """Continue every sequence by its best ids and choose among them, search by search."""
    width = values.shape[1]
    # Candidates of a search in one line: those of its first sequence, of its second, ...
    searches, firsts, counts = np.unique(alive.owners, return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(searches)), counts)
    slot = np.arange(len(alive.owners)) - np.repeat(firsts, counts)
    table = np.full((len(searches), int(counts.max()), width), -np.inf)
    table[group, slot] = alive.log_probs[:, None] + values
    totals = table.reshape(len(searches), -1)
    # As many may stop as sequences are alive, so twice the beam holds all that can matter.
    order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * beam]
    best = np.take_along_axis(totals, order, 1)
    rows = firsts[:, None] + order // width  # past the last sequence only where best is -inf
    rows = np.minimum(rows, len(alive.owners) - 1)
    chosen = ids[rows, order % width]
    possible = best > -np.inf
    stops = possible & (chosen == stop) if stop is not None else np.zeros_like(possible)
    goes_on = possible & ~stops
    goes_on &= np.cumsum(goes_on, axis=1) <= beam
    stops[:, beam:] = False
    parents, last = rows[goes_on], chosen[goes_on]
    grown = _Sequences(
        alive.owners[parents],
        np.concatenate([alive.ids[parents], last[:, None]], axis=1),
        best[goes_on],
        lost[parents],
    )
    source = rows[stops]
    ended = _Sequences(alive.owners[source], alive.ids[source], best[stops], lost[source])
    return _Grown(grown, parents, ended)


class _Found:
    """What each search has found."""

    def __init__(self, searches: int, n_best: int, alpha: float) -> None:
        self.lists: list[list[Hypothesis]] = [[] for _ in range(searches)]
        self.n_best, self.alpha = n_best, alpha

    def _add(
        self, owner: int, ids: Numbers, log_prob: float, penalty: float, *, ended: bool
    ) -> None:
        score = log_prob / length_norm(len(ids) + ended, self.alpha) + penalty
        found = Hypothesis(tuple(ids.tolist()), float(log_prob), float(score), ended)
        self.lists[owner].append(found)

    def keep(self, alive: _Sequences, rows: Numbers) -> None:
        """Keep sequences that did not stop."""
        for row in rows.tolist():
            log_prob, penalty = float(alive.log_probs[row]), float(alive.penalties[row])
            self._add(int(alive.owners[row]), alive.ids[row], log_prob, penalty, ended=False)

    def keep_dead(self, alive: _Sequences, values: Floats) -> None:
        """Keep sequences that nothing can continue."""
        self.keep(alive, np.flatnonzero(values[:, 0] == -np.inf))

    def keep_ended(self, ended: _Sequences) -> None:
        """Keep sequences that stopped."""
        for owner, ids, log_prob, penalty in zip(*ended, strict=True):
            self._add(int(owner), ids, float(log_prob), float(penalty), ended=True)

    def is_done(self, alive: _Sequences, beam: int, ends: Numbers) -> Any:
        """Whether each search has enough."""
        # A log-probability only falls, and is divided by no more than at the greatest length.
        reachable = np.full(len(self.lists), -np.inf)
        np.maximum.at(reachable, alive.owners, alive.log_probs)
        return np.array(
            [
                len(found) >= beam
                or (
                    len(found) >= self.n_best
                    and self._nth_score(found) >= best / length_norm(int(end), self.alpha)
                )
                for found, best, end in zip(self.lists, reachable, ends, strict=True)
            ]
        )

    def _nth_score(self, found: list[Hypothesis]) -> float:
        return sorted((each.score for each in found), reverse=True)[self.n_best - 1]

    def ranked(self) -> list[list[Hypothesis]]:
        """The best of each search."""
        return [sorted(found, key=lambda each: -each.score)[: self.n_best] for found in self.lists]
