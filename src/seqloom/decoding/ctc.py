"""Reading labels off a network trained by connectionist temporal classification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.decoding.steps import Floats, Numbers, Step, as_array, join, reorder
from seqloom.errors import ConfigError, ShapeError


@dataclass(frozen=True)
class Labeling:
    """A sequence of labels that was found.

    Args:
        labels: Their numbers.
        log_prob: Of these labels given the input, summed over the alignments that were kept.
        language: Their log-probability by the language model, its end included; 0 without one.
        score: What it was ranked by.
    """

    labels: tuple[int, ...]
    log_prob: float
    language: float
    score: float


@dataclass(frozen=True)
class LabelLanguage:
    r"""A language model over labels, and how much it counts.

    $$s(l) = \ln p(l \mid x) + \lambda \ln p_{LM}(l) + \beta |l|$$

    Args:
        step: The model.
        state: Where it starts from, one row.
        first: The id that it reads before the first label.
        ids: By label its id in the model, (C,); that of the blank is not looked at.
        stop: The id of the end, if the model has one.
        weight: Lambda.
        bonus: Beta, which makes up for a language model's liking for short sequences.
    """

    step: Step
    state: Any
    first: int
    ids: Numbers
    stop: int | None = None
    weight: float = 1.0
    bonus: float = 0.0

    def __post_init__(self) -> None:
        for name in ("weight", "bonus"):
            if not math.isfinite(getattr(self, name)):
                raise ConfigError(f"{name} must be finite, got {getattr(self, name)}")


def best_path(log_probs: ArrayLike, *, blank: int = 0) -> tuple[int, ...]:
    """Return the likeliest label of each step, equal neighbours as one and blanks left out.

    Paper: Graves et al. (2006), section 3.2, "best path decoding".

    Args:
        log_probs: Of each label at each step, (T, C).
        blank: The number of the blank.
    """
    path = _checked(log_probs, blank).argmax(axis=1)
    changes = np.flatnonzero(np.diff(path, prepend=-1))
    return tuple(int(label) for label in path[changes] if label != blank)


def prefix_search(
    log_probs: ArrayLike,
    *,
    blank: int = 0,
    beam: int = 16,
    n_best: int = 1,
    language: LabelLanguage | None = None,
) -> list[Labeling]:
    r"""Search for the likeliest labels, all alignments of the same labels counted together.

    A prefix l is kept with the probability $p_b$ of the alignments of it that end in a blank, and
    $p_n$ of those that end in its last label $e$; at each step

    $$p_b(l) \leftarrow y(\text{blank}) (p_b(l) + p_n(l)), \quad
    p_n(l) \leftarrow y(e) (p_n(l) + p_b(l^-) + [e(l^-) \ne e] \, p_n(l^-))$$

    where $l^-$ is l without its last label; the `beam` best prefixes stay. With as many as there
    are, the result is exact.

    Paper: Graves and Jaitly (2014), "Towards End-to-End Speech Recognition with Recurrent Neural
    Networks", ICML, algorithm 1; Hannun et al. (2014), "First-Pass Large Vocabulary Continuous
    Speech Recognition using Bi-Directional Recurrent DNNs", for the language model.

    Args:
        log_probs: Of each label at each step, (T, C).
        blank: The number of the blank.
        beam: How many prefixes stay.
        n_best: How many to return.
        language: A language model over labels.

    Returns:
        What was found, best first; fewer than `n_best` if there are no more.
    """
    rows = _checked(log_probs, blank)
    if beam < 1:
        raise ConfigError(f"beam must be at least 1, got {beam}")
    if not 1 <= n_best <= beam:
        raise ConfigError(f"n_best must lie between 1 and beam={beam}, got {n_best}")
    search = _Search(rows.shape[1], blank, beam, language)
    with np.errstate(invalid="ignore"):
        for row in rows:
            search.advance(row)
    return search.best()[:n_best]


class _Search:
    """The prefixes that are kept, as columns."""

    def __init__(self, labels: int, blank: int, beam: int, language: LabelLanguage | None) -> None:
        self.labels, self.blank, self.beam, self.language = labels, blank, beam, language
        self.prefixes: list[tuple[int, ...]] = [()]
        self.blank_ends, self.label_ends = np.zeros(1), np.full(1, -np.inf)
        self.said = np.zeros(1)  # by the language model, of the prefix
        if language is not None:
            self.next, self.state = self._listen(np.array([language.first]), language.state)

    def _listen(self, ids: Numbers, state: Any) -> tuple[Floats, Any]:
        """What the language model says of each label after these ids, and of the end."""
        assert self.language is not None
        scores, state = self.language.step(ids, state)
        stop = [] if self.language.stop is None else [self.language.stop]
        return as_array(scores[:, np.array([*self.language.ids, *stop], np.int64)]), state

    def advance(self, row: Floats) -> None:
        """Read one step."""
        count = len(self.prefixes)
        last = np.array([prefix[-1] if prefix else self.blank for prefix in self.prefixes])
        whole = np.logaddexp(self.blank_ends, self.label_ends)
        again = np.where(last == self.blank, -np.inf, self.label_ends + row[last])
        longer = whole[:, None] + row  # (K, C)
        longer[np.arange(count), last] = self.blank_ends + row[last]  # a blank must lie between
        longer[:, self.blank] = -np.inf
        places = {prefix: place for place, prefix in enumerate(self.prefixes)}
        for place, prefix in enumerate(self.prefixes):
            parent = places.get(prefix[:-1]) if prefix else None
            if parent is not None:  # what the parent becomes with this label is this prefix
                again[place] = np.logaddexp(again[place], longer[parent, prefix[-1]])
                longer[parent, prefix[-1]] = -np.inf
        rest = whole + row[self.blank]
        self._keep(rest, again, longer)

    def _keep(self, rest: Floats, again: Floats, longer: Floats) -> None:
        """Choose the best of the prefixes and their continuations."""
        count, own = len(rest), np.logaddexp(rest, again)
        ranks = np.concatenate([own + self._worth(), (longer + self._worth_longer()).ravel()])
        order = np.argsort(-ranks, kind="stable")[: self.beam]
        order = order[ranks[order] > -np.inf]
        if not len(order):  # nothing is possible any more: let what there is stay so
            order = np.arange(count)
        kept, added = order[order < count], order[order >= count] - count
        parents, labels = np.divmod(added, self.labels)
        said = self.said[kept]
        if self.language is not None:
            said = np.concatenate([said, self.said[parents] + self.next[parents, labels]])
            self.next, self.state = self._listened(kept, parents, labels)
        else:
            said = np.zeros(len(order))
        self.said = said
        self.prefixes = [self.prefixes[place] for place in kept] + [
            (*self.prefixes[parent], label)
            for parent, label in zip(parents.tolist(), labels.tolist(), strict=True)
        ]
        never = np.full(len(added), -np.inf)
        self.blank_ends = np.concatenate([rest[kept], never])
        self.label_ends = np.concatenate([again[kept], longer[parents, labels]])

    def _listened(self, kept: Numbers, parents: Numbers, labels: Numbers) -> tuple[Floats, Any]:
        assert self.language is not None
        said, state = self.next[kept], reorder(self.state, kept)
        if not len(parents):
            return said, state
        new, after = self._listen(self.language.ids[labels], reorder(self.state, parents))
        return np.concatenate([said, new]), join([state, after])

    def _worth(self) -> Floats:
        """What the language model and the length add to the score of each prefix."""
        if self.language is None:
            return np.zeros(len(self.prefixes))
        lengths = np.array([len(prefix) for prefix in self.prefixes])
        return _times(self.language.weight, self.said) + self.language.bonus * lengths

    def _worth_longer(self) -> Floats:
        """The same of each prefix with each label after it."""
        if self.language is None:
            return np.zeros((len(self.prefixes), self.labels))
        added = _times(self.language.weight, self.next[:, : self.labels]) + self.language.bonus
        return self._worth()[:, None] + added

    def best(self) -> list[Labeling]:
        """What was found, best first."""
        log_probs = np.logaddexp(self.blank_ends, self.label_ends)
        said, worth = self.said, self._worth()
        if self.language is not None and self.language.stop is not None:
            said = said + self.next[:, -1]
            worth = worth + _times(self.language.weight, self.next[:, -1])
        scores = log_probs + worth
        return [
            Labeling(self.prefixes[i], float(log_probs[i]), float(said[i]), float(scores[i]))
            for i in np.argsort(-scores, kind="stable")
        ]


def _times(weight: float, values: Floats) -> Floats:
    """A weight of 0 leaves nothing of what is impossible either."""
    return weight * values if weight else np.zeros_like(values)


def _checked(log_probs: ArrayLike, blank: int) -> NDArray[np.float64]:
    rows = as_array(log_probs)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ShapeError(f"log_probs must be (steps, labels), none of them 0, got {rows.shape}")
    if not 0 <= blank < rows.shape[1]:
        raise ConfigError(f"blank must lie in 0..{rows.shape[1] - 1}, got {blank}")
    if np.isnan(rows).any():
        raise ShapeError("log_probs must be numbers, got NaN")
    return rows
