"""The model card: what a person wants to know of a model directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def model_card(title: str, numbers: int, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the README of a model of so many numbers, with tables by their titles."""
    lines = [
        f"# {title}",
        "",
        f"A Seqloom model of {numbers:,} numbers. Use it with `seqloom.load(DIR)`, or "
        "`seqloom inspect DIR` on the command line.",
        "",
    ]
    for heading, table in tables.items():
        if table:
            rows = [f"| {key} | {_in_cell(value)} |" for key, value in table.items()]
            lines += [f"## {heading}", "", "| what | value |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _in_cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (Mapping, list, tuple)):
        return "`" + json.dumps(value, ensure_ascii=False).replace("|", "\\|") + "`"
    return str(value).replace("|", "\\|").replace("\n", " ")
