"""Strips of handwritten digits, made of the images that come with scikit-learn."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import BackendError, ConfigError, one_of

STRIPS = "digit-strips"
"""What a recipe calls this data: "digit-strips:train", ":valid" and ":test"."""

COUNTS = {"train": 6000, "valid": 500, "test": 1000}
SHARES = {"train": (0.0, 0.7), "valid": (0.7, 0.8), "test": (0.8, 1.0)}
LENGTHS = (3, 6)


class DigitImages(NamedTuple):
    """Images (N, 8, 8) with numbers from 0 to 1, and the digit of each (N,)."""

    images: NDArray[np.float32]
    digits: NDArray[np.int64]


class Strips(NamedTuple):
    """Strips as their columns from left to right, (T, 8) each, and the digits on each."""

    columns: list[NDArray[np.float32]]
    digits: list[str]


@cache
def digit_images(split: str) -> DigitImages:
    """Return the images of a split: 70% are "train", 10% "valid" and 20% "test".

    An image is in one of them only; which is drawn once and for all.

    Raises:
        BackendError: If scikit-learn is not installed.
    """
    if split not in SHARES:
        raise ConfigError(one_of("split of the digits", split, SHARES))
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise BackendError(
            "the digits come with scikit-learn, which is not installed; pip install scikit-learn"
        ) from None
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    begin, end = (round(share * len(order)) for share in SHARES[split])
    mine = order[begin:end]
    return DigitImages(images[mine].reshape(-1, 8, 8).astype(np.float32) / 16, digits[mine])


def digit_strips(
    split: str, count: int | None = None, *, numbers: list[str] | None = None, seed: int = 0
) -> Strips:
    """Glue images of a split into strips of 3 to 6 digits, without a gap.

    Args:
        split: Whose images: "train", "valid" or "test".
        count: How many strips; by default 6,000, 500 or 1,000.
        numbers: What is on them; by default any digits.
        seed: What is drawn depends on it.
    """
    images, digits = digit_images(split)
    draw = np.random.default_rng([seed, list(SHARES).index(split)])
    by_digit = {str(digit): np.flatnonzero(digits == digit) for digit in range(10)}
    if numbers is None:
        sizes = draw.integers(LENGTHS[0], LENGTHS[1] + 1, COUNTS[split] if count is None else count)
        numbers = ["".join(map(str, draw.integers(0, 10, size))) for size in sizes]
    columns = []
    for number in numbers:
        chosen = [images[draw.choice(by_digit[digit])] for digit in number]
        columns.append(np.concatenate(chosen, axis=1).T.copy())  # (8 columns a digit, 8 rows)
    return Strips(columns, numbers)
