"""What ranks and ends searches: coverage, lengths of their own, a language model fused in."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_beam import STOP, Random, State, V, every_sequence

from seqloom.decoding import Limits, beam_search, coverage, fused, greedy, sample
from seqloom.decoding.beam import most_searches
from seqloom.errors import ConfigError

S = 3  # parts of the source in the tests of coverage


class Attending:
    """A model with a random attention to S parts, which its state sums up."""

    def __init__(self, seed):
        self.model = Random(seed)
        self.attention = np.random.default_rng(seed + 1).dirichlet(np.full(S, 0.3), size=V)

    def start(self):
        return (self.model.start(), np.zeros((1, S)))

    def step(self, last, state):
        own, attended = state
        scores, own = self.model.step(last, own)
        return scores, (own, attended + self.attention[last])

    def penalty(self, ids, beta):
        """Equation 14 of Wu et al. (2016), one word and one part at a time."""
        total = 0.0
        for part in range(S):
            paid = sum(self.attention[word][part] for word in (STOP, *ids[:-1]))
            total += math.log(min(max(paid, 1e-10), 1.0))
        return beta * total


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_full_width_finds_the_best_with_coverage(seed):
    model, beta = Attending(seed), 0.7
    rules = Limits(max_length=4, stop=STOP)
    expected = []
    for score, ids, _ in every_sequence(model.model, rules, 0.5):
        scored = (*ids, STOP) if len(ids) < 4 else ids
        expected.append((score + model.penalty(scored, beta), ids))
    expected.sort(reverse=True)
    (found,) = beam_search(
        model.step,
        model.start(),
        [STOP],
        rules,
        beam=V**4,
        n_best=4,
        length_penalty=0.5,
        penalty=lambda state: coverage(state[1], [S] * len(state[1]), beta),
    )
    assert [each.ids for each in found] == [ids for _, ids in expected[:4]]
    np.testing.assert_allclose([h.score for h in found], [score for score, _ in expected[:4]])


def test_coverage_by_hand():
    attended = torch.tensor([[0.5, 2.0, 0.25, 0.1], [1.0, 0.0, 9.0, 9.0]])
    expected = [0.2 * (math.log(0.5) + math.log(0.25)), 0.2 * math.log(1e-10)]
    np.testing.assert_allclose(coverage(attended, torch.tensor([3, 2]), 0.2), expected, rtol=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_each_search_ends_at_its_own_length(seed, beam):
    model = Random(seed, sentences=3)
    ends = [2, 6, 4]
    state = State(torch.full((3,), STOP), torch.arange(3))
    rules = Limits(max_length=7, stop=STOP)
    options = {"beam": beam, "n_best": beam, "length_penalty": 0.8}
    together = beam_search(model.step, state, [STOP] * 3, rules, max_lengths=ends, **options)
    drawn = sample(model.step, state, [STOP] * 3, rules, seeds=range(3), max_lengths=ends)
    likeliest = greedy(model.step, state, [STOP] * 3, rules, max_lengths=ends)
    for sentence, end in enumerate(ends):
        alone, start = Limits(max_length=end, stop=STOP), model.start(sentence)
        (expected,) = beam_search(model.step, start, [STOP], alone, **options)
        assert together[sentence] == expected
        (found,) = sample(model.step, start, [STOP], alone, seeds=[sentence])
        assert drawn[sentence].ids == found.ids
        assert [likeliest[sentence]] == greedy(model.step, start, [STOP], alone)


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_fusion_of_weight_none_changes_nothing(seed, beam):
    model, other = Random(seed), Random(seed + 1)
    rules = Limits(max_length=6, stop=STOP)
    step = fused(model.step, other.step, 0.0)
    both = (model.start(), other.start())
    alone = beam_search(model.step, model.start(), [STOP], rules, beam=beam, n_best=beam)
    assert beam_search(step, both, [STOP], rules, beam=beam, n_best=beam) == alone
    assert other.calls == []


@pytest.mark.parametrize("arrays", [False, True], ids=["tensors", "arrays"])
def test_fusion_finds_the_best_of_both(arrays):
    """The other model numbers ids backwards, and remembers two of them."""
    model, weight = Random(3), 0.6
    table = np.random.default_rng(8).normal(size=(V, V, V))
    table -= np.log(np.exp(table).sum(axis=-1, keepdims=True))
    turned = np.arange(V)[::-1]

    def other(last, state):
        before, steps = state
        assert (steps == steps[0]).all()
        scores = table[before, last]
        return (scores if arrays else torch.from_numpy(scores)), (last, steps + 1)

    step = fused(model.step, other, weight, number=lambda ids: turned[ids])
    rules = Limits(max_length=4, stop=STOP)
    expected = []
    for _, ids, value in every_sequence(model, rules, 0.0):
        scored = (*ids, STOP) if len(ids) < 4 else ids
        words = turned[[STOP, STOP, *scored]]
        more = sum(table[tuple(words[i : i + 3])] for i in range(len(scored)))
        expected.append((value + weight * more, ids))
    expected.sort(reverse=True)
    state = (model.start(), (turned[[STOP]], np.zeros(1)))
    (found,) = beam_search(step, state, [STOP], rules, beam=V**4, n_best=3)
    assert [each.ids for each in found] == [ids for _, ids in expected[:3]]
    np.testing.assert_allclose([h.score for h in found], [score for score, _ in expected[:3]])


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2], "max_lengths must be one a sequence, 1, got 2"),
        ([9], "between 1 and limits.max_length=3, got 9 to 9"),
        ([0], "got 0 to 0"),
    ],
)
def test_bad_lengths_are_refused(lengths, message):
    model, rules = Random(), Limits(max_length=3)
    with pytest.raises(ConfigError, match=message):
        beam_search(model.step, model.start(), [STOP], rules, max_lengths=lengths)
    with pytest.raises(ConfigError, match=message):
        greedy(model.step, model.start(), [STOP], rules, max_lengths=lengths)


def test_a_negative_weight_is_refused():
    with pytest.raises(ConfigError, match=r"must not be negative, got -0\.1"):
        fused(Random().step, Random().step, -0.1)


def test_a_beam_wider_than_memory_is_refused():
    def step(last, state):
        return np.zeros((len(last), 4096)), state

    rules = Limits(max_length=3)
    with pytest.raises(ConfigError, match=r"at most 8,192 with 4,096 words .*, got 100,000"):
        beam_search(step, (np.zeros((1, 1)),), [0], rules, beam=100_000)
    assert most_searches(5, 8000) == 838
    assert most_searches(100_000, 8000) == 1
