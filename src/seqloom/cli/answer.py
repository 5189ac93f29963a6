"""`seqloom answer`: the stretch of a passage that answers a question."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli.output import JsonOption, json_text, note

SHIPPED = "english-reader"
DRAWN = 150  # words of a passage in the picture
EXAMPLES = (
    'Examples: seqloom answer --passage page.txt "Who built it?"; cat questions.txt | seqloom '
    "answer --model MODEL --passage a.txt --passage b.txt --top 3 --json"
)


def run(
    question: Annotated[
        str | None, typer.Argument(help="The question; else they are read from --questions.")
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="A file with a question a line; - for standard input, as without it."),
    ] = None,
    passage: Annotated[
        list[str] | None, typer.Option(help="A file to search; may be given several times.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="A model directory of task answer, or a shipped model.")
    ] = SHIPPED,
    top: Annotated[int, typer.Option(help="How many answers to each question.", min=1)] = 1,
    threshold: Annotated[
        float, typer.Option(help="Give no answer that is less probable than this.")
    ] = 0.0,
    window: Annotated[
        int | None, typer.Option(help="Words of a window over long passages.", min=1)
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(help="Draw which words of the first question the first passage looked at."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the answer to each question in a line; an empty one where there is none."""
    from seqloom import Reader
    from seqloom.data.sources import read_lines, read_whole
    from seqloom.errors import DataError

    if not passage:
        raise typer.BadParameter("name a file to search", param_hint="--passage")
    if question is not None:
        if questions is not None:
            raise typer.BadParameter("give a question or --questions", param_hint="--questions")
        asked = [question]
    else:
        questions = questions or "-"
        if "-" in passage and questions == "-":
            raise typer.BadParameter("standard input has the questions", param_hint="--passage")
        asked = [line for _, line in read_lines(questions) if line.strip()]
        if not asked:
            raise DataError("there must be a question, got none", questions)
    texts = [read_whole(name) for name in passage]
    reader = Reader.load(model)
    found = reader.answer_all(
        [(texts, each) for each in asked], top=top, threshold=threshold, window=window
    )
    for each, answers in zip(asked, found, strict=True):
        if as_json:
            rows = [{**asdict(one), "passage": passage[one.passage]} for one in answers]
            typer.echo(json_text({"question": each, "answers": rows}))
        elif top == 1 or not answers[0].text:
            typer.echo(_in_a_line(answers[0].text))
        else:
            for one in answers:
                where = f"{passage[one.passage]}:{one.start}"
                typer.echo(f"{one.probability:.3f}\t{_in_a_line(one.text)}\t{where}")
    if attention is not None:
        from seqloom.figures import heatmap, save

        seen = reader.attention(texts[0], asked[0])
        part = slice(DRAWN)
        figure = heatmap(seen.weights[part], seen.passage[part], seen.question, label="attention")
        save(figure, attention)
        note(f"drawn in {attention}")


def _in_a_line(answer: str) -> str:
    """An answer with blanks for its line ends; --json has it as it stands."""
    return " ".join(answer.split())
