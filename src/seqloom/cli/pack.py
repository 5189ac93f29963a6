"""`seqloom pack`: a model in few bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.output import note


def run(
    model: Annotated[str, typer.Argument(help="A model directory.")],
    out: Annotated[Path, typer.Option(help="A new directory.")],
    weights: Annotated[str, typer.Option(help="half, int8 or full.")] = "int8",
    data: Annotated[
        str | None, typer.Option(help="Measure the packed model on it; its card says the result.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="The recipe it was trained by; its card says so.")
    ] = None,
    also_read: Annotated[
        list[str] | None,
        typer.Option(help="A named data set that was read beside what the recipe says; repeat."),
    ] = None,
) -> None:
    """Write a model with its weights as halves, or as 8-bit numbers with a scale a row."""
    from seqloom.tasks.packing import pack_model

    read = also_read or ()
    place = pack_model(model, out, weights, data, recipe=recipe, also_read=read)  # type: ignore[arg-type]
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    note(f"{place}: {size / 1e6:.2f} MB")
