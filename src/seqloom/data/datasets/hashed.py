"""Splits of sets that come without one: by a hash, so that the same text is always in one part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal

from seqloom.data.datasets.corpora import made_of
from seqloom.data.examples import TextPair
from seqloom.data.fields import read_pairs
from seqloom.data.problems import OnError, Problems, Records
from seqloom.data.rows import Row, read_rows
from seqloom.errors import DataError
from seqloom.files import Source

Part = Literal["train", "valid", "test"]
PARTS: dict[str, range] = {"train": range(90), "valid": range(90, 95), "test": range(95, 100)}
_NO_WORD = re.compile(r"\W+")


def percent(text: str) -> int:
    """A number from 0 to 99 that a text always has; case and punctuation do not matter.

    >>> percent("Hello, world!") == percent("hello world")
    True
    """
    words = _NO_WORD.sub(" ", text.casefold()).strip()
    return int(hashlib.sha256(words.encode()).hexdigest(), 16) % 100


def read_hashed_pairs(
    path: Source,
    *,
    part: Part,
    by: Literal["source", "target"],
    on_error: OnError = "raise",
    **options: Any,
) -> Records[TextPair]:
    """Read the pairs whose one side has its hash in a part.

    Args:
        path: The file.
        part: Which part: 90 of 100 are "train", 5 "valid" and 5 "test".
        by: The side that is hashed.
        on_error: "raise" or "skip".
        options: As of `read_pairs`.
    """
    pairs = read_pairs(path, on_error=on_error, **options)
    return _chosen(pairs, part, by)


def read_titles(path: Source, *, part: Part, on_error: OnError = "raise") -> Records[TextPair]:
    """Read JSON lines with `article`: its first line is the target, the rest the source."""

    def make(row: Row) -> TextPair:
        title, _, rest = str(row.fields.get("article", "")).partition("\n")
        if not title.strip() or not rest.strip():
            raise DataError("an article must have a title and more", row.path, row.line)
        return TextPair(rest.strip(), title.strip())

    rows = read_rows(path, format="jsonl", on_error=on_error)
    return _chosen(made_of(rows, make), part, "target")


def _chosen(pairs: Records[TextPair], part: str, by: str) -> Records[TextPair]:
    def read(problems: Problems) -> Iterator[TextPair]:
        for pair in pairs:
            if percent(getattr(pair, by)) in PARTS[part]:
                yield pair
        problems.count, problems.mended = pairs.skipped, pairs.mended
        problems.first.extend(pairs.problems)

    return Records(read, pairs.name, pairs.on_error)
