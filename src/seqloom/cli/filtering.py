"""`seqloom filter`: the lines of a stream that a model finds likely, or unlikely."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqloom.cli.ngram_options import load_model, output_errors
from seqloom.cli.output import json_text, note
from seqloom.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqloom.cli.ngram_text import ReadLine
    from seqloom.ngram.filtering import Kept

EXAMPLES = (
    "seqloom filter web.txt.zst --model model.store --below 300 > clean.txt\n\n"
    "zcat records.jsonl.gz | seqloom filter -m model.store --below 300 --field text --tokenize en"
)


def run(
    model: Annotated[str, typer.Option("--model", "-m", help="A store, ARPA file or directory.")],
    text: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Lines, compressed or not; - for stdin."),
    ] = "-",
    below: Annotated[
        float | None, typer.Option(help="Keep lines of a lower perplexity than this.")
    ] = None,
    above: Annotated[
        float | None, typer.Option(help="Keep lines of a higher perplexity than this.")
    ] = None,
    field: Annotated[
        str | None, typer.Option(help="The lines are JSON objects; score this field of them.")
    ] = None,
    tokenize: Annotated[
        Literal["en", "zh", "none"],
        typer.Option(help="Cut the text into words first; none: words stand between blanks."),
    ] = "none",
    invert: Annotated[
        bool, typer.Option("--invert", help="Keep the lines outside of the bounds instead.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print kept lines as objects: line, perplexity, text."),
    ] = False,
) -> None:
    """Pass on the lines whose perplexity lies within bounds, unchanged and in order.

    The perplexity is that of the line's words and its end. Lines without a word have none and are
    dropped. How many were kept is said on standard error. The directory of a language model
    reads lines as the model does: its words, its direction.
    """
    if model == text == "-":
        raise ConfigError("the model and the lines cannot both come from standard input")
    if below is None and above is None:
        raise ConfigError("a filter must have a bound, got none; give --below or --above")
    from seqloom.cli.ngram_text import check_cut, line_reader
    from seqloom.ngram.filtering import filter_lines
    from seqloom.ngram.lines import line_blocks

    if tokenize != "none":
        check_cut(model)
    done = filter_lines(
        load_model(model),
        line_blocks(text),
        below=below,
        above=above,
        invert=invert,
        text_of=_reader(field, tokenize, line_reader(model)),
        name="standard input" if text == "-" else text,
    )
    kept = lines = 0
    with output_errors():
        out = sys.stdout.buffer
        for block in done:
            kept, lines = kept + len(block.numbers), lines + block.lines
            out.write(_as_json(block) if as_json else block.data)
            out.flush()
    note(f"kept {kept:,} of {lines:,} lines, dropped {lines - kept:,}")


def _as_json(block: Kept) -> bytes:
    rows = zip(
        block.numbers.tolist(), block.perplexities.tolist(), block.data.split(b"\n"), strict=False
    )
    return b"".join(
        json_text(
            {"line": number, "perplexity": value, "text": line.decode("utf-8", "replace")}
        ).encode()
        + b"\n"
        for number, value, line in rows
    )


def _reader(field: str | None, tokenize: str, read: ReadLine | None) -> ReadLine | None:
    """What is scored of a line: a field of a record, its text cut into words."""
    if field is None and tokenize == "none":
        return read
    words_of = None
    if tokenize != "none":
        from seqloom.text import WordTokenizer

        words_of = WordTokenizer("zh" if tokenize == "zh" else "en").words

    from seqloom.ngram.words import encoded

    def text_of(line: bytes) -> bytes:
        text = _field(line, field) if field is not None else line.decode("utf-8", "surrogateescape")
        if words_of is not None:
            text = " ".join(words_of(text))
        return encoded(text) if read is None else read(encoded(text))

    return text_of


def _field(line: bytes, name: str) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"with --field a line must be a JSON object ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"with --field a line must be a JSON object, got a {type(record).__name__}")
    value = record.get(name)
    if not isinstance(value, str):
        found = "no such field" if name not in record else f"a {type(value).__name__}"
        known = ", ".join(record) or "none"
        raise DataError(f"the field {name!r} must be text, got {found} (fields: {known})")
    return value
