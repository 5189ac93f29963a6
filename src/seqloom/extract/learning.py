"""Learning from examples: document frequencies, cue words, and the weights of features."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import InputError
from seqloom.extract.config import FEATURES
from seqloom.extract.features import cue_words, feature_table, standardized
from seqloom.extract.reading import Document
from seqloom.text.scripts import CJK

Floats = NDArray[np.float64]
CUE_SHRINK = 20.0  # how many sentences of no gain a cue word is held to have been in besides
RAREST_CUE = 3  # sentences
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


class Learned(NamedTuple):
    """What was learned: the weight of each feature, and of each cue word."""

    weights: dict[str, float]
    cues: dict[str, float]


def count_frequencies(documents: Iterable[Document]) -> dict[str, float]:
    r"""Return $\mathrm{IDF}(t) = \log \frac{N}{n_t}$ of the terms of N documents."""
    counts: Counter[str] = Counter()
    total = 0
    for document in documents:
        total += 1
        counts.update(document.terms)
    if not total:
        raise InputError("there must be a text to count on, got none")
    return {term: math.log(total / count) for term, count in counts.items()}


def gains(document: Document, references: Sequence[str]) -> Floats:
    r"""How much of each sentence a reference has: the share of its words and pairs of words.

    $$g_i = \max_r \tfrac12 \Big(\frac{|W(s_i) \cap W(r)|}{|W(s_i)|} +
    \frac{|P(s_i) \cap P(r)|}{|P(s_i)|}\Big)$$

    W are the words of a text, or Chinese characters, as often as they occur, P the pairs of
    neighbors among them.
    """
    others = [_grams(reference) for reference in references]
    found = np.zeros(len(document))
    for i in range(len(document)):
        words, pairs = _grams(document.text(i))
        found[i] = max(
            ((_share(words, other[0]) + _share(pairs, other[1])) / 2 for other in others),
            default=0.0,
        )
    return found


def _grams(text: str) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    words = _WORD.findall(text.lower())
    return Counter(words), Counter(pairwise(words))


def _share(own: Counter[Any], other: Counter[Any]) -> float:
    common = sum(min(count, other[gram]) for gram, count in own.items())
    return common / own.total() if common else 0.0


def fit_weights(
    examples: Iterable[tuple[Document, Sequence[str]]], l2: float, keywords: int
) -> Learned:
    r"""Find the weights whose sum of features comes nearest to the gain of each sentence.

    $$\min_w \sum_{d} \sum_{i \in d} \Big(g_i - \bar g_d - \sum_k w_k z_{ik}\Big)^2
    + l2 \lVert w \rVert^2$$

    $z$ are the features in units of their spread over the document; the mean of its gains $g$ is
    left out, as only the order of its sentences matters. The weight of a cue word is the mean,
    drawn towards 0, of the gains of the sentences that have it; while the weights of features are
    fitted, a document's own sentences are left out of that mean, so that a cue word is not trusted
    for what it was learned from.

    Args:
        examples: Documents, each with its reference summaries.
        l2: How strongly weights are drawn towards 0.
        keywords: As of `feature_table`.
    """
    tables: list[Floats] = []
    targets: list[Floats] = []
    words: list[list[set[str]]] = []
    sums: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for document, references in examples:
        if len(document) < 2:
            continue  # there is nothing to choose
        gain = gains(document, references)
        gain -= gain.mean()
        found = feature_table(document, None, keywords)
        tables.append(np.stack([found[name] for name in FEATURES], axis=1))
        targets.append(gain)
        own = [cue_words(document.text(i)) for i in range(len(document))]
        words.append(own)
        for value, each in zip(gain.tolist(), own, strict=True):
            counts.update(each)
            for word in each:
                sums[word] += value
    if not tables:
        raise InputError("there must be an example of at least two sentences, got none")
    for table, gain, own in zip(tables, targets, words, strict=True):
        table[:, FEATURES.index("cues")] = _cues_without(gain, own, sums, counts)
    x, y = np.concatenate([standardized(table) for table in tables]), np.concatenate(targets)
    weights = np.linalg.solve(x.T @ x + (l2 + 1e-9) * np.eye(len(FEATURES)), x.T @ y)
    return Learned(
        dict(zip(FEATURES, weights.tolist(), strict=True)),
        {
            word: sums[word] / (count + CUE_SHRINK)
            for word, count in sorted(counts.items())
            if count >= RAREST_CUE
        },
    )


def _cues_without(
    gain: Floats, own: Sequence[set[str]], sums: Mapping[str, float], counts: Mapping[str, int]
) -> Floats:
    """The feature "cues" of a document's sentences, learned from all other documents."""
    own_sums: Counter[str] = Counter()
    own_counts: Counter[str] = Counter()
    for value, each in zip(gain.tolist(), own, strict=True):
        own_counts.update(each)
        for word in each:
            own_sums[word] += value
    found = np.zeros(len(own))
    for i, each in enumerate(own):
        total = 0.0
        for word in each:
            count = counts[word] - own_counts[word]
            if count >= RAREST_CUE:
                total += (sums[word] - own_sums[word]) / (count + CUE_SHRINK)
        found[i] = total / max(len(each), 1)
    return found
