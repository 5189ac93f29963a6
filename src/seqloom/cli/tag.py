"""`seqloom tag`: a tag for each word of each line, or the words of each line of Chinese text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, json_text

Model = Annotated[str, typer.Argument(help="A model directory of task tag, or a shipped model.")]
Input = Annotated[str, typer.Argument(help="A file with a sentence a line; - for stdin.")]
EXAMPLES = 'Example: echo "Ada Lovelace went to London." | seqloom tag MODEL --spans'


def run(
    model: Model,
    data: Input = "-",
    columns: Annotated[
        bool,
        typer.Option("--columns", help="The input has one word a line, a blank line between."),
    ] = False,
    spans: Annotated[
        bool, typer.Option("--spans", help="Print what the tags mark instead of the tags.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(help="Print conlleval's report on this data instead (a file, NAME:SPLIT)."),
    ] = None,
    best: Annotated[int, typer.Option(help="How many readings, with --json.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Print the tag of each word, one a line, and a blank line after each sentence.

    A model that was fitted to find words prints each line with spaces between them.
    """
    from seqloom.errors import ConfigError
    from seqloom.tasks.tagger import Tagger

    tagger = Tagger.load(model)
    if report is not None:
        typer.echo(str(tagger.report(report)), nl=False)
        return
    if spans and tagger.tags_.scheme is None:
        raise ConfigError("--spans needs tags that mark spans, got a model of plain tags")
    if tagger.segment:
        _print_cuts(tagger, data, as_json=as_json)
        return
    sentences = _columns(data) if columns else _lines(data)
    for found in tagger.tag(sentences, probabilities=as_json, best=best):
        _print(found, spans=spans, as_json=as_json)


def _lines(source: str) -> list[str]:
    from seqloom.data.sources import read_lines

    return [line for _, line in read_lines(source) if line.strip()]


def _columns(source: str) -> list[list[str]]:
    from seqloom.data.blocks import read_blocks
    from seqloom.data.columns import split_columns
    from seqloom.data.problems import Problems

    blocks = read_blocks(source, Problems())
    return [[split_columns(line)[0] for _, line in block] for block in blocks]


def _print_cuts(tagger: Any, source: str, *, as_json: bool) -> None:
    lines = _lines(source)
    for words in tagger.cut_all(lines):
        seen = [word for word in words if not word.isspace()]
        typer.echo(json_text(seen) if as_json else " ".join(seen))


def _print(found: Any, *, spans: bool, as_json: bool) -> None:
    if as_json:
        row: dict[str, Any] = {"words": found.words, "tags": found.tags}
        row["probabilities"] = [round(share, 6) for share in found.probabilities or ()]
        row["spans"] = [span._asdict() for span in found.spans]
        if found.alternatives:
            row["readings"] = [{"tags": t, "log_prob": p} for t, p in found.alternatives]
        typer.echo(json_text(row))
        return
    if spans:
        typer.echo("\n".join(f"{span.type}\t{span.text}" for span in found.spans))
    else:
        typer.echo("\n".join(f"{word}\t{tag}" for word, tag in found))
    typer.echo()
