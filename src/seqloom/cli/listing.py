"""`seqloom list`: the architectures there are."""

from __future__ import annotations

from typing import Annotated

import typer

from seqloom.architectures import architectures, missing_extra
from seqloom.cli.output import JsonOption, note, print_rows


def run(
    task: Annotated[str | None, typer.Argument(help="Only those of one task.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the architectures that can be chosen by name."""
    entries = architectures(task)
    rows = [
        {
            "task": entry.task,
            "architecture": entry.name,
            "what it is": entry.summary,
            "needs": entry.extra or "",
            "ready": missing_extra(entry) is None,
        }
        for entry in entries
    ]
    print_rows(rows, as_json=as_json)
    if not rows:
        note("no architecture has been added yet")
