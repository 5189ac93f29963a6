"""How verbs print: a table for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON, which has no infinity and no NaN: they are null."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def print_rows(rows: Sequence[dict[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print rows of named values to standard output."""
    if as_json:
        typer.echo(json_text(list(rows), indent=1))
        return
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    for name, value in rows[0].items():
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a file or a pipe has no width; do not fold for it
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def note(message: str) -> None:
    """Say something to the person at the terminal, on standard error."""
    typer.echo(message, err=True)
