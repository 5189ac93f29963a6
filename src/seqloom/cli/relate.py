"""`seqloom relate`: how two marked entities of each line stand to each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, json_text

Model = Annotated[str, typer.Argument(help="A model directory of task relate.")]
Input = Annotated[
    str,
    typer.Argument(help="A file with a sentence a line, <e1> </e1> <e2> </e2> in it; - for stdin."),
]
EXAMPLES = (
    'Example: echo "The <e1>burst</e1> was caused by <e2>pressure</e2>." | seqloom relate MODEL'
)


def run(
    model: Model,
    data: Input = "-",
    explain: Annotated[
        bool, typer.Option("--explain", help="Print how much each word counted, too.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            help="Print the official scorer's report on this data instead: a file or NAME:SPLIT."
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--field", help="Where a table to report on holds what, as text=clause."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the relation between the two entities of each line; blank lines are left out."""
    from seqloom.config import apply_overrides
    from seqloom.data.sources import read_lines
    from seqloom.errors import DataError
    from seqloom.tasks.recipe import open_data
    from seqloom.tasks.relation_classifier import RelationClassifier
    from seqloom.tasks.relation_text import marked_line

    _check_usage(data, report, fields, explain=explain)
    classifier = RelationClassifier.load(model)
    if report is not None:
        opened = open_data(classifier.task, report, apply_overrides({}, fields or []))
        found = classifier.report(*opened)
        typer.echo(json_text(found.metrics()) if as_json else str(found), nl=as_json)
        return
    lines = ((number, line) for number, line in read_lines(data) if line.strip())
    sentences = [marked_line(line, number, data) for number, line in lines]
    if not sentences:
        raise DataError("there must be at least one sentence, got none", data)
    for each in classifier.relate(sentences, explain=explain):
        _print(each, as_json=as_json)


def _check_usage(data: str, report: str | None, fields: list[str] | None, *, explain: bool) -> None:
    """Refuse what would be passed over."""
    if report is None and fields:
        raise typer.BadParameter("--field is for --report; sentences are read line by line")
    if report is not None and (data != "-" or explain):
        given = "--explain" if explain else data
        raise typer.BadParameter(f"--report measures its own data alone, got {given} as well")


def _print(found: Any, *, as_json: bool) -> None:
    row = {
        "label": found.label,
        "probability": found.probability,
        "first": found.first,
        "second": found.second,
    }
    why = found.explanation
    if as_json:
        if why is not None:
            row["words"] = [*zip(why.words, why.weights, strict=True)]
        typer.echo(json_text(row))
        return
    typer.echo(f"{found.label}\t{found.probability:.4f}\t{found.first}\t{found.second}")
    if why is not None:
        words = zip(why.words, why.weights, strict=True)
        typer.echo("  " + " ".join(f"{word}({weight:.2f})" for word, weight in words))
