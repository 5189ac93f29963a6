"""A digest of what a model is trained on, by which other data is told when a run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from seqloom.data.batches import EncodedData
from seqloom.data.features import Bags, Vectors
from seqloom.data.ragged import Ragged
from seqloom.tasks.sequences import Sequences
from seqloom.tasks.tagger_words import TokenSequences

COLUMNS = (Bags, EncodedData, Ragged, Sequences, TokenSequences, Vectors)
"""Classes of data whose attributes are all there is to them."""
PIECE = 1 << 22  # bytes of an array hashed at once

Update = Callable[[bytes | memoryview], None]


def content_digest(value: Any) -> str:
    """Return the SHA-256 of encoded examples.

    Of the context of words in half precision only the shape counts: a network has computed it of
    the words, and its last bits differ with the number of threads.

    Args:
        value: Arrays, tensors and columns of data, plain values, and dataclasses, tuples, lists and
            mappings of them.

    Raises:
        TypeError: If there is anything else in it.

    >>> content_digest([np.arange(3), "a"]) == content_digest([np.arange(3), "b"])
    False
    """
    found = hashlib.sha256()
    _add(value, found.update)
    return found.hexdigest()


def _add(value: Any, update: Update) -> None:
    """Hash a value; what it is and how long comes first, so that no two look the same."""
    if isinstance(value, np.ndarray | np.generic):
        _add_array(np.asarray(value), update)
    elif isinstance(value, Tensor):
        _add_array(value.detach().cpu().numpy(), update)
    elif isinstance(value, Ragged) and value.flat.dtype == np.float16:
        _add(("context", value.flat.shape, value.offsets), update)
    elif isinstance(value, COLUMNS):
        _add((type(value).__name__, vars(value)), update)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, each.name) for each in fields(value)]
        _add((type(value).__name__, parts), update)
    elif isinstance(value, Mapping):
        names = sorted(value, key=repr)
        update(f"mapping {len(names)};".encode())
        for name in names:
            _add(name, update)
            _add(value[name], update)
    elif isinstance(value, list | tuple):
        _add_items(value, update)
    elif value is None or isinstance(value, bool | int | float | str):
        update(f"{type(value).__name__} {json.dumps(value)};".encode())
    else:
        raise TypeError(f"data of a run must be arrays or plain values, got {type(value).__name__}")


def _add_items(items: list[Any] | tuple[Any, ...], update: Update) -> None:
    update(f"items {len(items)};".encode())
    if set(map(type, items)) <= {str}:
        update(f"{json.dumps(items)};".encode())
        return
    for item in items:
        _add(item, update)


def _add_array(array: NDArray[Any], update: Update) -> None:
    if array.dtype.hasobject:
        raise TypeError(f"arrays must hold numbers or text, got {array.dtype}")
    update(f"array {array.dtype.str} {array.shape};".encode())
    if not array.size:
        return
    rows = array.reshape(1) if array.ndim == 0 else array
    step = max(1, PIECE // (rows.nbytes // len(rows)))
    for begin in range(0, len(rows), step):
        piece = np.ascontiguousarray(rows[begin : begin + step])
        update(piece.reshape(-1).view(np.uint8).data)
