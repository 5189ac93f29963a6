"""`seqloom mix` and `seqloom cache`: language models made of fitted ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, note, print_rows

Heldout = Annotated[
    str, typer.Option(help="A text that no model was fitted to: a file or NAME:SPLIT.")
]
Out = Annotated[Path, typer.Option(help="The model directory to make.")]


def run(
    models: Annotated[list[str], typer.Argument(help="Model directories of the same words.")],
    heldout: Heldout,
    out: Out,
    as_json: JsonOption = False,
) -> None:
    """Interpolate language models of any kind, with weights found on a held-out text."""
    from seqloom import LanguageModel, mix

    parts = [LanguageModel.load(name) for name in models]
    mixed = mix(parts, heldout)
    mixed.save(out)
    rows: list[dict[str, Any]] = [
        {"model": name, "weight": weight}
        for name, weight in zip(models, mixed.engine_.config()["weights"], strict=True)
    ]
    print_rows(rows, as_json=as_json)
    note(f"perplexity on {heldout}: {mixed.metrics_['heldout_perplexity']:.4g}; saved in {out}")


def cache(
    model: Annotated[str, typer.Argument(help="The directory of a network.")],
    heldout: Heldout,
    out: Out,
    size: Annotated[int, typer.Option(help="How many of the last words are kept.", min=1)] = 500,
    as_json: JsonOption = False,
) -> None:
    """Put a cache of its last words on a network, tuned on a held-out text."""
    from seqloom import LanguageModel, with_cache

    cached = with_cache(LanguageModel.load(model), heldout, size=size)
    cached.save(out)
    rows = [{"what": k, "value": v} for k, v in (cached.engine_.config() | cached.metrics_).items()]
    print_rows(rows, as_json=as_json)
    note(f"saved in {out}")
