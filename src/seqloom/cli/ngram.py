"""`seqloom ngram`: counted language models, estimated, asked, pruned, mixed and converted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seqloom.cli import ngram_query
from seqloom.cli.ngram_options import (
    ArpaOption,
    KindOption,
    MemoryOption,
    ModelFile,
    NumbersCommand,
    StoreOption,
    TemporaryOption,
    check_outputs,
    find_model,
    numbers,
    workspace,
    write_outputs,
)
from seqloom.cli.output import JsonOption, json_text, note, print_rows

if TYPE_CHECKING:
    from seqloom.ngram.methods import Smoothing

app = typer.Typer(
    help="Counted language models: estimate, query, prune, mix, convert, stats.",
    no_args_is_help=True,
)
app.command("query", epilog=ngram_query.EXAMPLES)(ngram_query.run)

Symbols = Literal["count", "skip", "error"]
SMOOTHING_NAMES = (
    "maximum-likelihood, add-one, add-delta, good-turing, absolute-discounting, "
    "absolute-discounting-backoff, witten-bell, jelinek-mercer, kneser-ney, kneser-ney-backoff, "
    "modified-kneser-ney, modified-kneser-ney-backoff, stupid-backoff"
)


@app.command(
    cls=NumbersCommand,
    epilog="seqloom ngram estimate -o 5 -S 1G < text > model.arpa\n\n"
    "seqloom ngram estimate text.*.zst --order 4 --prune 0 0 1 --store model.store --kind trie\n\n"
    "seqloom ngram estimate text --smoothing add-delta --delta 0.01 --arpa model.arpa.gz",
)
def estimate(
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TEXT",
            help="Texts, one sentence a line, compressed or not; standard input if none.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        int, typer.Option("--order", "-o", help="The length of the longest n-grams, 1 to 8.")
    ] = 3,
    smoothing: Annotated[
        str, typer.Option(help=f"How to smooth: {SMOOTHING_NAMES}.")
    ] = "modified-kneser-ney",
    prune: Annotated[
        str | None,
        typer.Option(
            help="By order, the count up to which n-grams are left out, as 0 0 1; the last one "
            "holds for the rest.",
            metavar="COUNTS",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A file of words; others count as <unk>.")
    ] = None,
    min_count: Annotated[int, typer.Option(help="Words that occur less often count as <unk>.")] = 1,
    closed: Annotated[
        bool, typer.Option("--closed", help="No probability for <unk>: there are no other words.")
    ] = False,
    symbols: Annotated[
        Symbols,
        typer.Option(
            help="What <unk>, <s> and </s> in the text mean: count takes <unk> for the unknown "
            "word and skips the marks, skip skips all three, error refuses them."
        ),
    ] = "count",
    held_out: Annotated[
        Path | None, typer.Option(help="Text to find the weights of jelinek-mercer on.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Of add-delta.", show_default="0.1")] = None,
    cutoff: Annotated[int | None, typer.Option(help="Of good-turing.", show_default="5")] = None,
    backoff: Annotated[
        float | None, typer.Option(help="Of stupid-backoff.", show_default="0.4")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Of jelinek-mercer, from order 1 on.", metavar="NUMBERS"),
    ] = None,
    discounts: Annotated[
        list[str] | None,
        typer.Option(
            help="Those of an order, as 0.5 1 1.5, or auto to estimate them; give the option once "
            "an order, from order 1 on.",
            metavar="NUMBERS",
        ),
    ] = None,
    discount_fallback: Annotated[
        str | None,
        typer.Option(
            help="What takes the place of discounts the text does not determine.",
            metavar="NUMBERS",
            show_default="0.5 1 1.5",
        ),
    ] = None,
    interpolate_unigrams: Annotated[
        bool | None,
        typer.Option(
            help="Whether what is left of the unigrams goes to all words or to <unk> alone.",
            show_default="interpolate",
        ),
    ] = None,
    memory: MemoryOption = None,
    temporary: TemporaryOption = None,
    text: Annotated[
        list[Path] | None, typer.Option("--text", help="The same as TEXT, as lmplz has it.")
    ] = None,
    store: StoreOption = None,
    kind: KindOption = "hashed",
    arpa: ArpaOption = None,
) -> None:
    """Estimate a model from text; without --store it is ARPA, on standard output by default.

    Takes the place of KenLM's lmplz: the same text gives the same model, and the options that say
    what to estimate may be spelled as there.
    """
    check_outputs(store, arpa)
    from seqloom.ngram.estimation import estimate as run

    method = _smoothing(
        smoothing,
        delta=delta,
        cutoff=cutoff,
        backoff=backoff,
        weights=None if weights is None else numbers(weights, "--weights"),
        discounts=None if discounts is None else [_discounts(each) for each in discounts],
        fallback=None
        if discount_fallback is None
        else numbers(discount_fallback, "--discount-fallback"),
        interpolate_unigrams=interpolate_unigrams,
    )
    _refuse_unwritable(method, store, arpa)
    place = workspace(memory, temporary)
    sources = [*(texts or []), *(text or [])]
    if not sources and sys.stdin.isatty():
        note("reading from the terminal; end with Ctrl-D")
    ngrams = run(
        (str(sources[0]) if sources else "-") if len(sources) < 2 else sources,
        order=order,
        smoothing=method,
        prune=_counts(prune),
        vocabulary=vocabulary,
        min_count=min_count,
        closed=closed,
        symbols=symbols,
        held_out=held_out,
        place=place,
        say=note,
    )
    write_outputs(ngrams, store, kind, arpa, place)
    if store is not None or arpa is not None:
        note(f"written to {' and '.join(str(path) for path in (store, arpa) if path)}")


def _smoothing(name: str, **options: Any) -> Smoothing:
    from seqloom.ngram.methods import smoothing

    return smoothing(name, **{key: value for key, value in options.items() if value is not None})


def _discounts(text: str) -> float | Sequence[float] | None:
    if text in ("auto", "-"):
        return None
    given = numbers(text, "--discounts")
    return given[0] if len(given) == 1 else given


def _counts(text: str | None) -> list[int]:
    from seqloom.errors import ConfigError

    given = numbers(text or "", "--prune")
    if any(count != int(count) for count in given):
        raise ConfigError(f"--prune must be whole numbers, one an order, got {text!r}")
    return [int(count) for count in given]


def _refuse_unwritable(method: Smoothing, store: Path | None, arpa: str | None) -> None:
    from seqloom.errors import ConfigError

    if method.backoff is not None and (store is None or arpa is not None):
        raise ConfigError(f"an ARPA file cannot hold a model of {method.name}; use --store alone")


@app.command(
    epilog="seqloom ngram prune model.arpa --entropy 1e-8 > small.arpa\n\n"
    "seqloom ngram prune model.store --entropy 1e-7 --store small.store",
)
def prune(
    model: ModelFile,
    entropy: Annotated[
        float,
        typer.Option(
            help="Leave out n-grams whose loss raises the perplexity by less than this share."
        ),
    ],
    memory: MemoryOption = None,
    temporary: TemporaryOption = None,
    store: StoreOption = None,
    kind: KindOption = "hashed",
    arpa: ArpaOption = None,
) -> None:
    """Make a model smaller by leaving out the n-grams that matter least."""
    check_outputs(store, arpa)
    from seqloom.ngram.entropy import prune_by_entropy
    from seqloom.ngram.unpack import read_ngrams

    place = workspace(memory, temporary)
    whole = read_ngrams(find_model(model), place)
    before = whole.sizes
    pruned = prune_by_entropy(whole, entropy, place)
    for n, (was, now) in enumerate(zip(before, pruned.sizes, strict=False), 1):
        note(f"order {n}: {now:,} of {was:,} n-grams kept")
    write_outputs(pruned, store, kind, arpa, place)


@app.command(
    cls=NumbersCommand,
    epilog="seqloom ngram mix news.arpa chat.arpa --weights 0.7 0.3 > both.arpa\n\n"
    "seqloom ngram mix news.store chat.store --held-out dev.txt --store both.store",
)
def mix(
    models: Annotated[
        list[str], typer.Argument(help="Two or more stores, ARPA files or model directories.")
    ],
    weights: Annotated[
        str | None,
        typer.Option(help="One a model, in order; 1 in all.", metavar="NUMBERS"),
    ] = None,
    held_out: Annotated[Path | None, typer.Option(help="Text to find the best weights on.")] = None,
    memory: MemoryOption = None,
    temporary: TemporaryOption = None,
    store: StoreOption = None,
    kind: KindOption = "hashed",
    arpa: ArpaOption = None,
) -> None:
    """Mix models into one: a weighted mean of their probabilities."""
    from seqloom.errors import ConfigError

    check_outputs(store, arpa)
    if len(models) < 2:
        raise ConfigError(f"there must be two models or more to mix, got {len(models)}")
    if (weights is None) == (held_out is None):
        raise ConfigError("the weights must be given or found; use --weights or --held-out")
    given = None if weights is None else numbers(weights, "--weights")
    from seqloom.cli.ngram_text import check_read_alike, sentences
    from seqloom.ngram.mixing import mix as run
    from seqloom.ngram.unpack import read_ngrams

    check_read_alike(models)
    place = workspace(memory, temporary)
    parts = [read_ngrams(find_model(model), place) for model in models]
    mixed, used = run(parts, given, held_out=sentences(held_out, models), place=place)
    for model, weight in zip(models, used, strict=True):
        note(f"weight {weight:.6f}: {model}")
    write_outputs(mixed, store, kind, arpa, place)


@app.command(
    epilog="seqloom ngram convert model.arpa.gz model.store\n\n"
    "seqloom ngram convert model.arpa small.store --kind trie\n\n"
    "seqloom ngram convert model.store model.arpa",
)
def convert(
    model: ModelFile,
    out: Annotated[str, typer.Argument(help="The file to write; - for ARPA on standard output.")],
    kind: Annotated[
        Literal["hashed", "trie", "arpa"] | None,
        typer.Option(
            help="What to write; arpa if the name ends in .arpa (or .arpa.gz, .xz, .zst), else "
            "hashed.",
            show_default="by name",
        ),
    ] = None,
    memory: MemoryOption = None,
    temporary: TemporaryOption = None,
) -> None:
    """Turn an ARPA file into a store, a store into an ARPA file, or one kind into the other."""
    chosen = kind or ("arpa" if out == "-" or ".arpa" in Path(out).suffixes[-2:] else "hashed")
    if chosen == "arpa":
        check_outputs(None, None if out == "-" else out)
    else:
        check_outputs(Path(out), None)
    from seqloom.ngram.unpack import read_ngrams

    place = workspace(memory, temporary)
    ngrams = read_ngrams(find_model(model), place)
    if chosen == "arpa":
        write_outputs(ngrams, None, "hashed", out, place)
    else:
        write_outputs(ngrams, Path(out), chosen, None, place)


@app.command(epilog="seqloom ngram stats model.store --json")
def stats(model: ModelFile, as_json: JsonOption = False) -> None:
    """Show what a model holds: its order, its n-grams, how it was made, the room it takes."""
    facts, sizes = _facts(find_model(model))
    if as_json:
        typer.echo(json_text(facts | {"ngrams": sizes}, indent=1))
        return
    rows = [{"what": key, "value": _shown(value)} for key, value in facts.items()]
    rows[1:1] = [{"what": f"{n}-grams", "value": f"{size:,}"} for n, size in enumerate(sizes, 1)]
    print_rows(rows, as_json=False, title=model)


def _facts(path: str) -> tuple[dict[str, Any], list[int]]:
    from seqloom.ngram.arpa import read_arpa
    from seqloom.ngram.store_file import is_store
    from seqloom.ngram.stores import open_packed

    if is_store(path):
        packed = open_packed(path)
        order, words, about = packed.order, len(packed.words), dict(packed.about)
        sizes = list(about.pop("sizes"))
    else:
        ngrams = read_arpa(path)
        order, words, sizes = ngrams.order, len(ngrams.words), ngrams.sizes
        about = ngrams.about | {"kind": "arpa"}
    size = Path(path).stat().st_size if path != "-" else None
    facts = {
        "order": order,
        "vocabulary": words,
        "kind": about.pop("kind"),
        "bytes": size,
        "bytes an n-gram": None if size is None else size / sum(sizes),
    }
    return facts | {key.replace("_", " "): value for key, value in about.items()}, sizes


def _shown(value: Any) -> Any:
    """Discounts, a list an order, in one line."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " / ".join(" ".join(f"{x:.6g}" for x in each) for each in value)
    return value
