"""What `fit` may be given, brought to prepared data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
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
from seqloom.text.sentences import split_sentences
from seqloom.text.vocabulary import Vocabulary


class TextSources:
    """Several sources one after the other, read anew each time.

    Args:
        sources: Files, or "NAME:SPLIT" of named data sets.
        sentences: Whether their texts are cut into sentences, each of which is a text then.
        language: Of the sentences: "en", "zh" or "auto".
    """

    def __init__(
        self, sources: Sequence[Source], *, sentences: bool = False, language: str = "auto"
    ) -> None:
        self.sources, self.sentences, self.language = tuple(sources), sentences, language

    def __iter__(self) -> Iterator[Text]:
        for source in self.sources:
            for example in text_examples(source):
                if not self.sentences:
                    yield example
                    continue
                for sentence in split_sentences(example.text, self.language):
                    yield Text(sentence.text)

    def __str__(self) -> str:
        return ", ".join(fspath(source) for source in self.sources)


TextSource = Source | PreparedData | TextSources | Iterable[str] | Iterable[Text]
"""A file, "NAME:SPLIT", a prepared directory, or texts."""


@contextmanager
def working_folder(place: Path | None, *, is_main: bool = True) -> Iterator[Path]:
    """A folder for prepared data: kept beside the checkpoints until the run ends, or temporary."""
    if place is None:
        with tempfile.TemporaryDirectory(prefix="seqloom-") as temporary:
            yield Path(temporary)
        return
    folder = place / "data"
    if is_main:
        folder.mkdir(exist_ok=True)
    yield folder
    if is_main:
        shutil.rmtree(folder)  # only after the block ended well: a run that resumes needs it


def prepared_text(
    source: TextSource,
    out: Path,
    config: PrepareConfig | None = None,
    *,
    like: PreparedData | None = None,
) -> PreparedData:
    """Return texts as prepared data under `out`; what an interrupted run prepared is used again."""
    given = already_prepared(source, None if like is None else like.vocabularies["words"])
    if given is not None:
        return given
    if out.is_dir():
        return PreparedData.open(out)
    return prepare(text_examples(source), out, config, like=like)


def already_prepared(source: Any, vocabulary: Vocabulary | None) -> PreparedData | None:
    """Return a source that is prepared text already, or None.

    Raises:
        DataError: If it is not text, or not numbered by the given vocabulary.
    """
    if isinstance(source, (str, PathLike)) and (Path(fspath(source)) / HEADER).is_file():
        source = PreparedData.open(source)
    if not isinstance(source, PreparedData):
        return None
    if source.kind != "text":
        raise DataError(f"a language model needs prepared text, got kind {source.kind!r}")
    own = source.vocabularies["words"]
    if vocabulary is not None and own != vocabulary:
        raise DataError(
            "data must be prepared with the vocabulary of the training data (--like), "
            f"got {own!r} and not {vocabulary!r}"
        )
    return source


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
