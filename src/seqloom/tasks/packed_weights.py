"""Weights in few bytes: as halves, or as whole numbers of 8 bits with a scale a row.

A matrix W becomes round(W / s) with s = max |row| / 127, row by row; its error is at most s / 2.
What is small, or has one axis, becomes halves where those hold it; whole numbers stay as they are.
So does what has 64 bits, as it acts on numbers in units of their own: years have a mean of 2020.6,
of which a half makes 2021. In the file, the scales of `name` are `name#scale`, and names that share
one tensor are told in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from seqloom.errors import ConfigError, DataError, one_of

Kind = Literal["full", "half", "int8"]
KINDS = ("full", "half", "int8")
SCALE = "#scale"
HALF_ERROR = 2.0**-11  # what rounding to halves changes at most, relatively
SMALL = 4096  # numbers up to which a matrix is not worth a scale a row
SHARED = "shared"  # the key of the metadata


def pack_weights(
    weights: Mapping[str, Tensor], kind: Kind, *, of_words: bool = False
) -> dict[str, Tensor]:
    """Return weights in few bytes, by the names they have in a file.

    Args:
        weights: The weights.
        kind: In how few.
        of_words: Whether the model reads words: then large matrices of 64 bits are of counts and
            shares, and are packed as well.
    """
    if kind not in KINDS:
        raise ConfigError(one_of("kind of weights", kind, KINDS))
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if kind == "full" or not tensor.is_floating_point():
            found[name] = tensor
            continue
        is_small = tensor.ndim < 2 or tensor.numel() <= SMALL
        if tensor.dtype == torch.float64 and (is_small or not of_words):
            found[name] = _as_same(tensor)
        elif kind == "half" or is_small:
            found[name] = _as_half(tensor)
        else:
            found |= _as_int8(name, tensor.float())
    return found


def _as_same(tensor: Tensor) -> Tensor:
    """Halves where nothing is lost by it."""
    half = tensor.half()
    return half if torch.equal(half.double(), tensor) else tensor


def _as_half(tensor: Tensor) -> Tensor:
    """Halves; what they cannot hold stays as it is: too large, or all of it too small."""
    half = tensor.half()
    lost, largest = ((half.to(tensor) - tensor).abs(), tensor.abs())
    is_close = not tensor.numel() or bool(lost.max() <= HALF_ERROR * largest.max())
    return half if is_close else tensor


def _as_int8(name: str, tensor: Tensor) -> dict[str, Tensor]:
    scale = (tensor.flatten(1).abs().amax(dim=1) / 127).clamp(min=1e-30)  # (rows,)
    if not bool(scale.isfinite().all()):
        return {name: tensor}
    rows = scale.view(-1, *[1] * (tensor.ndim - 1))
    whole = (tensor / rows).round().clamp(-127, 127).to(torch.int8)
    return {name: whole, name + SCALE: scale}


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights as 32-bit numbers again, and those of 64 bits as they are.

    Raises:
        DataError: If a scale has no matrix, or does not fit it.
    """
    found = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            matrix = tensors.get(name.removesuffix(SCALE))
            if matrix is None or matrix.dtype != torch.int8 or tensor.shape != matrix.shape[:1]:
                raise DataError(f"{name} must have a scale for each row of a matrix of 8 bits")
            continue
        if tensor.dtype == torch.float16:
            found[name] = tensor.float()
        elif name + SCALE in tensors:
            scale = tensors[name + SCALE].view(-1, *[1] * (tensor.ndim - 1))
            found[name] = tensor.float() * scale
        else:
            found[name] = tensor
    return found


def apart(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return each tensor once, and for every further name of it the first one, for the metadata."""
    first: dict[tuple[int, tuple[int, ...], tuple[int, ...]], str] = {}
    once: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    for name, tensor in weights.items():
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
        if tensor.numel() and key in first:
            shared[name] = first[key]
            continue
        first[key] = name
        once[name] = tensor
    return once, {SHARED: json.dumps(shared)} if shared else {}


def together(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> dict[str, Tensor]:
    """Give a tensor all its names again.

    Raises:
        DataError: If the metadata does not say names of tensors.
    """
    found = dict(tensors)
    try:
        shared = json.loads(metadata.get(SHARED, "{}"))
        return found | {name: found[first] for name, first in shared.items()}
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise DataError(f"names of shared tensors make no sense ({error})") from None
