"""The problems are what their papers say."""

from __future__ import annotations

import math

import pytest
import torch

from seqloom.errors import ConfigError
from seqloom.explain.problems import Adding, Copying


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_copying_is_symbols_blanks_a_signal_and_blanks():
    problem = Copying(length=3, alphabet=4)
    inputs, targets = problem.draw(5, 6, generator())
    assert inputs.shape == (6, 3 + 5 + 3, 6)
    assert (inputs.sum(-1) == 1).all()
    ids = inputs.argmax(-1)
    assert (ids[:, :3] == targets).all() and targets.max() < 4
    assert (ids[:, 3:7] == 4).all() and (ids[:, 7] == 5).all() and (ids[:, 8:] == 4).all()


def test_copying_scores_the_last_steps_alone():
    problem = Copying(length=2, alphabet=3)
    outputs = torch.zeros(1, 9, 3)
    outputs[0, -2, 1] = outputs[0, -1, 2] = 5.0
    outputs[0, :-2, 0] = 99.0
    assert problem.score(outputs, torch.tensor([[1, 2]])) == 1.0
    assert problem.score(outputs, torch.tensor([[1, 0]])) == 0.5
    total = math.log(math.exp(5) + 2)
    loss = problem.loss(outputs, torch.tensor([[1, 0]])).item()
    assert loss == pytest.approx(((total - 5) + total) / 2)
    assert problem.is_solved(0.9) and not problem.is_solved(0.89)


@pytest.mark.parametrize("distance", [2, 3, 20])
def test_adding_marks_one_number_in_each_half(distance):
    problem = Adding()
    inputs, targets = problem.draw(distance, 200, generator())
    numbers, marks = inputs.unbind(-1)
    assert inputs.shape == (200, distance, 2)
    assert (numbers >= 0).all() and (numbers < 1).all()
    half = distance // 2
    assert (marks[:, :half].sum(1) == 1).all() and (marks[:, half:].sum(1) == 1).all()
    torch.testing.assert_close((numbers * marks).sum(1, keepdim=True), targets)


def test_adding_without_looking_has_the_baselines_error():
    problem = Adding()
    _, targets = problem.draw(10, 100_000, generator())
    blind = torch.ones(100_000, 1, 1)
    assert problem.score(blind, targets) == pytest.approx(1 / 6, rel=0.01)
    assert not problem.is_solved(problem.BASELINE) and problem.is_solved(0.049)


@pytest.mark.parametrize("problem", [Copying(), Adding()], ids=lambda p: p.name)
def test_a_seed_gives_the_same_sequences(problem):
    first, again, other = (problem.draw(9, 4, generator(seed)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first.inputs, other.inputs)


def test_a_distance_too_short_is_refused():
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        Copying().draw(0, 1, generator())
    with pytest.raises(ConfigError, match="at least 2, got 1"):
        Adding().draw(1, 1, generator())
