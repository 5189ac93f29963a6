"""What compiled code computes, said plainly: regular expressions, dense matrices, visible loops.

For tests and for reading; time and memory grow with the square of the number of sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from seqloom.extract.cutting import LONGEST_HEADING, LONGEST_UNIT, NARROW
from seqloom.extract.stemming import stem
from seqloom.text.sentences import split_sentences

Matrix = NDArray[np.float64]
Terms = Sequence[str]
_MARKER = re.compile(
    r"\s*(?:[-*+•·▪‣◦–—]\s+|#{1,6}\s+|>\s*|\(?\d{1,3}[.)]\s+|\([a-zA-Z]\)\s+"
    r"|[（(]?[一二三四五六七八九十\d]{1,3}[)）、．]\s*)"
)
_STOPS = ".!?…。！？；;:："
_CLOSERS = "\"'”’)]}»」』）】》〉*_`"


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


def term(
    word: str, left_out: Container[str], *, numbers: bool = False, stems: bool = True
) -> str | None:
    """The term of a word: in small letters, without endings; None of one that is left out.

    Args:
        word: A word.
        left_out: Stop words.
        numbers: Whether numbers are terms.
        stems: Whether the endings of ASCII words are taken off.
    """
    word = word.lower()
    if word in left_out or not re.search(r"[^\W_]", word):  # stop word, punctuation
        return None
    if not re.search(r"[^\W\d_]", word):
        return word if numbers else None
    if not word.isascii():
        return word
    if len(word) == 1:
        return None
    return stem(word) if stems else word


def english_units(text: str) -> list[tuple[int, int, bool]]:
    """Where the units of English text begin and end, and whether each is a heading."""
    found = []
    for begin, close in pieces(text):
        for sentence in split_sentences(text[begin:close], "en"):
            start, end = begin + sentence.start, begin + sentence.end
            while start < end:
                cut = end
                if end - start > LONGEST_UNIT:
                    half, cut = start + LONGEST_UNIT // 2, start + LONGEST_UNIT
                    breaks = [*re.compile(r"[\s,;，、；：]").finditer(text, half, cut)]
                    cut = breaks[-1].end() if breaks else cut
                part = text[start:cut]
                first = start + len(part) - len(part.lstrip())
                last = first + len(part.strip())
                if first < last:
                    found.append((first, last, _is_heading(text, first, last)))
                start = cut
    return found


def pieces(text: str) -> list[tuple[int, int]]:
    """Cut a text where its lines say that something new begins: a mark, or a narrow line before."""
    if "\n" not in text:
        return [(0, len(text))]
    lines = text.split("\n")
    widest = max(map(len, lines))
    found, begin, at = [], 0, 0
    before = ""
    for line in lines:
        bare = line.strip()
        mark = _MARKER.match(line)
        stands_alone = before and before[-1] not in _STOPS + "," and len(before) < NARROW * widest
        if mark or (bare and stands_alone and not bare[0].islower()):
            found.append((begin, at))
            begin = at + (mark.end() if mark else 0)
        before = bare
        at += len(line) + 1
    return [(a, b) for a, b in [*found, (begin, len(text))] if a < b]


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether it is a heading: short, without a stop, and a line of its own before others."""
    if end - start > LONGEST_HEADING or text[start:end].rstrip(_CLOSERS)[-1:] in [*_STOPS]:
        return False
    before = text[:start].rpartition("\n")[2]
    if len(before) >= LONGEST_HEADING and start > LONGEST_HEADING:
        return False
    after, newline, rest = text[end:].partition("\n")
    alone = not before.strip().strip("#") and not after.strip() and len(after) < LONGEST_HEADING
    return bool(alone and newline and rest.strip())
