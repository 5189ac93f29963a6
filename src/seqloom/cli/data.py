"""`seqloom data`: named data sets, found, fetched, checked and compared."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, note, print_rows

app = typer.Typer(help="Named data sets: list, get, path, show, verify, overlap.")

Name = Annotated[str, typer.Argument(help="The data set; `seqloom data list` names them.")]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the data sets Seqloom knows by name, and which of them are here."""
    from seqloom.data.datasets import dataset_names, dataset_path, find_dataset
    from seqloom.errors import DataError

    rows = []
    for name in dataset_names():
        entry = find_dataset(name)
        try:
            here = bool(dataset_path(name))
        except DataError:
            here = False
        rows.append(
            {
                "name": name,
                "task": entry.task,
                "language": list(entry.languages),
                "title": entry.title,
                "licence": entry.license,
                "here": here,
                "can be fetched": all(file.addresses for file in entry.files),
            }
        )
    print_rows(rows, as_json=as_json)


@app.command()
def show(name: Name, as_json: JsonOption = False) -> None:
    """Show what is known of one data set: licence, citation, source, files, splits."""
    from seqloom.data.datasets import find_dataset

    entry = find_dataset(name)
    facts: dict[str, Any] = {
        "title": entry.title,
        "task": entry.task,
        "languages": list(entry.languages),
        "licence": entry.license,
        "may be passed on": entry.redistributable,
        "citation": entry.citation,
        "source": entry.source,
        "splits": list(entry.split_names),
        "variants": list(entry.variants),
        "notes": entry.notes,
    }
    print_rows([{"what": k, "value": v} for k, v in facts.items()], as_json=as_json, title=name)
    files = [{"file": f.name, "bytes": f.size, "sha256": f.sha256} for f in entry.files]
    print_rows(files, as_json=as_json)


@app.command()
def get(names: Annotated[list[str], typer.Argument(help="The data sets to fetch.")]) -> None:
    """Fetch data sets into the cache; a download that was cut goes on where it stopped."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from seqloom.data.datasets import find_dataset, get_dataset

    for name in names:
        entry = find_dataset(name)
        note(f"{name}: {entry.title}; licence: {entry.license}; cite: {entry.citation}")
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
            bars: dict[str, Any] = {}

            def tell(file: str, have: int, total: int | None) -> None:
                if file not in bars:  # noqa: B023 (called before the next round begins)
                    bars[file] = bar.add_task(file, total=total)  # noqa: B023
                bar.update(bars[file], completed=have, total=total)  # noqa: B023

            typer.echo(get_dataset(name, progress=tell))


@app.command()
def path(name: Name) -> None:
    """Print the folder a data set lies in."""
    from seqloom.data.datasets import dataset_path

    typer.echo(dataset_path(name))


@app.command()
def verify(name: Name, as_json: JsonOption = False) -> None:
    """Compare every file of a data set with its checksum; exit with 1 if one is not right."""
    from seqloom.data.datasets import verify as check

    found = check(name)
    rows = [{"file": s.name, "state": s.state, "detail": s.detail} for s in found]
    print_rows(rows, as_json=as_json)
    if any(status.state != "ok" for status in found):
        raise typer.Exit(1)


@app.command()
def overlap(
    train: Annotated[
        str, typer.Argument(help="Training text: a file, NAME:SPLIT or a recipe's name.")
    ],
    test: Annotated[list[str], typer.Argument(help="Test texts: files or NAME:SPLIT.")],
    n: Annotated[int, typer.Option(help="How many words a run has.", min=1)] = 8,
    unit: Annotated[str, typer.Option(help="word, space, character.")] = "word",
    language: Annotated[str, typer.Option(help="en, zh or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Count how many runs of n words of test texts occur in a training text."""
    from seqloom.config import from_dict
    from seqloom.data.inputs import read_input
    from seqloom.tasks.corpus import text_examples
    from seqloom.tasks.recipe import load_recipe, shipped_recipes
    from seqloom.tasks.seen_text import overlap_rows, seen_text
    from seqloom.text import TextConfig, TextPipeline

    pipeline = TextPipeline(from_dict(TextConfig, {"unit": unit, "language": language}))
    text: Any = read_input(train, "text") if train not in shipped_recipes() else None
    if text is None:
        plan = load_recipe(train)
        text = text_examples(plan.data.open(plan.task, plan.data.train)[0])
    rows: list[dict[str, Any]] = []
    for source, found in seen_text(text, test, pipeline, n):
        rows += overlap_rows(source, found)
        if found.short_sentences:
            note(f"{source}: {found.short_sentences:,} sentences have fewer than {n} words")
    if len(test) == 1:
        rows = [{name: value for name, value in row.items() if name != "test"} for row in rows]
    print_rows(rows, as_json=as_json)
