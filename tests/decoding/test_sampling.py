"""Drawing from a model whose distribution is known."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from seqloom.decoding import Drawn, Limits, beam_search, chances, greedy, sample
from seqloom.errors import ConfigError

CHANCES = np.array([0.5, 0.25, 0.15, 0.07, 0.03])


def fixed(last, state):
    """Forgets everything."""
    return np.log(np.tile(CHANCES, (len(last), 1))), state


def fixed_in_torch(last, state):
    return torch.from_numpy(fixed(last, state)[0]), state


def after(last, state):
    """Always the number after the last one."""
    with np.errstate(divide="ignore"):
        return np.log(np.eye(5)[(last + 1) % 5]), state


def limits(max_length=4000, **options):
    return Limits(max_length=max_length, **options)


def draw(seed=0, step=fixed, **options):
    rules = {"forbidden": options.pop("forbidden", ())}
    (found,) = sample(step, None, [0], limits(**rules), seeds=[seed], **options)
    return list(found.ids)


def shares(drawn):
    return [Counter(drawn)[i] / len(drawn) for i in range(5)]


@pytest.mark.parametrize("step", [fixed, fixed_in_torch])
def test_frequencies_follow_the_distribution(step):
    assert shares(draw(step=step)) == pytest.approx(CHANCES.tolist(), abs=0.03)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_is_a_power_of_the_chances(temperature):
    expected = CHANCES ** (1 / temperature)
    expected /= expected.sum()
    found = chances(np.log(CHANCES), temperature=temperature)
    np.testing.assert_allclose(found, expected)
    assert shares(draw(temperature=temperature)) == pytest.approx(expected.tolist(), abs=0.03)


@pytest.mark.parametrize("temperature", [0, 1e-40, 1e-300, 1e-6])
def test_no_temperature_takes_the_likeliest(temperature):
    assert set(draw(temperature=temperature)) == {0}
    assert chances(np.log(CHANCES), temperature=temperature).tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0, 0]),
        ({"top_k": 99}, [0.5, 0.25, 0.15, 0.07, 0.03]),
        ({"top_p": 0.4}, [1, 0, 0, 0, 0]),  # the first alone reaches it
        ({"top_p": 0.5}, [1, 0, 0, 0, 0]),  # and reaches it exactly
        ({"top_p": 0.51}, [2 / 3, 1 / 3, 0, 0, 0]),
        ({"top_p": 0.8}, [0.5 / 0.9, 0.25 / 0.9, 0.15 / 0.9, 0, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0, 0]),
        # Of the two kept the first has 2/3, so that 0.6 needs it alone, 0.7 both.
        ({"top_k": 2, "top_p": 0.6}, [1, 0, 0, 0, 0]),
        ({"top_k": 2, "top_p": 0.7}, [2 / 3, 1 / 3, 0, 0, 0]),
        # Squared: 0.25, 0.0625, 0.0225, 0.0049, 0.0009 of 0.3408.
        ({"temperature": 0.5, "top_p": 0.75}, [0.25 / 0.3125, 0.0625 / 0.3125, 0, 0, 0]),
    ],
)
def test_distributions_by_hand(options, expected):
    np.testing.assert_allclose(chances(np.log(CHANCES), **options), expected, atol=1e-12)
    # The order of the ids does not matter.
    turned = chances(np.log(CHANCES[::-1]), **options)
    np.testing.assert_allclose(turned, expected[::-1], atol=1e-12)
    kept = {i for i, share in enumerate(expected) if share}
    assert set(draw(**options)) == kept


def test_top_k_and_top_p_leave_few_among_equals():
    equal = np.zeros(6)
    assert (chances(equal, top_k=2) > 0).sum() == 2
    assert (chances(equal, top_p=0.5) > 0).sum() == 3


def test_forbidden_ids_never_come():
    assert set(draw(forbidden=[0, 2])) == {1, 3, 4}
    assert set(draw(forbidden={0}, temperature=0)) == {1}
    assert set(draw(forbidden=[0], top_k=1)) == {1}


def test_stop_ends_and_is_not_returned():
    assert greedy(after, None, [0], limits(10, stop=4)) == [[1, 2, 3]]
    assert greedy(after, None, [3], limits(10, stop=4)) == [[]]
    assert greedy(after, None, [0], limits(3)) == [[1, 2, 3]]
    drawn = sample(after, None, [0, 2, 3], limits(10, stop=4), seeds=[0, 1, 2])
    assert [each.ids for each in drawn] == [(1, 2, 3), (3,), ()]


def test_min_length_holds_the_stop_back():
    rules = limits(5, stop=0, min_length=3)
    assert greedy(fixed, None, [0], rules) == [[1, 1, 1]]
    drawn = sample(fixed, None, [0] * 50, rules, seeds=range(50))
    assert {len(each.ids) for each in drawn} == {3, 4, 5}


def test_no_ngram_comes_twice():
    assert greedy(fixed, None, [0], limits(5, no_repeat=1)) == [[0, 1, 2, 3, 4]]
    # By hand: 0 0, then 0 0 again is refused: 1; then 0 (1 0), and after 0 only 0 0 and 0 1 are
    # taken: 2; then 0; then 3.
    assert greedy(fixed, None, [0], limits(7, no_repeat=2)) == [[0, 0, 1, 0, 2, 0, 3]]
    # What came before counts too.
    assert greedy(fixed, None, [0], limits(2, no_repeat=1), history=[[0, 1]]) == [[2, 3]]
    assert greedy(fixed, None, [0], limits(9, no_repeat=1)) == [[0, 1, 2, 3, 4]]  # nothing is left


def test_a_prefix_is_forced_and_returned():
    rules = limits(6, stop=4, min_length=5, forbidden=[0, 3], no_repeat=1)
    assert greedy(fixed, None, [0, 0], rules, prefixes=[[3, 3, 0], []]) == [
        [3, 3, 0, 1, 2],
        [1, 2],
    ]
    with pytest.raises(ConfigError, match="must fit into max_length=6, got one of 7 ids"):
        greedy(fixed, None, [0], rules, prefixes=[[1] * 7])


@pytest.mark.parametrize("step", [fixed, fixed_in_torch])
def test_a_batch_draws_as_each_alone(step):
    rules = limits(30, stop=4, no_repeat=3)
    together = sample(step, None, [0] * 6, rules, seeds=range(6), top_p=0.99)
    alone = [sample(step, None, [0], rules, seeds=[seed], top_p=0.99)[0] for seed in range(6)]
    assert [each.ids for each in together] == [each.ids for each in alone]
    assert [each.log_prob for each in together] == pytest.approx([each.log_prob for each in alone])
    assert len({each.ids for each in together}) > 1


def test_same_seed_same_draw_and_global_chance_is_left_alone():
    before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    assert draw(seed=1)[:50] == draw(seed=1)[:50] != draw(seed=2)[:50]
    assert draw(seed=-1)[:50] == draw(seed=-1)[:50]
    assert (np.random.get_state()[1] == before).all()
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_a_draw_costs_one_step():
    calls = []

    def counted(last, state):
        calls.append(len(last))
        return fixed(last, state)

    sample(counted, None, [0, 0], limits(20), seeds=[0, 1])
    assert calls == [2] * 20


def test_states_are_reordered_with_the_rows_that_go_on():
    """The state is the row's own number, which it must draw; rows stop one after the other."""

    def own(last, state):
        (number,) = state
        ids = np.where(last < number, last + 1, 9)
        return torch.from_numpy(np.eye(10)[ids]).log(), (number,)

    numbers = np.array([3, 1, 2, 0])
    assert greedy(own, (numbers,), [0] * 4, limits(9, stop=9)) == [[1, 2, 3], [1], [1, 2], []]

    def own_in_torch(last, state):
        scores, _ = own(last, (state[0].numpy(),))
        return scores, state

    tensors = (torch.from_numpy(numbers),)
    found = greedy(own_in_torch, tensors, [0] * 4, limits(9, stop=9))
    assert found == [[1, 2, 3], [1], [1, 2], []]


@pytest.mark.parametrize("step", [fixed, fixed_in_torch])
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.3}, {"top_k": 3}, {"top_p": 0.8}, {"temperature": 0.0}]
)
def test_a_draw_says_how_likely_it_was(step, options):
    """By the chances themselves, whatever they were drawn with."""
    rules = limits(6, stop=1, min_length=2, forbidden=[3])
    found = sample(step, None, [0] * 40, rules, seeds=range(40), **options)
    for each in found:
        ids = [*each.ids, 1] if each.ended else each.ids
        assert each.log_prob == pytest.approx(sum(math.log(CHANCES[id_]) for id_ in ids))
        assert each.ended or len(each.ids) == 6
    if options.get("temperature", 1.0):
        assert {each.ended for each in found} == {True, False}


def test_a_draw_that_nothing_can_go_on_from_has_not_ended():
    rules = limits(9, stop=4, min_length=6, no_repeat=1)
    (found,) = sample(fixed, None, [0], rules, seeds=[0])
    assert sorted(found.ids) == [0, 1, 2, 3]
    assert not found.ended
    assert found.log_prob == pytest.approx(math.log(0.5 * 0.25 * 0.15 * 0.07))
    # What a prefix forces counts too.
    (begun,) = sample(fixed, None, [0], limits(9, stop=4), seeds=[0], prefixes=[[2, 4]])
    assert (begun.ids, begun.ended) == ((2,), True)
    assert begun.log_prob == pytest.approx(math.log(0.15 * 0.03))


def test_nothing_possible_ends_the_sequence():
    nothing = np.full((1, 5), -np.inf)
    (found,) = sample(lambda last, s: (nothing, s), None, [0], limits(5), seeds=[0])
    assert found == Drawn((), 0.0, ended=False)
    assert greedy(lambda last, s: (nothing, s), None, [0], limits(5)) == [[]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must not be negative or infinite, got -1.0"),
        ({"temperature": math.nan}, "got nan"),
        ({"temperature": math.inf}, "got inf"),
        ({"top_k": -2}, "top_k must not be negative, got -2"),
        ({"top_p": 0.0}, "top_p must lie above 0 and not above 1, got 0.0"),
        ({"top_p": 1.5}, "got 1.5"),
        ({"top_p": math.nan}, "got nan"),
        ({"seeds": [1, 2]}, "seeds must be one a sequence, 1, got 2"),
        ({"prefixes": []}, "prefixes must be one a sequence, 1, got 0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        sample(fixed, None, [0], limits(5), **{"seeds": [0], **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"max_length": 3, "min_length": 4}, "between 0 and max_length=3, got 4"),
        ({"max_length": 3, "min_length": -1}, "got -1"),
        ({"max_length": 3, "no_repeat": -1}, "no_repeat must not be negative, got -1"),
    ],
)
def test_bad_limits_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Limits(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": "3"}, "top_k must be a whole number, got '3'"),
        ({"top_k": 2.5}, r"top_k must be a whole number, got 2\.5"),
        ({"temperature": "1"}, "temperature must be a number, got '1'"),
        ({"top_p": None}, "top_p must be a number, got None"),
        ({"seed": 0.5}, r"seed must be a whole number, got 0\.5"),
    ],
)
def test_settings_that_are_no_numbers_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        draw(**options)


def test_searches_refuse_what_is_no_number_or_has_no_finite_norm():
    for options, message in (
        ({"beam": "2"}, "beam must be a whole number, got '2'"),
        ({"n_best": 1.0}, r"n_best must be a whole number, got 1\.0"),
        ({"length_penalty": "a"}, "length_penalty must be a number, got 'a'"),
        ({"length_penalty": 1e6}, r"the norm of 50 words a finite number, got 1e\+06"),
    ):
        with pytest.raises(ConfigError, match=message):
            beam_search(fixed, None, [0], limits(50, stop=1), **options)
    # Of sequences of one word the norm is 1, whatever the penalty.
    (found,) = beam_search(fixed, None, [0], limits(1, stop=1), length_penalty=1e6, n_best=2)
    assert [each.score for each in found] == pytest.approx(np.log(CHANCES[:2]).tolist())
    with pytest.raises(ConfigError, match="max_length must be a whole number, got '9'"):
        Limits(max_length="9")
