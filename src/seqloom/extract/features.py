"""The features of a sentence: length, TF-IDF, keywords, place, likeness, headings, cue words."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from seqloom.extract import walks
from seqloom.extract.reading import Document
from seqloom.extract.table import TermTable
from seqloom.text.scripts import CJK

Floats = NDArray[np.float64]
_CUE = re.compile(rf"[{CJK}]{{2}}|[^\W_{CJK}]+")


def feature_table(
    document: Document,
    idf: Mapping[str, float] | None = None,
    keywords: int = 20,
    cues: Mapping[str, float] | None = None,
) -> dict[str, Floats]:
    """Return the features of each sentence by name (n,), each between 0 and 1 but for "cues".

    - `length`: the logarithm of its number of terms, set against the longest;
    - `tfidf`: the mean TF-IDF of its terms, set against the highest;
    - `keywords`: its share of the occurrences of the text's commonest terms;
    - `position`: 1 at the beginning of the text, 0 at its end;
    - `first`, `last`: 1, 1/2, 1/3, ... from the beginning, or from the end;
    - `similarity`: the mean cosine with the other sentences, set against the highest;
    - `textrank`: the score of weighted TextRank, set against the highest;
    - `heading`: the share of the headings' terms that it has;
    - `cues`: the mean weight of its words, learned from examples; else 0.

    Args:
        document: What was read.
        idf: Inverse document frequencies of other texts.
        keywords: How many of the commonest terms count.
        cues: The weight of words.
    """
    n = len(document)
    table = TermTable(document, idf)
    sources = np.array(document.sources)
    counts = np.bincount(sources)
    place = np.arange(n) - (np.cumsum(counts) - counts)[sources]
    ahead = counts[sources] - 1 - place
    lengths = np.log1p(document.lengths)
    tfidf = table.sums(table.counts * table.idf[table.terms]) / np.maximum(document.lengths, 1)
    total = np.bincount(table.terms, table.vectors, document.vocab_size)
    own = table.sums(table.vectors**2)
    walked, _ = walks.textrank_walk(
        document.ids, document.offsets, document.vocab_size, 0.85, 1e-6, 100
    )
    likeness = (table.sums(table.vectors * total[table.terms]) - own) / max(n - 1, 1)
    return {
        "length": _against_highest(lengths),
        "tfidf": _against_highest(tfidf),
        "keywords": _keyword_share(document, table, keywords),
        "position": 1 - place / np.maximum(counts[sources] - 1, 1),
        "first": 1 / (1.0 + place),
        "last": 1 / (1.0 + ahead),
        "similarity": _against_highest(likeness),
        "textrank": _against_highest(walked),
        "heading": _heading_share(document, table),
        "cues": _cue_means(document, cues) if cues else np.zeros(n),
    }


def cue_words(text: str) -> set[str]:
    """The words and pairs of Chinese characters of a sentence, small words included."""
    return set(_CUE.findall(text.lower()))


def standardized(values: Floats) -> Floats:
    """Values of a document's sentences less their mean, in units of their spread (n, ...)."""
    spread = values.std(axis=0)
    found: Floats = (values - values.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
    return found


def _against_highest(values: Floats) -> Floats:
    highest = values.max(initial=0.0)
    return values / highest if highest > 0 else np.zeros(len(values))


def _keyword_share(document: Document, table: TermTable, number: int) -> Floats:
    occurs = np.bincount(document.ids, minlength=document.vocab_size).astype(np.float64)
    best = np.argsort(-occurs, kind="stable")[:number]
    weight = np.zeros(document.vocab_size)
    weight[best] = occurs[best] / max(occurs[best].sum(), 1.0)
    return table.sums(weight[table.terms])


def _heading_share(document: Document, table: TermTable) -> Floats:
    if not document.headings:
        return np.zeros(len(document))
    weight = np.zeros(document.vocab_size)
    weight[list(document.headings)] = 1 / len(document.headings)
    return table.sums(weight[table.terms])


def _cue_means(document: Document, cues: Mapping[str, float]) -> Floats:
    found = np.zeros(len(document))
    for i in range(len(document)):
        words = cue_words(document.text(i))
        if words:
            found[i] = sum(cues.get(word, 0.0) for word in words) / len(words)
    return found
