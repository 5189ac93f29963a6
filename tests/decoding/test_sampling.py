"""Sampling from a model whose distribution is known."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from seqloom.decoding import sample
from seqloom.errors import ConfigError

CHANCES = torch.tensor([0.5, 0.25, 0.15, 0.07, 0.03])


def fixed(last, state):
    """Forgets everything; the state counts the steps."""
    return CHANCES.log()[None], state + 1


def after(last, state):
    """Always the number after the last one."""
    return torch.nn.functional.one_hot((last + 1) % 5, 5).float().log(), state


def draw(seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return sample(fixed, 0, 0, max_length=4000, generator=generator, **options)


def shares(drawn):
    return [Counter(drawn)[i] / len(drawn) for i in range(5)]


def test_frequencies_follow_the_distribution():
    assert shares(draw()) == pytest.approx(CHANCES.tolist(), abs=0.03)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_is_a_power_of_the_chances(temperature):
    expected = CHANCES ** (1 / temperature)
    drawn = draw(temperature=temperature)
    assert shares(drawn) == pytest.approx((expected / expected.sum()).tolist(), abs=0.03)


@pytest.mark.parametrize("temperature", [0, 1e-40, 1e-6])
def test_no_temperature_takes_the_likeliest(temperature):
    assert set(draw(temperature=temperature)) == {0}


def test_top_k_leaves_k():
    assert set(draw(top_k=2)) == {0, 1}
    assert set(draw(top_k=99)) == {0, 1, 2, 3, 4}


def test_top_k_leaves_k_among_equals():
    drawn = sample(
        lambda last, state: (torch.zeros(1, 6), state),
        None,
        0,
        max_length=300,
        top_k=2,
        generator=torch.Generator().manual_seed(0),
    )
    assert len(set(drawn)) == 2


def test_forbidden_ids_never_come():
    drawn = draw(forbidden=[0, 2])
    assert set(drawn) == {1, 3, 4}
    assert set(draw(forbidden={0}, temperature=0)) == {1}
    assert set(draw(forbidden=[0], top_k=1)) == {1}


def test_stop_ends_and_is_not_returned():
    assert sample(after, None, 0, max_length=10, stop=4) == [1, 2, 3]
    assert sample(after, None, 3, max_length=10, stop=4) == []
    assert sample(after, None, 0, max_length=3) == [1, 2, 3]


def test_same_seed_same_draw_and_global_chance_is_left_alone():
    before = torch.get_rng_state()
    assert draw(seed=1)[:50] == draw(seed=1)[:50] != draw(seed=2)[:50]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must not be negative or infinite, got -1.0"),
        ({"temperature": math.nan}, "got nan"),
        ({"temperature": math.inf}, "got inf"),
        ({"top_k": -2}, "top_k not negative, got 5 and -2"),
        ({"max_length": 0}, "max_length must be positive.*got 0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        sample(fixed, 0, 0, **{"max_length": 5, **options})
