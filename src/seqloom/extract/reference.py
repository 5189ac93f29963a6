"""What the compiled loops compute, said plainly: dense matrices of float64 and visible loops.

For tests and for reading; time and memory grow with the square of the number of sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Terms = Sequence[str]


def walk(weights: Matrix, damping: float = 0.85, steps: int = 2000) -> Matrix:
    r"""Scores of the nodes of a graph: $S_i = (1 - d) + d \sum_j \frac{w_{ji}}{\sum_k w_{jk}} S_j$.

    A node without edges has $S_i = 1 - d$.

    Args:
        weights: w, (n, n).
        damping: d.
        steps: How often the formula is applied.
    """
    n = len(weights)
    score = np.ones(n)
    for _ in range(steps):
        new = np.full(n, 1 - damping)
        for i in range(n):
            for j in range(n):
                total = weights[j].sum()
                if total > 0:
                    new[i] += damping * weights[j, i] / total * score[j]
        if np.abs(new - score).max() < 1e-14:
            break
        score = new
    return score


def overlap(sentences: Sequence[Terms]) -> Matrix:
    r"""$w_{ij} = \frac{|S_i \cap S_j|}{\log |S_i| + \log |S_j|}$, 0 on the diagonal.

    Two sentences of one term have a norm of 0; they are not joined.
    """
    n = len(sentences)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j or not sentences[i] or not sentences[j]:
                continue
            norm = math.log(len(sentences[i])) + math.log(len(sentences[j]))
            if norm > 0:
                weights[i, j] = len(set(sentences[i]) & set(sentences[j])) / norm
    return weights


def inverse_frequencies(sentences: Sequence[Terms]) -> dict[str, float]:
    r"""$\mathrm{IDF}(t) = \log \frac{N}{n_t}$, each sentence a document."""
    terms = {term for sentence in sentences for term in sentence}
    return {
        term: math.log(len(sentences) / sum(term in sentence for sentence in sentences))
        for term in terms
    }


def cosines(sentences: Sequence[Terms]) -> Matrix:
    r"""The cosine of vectors of $\mathrm{tf} \cdot \mathrm{idf}$; the diagonal is 1.

    $$\cos(x, y) = \frac{\sum_w \mathrm{tf}_{w,x} \mathrm{tf}_{w,y} \mathrm{idf}_w^2}
    {\sqrt{\sum_w (\mathrm{tf}_{w,x} \mathrm{idf}_w)^2} \sqrt{\sum_w (\mathrm{tf}_{w,y}
    \mathrm{idf}_w)^2}}$$
    """
    idf = inverse_frequencies(sentences)
    n = len(sentences)
    vectors = [{t: sentence.count(t) * idf[t] for t in set(sentence)} for sentence in sentences]
    norms = [math.sqrt(sum(v * v for v in vector.values())) for vector in vectors]
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if norms[i] > 0 and norms[j] > 0:
                dot = sum(v * vectors[j].get(t, 0.0) for t, v in vectors[i].items())
                found[i, j] = dot / (norms[i] * norms[j])
    return found


def tfidf(sentences: Sequence[Terms], length_power: float = 1.0) -> Matrix:
    r"""$\sum_{w \in s} \mathrm{TF}(w) \cdot \mathrm{IDF}(w)$, $\mathrm{TF}(w) = c_w / |s|$."""
    idf = inverse_frequencies(sentences)
    return np.array(
        [
            sum(sentence.count(t) * idf[t] for t in set(sentence)) / len(sentence) ** length_power
            if sentence
            else 0.0
            for sentence in sentences
        ]
    )
