"""The elementary functions against numpy's in double precision."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from seqloom.compiled import ARITHMETIC
from seqloom.kernels import elementary

TRUE = {
    "exp": np.exp,
    "sigmoid": lambda x: np.where(x > 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "tanh": np.tanh,
    "log": np.log,
    "softplus": lambda x: np.logaddexp(0, x),
}


def over(function, x):
    @numba.njit(fastmath=ARITHMETIC, error_model="numpy")
    def loop(x, out):
        for i in range(len(x)):
            out[i] = function(x[i])

    out = np.empty_like(x)
    loop(x, out)
    return out


@pytest.mark.parametrize("name", TRUE)
def test_single_precision_is_right_to_its_last_digits(name):
    function = getattr(elementary, f"{name}32")
    grid = np.concatenate([
        np.linspace(-20, 20, 40_001), np.linspace(-87, 88, 10_001), np.geomspace(1e-37, 1, 5_001),
        -np.geomspace(1e-37, 1, 5_001),
    ])  # fmt: skip
    if name == "log":
        grid = np.concatenate([np.geomspace(1e-44, 3e38, 50_001), np.linspace(0.5, 2, 10_001)])
    x = grid.astype(np.float32)
    with np.errstate(all="ignore"):
        true = TRUE[name](x.astype(np.float64))
    found = over(function, x).astype(np.float64)
    normal = np.abs(true) > 1.2e-38  # below, single precision has fewer digits
    error = np.abs(found - true)[normal] / np.abs(true)[normal]
    assert error.max() < 6e-7, x[normal][error.argmax()]
    assert np.abs(found - true)[~normal].max(initial=0) < 1.2e-38


@pytest.mark.parametrize("name", TRUE)
def test_what_is_infinite_or_no_number_stays_so(name):
    x = np.array([np.nan, np.inf, -np.inf, 100, -110, 0], np.float32)
    with np.errstate(all="ignore"):
        true = TRUE[name](x.astype(np.float64)).astype(np.float32)
    if name == "sigmoid":
        true = np.array([np.nan, 1, 0, 1, 0, 0.5], np.float32)
    np.testing.assert_allclose(over(getattr(elementary, f"{name}32"), x), true, atol=1e-37)


def test_comparisons_let_through_what_is_no_number():
    values = np.array([np.nan, -2.0, 0.0, 3.0], np.float32)

    @numba.njit(error_model="numpy")
    def all_of(x, y, out):
        zero, half, one = np.float32(0), np.float32(0.5), np.float32(1)
        for i in range(len(x)):
            out[0, i] = elementary.maximum(x[i], y)
            out[1, i] = elementary.maximum(y, x[i])
            out[2, i] = elementary.minimum(x[i], y)
            out[3, i] = elementary.minimum(y, x[i])
            out[4, i] = elementary.relu(x[i], zero)
            out[5, i] = elementary.step(x[i], zero, one)
            out[6, i] = elementary.half_step(x[i], zero, half, one)
            out[7, i] = elementary.sign(x[i], zero, one)

    out = np.empty((8, 4), np.float32)
    all_of(values, np.float32(1), out)
    nan = np.nan
    wanted = [[nan, 1, 1, 3], [nan, 1, 1, 3], [nan, -2, 0, 1], [nan, -2, 0, 1], [nan, 0, 0, 3]]
    np.testing.assert_array_equal(out[:5], np.array(wanted, np.float32))
    np.testing.assert_array_equal(out[5:, 1:], [[0, 0, 1], [0, 0.5, 1], [-1, 0, 1]])
