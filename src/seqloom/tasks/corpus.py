"""What `fit` may be given, brought to prepared data."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.config import differences, from_dict, to_dict
from seqloom.data.examples import Text
from seqloom.data.inputs import FieldNames, read_input
from seqloom.data.prepare import prepare
from seqloom.data.prepared import HEADER, PrepareConfig, PreparedData
from seqloom.errors import ConfigError, DataError, InputError
from seqloom.files import Source
from seqloom.text.sentences import split_sentences
from seqloom.text.vocabulary import Vocabulary

OF_TEXTS, OF_IDS = "texts ", "ids "  # what a digest is of
AT_ONCE = 1 << 22  # ids whose digest is taken at once


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
    asked: Mapping[str, Any] | None = None,
) -> PreparedData:
    """Return texts as prepared data under `out`; what an interrupted run prepared is used again.

    A digest of what was read goes with the data, and in a file beside `out`.

    Args:
        source: The texts, or prepared data, which is returned as it is.
        out: A directory, which holds the data of an interrupted run or does not exist.
        config: How text becomes numbers.
        like: Prepared data whose settings and vocabulary to use.
        asked: What of the settings the user chose; prepared data must have been made with it.

    Raises:
        ConfigError: If a run was begun with another text or other settings.
    """
    given = already_prepared(source, None if like is None else like.vocabularies["words"])
    if given is not None:
        _check_asked(given, asked or {})
        given.content = _digest_of_ids(given)
        _check_same_text(source, out, given.content)
        return given
    if not out.is_dir():
        note = _note_of(out)
        if note.exists() and note.read_text(encoding="utf-8").startswith(OF_IDS):
            _check_same_text(source, out, OF_TEXTS)  # begun with prepared data
        data = prepare(_noted(text_examples(source), note), out, config, like=like)
        data.content = note.read_text(encoding="utf-8")
        return data
    data = PreparedData.open(out)
    if config is not None:
        changed = list(differences(to_dict(data.header.config), to_dict(config)))
        if changed:
            raise ConfigError(
                f"a run resumes with the settings it began with, but {'; '.join(changed)}"
            )
    data.content = _digest_of_texts(text_examples(source))
    _check_same_text(source, out, data.content)
    return data


def _check_asked(data: PreparedData, asked: Mapping[str, Any]) -> None:
    """Refuse settings that prepared data was not made with."""
    made, wished = to_dict(data.header.config), to_dict(from_dict(PrepareConfig, asked))
    changed = list(differences(_chosen(made, asked), _chosen(wished, asked)))
    if changed:
        raise ConfigError(
            f"prepared data keeps the settings it was made with, but {'; '.join(changed)}; leave "
            "them out, or prepare the text anew"
        )


def _chosen(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The part of nested settings that another names."""
    return {
        name: _chosen(settings[name], value) if isinstance(value, Mapping) else settings[name]
        for name, value in asked.items()
    }


def _note_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.content")


def _noted(examples: Iterable[Text], note: Path) -> Iterator[Text]:
    """The same examples; when all were read, their digest is written down."""
    digest = _Digest()
    for example in examples:
        digest.add(example.text)
        yield example
    note.write_text(str(digest), encoding="utf-8")


def _check_same_text(source: TextSource, out: Path, content: str) -> None:
    """Refuse another text than a run was begun with; without a note, this one is noted."""
    note = _note_of(out)
    if not note.exists():
        note.write_text(content, encoding="utf-8")
    elif note.read_text(encoding="utf-8") != content:
        where = f": {source}" if isinstance(source, (str, PathLike, TextSources)) else ""
        raise ConfigError(
            f"a run resumes with the text it began with, got another one as {out.name}{where}; "
            "give the same, or begin a run in a new directory"
        )


class _Digest:
    """A digest of texts one after the other."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, text: str) -> None:
        content = text.encode("utf-8", "surrogatepass")
        self._sum.update(len(content).to_bytes(8, "little") + content)

    def __str__(self) -> str:
        return f"{OF_TEXTS}{self._sum.hexdigest()}"


def _digest_of_texts(examples: Iterable[Text]) -> str:
    digest = _Digest()
    for example in examples:
        digest.add(example.text)
    return str(digest)


def _digest_of_ids(data: PreparedData) -> str:
    ids, found = data.data.sequences["ids"], hashlib.sha256()
    for column in (ids.offsets, ids.flat):
        for begin in range(0, len(column), AT_ONCE):
            found.update(np.ascontiguousarray(column[begin : begin + AT_ONCE]).data)
    return f"{OF_IDS}{found.hexdigest()}"


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
    if not isinstance(source, Iterable):
        raise InputError(f"texts must be a file, NAME:SPLIT or a list, got {source!r}")
    return _from_iterable(source)


def _from_iterable(source: Iterable[Any]) -> Iterator[Text]:
    for number, item in enumerate(source):
        if isinstance(item, str):
            yield Text(item)
        elif isinstance(item, Text):
            yield item
        else:
            raise DataError(f"text {number} must be a string or a Text, got {item!r}")
