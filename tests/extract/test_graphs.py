"""The compiled walks against the plain reference, networkx, and a computation by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.extract import TermTable, loops, reference
from seqloom.extract.config import LexRankConfig, TextRankConfig, TfidfConfig
from seqloom.extract.reading import Document
from seqloom.extract.scorers import LexRank, TextRank, Tfidf, kept_terms

TIGHT = {"tolerance": 1e-13, "max_steps": 5000}


def document(sentences: list[list[str]]) -> Document:
    """A document of sentences of terms, whose text does not matter."""
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(term, len(numbers)) for s in sentences for term in s]
    ends = np.cumsum([0, *map(len, sentences)])
    return Document(
        texts=("x" * len(sentences),),
        units=np.array([(i, i + 1, 0) for i in range(len(sentences))]),
        sources=[0] * len(sentences),
        ids=np.array(ids, np.int32),
        offsets=ends.astype(np.int64),
        vocab_size=len(numbers),
        headings=frozenset(),
        find_terms=lambda: list(numbers),
    )


def adjacency(graph, n: int) -> np.ndarray:
    rows, columns, weights = graph
    found = np.zeros((n, n))
    for i in range(n):
        for k in range(rows[i], rows[i + 1]):
            found[i, columns[k]] = found[columns[k], i] = weights[k]
    return found


SENTENCES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=7), min_size=1, max_size=9)


@settings(max_examples=150, deadline=None)
@given(SENTENCES)
def test_weighted_textrank_is_the_printed_formula(sentences):
    expected = reference.walk(reference.overlap(sentences))
    found = TextRank(TextRankConfig(**TIGHT)).scores(document(sentences))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(SENTENCES, st.sampled_from([0.0, 0.4]))
def test_unweighted_textrank_is_the_printed_formula(sentences, threshold):
    if threshold == 0:  # any word in common joins, whatever the lengths
        n = len(sentences)
        joined = np.array(
            [
                [float(i != j and bool(set(sentences[i]) & set(sentences[j]))) for j in range(n)]
                for i in range(n)
            ]
        )
    else:
        joined = (reference.overlap(sentences) > threshold).astype(float)
    model = TextRank(TextRankConfig(weighted=False, threshold=threshold, max_pairs=None, **TIGHT))
    found = model.scores(document(sentences))
    np.testing.assert_allclose(found, reference.walk(joined), atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(SENTENCES, st.sampled_from([None, 0.1, 0.3]))
def test_lexrank_is_the_papers_walk(sentences, threshold):
    weights = reference.cosines(sentences)
    if threshold is not None:
        near = np.abs(weights - threshold) < 1e-9  # rounding may decide these
        if near.any():
            return
        weights = (weights > threshold).astype(float)
    model = LexRank(LexRankConfig(threshold=threshold, max_pairs=None, **TIGHT))
    found = model.scores(document(sentences))
    np.testing.assert_allclose(found, reference.walk(weights), atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(SENTENCES, st.sampled_from([0.0, 0.5, 1.0]))
def test_tfidf_is_the_printed_formula(sentences, power):
    found = Tfidf(TfidfConfig(length_power=power)).scores(document(sentences))
    np.testing.assert_allclose(found, reference.tfidf(sentences, power), atol=1e-12)


def test_tfidf_by_hand():
    found = Tfidf(TfidfConfig()).scores(document([["a", "b"], ["a"], ["b", "b", "c", "c"]]))
    two, three = math.log(3 / 2), math.log(3)
    expected = [two / 2 + two / 2, two, 2 / 4 * two + 2 / 4 * three]
    np.testing.assert_allclose(found, expected)


def random_sentences(seed: int, n: int, words: int = 60) -> list[list[str]]:
    chance = np.random.default_rng(seed)
    rank = chance.zipf(1.6, size=(n, 14)) % words
    cut = chance.integers(3, 14, size=n)
    return [[f"w{w}" for w in row[:c]] for row, c in zip(rank, cut, strict=True)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [True, False])
def test_scores_divided_by_their_sum_are_networkx_pagerank(seed, weighted):
    networkx = pytest.importorskip("networkx", reason="networkx is the independent source here")
    pytest.importorskip("scipy", reason="networkx computes PageRank with scipy")
    sentences = random_sentences(seed, 60)
    weights = reference.overlap(sentences)
    if not weighted:
        weights = (weights > 0).astype(float)
    assert weights.any(axis=1).all(), "no sentence of this graph may be without an edge"
    graph = networkx.from_numpy_array(weights)
    ranks = networkx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=1000)
    model = TextRank(TextRankConfig(weighted=weighted, max_pairs=None))
    found = model.scores(document(sentences))
    expected = np.array([ranks[i] for i in range(len(sentences))])
    np.testing.assert_allclose(found / found.sum(), expected, atol=1e-6)


def test_three_sentences_by_hand():
    # a-b and b-c are joined: S_b = .15 + .85 (S_a + S_c), S_a = S_c = .15 + .85 S_b / 2.
    model = TextRank(TextRankConfig(weighted=False, **TIGHT))
    found = model.scores(document([["x", "p"], ["x", "y"], ["y", "q"]]))
    middle = (0.15 + 2 * 0.85 * 0.15) / (1 - 0.85**2)
    np.testing.assert_allclose(found, [0.15 + 0.85 * middle / 2, middle, 0.15 + 0.85 * middle / 2])


def test_a_sentence_without_an_edge_keeps_what_jumps_give_it():
    found = TextRank(TextRankConfig()).scores(document([["a", "b"], ["a", "c"], ["z", "y"], []]))
    np.testing.assert_allclose(found, [1, 1, 0.15, 0.15], atol=1e-6)


def test_the_walk_over_all_pairs_equals_the_walk_over_listed_pairs():
    made = document(random_sentences(3, 800, 900))
    whole = TextRank(TextRankConfig(**TIGHT)).scores(made)
    listed = TextRank(TextRankConfig(threshold=1e-9, max_pairs=None, **TIGHT)).scores(made)
    np.testing.assert_allclose(whole, listed, atol=1e-9)


def test_pruning_keeps_the_rarest_terms_within_the_number_of_pairs():
    made = document(random_sentences(1, 200, 40))
    table = TermTable(made)
    kept = kept_terms(table, 20)
    assert 0 < kept.sum() < len(kept)
    assert (table.frequency[kept & (table.frequency > 1)] ** 2).sum() <= 20 * len(made)
    assert table.frequency[kept].max() < table.frequency[~kept].min()
    assert kept_terms(table, None).all()


@pytest.mark.parametrize("max_pairs", [None, 20])
def test_terms_in_common_and_what_is_listed_make_one_edge_a_pair(max_pairs):
    sentences = random_sentences(2, 90, 40)
    made = document(sentences)
    table = TermTable(made)
    kept = kept_terms(table, max_pairs)
    rare = {term for term, is_kept in zip(made.terms, kept, strict=True) if is_kept}
    graph = loops.repeated_terms(table.rows, table.terms, table.frequency, kept)
    found = adjacency(graph, len(made))
    only_common = 0
    for i, first in enumerate(sentences):
        for j, second in enumerate(sentences):
            shared = set(first) & set(second)
            edge = len(shared) + found[i, j]
            if i == j or not shared:
                assert edge == 0
            elif shared & rare:
                assert edge == 1
            else:
                assert edge == len(shared)
                only_common += 1
    assert (only_common > 0) == (max_pairs is not None)


def test_a_pair_that_pruning_leaves_is_compared_by_all_its_terms():
    # "common" is pruned, but the pair of the first two sentences shares "rare" as well.
    made = document(
        [["common", "rare"], ["common", "rare"]] + [["common", f"w{i}"] for i in range(60)]
    )
    model = TextRank(TextRankConfig(threshold=1e-9, max_pairs=1))
    graph = adjacency(model.graph(TermTable(made)), len(made))
    assert graph[0, 1] == pytest.approx(2 / (2 * math.log(2)))
    assert not graph[2:].any()
