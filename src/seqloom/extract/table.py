"""The terms of a document's sentences as a sparse table, with what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqloom.extract import loops
from seqloom.extract.reading import Document

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TermTable:
    r"""Which terms each sentence has, and how often.

    Args:
        document: What was read.
        idf: The inverse document frequency of terms, if it was counted on other texts; else each
            sentence counts as a document.

    Attributes:
        rows: Where in `terms` and `counts` each sentence begins (n + 1,).
        terms: The different terms of each sentence.
        counts: How often each of them occurs in it.
        frequency: In how many sentences each term is (V,).
    """

    def __init__(self, document: Document, idf: Mapping[str, float] | None = None) -> None:
        self.document = document
        self._idf = idf
        self.rows, self.terms, self.counts, self.frequency = loops.distinct_terms(
            document.ids, document.offsets, document.vocab_size
        )

    @cached_property
    def row_of(self) -> Ints:
        """The sentence of each entry of `terms`."""
        return np.repeat(np.arange(len(self.document)), np.diff(self.rows))

    @cached_property
    def idf(self) -> Floats:
        r"""$\mathrm{IDF}(t) = \log \frac{N}{n_t}$ of each term (V,).

        Where it was counted on other texts, a term that occurs in none of them is as rare as the
        rarest of theirs.
        """
        if self._idf is not None:
            unknown = max(self._idf.values(), default=1.0)
            return np.array([self._idf.get(term, unknown) for term in self.document.terms])
        found: Floats = np.log(len(self.document) / np.maximum(self.frequency, 1))
        return found

    @cached_property
    def vectors(self) -> Floats:
        r"""The entries' $\mathrm{tf} \cdot \mathrm{idf}$, each sentence a vector of length 1."""
        values: Floats = self.counts * self.idf[self.terms]
        norms = np.sqrt(self.sums(values * values))
        norms[norms == 0] = 1.0
        scaled: Floats = values / norms[self.row_of]
        return scaled

    def sums(self, values: Floats) -> Floats:
        """Add up a value of each entry over each sentence (n,)."""
        found: Floats = np.bincount(self.row_of, values, len(self.document)).astype(np.float64)
        return found

    def cosines_with(self, weights: Floats) -> Floats:
        """The cosine of each sentence with a vector over the terms (n,)."""
        norm = np.sqrt((weights * weights).sum())
        if norm == 0:
            return np.zeros(len(self.document))
        found: Floats = self.sums(self.vectors * weights[self.terms]) / norm
        return found

    @cached_property
    def postings(self) -> tuple[Ints, Ints, Ints]:
        """Term by term: where it begins, the entries that name it, their sentences."""
        found: tuple[Ints, Ints, Ints] = loops.sentences_of_terms(
            self.rows, self.terms, self.frequency
        )
        return found
