"""`seqloom compare`: language models side by side, as a table and as pictures."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqloom.cli.output import JsonOption, json_text, note, print_rows

if TYPE_CHECKING:
    from seqloom.tasks.league import Standing
    from seqloom.tasks.recipe import Recipe

EXAMPLES = """
seqloom compare my-lstm my-counts --data test.txt

seqloom compare ngram:order=3 ngram:order=5 lstm:hidden_size=100 --train train.txt --data test.txt
--set training.epochs=3 --out league
"""


def run(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Model directories, recipes, or architectures with their options as "
            "lstm:hidden_size=100,dropout=0.2."
        ),
    ],
    data: Annotated[str, typer.Option(help="The text to compare on: a file or NAME:SPLIT.")],
    train: Annotated[
        str | None, typer.Option(help="What architectures are fitted to: a file or NAME:SPLIT.")
    ] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data for them.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of all that are fitted, as text.unit=space; training.* and window go "
            "to networks alone.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the pictures, the table and fitted models.")
    ] = None,
    contexts: Annotated[bool, typer.Option(help="Measure what longer contexts bring, too.")] = True,
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.", min=1)] = 1000,
    as_json: JsonOption = False,
) -> None:
    """Fit or load language models and measure them on the same text, best first."""
    from seqloom.tasks.league import by_context, compare

    if out is not None:
        from seqloom.errors import DataError
        from seqloom.figures.style import require_matplotlib

        require_matplotlib()
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise DataError("exists already; name a new folder or remove it", out)
    fitted = _open(models, train, valid, settings or [], None if out is None else out / "models")
    note(f"measuring on {data}")
    standings = compare(fitted, data, resamples=resamples)
    curves = {row.name: by_context(fitted[row.name], data) for row in standings} if contexts else {}
    named: dict[str, Any] = {
        "league": [{k: _plain(v) for k, v in asdict(row).items()} for row in standings],
        "contexts": {
            name: {"all" if k is None else str(k): _plain(v) for k, v in values.items()}
            for name, values in curves.items()
        },
    }
    if out is not None:
        _write(out, standings, curves, named, data)
    if as_json:
        typer.echo(json_text(named, indent=1))
        return
    print_rows([_row(row) for row in standings], as_json=False, title=f"on {data}")
    if curves:
        rows = [{"context": name, **values} for name, values in named["contexts"].items()]
        print_rows(rows, as_json=False, title="perplexity a token by tokens of context")
    if out is not None:
        note(f"pictures and league.json in {out}")


def _row(row: Standing) -> dict[str, Any]:
    against = "best" if row.ratio == 1 else f"×{row.ratio:.3f} ({row.low:.3f} to {row.high:.3f})"
    return {
        "model": row.name,
        "perplexity a word": row.word_perplexity,
        "against the best": against,
        "bits a character": row.bits_per_character,
        "unknown": row.unknown,
        "parameters": row.parameters,
        "fitted in s": row.seconds,
        "words a second": round(row.words_per_second),
    }


def _open(
    names: list[str],
    train: str | None,
    valid: str | None,
    settings: list[str],
    place: Path | None,
) -> dict[str, Any]:
    """The models by name: loaded where there is a directory, else fitted."""
    from seqloom import LanguageModel
    from seqloom.tasks.directory import shipped_models

    plans: dict[str, Recipe | None] = {}  # all are looked at before any is fitted
    for name in names:
        if name in plans:
            raise typer.BadParameter(f"{name} is named twice")
        is_stored = Path(name).is_dir() or name in shipped_models()
        plans[name] = None if is_stored else _plan(name, train, valid, settings)
    opened: dict[str, Any] = {}
    for name, plan in plans.items():
        if plan is None:
            opened[name] = LanguageModel.load(name)
            continue
        note(f"fitting {name} to {plan.data.train}")
        folder = None if place is None else place / name.replace("/", "_")
        (text,) = plan.data.open(plan.task, plan.data.train)
        chosen = plan.data.valid and plan.data.open(plan.task, plan.data.valid)[0]
        opened[name] = plan.estimator().fit(text, valid=chosen, out=folder)
    return opened


def _plan(name: str, train: str | None, valid: str | None, settings: list[str]) -> Recipe:
    from seqloom.architectures import architectures
    from seqloom.errors import ConfigError, one_of
    from seqloom.tasks.recipe import load_recipe, read_recipe, shipped_recipes

    arch, _, options = name.partition(":")
    entries = {entry.name: entry for entry in architectures("lm")}
    if name.endswith(".toml") or name in shipped_recipes():
        recipe = load_recipe(name, settings)
        if recipe.task != "lm":
            raise ConfigError(f"recipe {name} must be of task 'lm', got {recipe.task!r}")
        return recipe
    if arch not in entries:
        known = {*entries, *shipped_recipes()}
        raise ConfigError(one_of("model directory, recipe or architecture", arch, known))
    if train is None:
        raise typer.BadParameter(f"{arch} has to be fitted: give a text", param_hint="--train")
    if entries[arch].is_counted:
        settings = [s for s in settings if not s.startswith(("training.", "window="))]
    own = [f"model.{option}" for option in options.split(",") if option]
    source = {"train": train} | ({} if valid is None else {"valid": valid})
    return read_recipe({"task": "lm", "arch": arch, "data": source}, [*settings, *own])


def _write(
    out: Path,
    standings: list[Standing],
    curves: dict[str, dict[int | None, float]],
    named: dict[str, Any],
    data: str,
) -> None:
    from seqloom.figures import save
    from seqloom.figures.league import context_curves, interval_table

    out.mkdir(parents=True, exist_ok=True)
    (out / "league.json").write_text(json_text(named, indent=1), "utf-8")
    best = standings[0].word_perplexity
    drawn = [row for row in standings if row.word_perplexity < math.inf]
    figure = interval_table(
        {
            row.name: (row.word_perplexity, best * min(row.low, row.ratio), best * row.high)
            for row in drawn
        },
        columns={
            "perplexity": [f"{row.word_perplexity:,.1f}" for row in drawn],
            "bits a character": [f"{row.bits_per_character:.3f}" for row in drawn],
            "parameters": [_short(row.parameters) for row in drawn],
            "fitted in": [_time(row.seconds) for row in drawn],
            "words a second": [_short(row.words_per_second) for row in drawn],
        },
        label="perplexity a word; line: 95 % of its difference from the best",
        title=f"Language models on {data}",
    )
    pictures = {"league": figure}
    curves = {
        name: values for name, values in curves.items() if all(map(math.isfinite, values.values()))
    }
    if curves:
        pictures["contexts"] = context_curves(
            curves, label="perplexity a token", title=f"What a longer context brings, on {data}"
        )
    for name, picture in pictures.items():
        for suffix in ("png", "svg"):
            save(picture, out / f"{name}.{suffix}")


def _plain(value: Any) -> Any:
    """A value as JSON has it, which knows no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
