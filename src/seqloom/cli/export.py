"""`seqloom export`: a model for other places."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.output import note
from seqloom.errors import ConfigError

EXAMPLES = "seqloom export runs/lm --onnx lm.onnx; seqloom export runs/lm --int8 runs/lm-int8"


def run(
    model: Annotated[str, typer.Argument(help="A model directory.")],
    onnx: Annotated[
        Path | None, typer.Option(help="Write an ONNX graph, and its description as JSON beside.")
    ] = None,
    int8: Annotated[
        Path | None, typer.Option(help="Write a model directory with weights of 8 bits.")
    ] = None,
    products: Annotated[
        str, typer.Option(help="Of the graph: full, or int8 for products of 8-bit numbers.")
    ] = "full",
    data: Annotated[
        str | None, typer.Option(help="Measure the int8 model on it; its card says the result.")
    ] = None,
) -> None:
    """Write a model as an ONNX graph, or with weights of 8 bits."""
    if onnx is None and int8 is None:
        raise ConfigError("name what to write: --onnx FILE.onnx or --int8 DIRECTORY")
    from seqloom.export import export_int8, export_onnx

    if onnx is not None:
        written = export_onnx(model, onnx, products=products)  # type: ignore[arg-type]
        for path in written:
            note(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    if int8 is not None:
        place = export_int8(model, int8, data)
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        note(f"{place}: {size / 1e6:.2f} MB")
