"""Beam search: the likeliest sequences, a few kept alive at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqloom.decoding.limits import Limits
from seqloom.decoding.steps import Floats, Numbers, Step, check_rows, largest, reorder
from seqloom.errors import ConfigError


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


class _Alive(NamedTuple):
    ids: tuple[int, ...]
    log_prob: float


def length_norm(length: int, penalty: float) -> float:
    r"""What the log-probability of a sequence is divided by.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$

    Paper: Wu et al. (2016), "Google's Neural Machine Translation System", equation 14.
    """
    return float(((5 + length) / 6) ** penalty)


def beam_search(
    step: Step,
    state: Any,
    first: Sequence[int],
    limits: Limits,
    *,
    beam: int = 4,
    n_best: int = 1,
    length_penalty: float = 0.0,
    prefixes: Sequence[Sequence[int]] | None = None,
    history: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    r"""Search for the sequences of the highest score, for a batch of beginnings at once.

    $$s(Y) = \frac{\log P(Y)}{lp(Y)}$$

    where the length of a sequence counts its stop. In each step every sequence alive is continued
    by every id; the `beam` best that do not stop stay alive, and those that stop are kept if they
    are among the `beam` best of all. A search ends when `beam` sequences have stopped, when none
    that is alive can still be better than the `n_best` found, or at `limits.max_length`, where
    those alive count too. One call of `step` serves all sequences of all searches.

    Args:
        step: The model.
        state: Where it starts from, one row a search.
        first: The id that came before each sequence; it is not returned.
        limits: What the sequences keep to.
        beam: How many sequences stay alive.
        n_best: How many to return.
        length_penalty: Alpha; 0 ranks by probability, above 0 favours longer sequences.
        prefixes: How each sequence must begin; part of what is returned.
        history: What came before each sequence, for `limits.no_repeat`.

    Returns:
        By search, the sequences found, best first; fewer than `n_best` if there are no more.
    """
    if beam < 1:
        raise ConfigError(f"beam must be at least 1, got {beam}")
    if not 1 <= n_best <= beam:
        raise ConfigError(f"n_best must lie between 1 and beam={beam}, got {n_best}")
    if not 0 <= length_penalty < np.inf:
        raise ConfigError(f"length_penalty must not be negative or infinite, got {length_penalty}")
    forced = check_rows("prefixes", prefixes, len(first))
    before = check_rows("history", history, len(first))
    limits.check_prefixes(forced)
    searches = [_Search(limits, beam, n_best, length_penalty) for _ in first]
    going = list(range(len(first)))
    last = np.array(first, np.int64)
    for _ in range(limits.max_length):
        if not going:
            break
        scores, state = step(last, state)
        owners = [number for number in going for _ in searches[number].alive]
        scores = limits.applied(
            scores,
            [hypothesis.ids for number in going for hypothesis in searches[number].alive],
            [forced[number] for number in owners],
            [before[number] for number in owners],
        )
        values, ids = largest(scores, beam + 1)  # of a row's best, one may be the stop
        rows, chosen, row = list[int](), list[int](), 0
        for number in going:
            search, n = searches[number], len(searches[number].alive)
            for parent, id_ in search.advance(values[row : row + n], ids[row : row + n]):
                rows.append(row + parent)
                chosen.append(id_)
            row += n
        going = [number for number in going if searches[number].alive]
        state, last = reorder(state, rows), np.array(chosen, np.int64)
    return [search.best() for search in searches]


class _Search:
    """One search of a batch."""

    def __init__(self, limits: Limits, beam: int, n_best: int, penalty: float) -> None:
        self.limits, self.beam, self.n_best, self.penalty = limits, beam, n_best, penalty
        self.alive = [_Alive((), 0.0)]
        self.found: list[Hypothesis] = []

    def advance(self, values: Floats, ids: Numbers) -> list[tuple[int, int]]:
        """Continue what is alive; return the parent and the id of each that stays alive."""
        totals = np.array([each.log_prob for each in self.alive])[:, None] + values
        for hypothesis, row in zip(self.alive, totals, strict=True):
            if row.max() == -np.inf:
                self._keep(hypothesis, ended=False)
        chosen: list[tuple[int, int]] = []
        alive: list[_Alive] = []
        for rank, place in enumerate(np.argsort(-totals, axis=None, kind="stable").tolist()):
            parent, column = divmod(place, totals.shape[1])
            total, id_ = float(totals[parent, column]), int(ids[parent, column])
            if total == -np.inf or len(alive) == self.beam:
                break
            sequence = self.alive[parent].ids
            if id_ != self.limits.stop:
                alive.append(_Alive((*sequence, id_), total))
                chosen.append((parent, id_))
            elif rank < self.beam:
                self._keep(_Alive(sequence, total), ended=True)
        self.alive = alive
        if self._is_done():
            self.alive, chosen = [], []
        return chosen

    def _keep(self, hypothesis: _Alive, *, ended: bool) -> None:
        ids, log_prob = hypothesis
        score = log_prob / length_norm(len(ids) + ended, self.penalty)
        self.found.append(Hypothesis(ids, log_prob, score, ended))

    def _is_done(self) -> bool:
        if not self.alive or len(self.found) >= self.beam:
            return True
        if len(self.found) < self.n_best:
            return False
        # A log-probability only falls, and is divided by no more than at the greatest length.
        reachable = self.alive[0].log_prob / length_norm(self.limits.max_length, self.penalty)
        return self._ranked()[self.n_best - 1].score >= reachable

    def _ranked(self) -> list[Hypothesis]:
        return sorted(self.found, key=lambda each: -each.score)

    def best(self) -> list[Hypothesis]:
        """What was found, and what was alive at the end."""
        for hypothesis in self.alive:
            self._keep(hypothesis, ended=False)
        self.alive = []
        return self._ranked()[: self.n_best]
