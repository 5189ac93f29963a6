"""`seqloom train`, `check`, `reproduce`: from a recipe or options to a model directory."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, note, print_rows
from seqloom.errors import one_of

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting, as model.hidden_size=650 or training.epochs=5."),
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", help="Where a table holds what, as text=review or label=stars."),
]
RecipeName = Annotated[str | None, typer.Argument(help="A recipe: a TOML file or a name.")]


def run(
    recipe: RecipeName = None,
    out: Annotated[Path | None, typer.Option(help="The model directory to make.")] = None,
    task: Annotated[str | None, typer.Option(help="The task; `seqloom list` names them.")] = None,
    arch: Annotated[str | None, typer.Option(help="The architecture.")] = None,
    train: Annotated[str | None, typer.Option(help="Training data: a file or NAME:SPLIT.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data.")] = None,
    settings: Settings = None,
    fields: Fields = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run in --out.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model and save it, its checkpoints and its learning curve."""
    from seqloom.tasks.recipe import with_needed

    if out is None:
        raise typer.BadParameter("name the directory to make", param_hint="--out")
    plan = _plan(recipe, task, arch, train, valid, settings, fields)
    plan = with_needed(plan, out.parent, note)
    model = plan.estimator()
    if not resume:
        _compare(plan)
    plan.fit(model, out, resume=resume)
    if os.environ.get("RANK", "0") != "0":
        return  # of several processes, the first one speaks
    rows = [{"what": k, "value": v} for k, v in model.metrics_.items()]
    print_rows(rows, as_json=as_json)
    note(f"saved in {out}")


def check(
    recipe: RecipeName = None,
    task: Annotated[str | None, typer.Option(help="The task.")] = None,
    arch: Annotated[str | None, typer.Option(help="The architecture.")] = None,
    train: Annotated[str | None, typer.Option(help="Training data: a file or NAME:SPLIT.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data.")] = None,
    settings: Settings = None,
    fields: Fields = None,
) -> None:
    """Build everything a run needs and make one update, to see that it would go."""
    from seqloom.tasks.recipe import Recipe, with_needed

    plan = _plan(recipe, task, arch, train, valid, settings, fields)
    plan = with_needed(plan, None, note, Recipe.for_one_update)
    model = plan.for_one_update()
    plan.fit(model)
    numbers = sum(math.prod(shape) for shape in model.shapes().values())
    typer.echo(f"ok: {plan.task} {plan.arch}, {numbers:,} parameters")


def reproduce(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe; without one, they are listed.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many runs, each with its own seed.", min=1)] = 1,
    out: Annotated[Path | None, typer.Option(help="Where to keep the models.")] = None,
    settings: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with runs in --out.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a recipe and print what was reached beside what was to be reached."""
    from seqloom.tasks.recipe import load_recipe, shipped_recipes, with_needed

    if recipe is None:
        rows = [{"recipe": n, "title": load_recipe(n).title} for n in shipped_recipes()]
        print_rows(rows, as_json=as_json)
        return
    plan = with_needed(load_recipe(recipe, settings), out, note)
    results: list[dict[str, Any]] = []
    if not resume:
        _compare(plan)
    first = plan.estimator().build_training().seed if "seed" in plan.training else 0
    for seed in range(first, first + seeds):
        model = plan.estimator(seed=seed)
        place = None if out is None else out / f"{Path(recipe).stem}-{seed}"
        plan.fit(model, place, resume=resume)
        row: dict[str, Any] = {"recipe": Path(recipe).stem, "seed": seed, **model.metrics_}
        if plan.data.test is not None:
            _use_card(model)
            tested = model.evaluate(*plan.data.open(model.task, plan.data.test))
            row |= {f"test_{name}": value for name, value in tested.items()}
        if plan.target is not None:
            row["to reach"] = plan.target.value
            metric = plan.target.metric  # on the validation data where there is no test data
            reached = row.get(f"test_{metric}", row.get(f"valid_{metric}"))
            if reached is None:
                note(one_of("metric", metric, model.metrics_))
            else:
                row["reached"] = plan.target.is_met(reached)
        results.append({**row, "minutes": model.provenance_["seconds"] / 60})
    print_rows(results, as_json=as_json, title=plan.title)
    if plan.target is not None:
        note(f"to reach: {plan.target.source}")


def _use_card(model: Any) -> None:
    """Have a network measured where it was trained, if it can be moved there."""
    if not (hasattr(model, "to") and hasattr(model.model_, "parameters")):
        return
    import torch

    if torch.cuda.is_available() and model.build_training().device != "cpu":
        model.to("cuda")


def _plan(
    recipe: str | None,
    task: str | None,
    arch: str | None,
    train: str | None,
    valid: str | None,
    settings: list[str] | None,
    fields: list[str] | None,
) -> Any:
    from seqloom.config import apply_overrides
    from seqloom.tasks.recipe import load_recipe, read_recipe

    if recipe is not None:
        if any(option is not None for option in (task, arch, train, valid)):
            raise typer.BadParameter("a recipe names task, arch and data itself; use --set")
        return load_recipe(recipe, settings)
    for name, value in (("--task", task), ("--arch", arch), ("--train", train)):
        if value is None:
            raise typer.BadParameter("give it, or a recipe", param_hint=name)
    data = {"train": train, "fields": apply_overrides({}, fields or [])}
    if valid is not None:
        data["valid"] = valid
    return read_recipe({"task": task, "arch": arch, "data": data}, settings)


def _compare(plan: Any) -> None:
    """Say how much of the test sets that a model will be judged on its training text has."""
    if not plan.data.judged_on or os.environ.get("RANK", "0") != "0":
        return
    from seqloom.config import from_dict
    from seqloom.errors import DataError
    from seqloom.tasks.corpus import text_examples
    from seqloom.tasks.seen_text import seen_text
    from seqloom.text import TextConfig, TextPipeline

    pipeline = TextPipeline(from_dict(TextConfig, plan.settings.get("text", {})))
    text = text_examples(plan.data.open(plan.task, plan.data.train)[0])
    try:
        for source, found in seen_text(text, plan.data.judged_on, pipeline):
            runs = f"{found.ngrams_seen:,} of {found.ngrams:,} runs of {found.n} words"
            whole = f"{found.sentences_seen:,} of {found.sentences:,} whole sentences"
            note(f"{source}: the training text has {runs} and {whole}")
    except DataError as missing:
        note(f"not compared with the test sets it will be judged on: {missing}")
