"""One way to name data: a file, or a split of a named data set as "ptb:train"."""

from __future__ import annotations

from dataclasses import dataclass
from os import fspath
from pathlib import Path, PurePath
from typing import Any

from seqloom.data.columns import read_conllu, read_tagged
from seqloom.data.datasets import dataset_names, open_dataset
from seqloom.data.fields import read_labeled, read_pairs, read_texts
from seqloom.data.lines import read_parallel, read_text
from seqloom.data.prepared import Kind
from seqloom.data.problems import OnError, Records
from seqloom.errors import ConfigError
from seqloom.files import Source

TABLES = frozenset({".csv", ".tsv", ".jsonl", ".parquet"})
PACKED = frozenset({".gz", ".xz", ".zst"})


@dataclass(frozen=True, kw_only=True)
class FieldNames:
    """Which fields of a table, or columns of a tagged file, hold what.

    Args:
        text: The field with the text.
        label: The field with the label.
        separator: What several labels in that field are separated by, if there may be several.
        source: The field with the source of a pair.
        target: The field with its target, or with the number to predict.
        token: The column with the word.
        tag: The column with the tag; negative counts from the end.
    """

    text: str = "text"
    label: str = "label"
    separator: str | None = None
    source: str = "source"
    target: str = "target"
    token: int = 0
    tag: int = -1


def read_input(
    source: Source,
    kind: Kind,
    *,
    target: Source | None = None,
    names: FieldNames | None = None,
    on_error: OnError = "raise",
) -> Records[Any]:
    """Return the examples of a file or of a named data set.

    Args:
        source: A path, "-" for standard input, or "NAME:SPLIT" ("sst:train", "sst:train:fine").
        kind: What examples to read: "text", "labeled", "tagged" or "pairs".
        target: The file with the targets, if pairs are in two files line by line.
        names: Where a table holds what.
        on_error: "raise" or "skip".
    """
    names = names or FieldNames()
    name = fspath(source)
    if target is not None and kind != "pairs":
        raise ConfigError(f"a target file belongs to pairs only, got kind {kind!r}")
    if not Path(name).exists() and name.partition(":")[0] in dataset_names():
        return _read_dataset(name, on_error)
    suffixes = [s for s in PurePath(name).suffixes if s not in PACKED]
    suffix = suffixes[-1].lower() if suffixes else ""
    if kind == "text":
        if suffix in TABLES:
            return read_texts(name, text=names.text, on_error=on_error)
        return read_text(name, on_error=on_error)
    if kind == "labeled":
        return read_labeled(
            name, text=names.text, label=names.label, separator=names.separator, on_error=on_error
        )
    if kind == "pairs":
        if target is not None:
            return read_parallel(name, target, on_error=on_error)
        return read_pairs(
            name, source_field=names.source, target_field=names.target, on_error=on_error
        )
    if suffix == ".conllu":
        return read_conllu(name, on_error=on_error)
    return read_tagged(name, token=names.token, tag=names.tag, on_error=on_error)


def _read_dataset(name: str, on_error: OnError) -> Records[Any]:
    parts = name.split(":")
    if len(parts) > 3:
        raise ConfigError(f"a data set is named NAME:SPLIT or NAME:SPLIT:VARIANT, got {name!r}")
    split, variant = (*parts[1:], None, None)[:2]
    return open_dataset(parts[0], split, variant=variant, on_error=on_error)
