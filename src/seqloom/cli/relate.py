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
        typer.Option(help="Print the official scorer's report on this data instead (NAME:SPLIT)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the relation between the two entities of each line; blank lines are left out."""
    from seqloom.data.sources import read_lines
    from seqloom.errors import DataError, InputError
    from seqloom.tasks.relation_classifier import RelationClassifier
    from seqloom.tasks.relation_text import as_marked

    classifier = RelationClassifier.load(model)
    if report is not None:
        typer.echo(str(classifier.report(report)), nl=False)
        return
    sentences = []
    for number, line in read_lines(data):
        if not line.strip():
            continue
        try:
            sentences.append(as_marked(line))
        except InputError as problem:
            message = problem.message.removeprefix("sentence 0: ")
            raise DataError(message, data, number) from None
    if not sentences:
        raise DataError("there must be at least one sentence, got none", data)
    for found in classifier.relate(sentences, explain=explain):
        _print(found, as_json=as_json)


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
