"""Prepared data: text tokenized and numbered once, stored as memory-mapped columns.

A prepared directory holds `prepared.json` (kind, fields, text settings, counts), one vocabulary a
field in JSON, the trained pieces if there are any, and two raw files a column. A machine that has
neither the tokenizer nor room for the text in memory can train from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqloom.config import from_dict
from seqloom.data.batches import EncodedData
from seqloom.data.ragged import Ragged
from seqloom.errors import ConfigError, DataError, ShapeError
from seqloom.text.pipeline import TextConfig, TextPipeline
from seqloom.text.subword import SubwordTokenizer
from seqloom.text.vocabulary import Vocabulary

Kind = Literal["text", "labeled", "tagged", "pairs"]

COLUMNS: dict[Kind, set[str]] = {
    "text": {"ids"},
    "labeled": {"ids", "labels"},
    "tagged": {"tokens", "tags"},
    "pairs": {"source", "target"},
}
FORMAT = 1
HEADER = "prepared.json"
SUBWORD = "subword.json"


@dataclass(frozen=True, kw_only=True)
class PrepareConfig:
    """How examples become numbers.

    Args:
        text: How text becomes words.
        min_count: How often a word must occur to be kept.
        max_size: How many words to keep at most.
        ends: Whether each text is closed with the end-of-sentence word (language models, targets).
        shared: Whether source and target of pairs share one vocabulary.
    """

    text: TextConfig = field(default_factory=TextConfig)
    min_count: int = 1
    max_size: int | None = None
    ends: bool = True
    shared: bool = False

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ConfigError(f"min_count must be at least 1, got {self.min_count}")
        if self.max_size is not None and self.max_size < 0:
            raise ConfigError(f"max_size must not be negative, got {self.max_size}")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One field in the header file."""

    dtype: Literal["int32", "uint8"]
    items: int
    vocabulary: str
    ragged: bool = True


@dataclass(frozen=True, kw_only=True)
class Header:
    """What `prepared.json` says."""

    format: int
    kind: Kind
    examples: int
    columns: dict[str, Column]
    vocabularies: dict[str, str]  # name -> hash
    config: PrepareConfig


class PreparedData:
    """A prepared directory, opened.

    Attributes:
        kind: "text", "labeled", "tagged" or "pairs".
        data: The columns: "ids" for text; "ids" and the value "labels" (N, classes) for labeled;
            "tokens" and "tags" for tagged; "source" and "target" for pairs.
        vocabularies: By name: "words", "labels", "tags", "source", "target".
        pipeline: How the text was read, for reading more of it the same way.
        content: A digest of what was prepared, where somebody took one.
    """

    def __init__(
        self,
        header: Header,
        data: EncodedData,
        vocabularies: Mapping[str, Vocabulary],
        pipeline: TextPipeline,
    ) -> None:
        self.header, self.data, self.vocabularies = header, data, dict(vocabularies)
        self.pipeline = pipeline
        self.content: str | None = None

    @property
    def kind(self) -> Kind:
        """Which kind of examples these are."""
        return self.header.kind

    @classmethod
    def open(cls, directory: str | PathLike[str]) -> PreparedData:
        """Map a prepared directory into memory.

        Raises:
            DataError: If it is not a prepared directory, or one that was cut or altered (the ids
                themselves are not read, so a change among them goes unnoticed).
        """
        place = Path(directory)
        header = _read_header(place)
        vocabularies = {}
        for name, digest in header.vocabularies.items():
            vocabulary = Vocabulary.load(place / f"{name}.vocabulary.json")
            if vocabulary.hash != digest:
                raise DataError(
                    f"vocabulary {name!r} has hash {vocabulary.hash[:8]}, the header says "
                    f"{digest[:8]}; prepare the data anew",
                    place / HEADER,
                )
            vocabularies[name] = vocabulary
        sequences, values = {}, {}
        for name, column in header.columns.items():
            if column.ragged:
                flat = map_items(place / f"{name}.items", column.dtype, column.items)
                offsets = map_items(place / f"{name}.offsets", "int64", header.examples + 1)
                sequences[name] = _ragged(flat, offsets, place / f"{name}.offsets")
            else:
                width = len(vocabularies[column.vocabulary])
                flat = map_items(place / f"{name}.items", column.dtype, header.examples * width)
                values[name] = flat.reshape(header.examples, width)
        subword = None
        if header.config.text.unit == "subword":
            subword = SubwordTokenizer.load(place / SUBWORD)
            for name in vocabularies.keys() & {"words", "source", "target"}:
                if tuple(subword.pieces) != vocabularies[name].words:
                    raise DataError(
                        f"has other pieces than vocabulary {name!r}; prepare the data anew",
                        place / SUBWORD,
                    )
        pipeline = TextPipeline(header.config.text, subword=subword)
        return cls(header, EncodedData(sequences, values), vocabularies, pipeline)


def _ragged(flat: NDArray[Any], offsets: NDArray[np.int64], path: Path) -> Ragged:
    try:
        sequences = Ragged(flat, offsets)
        sequences.check()
    except (ShapeError, DataError) as error:
        raise DataError(f"{error}; it was altered, prepare the data anew", path) from None
    return sequences


def _read_header(place: Path) -> Header:
    try:
        values = json.loads((place / HEADER).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"is not a prepared directory (no {HEADER}); make one with seqloom prepare", place
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot be read ({error})", place / HEADER) from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = values.get("format") if isinstance(values, dict) else values
        raise DataError(f"must have format {FORMAT}, got {found!r}", place / HEADER)
    try:
        header = from_dict(Header, values)
    except ConfigError as error:
        raise DataError(str(error), place / HEADER) from None
    for name in [*header.columns, *header.vocabularies]:
        if not name.isidentifier():
            raise DataError(f"{name!r} is no name of a field", place / HEADER)
    if set(header.columns) != COLUMNS[header.kind] or header.examples < 1:
        raise DataError(
            f"data of kind {header.kind!r} must have examples and the columns "
            f"{sorted(COLUMNS[header.kind])}, got {header.examples} of {sorted(header.columns)}",
            place / HEADER,
        )
    for column in header.columns.values():
        if column.vocabulary not in header.vocabularies:
            raise DataError(f"there is no vocabulary {column.vocabulary!r}", place / HEADER)
    return header


def map_items(path: Path, dtype: str, items: int) -> NDArray[Any]:
    """Map a raw column of a known size; a file of another size was cut or altered."""
    expected = items * np.dtype(dtype).itemsize
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}); prepare the data anew", path) from None
    if size != expected:
        raise DataError(
            f"must hold {expected:,} bytes, got {size:,}; it was cut or altered, prepare the data "
            "anew",
            path,
        )
    if not items:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode="r", shape=(items,))
