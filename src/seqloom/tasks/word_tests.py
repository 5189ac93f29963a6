"""Word vectors asked about words: nearest spellings of unknown ones, similarities, analogies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.data.datasets import find_dataset, open_dataset
from seqloom.data.datasets.catalog import dataset_names
from seqloom.data.datasets.corpora import read_analogies, read_scored_pairs
from seqloom.data.sources import read_lines
from seqloom.errors import DataError, InputError, nearest
from seqloom.metrics import analogy_answers, spearman
from seqloom.text.vectors import WordVectors

ANSWERS = 300_000  # the most frequent words, which may be answers of analogies
SPELLINGS = 50_000  # the most frequent words, among which the nearest spelling is looked for

Read = Callable[[str], list[str]]
TestSource = str | PathLike[str] | Iterable[Mapping[str, Any]]
"""A file, "NAME:SPLIT" of a named data set, all splits of "NAME", or rows with its fields."""


def check_word(word: object) -> None:
    """Refuse what is no word.

    Raises:
        InputError: With what it is.
    """
    if not isinstance(word, str):
        raise InputError(f"a word must be a text, got {word!r}")


def find_word(vectors: WordVectors, word: str, read: Read | None = None) -> str | None:
    """Return the word as it has a vector: as it is, as `read` spells it, in lower case, or None."""
    spellings = [word]
    if read is not None:
        pieces = read(word)
        spellings += pieces if len(pieces) == 1 else []
    return next((one for one in (*spellings, word.lower()) if one in vectors), None)


def known_word(vectors: WordVectors, word: str, read: Read | None = None) -> str:
    """Return the word as it has a vector.

    Raises:
        InputError: If it is no text.
        DataError: If it has none, with the known word that is spelled most alike.
    """
    check_word(word)
    found = find_word(vectors, word, read)
    if found is not None:
        return found
    alike = (w for w in vectors.words[:SPELLINGS] if abs(len(w) - len(word)) <= 2)
    hint = nearest(word, alike) or "; it is not among those that were learned"
    raise DataError(f"there must be a vector for the word, got {word!r}{hint}")


def evaluate_vectors(
    vectors: WordVectors, data: TestSource, read: Read | None = None
) -> dict[str, float]:
    """Measure word vectors on judged similarities or on analogies.

    Rows with a word that has no vector are left out and counted in `unknown`.

    Args:
        vectors: The vectors, the most frequent words first.
        data: Rows `first`, `second`, `score` (tab-separated in a file), or rows `section`, `a`,
            `b`, `c`, `d` (in a file, four words under lines ": section"). Of a data set without a
            split, all are measured, and the split's name comes before each figure's.
        read: How the words were read that the vectors were learned from.

    Returns:
        Of similarities: `spearman`, the rank correlation of the cosines with the judgments, and
        `pairs`. Of analogies: `accuracy`, over all questions and as "accuracy SECTION" by section,
        and `questions`.

    Raises:
        InputError: If a row is none of those.
        DataError: If no row has known words only.
    """
    if isinstance(data, (str, PathLike)):
        name = fspath(data)
        if not Path(name).exists() and name in dataset_names():
            return {
                f"{split} {figure}": value
                for split in find_dataset(name).split_names
                for figure, value in evaluate_vectors(vectors, f"{name}:{split}", read).items()
            }
    rows = list(_rows(data))
    _check_rows(rows)
    if rows and "score" in rows[0]:
        return _similarities(vectors, rows, read)
    return _analogies(vectors, rows, read)


def _check_rows(rows: list[Any]) -> None:
    """Refuse rows that are neither judged pairs nor analogies, all of one kind."""
    scored = bool(rows) and isinstance(rows[0], Mapping) and "score" in rows[0]
    words, more = (("first", "second"), "score") if scored else (tuple("abcd"), "section")
    for number, row in enumerate(rows):
        is_row = isinstance(row, Mapping) and more in row
        if not is_row or not all(isinstance(row.get(name), str) for name in words):
            raise InputError(
                "rows must be tables of first, second and score, or of section, a, b, c and d, got "
                f"{row!r} as row {number}"
            )
        if scored:
            try:
                float(row[more])
            except (TypeError, ValueError):
                raise InputError(
                    f"a score must be a number, got {row[more]!r} in row {number}"
                ) from None


def _rows(data: TestSource) -> Iterable[Mapping[str, Any]]:
    if not isinstance(data, (str, PathLike)):
        return data
    name, _, split = fspath(data).partition(":")
    if not Path(fspath(data)).exists() and name in dataset_names():
        return (row.fields for row in open_dataset(name, split))
    first = next((line for _, line in read_lines(data) if line.strip()), "")
    read = read_analogies if first.startswith(":") else read_scored_pairs
    return (row.fields for row in read(data))


def _similarities(
    vectors: WordVectors, rows: list[Mapping[str, Any]], read: Read | None
) -> dict[str, float]:
    cosines, scores = [], []
    for row in rows:
        first, second = (find_word(vectors, row[name], read) for name in ("first", "second"))
        if first is not None and second is not None:
            cosines.append(vectors.similarity(first, second))
            scores.append(float(row["score"]))
    _require(len(scores), len(rows), "pairs")
    unknown = len(rows) - len(scores)
    return {"spearman": spearman(cosines, scores), "pairs": len(scores), "unknown": unknown}


def _analogies(
    vectors: WordVectors, rows: list[Mapping[str, Any]], read: Read | None
) -> dict[str, float]:
    sections, questions = [], []
    for row in rows:
        found = [find_word(vectors, row[name], read) for name in "abcd"]
        numbers = [vectors.index[word] for word in found if word is not None]
        if len(numbers) == 4 and max(numbers) < ANSWERS:
            sections.append(str(row["section"]))
            questions.append(numbers)
    _require(len(questions), len(rows), "questions")
    asked = np.array(questions, np.int64)
    matrix = np.asarray(vectors.matrix[:ANSWERS], np.float32)
    right = analogy_answers(matrix, asked[:, :3]) == asked[:, 3]
    by_section = defaultdict(list)
    for section, is_right in zip(sections, right.tolist(), strict=True):
        by_section[section].append(is_right)
    return {
        "accuracy": float(right.mean()),
        **{f"accuracy {name}": float(np.mean(found)) for name, found in by_section.items()},
        "questions": len(questions),
        "unknown": len(rows) - len(questions),
    }


def _require(known: int, rows: int, what: str) -> None:
    if not known:
        raise DataError(
            f"some of the {what} must have known words only, got none among {rows:,}; is it a test "
            "of another language or casing?"
        )
