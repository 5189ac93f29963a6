"""The tables of word2vec by their formulas, and Huffman's tree against torch's own."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import pytest
import torch

from seqloom.nn.softmax_tree import huffman_tree
from seqloom.word2vec.reference import draw, random_bits
from seqloom.word2vec.tables import alias_table, draw_chances, huffman_paths, keep_chances

COUNTS = {
    "few": [3, 1],
    "equal": [2, 2, 2, 2, 2],
    "powers": [2**i for i in range(12, -1, -1)],
    "text": np.sort(np.random.default_rng(0).zipf(1.5, 300))[::-1].tolist(),
}
each = pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)


def test_the_chance_to_be_kept():
    # Of 1,000 words: t/f = 0.01 / 0.64, 0.01 / 0.35, 0.01 / 0.01.
    chances = keep_chances(np.array([640, 350, 10]), 0.01)
    by_hand = [0.125 + 0.015625, (0.01 / 0.35) ** 0.5 + 0.01 / 0.35, 1.0]
    np.testing.assert_allclose(chances, by_hand)
    assert keep_chances(np.array([9, 1]), 0).tolist() == [1, 1]


def test_the_chance_to_be_drawn():
    np.testing.assert_allclose(draw_chances(np.array([16, 1]), 0.75), [8 / 9, 1 / 9])
    np.testing.assert_allclose(draw_chances(np.array([16, 1]), 0), [0.5, 0.5])


@each
def test_an_alias_table_has_the_chances_it_was_made_of(counts):
    wanted = draw_chances(np.array(counts), 0.75)
    table = alias_table(wanted.copy()).reshape(-1, 2)
    found = np.zeros(len(counts))
    for slot, (chance, other) in enumerate(table.tolist()):
        share = 1.0 if other == slot else chance / 2**32
        found[slot] += share / len(counts)
        found[other] += (1 - share) / len(counts)
    np.testing.assert_allclose(found, wanted, atol=2**-31)


def test_draws_follow_the_table():
    wanted = draw_chances(np.array([50, 20, 5, 1]), 0.75)
    table, bits, number = alias_table(wanted.copy()), random_bits(7), 40_000
    found = np.bincount([draw(table, next(bits)) for _ in range(number)], minlength=4) / number
    assert (abs(found - wanted) < 4 * np.sqrt(wanted / number)).all()


@each
def test_huffmans_tree_is_as_short_as_can_be(counts):
    lengths = np.diff(huffman_paths(np.array(counts)).starts)
    theirs = huffman_tree(torch.tensor(counts)).starts.diff().numpy()
    assert (lengths * counts).sum() == (theirs * counts).sum()
    heap = list(counts)  # the sum of all joined weights is the length of the code
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        total += joined
        heapq.heappush(heap, joined)
    assert (lengths * counts).sum() == total


@each
def test_ways_through_the_tree_tell_words_apart(counts):
    starts, nodes, labels = huffman_paths(np.array(counts))
    ways = [
        tuple(zip(nodes[a:b].tolist(), labels[a:b].tolist(), strict=True))
        for a, b in pairwise(starts.tolist())
    ]
    assert {way[0][0] for way in ways} == {0}, "the root is node 0"
    assert sorted(set(nodes.tolist())) == list(range(len(counts) - 1))
    below = {}  # each side of each node leads to one thing alone
    for word, way in enumerate(ways):
        steps = [*(node for node, _ in way[1:]), f"word {word}"]
        for turn, to in zip(way, steps, strict=True):
            assert below.setdefault(turn, to) == to
    assert len(below) == 2 * (len(counts) - 1)
    assert set(labels.tolist()) == {0.0, 1.0}
