"""`seqloom translate`: one sequence for another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, json_text, note

EXAMPLES = (
    "Examples: seqloom translate MODEL input.txt; echo 'A dog runs.' | seqloom translate MODEL "
    "--beam 10 --n-best 3 --json"
)


def run(
    model: Annotated[str, typer.Argument(help="A model directory, or a shipped model's name.")],
    data: Annotated[str, typer.Argument(help="A file with one text a line; - for stdin.")] = "-",
    beam: Annotated[int, typer.Option(help="How many texts stay alive; 1 is greedy.")] = 5,
    n_best: Annotated[int, typer.Option(help="How many translations of each line.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Above 0 favours longer texts.")] = 0.6,
    coverage_penalty: Annotated[
        float, typer.Option(help="Above 0 punishes what was not looked at.")
    ] = 0.0,
    max_length: Annotated[int | None, typer.Option(help="How many words at most.")] = None,
    no_repeat: Annotated[
        int, typer.Option(help="The length of runs of words that may come only once; 0: any.")
    ] = 0,
    language_model: Annotated[
        str | None, typer.Option(help="A language model of the target's words to fuse in.")
    ] = None,
    lm_weight: Annotated[float | None, typer.Option(help="Its weight; 0.2 if not given.")] = None,
    replace_unknown: Annotated[
        bool, typer.Option("--replace-unknown", help="Copy words the model does not know.")
    ] = False,
    attention: Annotated[
        Path | None, typer.Option(help="Draw where the translation of the first line looked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the translation of each line, of an empty one an empty one.

    With --n-best, --json prints the others as well.
    """
    from seqloom import Translator
    from seqloom.data.sources import read_lines
    from seqloom.errors import DataError

    given = [line for _, line in read_lines(data)]
    lines = [line for line in given if line.strip()]
    if not lines:
        raise DataError("there must be a line to translate, got none", data)
    options: dict[str, Any] = {
        "beam": beam,
        "n_best": n_best,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "max_length": max_length,
        "no_repeat": no_repeat,
        "language_model": language_model,
        "lm_weight": lm_weight,
        "replace_unknown": replace_unknown,
        "attention": attention is not None,
    }
    found = Translator.load(model).translate(lines, **options)
    written = iter(found)
    for line in given:
        if not line.strip():
            typer.echo('{"source": "", "text": ""}' if as_json else "")
        elif as_json:
            row = {"source": line, **next(written).as_row()}
            typer.echo(json_text(row))
        else:
            typer.echo(next(written).text)
    cut = sum(each.cut for each in found)
    if cut:
        note(f"{cut} of {len(lines)} lines were longer than the model reads, and cut")
    if attention is not None:
        from seqloom.figures import heatmap, save

        first = found[0]
        assert first.attention is not None
        save(heatmap(first.attention, first.words, first.source, label="attention"), attention)
        note(f"drawn in {attention}")
