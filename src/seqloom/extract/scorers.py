"""What gives each sentence of a document its score: one class an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seqloom.extract import loops, walks
from seqloom.extract.config import (
    FeaturesConfig,
    LeadConfig,
    LexRankConfig,
    TextRankConfig,
    TfidfConfig,
)
from seqloom.extract.features import feature_table, standardized
from seqloom.extract.reading import Document
from seqloom.extract.table import TermTable
from seqloom.extract.walks import NO_EDGES, Edges, walk_edges

Floats = NDArray[np.float64]
NO_LOGS = np.empty(0)


class Scorer(Protocol):
    """Scores sentences; a higher score is a better sentence."""

    idf: Mapping[str, float] | None

    def scores(self, document: Document) -> Floats:
        """The score of each sentence (n,), none of them negative."""
        ...


class Lead:
    r"""The first sentences of a text: $S_i = 1 - i / n$.

    Args:
        config: The settings.
    """

    idf: Mapping[str, float] | None = None

    def __init__(self, config: LeadConfig) -> None:
        self.config = config

    def scores(self, document: Document) -> Floats:
        """The score of each sentence; of several texts, by its place in its own."""
        place, count = places(document)
        found: Floats = 1 - place / count
        return found


class Tfidf:
    r"""How rare the words of a sentence are elsewhere.

    $$S_i = \sum_{w \in s_i} \mathrm{TF}(w) \cdot \mathrm{IDF}(w), \quad
    \mathrm{TF}(w) = \frac{c_w}{|s_i|}, \quad \mathrm{IDF}(w) = \log \frac{N}{n_w}$$

    $N$ documents, $n_w$ of them with the word: the sentences of the text, or the texts it was
    fitted on.

    Args:
        config: The settings.
    """

    def __init__(self, config: TfidfConfig) -> None:
        self.config = config
        self.idf: Mapping[str, float] | None = None

    def scores(self, document: Document) -> Floats:
        """The score of each sentence."""
        table = TermTable(document, self.idf)
        lengths = np.maximum(document.lengths, 1)
        sums = table.sums(table.counts * table.idf[table.terms])
        found: Floats = np.maximum(sums, 0) / lengths**self.config.length_power
        return found


class TextRank:
    r"""A random walk over sentences that have words in common.

    $$S_i = (1 - d) + d \sum_{j \in \mathcal{N}(i)} \frac{w_{ji}}{\sum_k w_{jk}} S_j, \quad
    w_{ij} = \frac{|s_i \cap s_j|}{\log |s_i| + \log |s_j|}$$

    Unweighted, every edge is 1, so that $w_{ji} / \sum_k w_{jk}$ is $1 / C_j$ with $C_j$ the
    number of edges of $j$.

    Paper: Mihalcea and Tarau (2004), "TextRank: Bringing Order into Texts", sections 2.2 and 4.1.
    Differs from the paper: two sentences of one word each, whose norm would be 0, are not joined.

    Args:
        config: The settings.
    """

    idf: Mapping[str, float] | None = None

    def __init__(self, config: TextRankConfig) -> None:
        self.config = config

    def scores(self, document: Document) -> Floats:
        """The score of each sentence; their mean is 1 if none is without an edge."""
        c = self.config
        found: Floats
        if c.weighted and c.threshold == 0:
            found, _ = walks.textrank_walk(
                document.ids,
                document.offsets,
                document.vocab_size,
                c.damping,
                c.tolerance,
                c.max_steps,
            )
            return found
        table = TermTable(document)
        if c.threshold == 0:
            kept = kept_terms(table, c.max_pairs)
            edges = loops.repeated_terms(table.rows, table.terms, table.frequency, kept)
            return walk_vectors(table, np.ones(len(table.terms)), edges, c)
        return walk_edges(self.graph(table), c.damping, c.tolerance, c.max_steps)

    def graph(self, table: TermTable) -> Edges:
        """The edges above the threshold, each in the row of the later sentence."""
        c = self.config
        logs = np.log(np.maximum(table.document.lengths, 1))
        kept = kept_terms(table, c.max_pairs)
        ones = np.ones(len(table.terms))
        found: Edges = loops.similar_pairs(
            table.rows,
            table.terms,
            ones,
            table.frequency,
            logs,
            kept,
            c.threshold,
            False,
            not c.weighted,
        )
        return found


class LexRank:
    r"""A random walk over sentences of a high cosine.

    $$S_i = (1 - d) + d \sum_j \frac{w_{ji}}{\sum_k w_{jk}} S_j, \quad
    w_{ij} = [\cos(s_i, s_j) > \theta]$$

    with the cosine of vectors of tf-idf, or $w_{ij} = \cos(s_i, s_j)$ without a threshold.

    Paper: Erkan and Radev (2004), "LexRank: Graph-based Lexical Centrality as Salience in Text
    Summarization", equations 1 and 3 to 5.
    Differs from the paper: scores are multiplied by the number of sentences, so their mean is 1,
    and the frequencies are those of the text itself unless it was fitted on others.

    Args:
        config: The settings.
    """

    def __init__(self, config: LexRankConfig) -> None:
        self.config = config
        self.idf: Mapping[str, float] | None = None

    def scores(self, document: Document) -> Floats:
        """The score of each sentence."""
        c = self.config
        table = TermTable(document, self.idf)
        if c.threshold is None:
            return walk_vectors(table, table.vectors, NO_EDGES, c)
        return walk_edges(self.graph(table), c.damping, c.tolerance, c.max_steps)

    def graph(self, table: TermTable) -> Edges:
        """The edges as of `TextRank.graph`; a sentence is its own neighbor, as in the paper."""
        c = self.config
        kept = kept_terms(table, c.max_pairs)
        found: Edges = loops.similar_pairs(
            table.rows,
            table.terms,
            table.vectors,
            table.frequency,
            NO_LOGS,
            kept,
            float(c.threshold or 0.0),
            True,
            True,
        )
        return found


class Features:
    r"""A weighted sum of features of a sentence, each in units of its spread over the text.

    $$S_i = c + \sum_k w_k \frac{f_k(s_i) - \bar f_k}{\sigma_k}$$

    with $c$ so that the lowest score is 0.

    Paper: Edmundson (1969), "New Methods in Automatic Extracting", for the sum and for the features
    of place, headings and cue words.

    Args:
        config: The settings.

    Attributes:
        weights: The weight of each feature.
        cues: What a word says of its sentence, by word, if it was fitted.
    """

    def __init__(self, config: FeaturesConfig) -> None:
        self.config = config
        self.idf: Mapping[str, float] | None = None
        self.weights: Mapping[str, float] = config.weights
        self.cues: Mapping[str, float] = {}

    def scores(self, document: Document) -> Floats:
        """The score of each sentence."""
        found = self.table(document)
        total = np.zeros(len(document))
        for name, weight in self.weights.items():
            total += weight * standardized(found[name])
        lowered: Floats = total - total.min(initial=np.inf)
        return lowered

    def table(self, document: Document) -> dict[str, Floats]:
        """The features of each sentence by name."""
        return feature_table(document, self.idf, self.config.keywords, self.cues)


def walk_vectors(
    table: TermTable, values: Floats, edges: Edges, config: TextRankConfig | LexRankConfig
) -> Floats:
    """The scores of a walk over the products of vectors, `edges` being added to them."""
    found, _ = walks.walk(
        table.rows,
        table.terms,
        values,
        len(table.frequency),
        edges,
        config.damping,
        config.tolerance,
        config.max_steps,
    )
    scores: Floats = found
    return scores


def kept_terms(table: TermTable, max_pairs: int | None) -> NDArray[np.bool_]:
    """Which terms make pairs of sentences: all, or the rarest as far as the number allows."""
    if max_pairs is None:
        return np.ones(len(table.frequency), np.bool_)
    kept: NDArray[np.bool_] = loops.rarest_terms(table.frequency, max_pairs * len(table.document))
    return kept


def places(document: Document) -> tuple[Floats, Floats]:
    """Each sentence's place in its text, from 0, and how many that text has."""
    sources = np.array(document.sources)
    counts = np.bincount(sources)
    starts = np.cumsum(counts) - counts
    place: Floats = (np.arange(len(sources)) - starts[sources]).astype(np.float64)
    return place, counts[sources].astype(np.float64)
