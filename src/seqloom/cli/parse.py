"""`seqloom parse`: the best tree of each line under a grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.output import JsonOption, json_text, note

Model = Annotated[str, typer.Argument(help="A model directory of architecture pcfg.")]
Input = Annotated[str, typer.Argument(help="A file with one sentence a line; - for stdin.")]


def run(
    model: Model,
    data: Input = "-",
    draw: Annotated[
        Path | None, typer.Option(help="Draw the first tree into this file (.png, .svg or .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the best tree of each line in brackets."""
    from seqloom import LanguageModel
    from seqloom.data.sources import read_lines
    from seqloom.grammar import bracketed
    from seqloom.tasks.grammar_language import parse_text

    parser = LanguageModel.load(model)
    for _, line in read_lines(data):
        if not line.strip():
            continue
        found = parse_text(parser, line)
        if as_json:
            row = {"tree": bracketed(found.tree), "log_prob": found.log_prob, "text": line}
            typer.echo(json_text({**row, "flat": found.is_flat}))
        else:
            typer.echo(bracketed(found.tree))
        if draw is not None:
            from seqloom.figures import save, tree

            note(f"drawn in {save(tree(found.tree), draw)}")
            draw = None
