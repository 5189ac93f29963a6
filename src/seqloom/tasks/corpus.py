"""What `fit` may be given, brought to prepared data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from seqloom.data.examples import Text
from seqloom.data.inputs import FieldNames, read_input
from seqloom.data.prepare import prepare
from seqloom.data.prepared import HEADER, PrepareConfig, PreparedData
from seqloom.errors import DataError
from seqloom.files import Source

TextSource = Source | PreparedData | Iterable[str] | Iterable[Text]
"""A file, "NAME:SPLIT", a prepared directory, or texts."""


@contextmanager
def working_folder(place: Path | None) -> Iterator[Path]:
    """A folder for prepared data: kept beside the checkpoints until the run ends, or temporary."""
    if place is None:
        with tempfile.TemporaryDirectory(prefix="seqloom-") as temporary:
            yield Path(temporary)
        return
    folder = place / "data"
    folder.mkdir(exist_ok=True)
    yield folder
    shutil.rmtree(folder)  # only after the block ended well: a run that resumes needs it


def prepared_text(
    source: TextSource,
    out: Path,
    config: PrepareConfig | None = None,
    *,
    like: PreparedData | None = None,
) -> PreparedData:
    """Return texts as prepared data under `out`; what an interrupted run prepared is used again."""
    if isinstance(source, PreparedData):
        return _checked(source, like)
    if isinstance(source, (str, PathLike)) and (Path(fspath(source)) / HEADER).is_file():
        return _checked(PreparedData.open(source), like)
    if out.is_dir():
        return PreparedData.open(out)
    return prepare(text_examples(source), out, config, like=like)


def text_examples(source: Any, names: FieldNames | None = None) -> Iterable[Text]:
    """Return the texts of a file, of a named data set, or of an iterable, as examples."""
    if isinstance(source, (str, PathLike)):
        return read_input(source, "text", names=names)
    return _from_iterable(source)


def _from_iterable(source: Iterable[Any]) -> Iterator[Text]:
    for number, item in enumerate(source):
        if isinstance(item, str):
            yield Text(item)
        elif isinstance(item, Text):
            yield item
        else:
            raise DataError(f"text {number} must be a string or a Text, got {item!r}")


def _checked(data: PreparedData, like: PreparedData | None) -> PreparedData:
    if data.kind != "text":
        raise DataError(f"a language model needs prepared text, got kind {data.kind!r}")
    if like is not None and data.vocabularies["words"] != like.vocabularies["words"]:
        raise DataError(
            "validation data must be prepared with the vocabulary of the training data (--like), "
            f"got {data.vocabularies['words']!r} and {like.vocabularies['words']!r}"
        )
    return data
