"""Vectors and images with texts: what a captioner learns from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from seqloom.data.digits import digit_images
from seqloom.errors import ConfigError, InputError, one_of
from seqloom.tasks.seq2seq_text import Pair

DIGITS = {
    "en": "zero one two three four five six seven eight nine".split(),
    "zh": list("零一二三四五六七八九"),
}


def flat_vector(item: Any, number: int = 0) -> Any:
    """An image (H, W) or (H, W, C), or a vector, as a source of one item, (1, D)."""
    try:
        found = np.asarray(item, np.float32)
    except (TypeError, ValueError):
        found = np.zeros(0, np.float32)
    if not found.size or not np.isfinite(found).all():
        raise InputError(
            f"input {number} must be a vector or an image of finite numbers, got "
            f"{type(item).__name__} of shape {found.shape}"
        )
    return found.reshape(1, -1)


def caption_pairs(data: Any) -> list[Pair]:
    """Pairs of a vector and its text, however they are given.

    Args:
        data: Tuples of a vector or an image and a text, or "digits:SPLIT:LANGUAGE".
    """
    if isinstance(data, str):
        return _digits(data)
    pairs: list[Pair] = []
    if not isinstance(data, Iterable):
        raise InputError(f"captions must be pairs of a vector and a text, got {data!r}")
    for number, item in enumerate(data):
        is_pair = isinstance(item, tuple) and len(item) == 2
        if not is_pair or not isinstance(item[1], str) or not item[1].strip():
            raise InputError(
                f"pair {number} must be a tuple of a vector and a text that is not empty, got "
                f"{type(item).__name__}"
            )
        pairs.append(Pair(flat_vector(item[0], number), item[1]))
    if not pairs:
        raise InputError("there must be at least one pair, got none")
    widths = sorted({pair.source.shape[1] for pair in pairs})  # type: ignore[union-attr]
    if len(widths) > 1:
        raise InputError(f"all vectors must be of one width, got {widths}")
    return pairs


def _digits(name: str) -> list[Pair]:
    """Scikit-learn's digits, 8 x 8, spelled out."""
    parts = name.split(":")
    kind, split, language = (*parts, "", "", "")[:3]
    if kind != "digits" or len(parts) > 3:
        raise ConfigError(one_of("set of captions", name, ("digits:SPLIT:LANGUAGE",)))
    if language not in DIGITS:
        raise ConfigError(one_of("language of digits", language, DIGITS))
    found = digit_images(split)
    return [
        Pair(flat_vector(image), spelled(int(digit), language))
        for image, digit in zip(found.images, found.digits, strict=True)
    ]


def spelled(digit: int, language: str) -> str:
    """A digit in English, letter by letter, or in Chinese.

    >>> spelled(3, "en"), spelled(3, "zh")
    ('t h r e e', '三')
    """
    return " ".join(DIGITS[language][digit])
