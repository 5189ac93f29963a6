"""`seqloom summarize`: the best sentences of a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.output import JsonOption, json_text, note, print_rows

if TYPE_CHECKING:
    from seqloom import Summarizer

EXAMPLES = (
    "Examples: seqloom summarize article.txt --sentences 3; "
    "seqloom summarize page.html --words 100 --highlight; cat notes.md | seqloom summarize --json; "
    "seqloom summarize --model debian-pointer description.txt --max-length 12"
)


def run(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of text, Markdown or HTML, summarized together; - or none for stdin."
        ),
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(help="textrank, lexrank, tfidf, lead or features; textrank if not given."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A fitted model instead, by its directory or name; it may write."),
    ] = None,
    sentences: Annotated[int | None, typer.Option(help="At most so many sentences.")] = None,
    words: Annotated[int | None, typer.Option(help="At most so many words.")] = None,
    characters: Annotated[int | None, typer.Option(help="At most so many characters.")] = None,
    ratio: Annotated[
        float | None, typer.Option(help="At most this share of the sentences.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Only sentences scoring so many times the mean.")
    ] = None,
    diversity: Annotated[
        float, typer.Option(help="How much likeness to sentences already chosen counts, 0 to 1.")
    ] = 0.0,
    query: Annotated[str | None, typer.Option(help="What the summary should be about.")] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Of a model that writes: how many words at most.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(help="Of a model that writes: how many texts stay alive; 1 is greedy."),
    ] = None,
    language: Annotated[str, typer.Option(help="auto, en or zh.")] = "auto",
    markup: Annotated[str, typer.Option(help="auto, text, markdown or html.")] = "auto",
    keywords: Annotated[int, typer.Option(help="Print so many keywords instead.")] = 0,
    highlight: Annotated[
        bool, typer.Option("--highlight", help="Print the text with the chosen sentences marked.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the sentences that say most of what a text says, in its order.

    A model that writes prints a summary in words of its own, and chooses no sentences.

    Offsets in JSON count characters of the file as it is, markup included.
    """
    from seqloom.data.sources import read_whole
    from seqloom.errors import ConfigError
    from seqloom.extract import guess_markup, read_markup
    from seqloom.tasks.seq2seq_results import Written

    names = files or ["-"]
    sources = [read_whole(name) for name in names]
    pages = [
        read_markup(source, guess_markup(name, source) if markup == "auto" else markup)  # type: ignore[arg-type]
        for name, source in zip(names, sources, strict=True)
    ]
    texts = [page.text for page in pages]
    summarizer = _opened(model, arch, language)
    if highlight and summarizer.writer_ is not None:
        raise ConfigError(
            f"--highlight marks chosen sentences, got it with arch={summarizer.arch!r}, which "
            "writes; leave it out"
        )
    if keywords:
        found = summarizer.keywords(texts, keywords)
        print_rows([keyword._asdict() for keyword in found], as_json=as_json)
        return
    given = {"max_length": max_length, "beam": beam}
    search = {name: value for name, value in given.items() if value is not None}
    summary = summarizer.summarize(
        texts, sentences=sentences, words=words, characters=characters, ratio=ratio,
        threshold=threshold, diversity=diversity, query=query, **search,
    )  # fmt: skip
    if isinstance(summary, Written):
        typer.echo(json_text(summary.as_row(), indent=1) if as_json else summary.text)
        if summary.cut:
            note("the text was longer than the model reads, and cut")
    elif as_json:
        rows = []
        for sentence in summary:
            start, end = pages[sentence.document].span(sentence.start, sentence.end)
            file = names[sentence.document]
            rows.append({**sentence.as_row(), "start": start, "end": end, "file": file})
        typer.echo(json_text({"sentences": rows, "of": summary.total}, indent=1))
    elif highlight:
        # On a terminal in reverse video, else between double brackets.
        marks = ("\x1b[7m", "\x1b[0m") if typer.get_text_stream("stdout").isatty() else ("[[", "]]")
        for number in range(len(texts)):
            marked = summary.highlight(*marks, document=number)
            typer.echo(re.sub(r"\n\s*\n", "\n\n", marked).strip())  # markup leaves empty lines
    else:
        for sentence in summary:
            typer.echo(" ".join(sentence.text.split()))


def _opened(model: str | None, arch: str | None, language: str) -> Summarizer:
    """The model of a directory or a name, or one that needs no fitting."""
    from seqloom import Summarizer
    from seqloom.errors import ConfigError
    from seqloom.tasks.summarizer import WRITING

    if model is None:
        if arch in WRITING:
            raise ConfigError(
                f"a model that writes must be fitted first, got --arch {arch}; name one with "
                "--model"
            )
        return Summarizer(arch or "textrank", reading={"language": language})
    if language != "auto":
        raise ConfigError(f"a model has its own language, got --language {language} with one")
    if arch is not None:
        raise ConfigError(f"a model has its own arch, got --arch {arch} with one; leave it out")
    return Summarizer.load(model)
