"""Which windows of long documents are worth reading for a question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqloom.tasks.reader_data import PassageQuestions

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k_1 and b


def window_scores(data: PassageQuestions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""Return how much windows have in common with their question.

    $$\sum_{w \in q} \ln\Big(1 + \frac{N - n_w + 0.5}{n_w + 0.5}\Big)
    \frac{c_w (k_1 + 1)}{c_w + k_1 (1 - b + b \, l / \bar l)}$$

    over the different words w of the question, where $n_w$ of N windows have w, this one $c_w$
    times, and it has l words, on average $\bar l$.

    Paper: Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond",
    Foundations and Trends in Information Retrieval 3(4), section 3.

    Args:
        data: The windows.
        rows: Those of one question.
    """
    texts, which = data.texts, data.which[rows]
    begins, sizes = data.first[rows], data.sizes[rows]
    question = texts.questions[int(data.asked[rows[0]])]
    terms = np.unique(texts.forms[question])
    counts = np.zeros((len(terms), len(rows)))
    for passage in np.unique(which):
        inside = np.flatnonzero(which == passage)
        words = texts.forms[texts.passages[int(passage)]]
        for i, term in enumerate(terms):
            before = np.concatenate([[0], np.cumsum(words == term)])
            counts[i, inside] = before[begins[inside] + sizes[inside]] - before[begins[inside]]
    having = (counts > 0).sum(axis=1, keepdims=True)
    rarity = np.log1p((len(rows) - having + 0.5) / (having + 0.5))
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * sizes / sizes.mean()
    gained = counts * (SATURATION + 1) / (counts + SATURATION * length)
    found: NDArray[np.float64] = (rarity * gained).sum(axis=0)
    return found


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
