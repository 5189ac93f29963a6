"""Which windows of long documents are worth reading for a question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqloom.tasks.reader_data import PassageQuestions

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k_1 and b


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


def best_windows(
    data: PassageQuestions, owners: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of the windows to read, and how much each has in common with its question.

    Args:
        data: The windows.
        owners: The question of each, rising.
        count: How many of each question's are read at most: those that share most with it.
    """
    edges = np.flatnonzero(np.diff(owners, prepend=-1))
    kept, shared = [], np.zeros(len(owners))
    for begin, end in zip(edges, [*edges[1:], len(owners)], strict=True):
        rows = np.arange(begin, end)
        if len(rows) > 1:
            shared[rows] = window_scores(data, rows)
        if len(rows) > count:
            order = np.argsort(-shared[rows], kind="stable")[:count]
            rows = np.sort(rows[order])
        kept.append(rows)
    found = np.concatenate(kept)
    return found, shared[found]
