"""Beam search against every sequence there is, on small random models."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.decoding import Limits, beam_search, greedy
from seqloom.errors import ConfigError

V, STOP = 4, 3


class State(NamedTuple):
    """The last two ids, and a number of steps that must stay with the row."""

    before: torch.Tensor
    steps: torch.Tensor


class Random:
    """A random distribution after every pair of ids, which differs from sentence to sentence."""

    def __init__(self, seed=0, sentences=1, sharpness=2.0):
        chance = np.random.default_rng(seed)
        scores = torch.from_numpy(chance.normal(size=(sentences, V, V, V)) * sharpness)
        self.table = scores.log_softmax(-1)
        self.calls = []

    def start(self, sentence=0, rows=1):
        return State(torch.full((rows,), STOP), torch.full((rows,), sentence))

    def step(self, last, state):
        self.calls.append(len(last))
        last = torch.from_numpy(last)
        scores = self.table[state.steps, state.before, last]
        return scores, State(last, state.steps)

    def log_prob(self, ids, sentence=0):
        """By the definition, one id at a time."""
        before, last, total = STOP, STOP, 0.0
        for id_ in ids:
            total += float(self.table[sentence, before, last, id_])
            before, last = last, id_
        return total


def every_sequence(model, rules, penalty, prefix=(), sentence=0):
    """All that end in time, and all that are as long as allowed, best first."""
    found = []
    for length in range(rules.max_length + 1):
        for ids in itertools.product([i for i in range(V) if i != STOP], repeat=length):
            scored = (*ids, STOP) if length < rules.max_length else ids
            if length < rules.min_length or ids[: len(prefix)] != tuple(prefix):
                continue
            if any(i in rules.forbidden for i in ids):
                continue
            n = rules.no_repeat
            grams = [ids[i : i + n] for i in range(length - n + 1)] if n else []
            if len(set(grams)) < len(grams):
                continue
            value = model.log_prob(scored, sentence)
            found.append((value / ((5 + len(scored)) / 6) ** penalty, ids, value))
    return sorted(found, reverse=True)


RULES = [
    {},
    {"min_length": 2},
    {"forbidden": [1]},
    {"no_repeat": 2},
    {"no_repeat": 1, "min_length": 1},
]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_full_width_finds_the_best(seed, rule, penalty):
    model = Random(seed)
    rules = Limits(max_length=4, stop=STOP, **rule)
    expected = every_sequence(model, rules, penalty)
    (found,) = beam_search(
        model.step, model.start(), [STOP], rules, beam=V**4, n_best=5, length_penalty=penalty
    )
    for hypothesis, (score, ids, value) in zip(found, expected[:5], strict=True):
        assert hypothesis.ids == ids
        assert hypothesis.score == pytest.approx(score)
        assert hypothesis.log_prob == pytest.approx(value)
        assert hypothesis.ended == (len(ids) < 4)


@given(st.integers(0, 10_000), st.floats(0, 2), st.integers(1, 7))
def test_beam_one_is_greedy(seed, penalty, length):
    model = Random(seed)
    rules = Limits(max_length=length, stop=STOP)
    (best,) = beam_search(model.step, model.start(), [STOP], rules, beam=1, length_penalty=penalty)
    (likeliest,) = greedy(model.step, model.start(), [STOP], rules)
    assert list(best[0].ids) == likeliest
    scored = likeliest if len(likeliest) == length else [*likeliest, STOP]
    assert best[0].log_prob == pytest.approx(model.log_prob(scored))


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_batch_finds_what_each_finds_alone(seed, beam):
    model = Random(seed, sentences=3)
    rules = Limits(max_length=6, stop=STOP, no_repeat=3)
    options = {"beam": beam, "n_best": beam, "length_penalty": 0.5}
    prefixes = [[], [1, 0], [2]]
    state = State(torch.full((3,), STOP), torch.arange(3))
    together = beam_search(model.step, state, [STOP] * 3, rules, prefixes=prefixes, **options)
    for sentence in range(3):
        (alone,) = beam_search(
            model.step, model.start(sentence), [STOP], rules,
            prefixes=[prefixes[sentence]], **options,
        )  # fmt: skip
        assert together[sentence] == alone


@given(st.integers(0, 10_000))
def test_what_a_beam_finds_has_the_score_it_says(seed):
    """So states follow their hypotheses wherever these are moved."""
    model = Random(seed, sharpness=0.5)
    rules = Limits(max_length=7, stop=STOP)
    (found,) = beam_search(model.step, model.start(), [STOP], rules, beam=5, n_best=5)
    for hypothesis in found:
        ids = (*hypothesis.ids, STOP) if hypothesis.ended else hypothesis.ids
        assert hypothesis.log_prob == pytest.approx(model.log_prob(ids))
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({h.ids for h in found}) == len(found)


def test_a_forced_prefix():
    model = Random(1)
    rules = Limits(max_length=5, stop=STOP)
    expected = every_sequence(model, rules, 0.6, prefix=(2, 2))
    (found,) = beam_search(
        model.step, model.start(), [STOP], rules, beam=V**5, length_penalty=0.6, prefixes=[[2, 2]]
    )
    assert found[0].ids == expected[0][1]
    assert found[0].score == pytest.approx(expected[0][0])


def test_one_call_a_step_whatever_the_beam():
    model = Random(0, sentences=2)
    rules = Limits(max_length=6, stop=None)
    state = State(torch.full((2,), STOP), torch.arange(2))
    beam_search(model.step, state, [STOP] * 2, rules, beam=3)
    assert model.calls == [2, 6, 6, 6, 6, 6]


def test_arrays_and_tensors_are_the_same():
    model = Random(5)
    table = model.table.numpy()

    def step(last, state):
        return table[state[1], state[0], last], (last, state[1])

    rules = Limits(max_length=6, stop=STOP)
    arrays = (np.array([STOP]), np.array([0]))
    for beam in (1, 2, 4):
        (ours,) = beam_search(step, arrays, [STOP], rules, beam=beam, n_best=beam)
        (theirs,) = beam_search(model.step, model.start(), [STOP], rules, beam=beam, n_best=beam)
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        np.testing.assert_allclose([h.score for h in ours], [h.score for h in theirs])


def test_nothing_possible_leaves_what_there_is():
    def dead(last, state):
        scores = np.full((len(last), V), -np.inf)
        if state[0] == 0:
            scores[:, 1] = 0.0
        return scores, state + 1

    (found,) = beam_search(dead, np.array([0]), [STOP], Limits(max_length=5, stop=STOP), beam=2)
    assert (found[0].ids, found[0].ended) == ((1,), False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam must be at least 1, got 0"),
        ({"beam": 2, "n_best": 3}, "between 1 and beam=2, got 3"),
        ({"n_best": 0}, "n_best .*got 0"),
        ({"length_penalty": -1.0}, "length_penalty must not be negative or infinite, got -1.0"),
        ({"history": [[], []]}, "history must be one a sequence, 1, got 2"),
    ],
)
def test_bad_settings_are_refused(options, message):
    model = Random()
    with pytest.raises(ConfigError, match=message):
        beam_search(model.step, model.start(), [STOP], Limits(max_length=3), **options)
