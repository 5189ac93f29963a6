"""Keywords of a text by TextRank on its words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from seqloom.errors import ConfigError
from seqloom.extract import loops
from seqloom.extract.reading import Document, Reader
from seqloom.extract.walks import walk_edges
from seqloom.text.scripts import has_cjk

LONGEST_PHRASE = 4  # words
Numbering = Callable[[str], tuple[int, ...]]


class Keyword(NamedTuple):
    """A word or phrase of a text, its score, and how often it occurs."""

    text: str
    score: float
    occurrences: int


def find_keywords(
    document: Document,
    reader: Reader,
    count: int = 10,
    *,
    window: int = 2,
    phrases: bool = True,
    damping: float = 0.85,
) -> list[Keyword]:
    r"""Return the words that score highest in a random walk over neighboring words.

    $$S_i = (1 - d) + d \sum_{j \in \mathcal{N}(i)} \frac{w_{ji}}{\sum_k w_{jk}} S_j$$

    $w_{ij}$ counts how often two words stand less than `window` terms apart in a sentence. Keywords
    that stand next to each other in the text at least twice make a phrase, whose score is the sum
    of theirs.

    Paper: Mihalcea and Tarau (2004), "TextRank: Bringing Order into Texts", section 3.
    Differs from the paper: edges are weighted; parts of speech are filtered only if the reader has
    a tagger; a phrase must occur twice.

    Args:
        document: What was read.
        reader: What read it.
        count: How many to return at most.
        window: How near two words must stand.
        phrases: Whether to join neighboring keywords.
        damping: d.
    """
    if count < 1 or window < 2:
        raise ConfigError(f"count must be at least 1 and window at least 2, got {count}, {window}")
    size = document.vocab_size
    window = min(window, max(2, int(document.lengths.max(initial=0))))  # pairs are of one sentence
    keys = loops.neighbor_words(document.ids, document.offsets, size, window)
    pairs, weights = np.unique(keys, return_counts=True)
    rows = np.searchsorted(pairs, np.arange(size + 1) * size)
    columns = (pairs % max(size, 1)).astype(np.int32)
    edges = (rows, columns, weights.astype(np.float64))
    scores = walk_edges(edges, damping, 1e-8, 200)
    occurs = np.bincount(document.ids, minlength=size)
    scores[occurs == 0] = 0.0
    ranked = [int(i) for i in np.argsort(-scores, kind="stable") if occurs[i]]
    chosen = set(ranked[: max(count, size // 3 if phrases else count)])
    numbers_of = _numbering(document, reader)
    spelled = _spellings(document, reader, numbers_of)
    found = [Keyword(spelled[i], float(scores[i]), int(occurs[i])) for i in ranked[:count]]
    if not phrases:
        return found
    longer = _phrases(document, reader, numbers_of, chosen, scores)
    inside = {i for numbers, _ in longer for i in numbers if _mostly_inside(i, longer, occurs)}
    singles = [
        Keyword(spelled[i], float(scores[i]), int(occurs[i]))
        for i in ranked[: 2 * count]
        if i not in inside
    ]
    joined = [keyword for _, keyword in longer]
    return sorted([*singles, *joined], key=lambda k: (-k.score, k.text))[:count]


def _numbering(document: Document, reader: Reader) -> Numbering:
    """Finds the numbers of a word's terms in the document, -1 for one that it has not."""
    numbers = {term: i for i, term in enumerate(document.terms)}

    @cache
    def numbers_of(word: str) -> tuple[int, ...]:
        return tuple(numbers.get(term, -1) for term in reader.terms(word))

    return numbers_of


def _spellings(document: Document, reader: Reader, numbers_of: Numbering) -> dict[int, str]:
    """The commonest spelling of each term in the text."""
    seen: dict[int, Counter[str]] = {}
    for i in range(len(document)):
        for word in reader.words(document.text(i)):
            for number in numbers_of(word):
                if number >= 0:
                    seen.setdefault(number, Counter())[word] += 1
    found = dict(enumerate(document.terms))
    return found | {number: words.most_common(1)[0][0] for number, words in seen.items()}


def _phrases(
    document: Document,
    reader: Reader,
    numbers_of: Numbering,
    chosen: set[int],
    scores: np.ndarray,
) -> list[tuple[tuple[int, ...], Keyword]]:
    """Runs of chosen words with nothing but a blank between them that occur at least twice."""
    runs: dict[tuple[int, ...], Counter[str]] = {}
    for i in range(len(document)):
        text = document.text(i)
        run: list[int] = []
        begin = end = 0
        for word in [*reader.words(text), ""]:
            start = text.find(word, end) if word else len(text)
            numbers = numbers_of(word) if word else ()
            number = numbers[0] if len(numbers) == 1 else -1
            adjoins = bool(run) and not re.search(r"\S", text[end:start])
            if run and not (adjoins and number in chosen):
                if 1 < len(run) <= LONGEST_PHRASE:
                    runs.setdefault(tuple(run), Counter())[text[begin:end]] += 1
                run = []
            if number in chosen:
                begin = start if not run else begin
                run.append(number)
            end = start + len(word)
    return [
        (run, Keyword(_one_line(spelled), float(sum(scores[list(run)])), spelled.total()))
        for run, spelled in runs.items()
        if spelled.total() > 1 and len(set(run)) == len(run)
    ]


def _one_line(spelled: Counter[str]) -> str:
    text = spelled.most_common(1)[0][0]
    return re.sub(r"\s+", "" if has_cjk(text) else " ", text)


def _mostly_inside(
    number: int, longer: list[tuple[tuple[int, ...], Keyword]], occurs: np.ndarray
) -> bool:
    """Whether a word occurs mostly as part of phrases, so that it need not be listed alone."""
    inside = sum(keyword.occurrences for run, keyword in longer if number in run)
    return bool(2 * inside >= occurs[number])
