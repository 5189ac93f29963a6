"""The Universal Declaration of Human Rights as snippets, for telling languages apart."""

from __future__ import annotations

from collections.abc import Iterator
from os import fspath
from pathlib import PurePosixPath
from typing import Literal

from seqloom.data.datasets.archives import Member, iter_members
from seqloom.data.examples import LabeledText
from seqloom.data.problems import OnError, Problems, Records
from seqloom.errors import ConfigError, DataError, one_of
from seqloom.files import Source

Part = Literal["train", "valid", "test"]

# Which paragraphs, counted from the last one: blank lines stand between them in the same places in
# every language, and article 23 is 22 from the end, article 26 is 13. Before them come titles,
# preamble and articles 1 to 22.
PARTS: dict[str, slice] = {
    "train": slice(None, -22),
    "valid": slice(-22, -13),
    "test": slice(-13, None),
}


def read_snippets(
    path: Source,
    *,
    part: Part = "train",
    characters: int = 20,
    step: int | None = None,
    on_error: OnError = "raise",
) -> Records[LabeledText]:
    """Read an archive with the declaration in a file a language, cut into snippets.

    The articles of a part are joined by single blanks and cut without a look at words; what is left
    at the end is dropped. No article is in two parts.

    Args:
        path: The archive.
        part: "train" (articles 1 to 22 and what comes before), "valid" (23 to 25) or "test" (26 to
            30).
        characters: The length of a snippet.
        step: How far the next snippet begins; by default where the last one ended.
        on_error: Nothing can be skipped here: a file is read whole.
    """
    if part not in PARTS:
        raise ConfigError(one_of("part", part, PARTS))
    step = characters if step is None else step
    if min(characters, step) < 1:
        raise ConfigError(f"characters and step must be positive, got {characters} and {step}")

    def read(_: Problems) -> Iterator[LabeledText]:
        for member in iter_members(path):
            label = PurePosixPath(member.name).stem
            text = " ".join(_paragraphs(member, path)[PARTS[part]])
            for start in range(0, len(text) - characters + 1, step):
                yield LabeledText(text[start : start + characters], (label,))

    return Records(read, fspath(path), on_error)


def _paragraphs(member: Member, archive: Source) -> list[str]:
    """The runs of lines between blank ones, each on one line."""
    try:
        lines = member.read().decode().split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{member.name} is not UTF-8 ({error})", archive) from None
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1] += line.split()
        elif found[-1]:
            found.append([])
    return [" ".join(words) for words in found if words]
