"""How the verbs of n-gram files read text when they are given the directory of a language model.

A bare store knows words between blanks. A model directory says how its text became words, how these
are spelled, and in which direction sentences are read, so a line is read in the same way first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.tasks.directory import StoredModel

ReadLine = Callable[[bytes], bytes]

# What a line may hold that blanks alone do not tell apart as the "space" unit does, or that a
# counted model takes for a mark.
_ODD = re.compile(rb"[\x0b\x0c\x1c-\x1f<]")


def line_reader(name: str) -> ReadLine | None:
    """What makes words between blanks of a line, as a model directory reads it; None of a file."""
    stored = _stored(name)
    if stored is None:
        return None
    from seqloom.config import from_dict
    from seqloom.ngram.words import encoded
    from seqloom.tasks.spelling import spell
    from seqloom.text import SubwordTokenizer, TextConfig, TextPipeline

    settings = _settings(stored)
    config = from_dict(TextConfig, settings["text"])
    subword = None
    if config.unit == "subword":
        subword = SubwordTokenizer.load(stored.place / "subword.json")
    pipeline, reverse = TextPipeline(config, subword=subword), settings["reverse"]
    is_plain = config == TextConfig(unit="space") and not reverse

    def read(line: bytes) -> bytes:
        if is_plain and line.isascii() and not _ODD.search(line):
            return line
        words = pipeline.words(line.decode("utf-8", "surrogateescape"))
        return encoded(" ".join(map(spell, words[::-1] if reverse else words)))

    return read


def read_lines(block: bytes, read: ReadLine | None) -> bytes:
    """Whole lines as the model reads them."""
    if read is None:
        return block
    return b"".join(read(line) + b"\n" for line in block.removesuffix(b"\n").split(b"\n"))


def check_cut(name: str) -> None:
    """Refuse text that was cut into words for a model directory that cuts it in its own way.

    Raises:
        ConfigError: If it does.
    """
    stored = _stored(name)
    if stored is not None and (unit := _settings(stored)["text"]["unit"]) != "space":
        raise ConfigError(
            f"a model of unit={unit!r} cuts text itself, got --tokenize; leave it out"
        )


def check_read_alike(names: Sequence[str]) -> None:
    """Refuse model directories that read text in different ways; files say nothing of it.

    Raises:
        ConfigError: With the first difference.
    """
    from seqloom.config import differences

    known = [(name, _described(stored)) for name in names if (stored := _stored(name))]
    for name, settings in known[1:]:
        for found in differences(known[0][1], settings):
            raise ConfigError(
                f"models must read text alike to be mixed, but from {known[0][0]} to {name} {found}"
            )


def sentences(source: Path | None, names: Iterable[str]) -> Any:
    """A text as the first model directory among some reads it; as it is if there is none."""
    read = next((found for name in names if (found := line_reader(name))), None)
    if source is None or read is None:
        return source
    from seqloom.ngram.lines import line_blocks
    from seqloom.ngram.words import BOM

    text = b"".join(line_blocks(source)).removeprefix(BOM)
    return read_lines(text, read).decode("utf-8", "surrogateescape").split("\n")[:-1]


def _stored(name: str) -> StoredModel | None:
    from seqloom.tasks.directory import HEADER, read_model

    return read_model(name) if (Path(name) / HEADER).is_file() else None


def _settings(stored: StoredModel) -> dict[str, Any]:
    given = stored.header.settings
    return {"text": given.get("text", {"unit": "space"}), "reverse": given.get("reverse", False)}


def _described(stored: StoredModel) -> dict[str, Any]:
    pieces = stored.place / "subword.json"
    found = _settings(stored)
    digest = hashlib.sha256(pieces.read_bytes()).hexdigest() if pieces.is_file() else None
    return {**found, "pieces": digest}
