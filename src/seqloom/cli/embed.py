"""`seqloom embed`: asking word vectors for words that are alike, and writing them to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.output import JsonOption, note, print_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from seqloom.text.vectors import WordVectors

app = typer.Typer(help="Word vectors: nearest, similarity, analogy, evaluate, export.")

Vectors = Annotated[
    str, typer.Argument(help="A model directory of task embed, or a file of vectors.")
]
Word = Annotated[str, typer.Argument(help="A word.")]
Number = Annotated[int, typer.Option("-k", help="How many words.")]


@app.command("nearest")
def find_nearest(vectors: Vectors, word: Word, k: Number = 10, as_json: JsonOption = False) -> None:
    """Print the words nearest to a word, with their cosines."""
    opened, known = _open(vectors)
    _print(opened.nearest(known(word), k), as_json=as_json)


@app.command()
def similarity(vectors: Vectors, first: Word, second: Word) -> None:
    """Print the cosine of two words."""
    opened, known = _open(vectors)
    typer.echo(f"{opened.similarity(known(first), known(second)):.6g}")


@app.command()
def analogy(
    vectors: Vectors, a: Word, b: Word, c: Word, k: Number = 5, as_json: JsonOption = False
) -> None:
    """Print the words that best complete "A is to B as C is to", with their cosines."""
    opened, known = _open(vectors)
    _print(opened.analogy(known(a), known(b), known(c), k), as_json=as_json)


@app.command()
def evaluate(
    vectors: Vectors,
    data: Annotated[
        str, typer.Argument(help="Judged pairs or analogies: a file, NAME or NAME:SPLIT.")
    ] = "word-similarity",
    as_json: JsonOption = False,
) -> None:
    """Measure vectors on judged similarities (Spearman's correlation) or analogies (accuracy)."""
    from seqloom.tasks.pretrained import open_vectors
    from seqloom.tasks.word_tests import evaluate_vectors

    found = evaluate_vectors(open_vectors(vectors), data)
    print_rows([{"what": k, "value": v} for k, v in found.items()], as_json=as_json)


@app.command()
def export(
    vectors: Vectors,
    path: Annotated[
        Path, typer.Argument(help="The file: .vec, .bin, .txt or .npz; without a suffix a store.")
    ],
    format: Annotated[
        str, typer.Option(help="word2vec, word2vec-binary, glove, npz or seqloom; by the name.")
    ] = "auto",
) -> None:
    """Write vectors for other programs."""
    from seqloom.tasks.pretrained import open_vectors
    from seqloom.text.vectors import write_vectors

    opened = open_vectors(vectors)
    write_vectors(opened, path, format=format)
    note(f"{len(opened):,} vectors of {opened.size} numbers in {path}")


def _open(source: str) -> tuple[WordVectors, Callable[[str], str]]:
    from seqloom.tasks.pretrained import open_vectors
    from seqloom.tasks.word_tests import known_word

    opened = open_vectors(source)
    return opened, lambda word: known_word(opened, word)


def _print(found: list[tuple[str, float]], *, as_json: bool) -> None:
    print_rows([{"word": word, "cosine": cosine} for word, cosine in found], as_json=as_json)
