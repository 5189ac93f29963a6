"""Which windows of long documents are worth reading, and which one has the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.config import from_dict
from seqloom.errors import ConfigError
from seqloom.tasks.reader_data import EncodedTexts, PassageQuestions
from seqloom.tasks.setting_checks import check_number

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k_1 and b
MOST = 1e6  # of two windows one has all the probability long before


@dataclass(frozen=True, kw_only=True)
class RankingConfig:
    r"""How probable it is that one of several windows has the answer.

    $$P(w) \propto \exp(\theta_b b_w + \theta_z \ln Z_w + \theta_m m_w - \theta_l \ln l_w)$$

    $$Z_w = \sum_i \sum_j \exp(s_i^w + e_j^w)$$

    where $b_w$ is what a window has in common with the question (`window_scores`), $Z_w$ what the
    reader finds in it, $m_w$ how near its words are to those of the question (`window_likeness`)
    and $l_w$ how many words it has. Which windows are read is decided in the same way, without
    $Z_w$. The defaults are near the most probable ones for the reader that comes with the package,
    as `benchmarks/reading_ranking.py` fits them.

    Paper: McFadden (1974), "Conditional Logit Analysis of Qualitative Choice Behavior", in Zarembka
    (editor), Frontiers in Econometrics.

    Args:
        terms: $\theta_b$.
        reading: $\theta_z$.
        likeness: $\theta_m$.
        log_length: $\theta_l$.
    """

    terms: float = 0.49
    reading: float = 0.325
    likeness: float = 9.0
    log_length: float = 2.7

    def __post_init__(self) -> None:
        for each in fields(self):
            check_number(f"ranking.{each.name}", getattr(self, each.name), MOST)


def read_ranking(given: Any) -> RankingConfig:
    """Return the setting `ranking` of a reader as a whole table.

    Args:
        given: None, such a table, or the settings in it that differ.

    Raises:
        ConfigError: If it is something else.
    """
    if isinstance(given, RankingConfig):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"ranking must be a table of settings, got {given!r}")
    return from_dict(RankingConfig, given or {}, where="ranking")


def window_scores(data: PassageQuestions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Return how much windows have in common with their question.

    $$\sum_{w \in q} r_w \ln\Big(1 + \frac{N - n_w + 0.5}{n_w + 0.5}\Big)
    \frac{c_w (k_1 + 1)}{c_w + k_1 (1 - b + b \, l / \bar l)}$$

    over the different roots w of the question's words, where $n_w$ of N windows have a word of this
    root, this one $c_w$ times, and it has l words, on average $\bar l$. $r_w$ is how rare the
    rarest of the question's words with this root is, as `ReaderVocabulary.rarity` says.

    Paper: Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond",
    Foundations and Trends in Information Retrieval 3(4), section 3.
    Differs from the paper: $r_w$, as one document says little about how rare a word is.

    Args:
        data: The windows.
        rows: Those of one question.
    """
    texts, which = data.texts, data.which[rows]
    begins, sizes = data.first[rows], data.sizes[rows]
    question = texts.questions[int(data.asked[rows[0]])]
    terms, places = np.unique(texts.roots[question], return_inverse=True)
    rare = np.zeros(len(terms))
    np.maximum.at(rare, places, texts.rarities[question])
    counts = np.zeros((len(terms), len(rows)))
    for passage in np.unique(which):
        inside = np.flatnonzero(which == passage)
        roots = texts.roots[texts.passages[int(passage)]]
        for i, term in enumerate(terms):
            found = np.flatnonzero(roots == term)
            edges = np.searchsorted(found, [begins[inside], begins[inside] + sizes[inside]])
            counts[i, inside] = edges[1] - edges[0]
    having = (counts > 0).sum(axis=1, keepdims=True)
    weights = rare[:, None] * np.log1p((len(rows) - having + 0.5) / (having + 0.5))
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * sizes / sizes.mean()
    gained = counts * (SATURATION + 1) / (counts + SATURATION * length)
    scores: NDArray[np.float64] = (weights * gained).sum(axis=0)
    return scores


def window_likeness(
    data: PassageQuestions, rows: NDArray[np.int64], vectors: Tensor, unknown: int
) -> NDArray[np.float64]:
    r"""Return how near the words of windows are to those of their question, from -1 to 1.

    $$m_w = \sum_{t \in q} r_t^2 \max_{u \in w} \cos(v_t, v_u) \Big/ \sum_{t \in q} r_t^2$$

    $r_t$ is how rare a word is, as `ReaderVocabulary.rarity` says. A word without a vector is like
    itself alone.

    Args:
        data: The windows.
        rows: Those of one question.
        vectors: Of all words the reader knows (V, D).
        unknown: The id of all others.
    """
    texts = data.texts
    question = texts.questions[int(data.asked[rows[0]])]
    worth = texts.rarities[question] ** 2
    found = np.zeros(len(rows))
    if not worth.sum():
        return found
    asked = _directions(texts, question, vectors, unknown)  # (Q, D)
    for which in np.unique(data.which[rows]):
        passage = texts.passages[int(which)]
        words, places = np.unique(passage, return_inverse=True)
        alike = asked @ _directions(texts, words, vectors, unknown).T  # (Q, U)
        alike[texts.forms[question][:, None] == texts.forms[words]] = 1.0
        for place in np.flatnonzero(data.which[rows] == which).tolist():
            first, size = int(data.first[rows[place]]), int(data.sizes[rows[place]])
            found[place] = worth @ alike[:, places[first : first + size]].max(axis=1)
    likeness: NDArray[np.float64] = found / worth.sum()
    return likeness


def _directions(
    texts: EncodedTexts, places: NDArray[np.int32], vectors: Tensor, unknown: int
) -> NDArray[np.float64]:
    """The vectors of words, of length 1; of unknown words 0."""
    ids = texts.words[places]
    with torch.no_grad():
        picked = vectors[torch.from_numpy(ids).long().to(vectors.device)]
        rows: NDArray[np.float64] = picked.double().cpu().numpy()
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where((ids == unknown)[:, None], 0.0, rows / np.maximum(norms, 1e-12))


class WindowFeatures(NamedTuple):
    r"""What windows are told apart by, in the terms of `RankingConfig`.

    Args:
        terms: $b_w$.
        reading: $\ln Z_w$, or 0 before they are read.
        likeness: $m_w$.
        log_length: $\ln l_w$.
    """

    terms: NDArray[np.float64]
    reading: NDArray[np.float64]
    likeness: NDArray[np.float64]
    log_length: NDArray[np.float64]

    def part(self, rows: NDArray[np.int64]) -> WindowFeatures:
        """Those of some windows."""
        return WindowFeatures(*(each[rows] for each in self))

    def scores(self, ranking: RankingConfig) -> NDArray[np.float64]:
        """The logarithm of P(w), but for a constant of the question."""
        found: NDArray[np.float64] = (
            ranking.terms * self.terms
            + ranking.reading * self.reading
            + ranking.likeness * self.likeness
            - ranking.log_length * self.log_length
        )
        return found


def unread_features(
    data: PassageQuestions, owners: NDArray[np.int64], vectors: Tensor, unknown: int
) -> WindowFeatures:
    """Return what windows are told apart by before any is read.

    Args:
        data: The windows.
        owners: The question of each, rising. Of one with a single window nothing is computed.
        vectors: Of all words the reader knows (V, D).
        unknown: The id of all others.
    """
    terms, likeness = np.zeros(len(owners)), np.zeros(len(owners))
    edges = np.flatnonzero(np.diff(owners, prepend=-1))
    for begin, end in zip(edges, [*edges[1:], len(owners)], strict=True):
        if end - begin > 1:
            rows = np.arange(begin, end)
            terms[rows] = window_scores(data, rows)
            likeness[rows] = window_likeness(data, rows, vectors, unknown)
    return WindowFeatures(terms, np.zeros(len(owners)), likeness, np.log(data.sizes))


def best_windows(
    scores: NDArray[np.float64], owners: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the rows of the windows to read: those of each question with the greatest scores.

    Args:
        scores: Of the windows.
        owners: The question of each, rising.
        count: How many of each question's are read at most.

    >>> best_windows(np.array([3.0, 1.0, 2.0, 0.0, 0.0]), np.array([0, 0, 0, 1, 1]), 2).tolist()
    [0, 2, 3, 4]
    """
    order = np.lexsort([-scores, owners])  # stable
    firsts = np.searchsorted(owners, owners)  # where the windows of each one's question begin
    return np.sort(order[np.arange(len(owners)) - firsts < count])
