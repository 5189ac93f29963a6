"""`seqloom ngram query`: what a model says of each line and each word, in KenLM's form."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqloom.cli.ngram_options import ModelFile, load_model, output_errors
from seqloom.cli.output import json_text
from seqloom.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.ngram.batch import LineScores
    from seqloom.ngram.model import Perplexity


class Part(StrEnum):
    """What can be printed."""

    WORD = "word"
    SENTENCE = "sentence"
    SUMMARY = "summary"


EXAMPLES = (
    "seqloom ngram query model.store text.txt\n\n"
    "echo 'the cat sat' | seqloom ngram query model.arpa\n\n"
    "seqloom ngram query model.store text.txt -v summary"
)
_LN10 = math.log(10)
_BLANKS = bytes.maketrans(b"\t\r\0", b"   ")
_MARKS = (b"", b"<s>", b"</s>")


def run(
    model: ModelFile,
    text: Annotated[
        str, typer.Argument(metavar="FILE", help="A text, one sentence a line; - for stdin.")
    ] = "-",
    parts: Annotated[
        list[Part] | None,
        typer.Option(
            "-v",
            "--show",
            help="What to print; may be given several times.",
            show_default="word, sentence and summary",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object a line, the summary last.")
    ] = False,
) -> None:
    """Print what a model says of a text, as KenLM's query does; logarithms are to base 10.

    A word is WORD=NUMBER LENGTH LOG10: its number in the vocabulary (0 if unknown), the length
    of the n-gram that was found, and the logarithm of its probability. A line ends with the sum
    and how many of its words are unknown; at the end stand the perplexities of the whole text.
    The directory of a language model reads lines as the model does: its words, its direction.
    """
    if model == text == "-":
        raise ConfigError("the model and the text cannot both come from standard input")
    from seqloom.cli.ngram_text import line_reader, read_lines
    from seqloom.ngram.lines import line_blocks
    from seqloom.ngram.model import Perplexity
    from seqloom.ngram.words import BOM

    shown = set(parts or Part)
    asked, read = load_model(model), line_reader(model)
    lines_of = json_lines if as_json else plain_lines
    total = Perplexity(0.0, 0, 0, 0, 0.0)
    with output_errors():
        out = sys.stdout.buffer
        for number, given in enumerate(line_blocks(text)):
            block = given if number else given.removeprefix(BOM)
            ended = read_lines(block if block.endswith(b"\n") else block + b"\n", read)
            scores = asked.score_lines(ended, by_word=Part.WORD in shown)
            total = _added(total, scores)
            if shown & {Part.WORD, Part.SENTENCE}:
                lines = lines_of(
                    ended, scores, words=Part.WORD in shown, sums=Part.SENTENCE in shown
                )
                out.write(b"".join(lines))
                out.flush()
        if Part.SUMMARY in shown:
            out.write((_json_summary if as_json else _summary)(total).encode())
        out.flush()


def _added(total: Perplexity, scores: LineScores) -> Perplexity:
    return type(total)(
        total.log_prob + float(scores.totals.sum()),
        total.words + int(scores.counts.sum()),
        total.lines + len(scores.counts),
        total.unknown + int(scores.unknown.sum()),
        total.known_log_prob + float(scores.known_totals.sum()),
    )


def plain_lines(block: bytes, scores: LineScores, *, words: bool, sums: bool) -> Iterator[bytes]:
    """What KenLM's query prints of each line; every line is ended, which it does not do."""
    spelled = _words(block, scores) if words else None
    totals, unknown = (scores.totals / _LN10).tolist(), scores.unknown.tolist()
    for total, oov in zip(totals, unknown, strict=True):
        items = [b"%b=%d %d %.8g" % item for item in next(spelled)] if spelled else []
        if sums:
            items.append(b"Total: %.8g OOV: %d" % (total, oov))
        yield b"\t".join(items) + b"\n"


def json_lines(block: bytes, scores: LineScores, *, words: bool, sums: bool) -> Iterator[bytes]:
    """An object a line."""
    spelled = _words(block, scores) if words else None
    totals, unknown = (scores.totals / _LN10).tolist(), scores.unknown.tolist()
    for total, oov in zip(totals, unknown, strict=True):
        row: dict[str, Any] = {"log10": total, "oov": oov} if sums else {}
        if spelled:
            row["words"] = [
                {"word": w.decode("utf-8", "replace"), "id": i, "order": o, "log10": v}
                for w, i, o, v in next(spelled)
            ]
        yield json_text(row).encode() + b"\n"


def _words(block: bytes, scores: LineScores) -> Iterator[list[tuple[bytes, int, int, float]]]:
    """By line: each word as it is written, its number, the order used and its logarithm."""
    ids, orders = scores.ids.tolist(), scores.orders.tolist()
    values = (scores.values / _LN10).tolist()
    at = 0
    for line in block.translate(_BLANKS)[:-1].split(b"\n"):
        words = [word for word in line.split(b" ") if word not in _MARKS]
        words.append(b"</s>")
        start, at = at + 1, at + 1 + len(words)
        yield list(zip(words, ids[start:at], orders[start:at], values[start:at], strict=True))


def _summary(total: Perplexity) -> str:
    including, excluding = (
        "NaN" if math.isnan(value) else repr(value)
        for value in (total.perplexity, total.known_perplexity)
    )
    return (
        f"Perplexity including OOVs:\t{including}\nPerplexity excluding OOVs:\t{excluding}\n"
        f"OOVs:\t{total.unknown}\nTokens:\t{total.words}\n"
    )


def _json_summary(total: Perplexity) -> str:
    row = {
        "perplexity": total.perplexity,
        "perplexity_excluding_oovs": total.known_perplexity,
        "oovs": total.unknown,
        "tokens": total.words,
        "lines": total.lines,
    }
    return json_text(row) + "\n"
