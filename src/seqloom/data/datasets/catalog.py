"""The catalogue of data sets: what each holds, where it comes from, and how it is read.

The entries are in `catalog.toml` beside this file; adding a data set is adding one table there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

from seqloom.errors import ConfigError, DataError, one_of


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data set.

    Attributes:
        name: Its name, without .gz, .xz or .zst.
        size: Length of its content in bytes, decompressed.
        sha256: Checksum of its content, decompressed.
        addresses: Where it can be fetched, tried in turn; none if it must be placed by hand.
        member: If the addresses lead to an archive, the end of the file's path in it; else "".
    """

    name: str
    size: int
    sha256: str
    addresses: tuple[str, ...] = ()
    member: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """One part of a data set, read one way.

    Attributes:
        name: "train", "valid", "test"; "all" where there is no split; or the part's own name.
        reader: The reader's name in `seqloom.data.datasets.reading.READERS`.
        files: What the reader is given, in this order.
        variant: Which of several ways to read the split; "" if there is one.
        options: Settings for the reader.
        faults: How many of its records are known to be malformed; they are left out, and only
            more than these are an error.
        records: From which record to which, the last one not included; all if not given.
        words: From which word to which; a record belongs where its first word lies.
        as_text: Whether tagged sentences are given as texts, their words with spaces between them.
    """

    name: str
    reader: str
    files: tuple[str, ...]
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    faults: int = 0
    records: tuple[int, int] | None = None
    words: tuple[int, int] | None = None
    as_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """An entry of the catalogue.

    Attributes:
        name: What it is called, and the name of its folder.
        title: What it is, in a line.
        task: What it is for: "language-model", "classification", "tagging", ...
        languages: BCP 47 codes; "mul" for many.
        license: Its terms, as its source states them.
        redistributable: Whether the terms allow passing it on.
        citation: Whom to cite.
        source: Where it comes from.
        notes: What else a user should know.
        hosts: Hosts, beyond that of an address, a redirect may lead to.
        files: Its files.
        splits: How it is read; none if it has files only.
    """

    name: str
    title: str
    task: str
    languages: tuple[str, ...]
    license: str
    redistributable: bool
    citation: str
    source: str
    notes: str
    hosts: tuple[str, ...]
    files: tuple[DataFile, ...]
    splits: tuple[Split, ...]

    def file(self, name: str) -> DataFile:
        """Return the file of that name.

        Raises:
            ConfigError: If there is none; the nearest and all of them are named.
        """
        for file in self.files:
            if file.name == name:
                return file
        raise ConfigError(one_of(f"file of {self.name}", name, [file.name for file in self.files]))

    @property
    def split_names(self) -> tuple[str, ...]:
        """The names of the splits, in the order of the catalogue."""
        return tuple(dict.fromkeys(split.name for split in self.splits))

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants, the usual one first; none if there is one way to read it."""
        return tuple(dict.fromkeys(split.variant for split in self.splits if split.variant))

    def split(self, name: str | None = None, variant: str | None = None) -> Split:
        """Return a split, by default the only one or "all", in the usual variant.

        Raises:
            DataError: If the set has files only.
            ConfigError: If the split or the variant is unknown, or must be named.
        """
        if not self.splits:
            files = ", ".join(file.name for file in self.files)
            raise DataError(f"{self.name} is not read as examples; ask for its files ({files})")
        if name is None:
            name = "all" if "all" in self.split_names else self.split_names[0]
            if name != "all" and len(self.split_names) > 1:
                listed = ", ".join(self.split_names)
                raise ConfigError(f"{self.name} has several splits; name one of {listed}")
        if name not in self.split_names:
            raise ConfigError(one_of(f"split of {self.name}", name, self.split_names))
        splits = [split for split in self.splits if split.name == name]
        if variant is None:
            return splits[0]
        for split in splits:
            if split.variant == variant:
                return split
        known = [split.variant for split in splits if split.variant]
        raise ConfigError(one_of(f"variant of {self.name}", variant, known))


def dataset_names() -> list[str]:
    """Names of all data sets, sorted."""
    return sorted(_catalog())


def find_dataset(name: str) -> Dataset:
    """Return the catalogue's entry for a name.

    Raises:
        ConfigError: If there is none; the nearest and all of them are named.

    Examples:
        >>> find_dataset("ptb").split_names
        ('train', 'valid', 'test')
    """
    try:
        return _catalog()[name]
    except KeyError:
        raise ConfigError(one_of("data set", name, _catalog())) from None


@lru_cache(maxsize=1)
def _catalog() -> dict[str, Dataset]:
    text = resources.files(__package__).joinpath("catalog.toml").read_text(encoding="utf-8")
    return {name: _entry(name, table) for name, table in tomllib.loads(text).items()}


def _entry(name: str, table: dict[str, Any]) -> Dataset:
    return Dataset(
        name=name,
        title=table["title"],
        task=table["task"],
        languages=tuple(table["languages"]),
        license=table["license"],
        redistributable=table["redistributable"],
        citation=table["citation"],
        source=table["source"],
        notes=table.get("notes", ""),
        hosts=tuple(table.get("hosts", ())),
        files=tuple(_file(file) for file in table["files"]),
        splits=tuple(_split(split) for split in table.get("splits", ())),
    )


def _file(table: dict[str, Any]) -> DataFile:
    addresses = tuple(table.get("addresses", ()))
    return DataFile(
        table["name"], table["size"], table["sha256"], addresses, table.get("member", "")
    )


def _split(table: dict[str, Any]) -> Split:
    return Split(
        name=table["name"],
        reader=table["reader"],
        files=tuple(table["files"]),
        variant=table.get("variant", ""),
        options=table.get("options", {}),
        faults=table.get("faults", 0),
        records=tuple(table["records"]) if "records" in table else None,
        words=tuple(table["words"]) if "words" in table else None,
        as_text=table.get("as_text", False),
    )
