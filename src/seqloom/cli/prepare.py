"""`seqloom prepare`: tokenize once, train elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seqloom.cli.output import JsonOption, note, print_rows

Kind = Literal["text", "labeled", "tagged", "pairs"]

if TYPE_CHECKING:
    from seqloom.data.prepared import PrepareConfig
    from seqloom.text import SubwordTokenizer


def run(
    source: Annotated[str, typer.Argument(help="A file, - for stdin, or NAME:SPLIT.")],
    out: Annotated[Path, typer.Option(help="The directory to make.")],
    kind: Annotated[Kind, typer.Option(help="What the examples are.")] = "text",
    target: Annotated[
        Path | None, typer.Option(help="Pairs in two files: the one with the targets.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="A prepared directory whose settings and vocabulary to use."),
    ] = None,
    pieces: Annotated[
        int, typer.Option(help="How many subword pieces to learn, with --set text.unit=subword.")
    ] = 8000,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, as text.unit=character or min_count=2."),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--field", help="Where a table holds what, as text=review or label=stars."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out malformed records and count them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tokenize and number a data set once, so that training needs neither text nor tokenizer."""
    from seqloom.config import apply_overrides, from_dict
    from seqloom.data.inputs import FieldNames, read_input
    from seqloom.data.prepare import prepare
    from seqloom.data.prepared import PrepareConfig, PreparedData
    from seqloom.errors import ConfigError

    if like is not None and settings:
        raise ConfigError("--like brings its own settings; leave out --set")
    config = None if like else from_dict(PrepareConfig, apply_overrides({}, settings or []))
    if config is not None and config.text.unit == "subword" and "-" in (source, str(target)):
        raise ConfigError(
            "subword pieces are learned in a first reading of the text, got - (standard input), "
            "which can be read once; save it to a file, or use --like"
        )
    records = read_input(
        source,
        kind,
        target=target,
        names=from_dict(FieldNames, apply_overrides({}, fields or [])),
        on_error="skip" if skip_bad else "raise",
    )
    subword = _learn_pieces(records, config, pieces) if config is not None else None
    model = PreparedData.open(like) if like else None
    done = prepare(
        records,
        out,
        config,
        like=model,
        subword=subword,
        progress=lambda n: note(f"{n:,} examples") if n % 100_000 == 0 else None,
    )
    rows: list[dict[str, Any]] = [
        {
            "field": name,
            "examples": len(done.data),
            "items": column.items,
            "vocabulary": len(done.vocabularies[column.vocabulary]),
        }
        for name, column in done.header.columns.items()
    ]
    print_rows(rows, as_json=as_json, title=str(out))
    if records.skipped:
        note(
            f"{records.skipped:,} malformed records were left out; the first: {records.problems[0]}"
        )


def _learn_pieces(records: Any, config: PrepareConfig, pieces: int) -> SubwordTokenizer | None:
    if config.text.unit != "subword":
        return None
    from dataclasses import astuple

    from seqloom.text import Specials, SubwordTokenizer

    note(f"learning {pieces:,} pieces")
    normalizer = config.text.normalizer
    texts = (
        normalizer(value).text
        for record in records
        for value in astuple(record)
        if isinstance(value, str)
    )
    return SubwordTokenizer.train(texts, pieces, specials=Specials().names())
