"""Arrays in a file of the safetensors layout, without the library, which the base install lacks.

Eight bytes hold the length of a JSON table of name, type, shape and place; then come the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import DataError

TYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I32": np.dtype("<i4")}
MAX_TABLE = 1 << 20


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of a file that holds these arrays, of float64 or int32."""
    names = {dtype: name for name, dtype in TYPES.items()}
    table, pieces, end = {}, [], 0
    # By width, so that each array begins at a multiple of its own.
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize):
        piece = np.ascontiguousarray(array).tobytes()
        begin, end = end, end + len(piece)
        dtype = names[array.dtype.newbyteorder("<")]
        table[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
        pieces.append(piece)
    head = json.dumps(table, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([len(head).to_bytes(8, "little"), head, *pieces])


def read_arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a file.

    Raises:
        DataError: If it is cut, or no such file.
    """
    content = Path(path).read_bytes()
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(MAX_TABLE, len(content) - 8):
        raise DataError("is no file of arrays (its table is cut)", path)
    body = memoryview(content)[8 + size :]
    found = {}
    try:
        for name, said in json.loads(content[8 : 8 + size]).items():
            begin, end = said["data_offsets"]
            flat = np.frombuffer(body[begin:end], TYPES[said["dtype"]])
            found[name] = flat.reshape(said["shape"]).copy()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"is no file of arrays ({error})", path) from None
    return found
