"""`seqloom bench`: how fast recurrent layers are on this machine, and what `auto` is to take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli.output import JsonOption, note, print_rows
from seqloom.errors import BackendError, ConfigError, one_of

WHAT = ("recurrent",)


def run(
    what: Annotated[str, typer.Argument(help="What to measure: recurrent.")] = "recurrent",
    tune: Annotated[
        bool, typer.Option("--tune", help="Measure what backend='auto' chooses by, and keep it.")
    ] = False,
    hidden: Annotated[
        list[int] | None, typer.Option(help="A hidden size; may be given again (256 and 512).")
    ] = None,
    batch: Annotated[int, typer.Option(help="Rows of a batch.", min=1)] = 32,
    steps: Annotated[int, typer.Option(help="Steps of a sequence.", min=1)] = 128,
    repeats: Annotated[int, typer.Option(help="Rounds that count.", min=1)] = 7,
    backend: Annotated[
        list[str] | None, typer.Option(help="A backend of ours; may be given again (auto).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the ratios into this picture.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure recurrent layers against torch's own, in turn in one run.

    A ratio is our time over that of torch's layer on the padded batch in the same round (of the
    cell itself where torch has it, of the LSTM where it does not): the median, the least, the most.
    """
    if what not in WHAT:
        raise ConfigError(one_of("what to measure", what, WHAT))
    try:
        from seqloom.kernels.measured import save_table
        from seqloom.nn import timing
    except ModuleNotFoundError as error:
        raise BackendError(f"this needs torch ({error}); pip install 'seqloom[torch]'") from None
    if tune:
        kept = save_table(timing.tune(note))
        note(f"backend='auto' takes the faster one by {kept} from now on")
        return
    rows: list[dict[str, Any]] = []
    drawn: dict[str, dict[str, float]] = {}
    for case in timing.cases(tuple(hidden or (256, 512)), batch=batch, steps=steps):
        note(f"... {case.name}")
        found = timing.measure(timing.contestants(case, tuple(backend or ("auto",))), repeats)
        for name in found.seconds:
            middle, least, most = found.ratio(name)
            rows.append(
                {
                    "case": case.name,
                    "who": timing.title(case, name),
                    "ms": round(found.milliseconds(name), 2),
                    "ratio": round(middle, 3),
                    "from": round(least, 3),
                    "to": round(most, 3),
                }
            )
            if name != found.peer:
                drawn.setdefault(timing.title(case, name), {})[case.short] = middle
    print_rows(rows, as_json=as_json)
    if plot is not None:
        from seqloom.figures import grouped_bars, save

        label = "time over that of torch's layer on the padded batch"
        save(grouped_bars(drawn, references={"torch": 1.0}, horizontal=True, label=label), plot)
        note(f"drawn to {plot}")
