"""Measurements that choices are made by: those that came with the package, or the user's own.

One file of JSON: `ratios` has the times of our printed loops over those of torch's layers on the
CPU; `gpu` the same on a card, by rows and size; `tiles` how kernels are best cut there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from seqloom.errors import DataError
from seqloom.files import cache_folder

LARGEST_TABLE = 1 << 20  # bytes

Table = Mapping[str, Any]


def own_table() -> Path:
    """Where the user's measurements are kept."""
    return cache_folder() / "backends.json"


@cache
def load_table() -> Table:
    """The user's measurements if there are any, or those that came with the package.

    Raises:
        DataError: If the user's file is damaged.
    """
    own = own_table()
    packed = json.loads(
        resources.files("seqloom.kernels").joinpath("backends.json").read_text(encoding="utf-8")
    )
    if not own.is_file():
        return packed  # type: ignore[no-any-return]
    try:
        if own.stat().st_size > LARGEST_TABLE:
            raise ValueError("too large")
        given = json.loads(own.read_text(encoding="utf-8"))
        table = packed | {"ratios": given["ratios"]} | given
        for ratios in [*table["ratios"].values(), *table["gpu"]["ratios"].values()]:
            for place, ratio in ratios.items():
                if min(map(int, place.split())) <= 0 or not float(ratio) > 0:
                    raise ValueError("not a ratio")
        for entry in table["tiles"]:
            if not all(isinstance(entry[name], list) for name in ("job", "tiles")):
                raise ValueError("not tiles")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"the table of backends cannot be read ({error}); delete it, or make it again with "
            "`seqloom bench --tune`",
            own,
        ) from None
    return table  # type: ignore[no-any-return]


def save_table(table: Table) -> Path:
    """Keep measurements for `auto`; returns where."""
    own = own_table()
    own.parent.mkdir(parents=True, exist_ok=True)
    beside = own.with_suffix(".partial")
    beside.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    beside.replace(own)
    load_table.cache_clear()
    return own
