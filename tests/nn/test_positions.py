"""Positions against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seqloom.errors import ConfigError
from seqloom.nn.positions import LearnedPositions, rotate, sinusoids


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_sinusoids_are_those_of_the_formula():
    places = torch.tensor([[0, 1, 5], [7, 1000, 123456]])
    found = sinusoids(places, 6)
    assert found.shape == (2, 3, 6)
    for row, line in zip(places.tolist(), found, strict=True):
        for p, vector in zip(row, line, strict=True):
            for i in range(3):
                angle = p / 10000 ** (2 * i / 6)
                assert vector[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-9)
                assert vector[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-9)


def test_a_shift_of_sinusoids_is_a_linear_map_whatever_the_position():
    places = torch.arange(30)
    before, after = sinusoids(places, 8), sinusoids(places + 3, 8)
    shift = torch.linalg.lstsq(before[:10], after[:10]).solution
    assert_close(before[10:] @ shift, after[10:])


@pytest.mark.parametrize("size", [0, 5])
def test_sinusoids_need_an_even_size(size):
    with pytest.raises(ConfigError, match=f"even and at least 2, got {size}"):
        sinusoids(torch.arange(3), size)


def test_learned_positions_are_a_ring():
    layer = LearnedPositions(4, 3)
    found = layer(torch.tensor([[0, 3, 4, 11]]))
    assert torch.equal(found[0], layer.weight[[0, 3, 0, 3]])
    found.sum().backward()
    assert_close(layer.weight.grad[:, 0], torch.tensor([2.0, 0.0, 0.0, 2.0]))


def test_learned_positions_must_be_some():
    with pytest.raises(ConfigError, match="positive, got 0 and 3"):
        LearnedPositions(0, 3)


def turned_by_a_matrix(x: np.ndarray, place: float) -> np.ndarray:
    """Equations 14 and 15 of Su et al. (2021): a matrix of 2 x 2 rotations on the diagonal."""
    size = len(x)
    matrix = np.eye(size)
    for i in range(size // 2):
        angle = place * 10000 ** (-2 * i / size)
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix @ x


@pytest.mark.parametrize("size", [2, 6, 7])
def test_rotation_is_the_matrix_of_the_paper(size):
    x, places = random(2, 3, 4, size), torch.tensor([0, 1, 2, 500])
    found = rotate(x, places)
    for b in range(2):
        for n in range(3):
            for t, place in enumerate(places.tolist()):
                expected = turned_by_a_matrix(x[b, n, t].numpy(), place)
                np.testing.assert_allclose(found[b, n, t], expected, atol=1e-12)


def test_rotated_products_depend_on_the_distance_alone():
    q, k = random(1, 8).expand(50, 8), random(1, 8).expand(50, 8)
    places = torch.arange(50)
    scores = rotate(q, places) @ rotate(k, places).mT  # (50, 50)
    for distance in (0, 1, 17):
        along = scores.diagonal(-distance)
        assert_close(along, along[:1].expand_as(along))
    assert not torch.allclose(scores[5, 0], scores[4, 0])
    assert_close(scores, rotate(q, places + 900) @ rotate(k, places + 900).mT)


def test_rotation_keeps_lengths_and_gradients_are_right():
    x = random(2, 5, 6).requires_grad_()
    places = torch.arange(5)
    assert_close(rotate(x, places).norm(dim=-1), x.norm(dim=-1))
    assert torch.autograd.gradcheck(lambda x: rotate(x, places), x)


def test_angles_keep_their_digits_in_half_precision():
    x = random(1, 1, 4)
    place = torch.tensor([777])
    assert_close(rotate(x.bfloat16(), place).double(), rotate(x, place), atol=0.03, rtol=0)
