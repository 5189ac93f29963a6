"""`evaluate`, `predict`, `score`, `generate`, `fill`, `rescore`, `inspect`: using a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, json_text, note, print_rows

Model = Annotated[str, typer.Argument(help="A model directory, or the name of a shipped model.")]
Input = Annotated[str, typer.Argument(help="A file with one input a line; - for stdin.")]


def evaluate(
    model: Model,
    data: Annotated[str, typer.Argument(help="Data: a file or NAME:SPLIT.")],
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="Where a table holds what, as text=review.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a model on data with known answers."""
    from seqloom.config import apply_overrides
    from seqloom.tasks import load
    from seqloom.tasks.recipe import open_data

    estimator = load(model)
    opened = open_data(estimator.task, data, apply_overrides({}, fields or []))
    metrics = estimator.evaluate(*opened)
    print_rows([{"what": k, "value": v} for k, v in metrics.items()], as_json=as_json)


def predict(model: Model, data: Input = "-", as_json: JsonOption = False) -> None:
    """Predict a class or the next word for each line, or a number for each row of a table.

    Blank lines are left out: the output has no line for them.
    """
    from seqloom.tasks import load

    estimator = load(model)
    if estimator.task == "regress":
        from seqloom.data.fields import read_numbers

        rows, _ = read_numbers(data, target="", format="csv" if data == "-" else None)
        results: Iterable[Any] = (
            {"row": i, "predicted": float(y)} for i, y in enumerate(estimator.predict(rows), 1)
        )
    else:
        lines = list(_numbered_lines(data))
        numbers = [number for number, _ in lines]
        results = _located(estimator.predict_lines([line for _, line in lines]), data, numbers)
    # A perceptron has no probabilities.
    known = ({name: value for name, value in row.items() if value is not None} for row in results)
    _print_each(known, as_json=as_json)


def score(model: Model, data: Input = "-", as_json: JsonOption = False) -> None:
    """Print the log-probability (natural logarithm) and the perplexity of each line."""
    scores = _language_model(model).score(list(_lines(data)))
    rows = (
        {"log_prob": s.total, "perplexity": s.perplexity, "unknown": sum(s.unknown), "text": s.text}
        for s in scores
    )
    _print_each(rows, as_json=as_json)


def generate(
    model: Model,
    prompt: Annotated[str, typer.Argument(help="The beginning to go on from.")] = "",
    max_words: Annotated[int, typer.Option(help="How many words to add at most.")] = 50,
    min_words: Annotated[int, typer.Option(help="How many words to add at least.")] = 0,
    temperature: Annotated[float, typer.Option(help="0 for the likeliest word each time.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Choose among the k likeliest words; 0: all.")] = 0,
    top_p: Annotated[
        float, typer.Option(help="Choose among the likeliest words of this probability together.")
    ] = 1.0,
    beam: Annotated[
        int | None, typer.Option(help="Search for the likeliest text, this many kept alive.")
    ] = None,
    length_penalty: Annotated[float, typer.Option(help="With --beam: longer texts.")] = 0.0,
    no_repeat: Annotated[
        int, typer.Option(help="The length of runs of words that may come only once; 0: any.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of chance.")] = 0,
    number: Annotated[int, typer.Option("--number", "-n", help="How many texts.", min=1)] = 1,
) -> None:
    """Write text with a language model."""
    writer = _language_model(model)
    for i in range(number):
        text = writer.generate(
            prompt,
            max_words=max_words,
            min_words=min_words,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            beam=beam,
            length_penalty=length_penalty,
            no_repeat=no_repeat,
            seed=seed + i,
        )
        typer.echo(text)


def fill(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence with one blank, written ___.")],
    k: Annotated[int, typer.Option("-k", help="How many words.")] = 5,
    right: Annotated[
        str | None, typer.Option(help="A model of the same words fitted with reverse=true.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the likeliest words for the blank of a sentence, with their probabilities."""
    other = None if right is None else _language_model(right)
    found = _language_model(model).fill(text, k, right=other)
    _print_each((each._asdict() for each in found), as_json=as_json)


NBEST = "Each line of the file is a list's name, a score and a text, set apart by tabs."


def rescore(
    model: Model,
    data: Annotated[str, typer.Argument(help="A file of n-best lists; - for stdin.")] = "-",
    weight: Annotated[float, typer.Option(help="Of the language model's log-probability.")] = 1.0,
    length_bonus: Annotated[float, typer.Option(help="Added for each word.")] = 0.0,
    best: Annotated[
        bool, typer.Option("--best", help="Print the best of each list alone.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Reorder n-best lists by score + weight * log-probability + length bonus * words."""
    from seqloom.data.sources import read_lines
    from seqloom.errors import DataError

    lists: dict[str, list[tuple[str, float]]] = {}
    for number, line in read_lines(data):
        if not line.strip():
            continue
        name, *rest = line.split("\t", 2)
        try:
            score, text = float(rest[0]), rest[1]
        except (IndexError, ValueError):
            raise DataError(
                f"a line must be a name, a score and a text, set apart by tabs, got {line[:80]!r}",
                data,
                number,
            ) from None
        lists.setdefault(name, []).append((text, score))
    found = _language_model(model).rescore(
        list(lists.values()), weight=weight, length_bonus=length_bonus
    )
    rows = (
        {"list": name, **candidate._asdict()}
        for name, candidates in zip(lists, found, strict=True)
        for candidate in (candidates[:1] if best else candidates)
    )
    _print_each(rows, as_json=as_json)


def inspect(model: Model, as_json: JsonOption = False) -> None:
    """Show what a model directory holds: task, settings, metrics, and every weight.

    Of a counted model, how many n-grams there are of each order.
    """
    import math

    from seqloom.tasks import load
    from seqloom.tasks.directory import find_model, read_model

    header = read_model(find_model(model)).header
    weights = [
        {"weight": name, "shape": list(shape), "numbers": math.prod(shape)}
        for name, shape in load(model).shapes().items()
    ]
    if as_json:
        facts = {"task": header.task, "architecture": header.architecture}
        tables = {"config": header.config, "settings": header.settings, "metrics": header.metrics}
        everything = {**facts, **tables, "provenance": header.provenance, "weights": weights}
        typer.echo(json_text(everything, indent=1))
        return
    for title, table in (
        (f"{header.task}: {header.architecture}", header.config),
        ("settings", header.settings),
        ("metrics", header.metrics),
        ("provenance", header.provenance),
    ):
        print_rows([{"what": k, "value": v} for k, v in table.items()], as_json=False, title=title)
    print_rows(weights, as_json=False, title="weights")
    note(f"{sum(row['numbers'] for row in weights):,} numbers in all")


def _language_model(name: str) -> Any:
    from seqloom import LanguageModel

    return LanguageModel.load(name)


def _lines(source: str) -> Iterator[str]:
    return (line for _, line in _numbered_lines(source))


def _numbered_lines(source: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers in the file."""
    from seqloom.data.sources import read_lines

    return ((number, line) for number, line in read_lines(source) if line.strip())


def _located(rows: Iterable[Any], source: str, numbers: list[int]) -> Iterator[Any]:
    """The same rows; what is wrong with a line is told with its place in the file."""
    from seqloom.errors import DataError

    try:
        yield from rows
    except DataError as error:
        if error.line is None or error.path is not None:
            raise
        raise DataError(error.message, source, numbers[error.line - 1]) from None


def _print_each(rows: Any, *, as_json: bool) -> None:
    """Print a row a line: JSON lines, or tab-separated values under a header line."""
    header = False
    for row in rows:
        if as_json:
            typer.echo(json_text(row))
            continue
        if not header:
            typer.echo("\t".join(row))
            header = True
        typer.echo("\t".join(_cell(value) for value in row.values()))


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\t", " ")
