"""The command line: one file a verb; each parses, calls the library and prints.

Results go to standard output (`--json` for machines), everything else to standard error. Exit
status: 0 done, 1 failed, 2 bad usage.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from seqloom import __version__
from seqloom.cli import (
    answer,
    bench,
    compare,
    data,
    demo,
    doctor,
    embed,
    export,
    filtering,
    forecast,
    listing,
    mix,
    ngram,
    pack,
    parse,
    prepare,
    relate,
    serve,
    summarize,
    tag,
    train,
    translate,
    use,
)
from seqloom.errors import SeqloomError

app = typer.Typer(
    name="seqloom",
    help="Sequence models from n-grams to attention.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(listing.run)
app.command("doctor")(doctor.run)
app.command("prepare")(prepare.run)
app.command("train")(train.run)
app.command("check")(train.check)
app.command("reproduce")(train.reproduce)
app.command("evaluate")(use.evaluate)
app.command("predict")(use.predict)
app.command("score")(use.score)
app.command("generate")(use.generate)
app.command("parse")(parse.run)
app.command("summarize", epilog=summarize.EXAMPLES)(summarize.run)
app.command("relate", epilog=relate.EXAMPLES)(relate.run)
app.command("tag", epilog=tag.EXAMPLES)(tag.run)
app.command("translate", epilog=translate.EXAMPLES)(translate.run)
app.command("answer", epilog=answer.EXAMPLES)(answer.run)
app.command("forecast", epilog=forecast.EXAMPLES)(forecast.run)
app.command("fill")(use.fill)
app.command("rescore", epilog=use.NBEST)(use.rescore)
app.command("mix")(mix.run)
app.command("cache")(mix.cache)
app.command("compare", epilog=compare.EXAMPLES)(compare.run)
app.command("inspect")(use.inspect)
app.command("pack")(pack.run)
app.command("export", epilog=export.EXAMPLES)(export.run)
app.command("demo")(demo.run)
app.command("bench")(bench.run)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("studio")(serve.studio)
app.command("filter", epilog=filtering.EXAMPLES)(filtering.run)
app.add_typer(data.app, name="data")
app.add_typer(ngram.app, name="ngram")
app.add_typer(embed.app, name="embed")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"seqloom {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
    version: Annotated[  # noqa: ARG001 (its callback does the work)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Sequence models from n-grams to attention."""
    if debug:
        os.environ["SEQLOOM_DEBUG"] = "1"


def main() -> None:
    """Run the command line; our own errors are one line, anything else is a fault of ours."""
    try:
        app()
    except SeqloomError as error:
        if os.environ.get("SEQLOOM_DEBUG"):
            raise
        typer.echo(f"seqloom: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away (`seqloom list | head`): point stdout elsewhere so that Python's own
        # flush at exit stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
