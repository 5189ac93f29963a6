"""Making prepared data: examples in, numbered columns on disk out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from seqloom.config import to_dict
from seqloom.data.examples import LabeledText, TaggedTokens, Text, TextPair
from seqloom.data.prepared import (
    FORMAT,
    HEADER,
    SUBWORD,
    Column,
    Header,
    Kind,
    PrepareConfig,
    PreparedData,
    map_items,
)
from seqloom.data.problems import shown
from seqloom.errors import ConfigError, DataError
from seqloom.text.pipeline import TextPipeline
from seqloom.text.subword import SubwordTokenizer
from seqloom.text.vocabulary import Specials, Vocabulary

Example = Text | LabeledText | TaggedTokens | TextPair
Progress = Callable[[int], None]

BLOCK = 1 << 16  # items renumbered at once
KINDS: dict[type, Kind] = {
    Text: "text",
    LabeledText: "labeled",
    TaggedTokens: "tagged",
    TextPair: "pairs",
}
NO_SPECIALS = Specials(pad="", unk="", bos="", eos="")
TAG_SPECIALS = Specials(unk="", bos="", eos="")


def prepare(
    examples: Iterable[Example],
    out: str | PathLike[str],
    config: PrepareConfig | None = None,
    *,
    like: PreparedData | None = None,
    subword: SubwordTokenizer | None = None,
    progress: Progress | None = None,
) -> PreparedData:
    """Tokenize and number examples once, and store them under `out`.

    Args:
        examples: Examples of one kind; read once, never held.
        out: A directory that does not exist yet; it appears only when all is written.
        config: How examples become numbers.
        like: Prepared data whose settings and vocabularies to use: prepare the training data first,
            then validation and test data like it.
        subword: The trained pieces, for `unit="subword"`.
        progress: Called with the number of examples done, now and then.

    Returns:
        The prepared data, mapped from disk.
    """
    if like is not None and (config is not None or subword is not None):
        raise ConfigError("give either config or like: like brings its own settings")
    config = like.header.config if like else config or PrepareConfig()
    pipeline = like.pipeline if like else TextPipeline(config.text, subword=subword)
    known = dict(like.vocabularies) if like else {}
    if subword is not None:
        known["words"] = known["source"] = known["target"] = subword_vocabulary(subword)
    with _Folder(Path(out)) as folder:
        table = _TableWriter(folder, config, known)
        try:
            for example in examples:
                table.add(example, pipeline)
                if progress and table.count % 1000 == 0:
                    progress(table.count)
        finally:
            table.close()
        header = table.finish()
        if like is not None and header.kind != like.kind:
            raise DataError(
                f"examples must be of kind {like.kind!r} as before, got {header.kind!r}"
            )
        (folder / HEADER).write_text(json.dumps(to_dict(header), indent=1), encoding="utf-8")
        if pipeline.subword is not None:
            pipeline.subword.save(folder / SUBWORD)
    return PreparedData.open(out)


def subword_vocabulary(subword: SubwordTokenizer) -> Vocabulary:
    """The pieces of a tokenizer trained with our specials as a vocabulary with the same ids."""
    names = Specials().names()
    pieces = subword.pieces
    if pieces[: len(names)] != names:
        raise ConfigError(
            f"a subword tokenizer for prepared data must be trained with specials={names}, "
            f"got one that begins with {pieces[: len(names)]}"
        )
    return Vocabulary(pieces[len(names) :])


def _fields(kind: Kind, config: PrepareConfig) -> dict[str, tuple[str, str]]:
    """Column -> (vocabulary, end word) of a kind of examples."""
    end = Specials().eos if config.ends else ""
    if kind == "pairs":
        shared = config.shared
        return {
            "source": ("words" if shared else "source", ""),
            "target": ("words" if shared else "target", end),
        }
    if kind == "tagged":
        return {"tokens": ("words", ""), "tags": ("tags", "")}
    if kind == "labeled":
        return {"ids": ("words", ""), "labels": ("labels", "")}
    return {"ids": ("words", end)}


def _split(example: Example, pipeline: TextPipeline) -> dict[str, Sequence[str]]:
    if isinstance(example, Text):
        return {"ids": pipeline.words(example.text)}
    if isinstance(example, LabeledText):
        return {"ids": pipeline.words(example.text), "labels": example.labels}
    if isinstance(example, TaggedTokens):
        if len(example.tokens) != len(example.tags):
            raise DataError(
                f"every token must have a tag, got {len(example.tokens)} tokens and "
                f"{len(example.tags)} tags in {shown(example)}"
            )
        normalize = pipeline.config.normalizer
        return {"tokens": [normalize(t).text for t in example.tokens], "tags": example.tags}
    return {"source": pipeline.words(example.source), "target": pipeline.words(example.target)}


class _TableWriter:
    """Streams examples of one kind to the columns of that kind."""

    def __init__(
        self, folder: Path, config: PrepareConfig, known: Mapping[str, Vocabulary]
    ) -> None:
        self.folder, self.config, self.known = folder, config, known
        self.kind: Kind | None = None
        self.count = 0
        self._columns: dict[str, _ColumnWriter] = {}

    def add(self, example: Example, pipeline: TextPipeline) -> None:
        kind = KINDS.get(type(example))
        if kind is None or self.kind not in (None, kind):
            wanted = self.kind or ", ".join(KINDS.values())
            raise DataError(f"examples must be of kind {wanted}, got {shown(example)}")
        if self.kind is None:
            if kind == "tagged" and pipeline.subword is not None:
                raise ConfigError("tagged tokens are words already, got unit='subword'")
            self.kind = kind
            for name, (vocabulary, end) in _fields(kind, self.config).items():
                known = self.known.get(vocabulary)
                self._columns[name] = _ColumnWriter(self.folder, name, known, end)
        for name, words in _split(example, pipeline).items():
            self._columns[name].add(words)
        self.count += 1

    def close(self) -> None:
        for column in self._columns.values():
            column.close()

    def finish(self) -> Header:
        """Build the vocabularies, number the words by them and describe it all."""
        if self.kind is None:
            raise DataError("there must be at least one example to prepare, got none")
        fields = _fields(self.kind, self.config)
        vocabularies: dict[str, Vocabulary] = {}
        for name in sorted({vocabulary for vocabulary, _ in fields.values()}):
            own = [self._columns[column] for column, (v, _) in fields.items() if v == name]
            vocabularies[name] = self.known.get(name) or _build(name, own, self.config)
            vocabularies[name].save(self.folder / f"{name}.vocabulary.json")
        columns = {}
        for name, writer in self._columns.items():
            vocabulary = fields[name][0]
            writer.renumber(vocabularies[vocabulary])
            columns[name] = Column(dtype="int32", items=writer.items, vocabulary=vocabulary)
        if self.kind == "labeled":
            width = len(vocabularies["labels"])
            columns["labels"] = _labels_as_rows(self.folder, self.count, columns["labels"], width)
        return Header(
            format=FORMAT,
            kind=self.kind,
            examples=self.count,
            columns=columns,
            vocabularies={name: v.hash for name, v in vocabularies.items()},
            config=self.config,
        )


class _ColumnWriter:
    """Streams one field to disk, numbering words as they come; renumbered at the end."""

    def __init__(self, folder: Path, name: str, vocabulary: Vocabulary | None, end: str) -> None:
        self.folder, self.name, self.vocabulary, self._end = folder, name, vocabulary, end
        self.counts: list[int] = []
        self._numbers: dict[str, int] = {}
        self._items: IO[bytes] = (folder / f"{name}.items").open("wb")
        self._offsets: IO[bytes] = (folder / f"{name}.offsets").open("wb")
        self._offsets.write(np.int64(0).tobytes())
        self.items = 0

    def add(self, words: Sequence[str]) -> None:
        if self._end:
            words = [*words, self._end]
        if self.vocabulary is not None:
            ids = self.vocabulary.encode(words)
        else:
            ids = np.array([self._number(word) for word in words], np.int32)
        self._items.write(ids.tobytes())
        self.items += len(ids)
        self._offsets.write(np.int64(self.items).tobytes())

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self.counts)
            self.counts.append(0)
        self.counts[number] += 1
        return number

    def word_counts(self) -> dict[str, int]:
        return {word: self.counts[number] for word, number in self._numbers.items()}

    def close(self) -> None:
        self._items.close()
        self._offsets.close()

    def renumber(self, vocabulary: Vocabulary) -> None:
        """Turn the numbers given on the way into the ids of the finished vocabulary, in place."""
        if self.vocabulary is not None or not self.items:
            return
        ids = vocabulary.encode(self._numbers)  # a dict keeps the order of first sight
        stored = np.memmap(self.folder / f"{self.name}.items", np.int32, mode="r+")
        for start in range(0, len(stored), BLOCK):
            stored[start : start + BLOCK] = ids[stored[start : start + BLOCK]]
        stored.flush()


class _Folder:
    """A directory that appears complete or not at all."""

    def __init__(self, target: Path) -> None:
        if target.exists():
            raise DataError("exists already; name a new directory or remove it", target)
        self.target, self.working = target, target.with_name(f".{target.name}.partial")

    def __enter__(self) -> Path:
        try:
            shutil.rmtree(self.working, ignore_errors=True)
            self.working.mkdir(parents=True)
        except OSError as error:
            raise DataError(f"cannot be written ({error.strerror})", self.target) from None
        return self.working

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self.working.rename(self.target)
            except OSError as failure:
                error = failure
        if error is not None:
            shutil.rmtree(self.working, ignore_errors=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise DataError(f"cannot be written ({reason})", self.target) from error


def _build(name: str, writers: Sequence[_ColumnWriter], config: PrepareConfig) -> Vocabulary:
    counts: dict[str, int] = {}
    for writer in writers:
        for word, n in writer.word_counts().items():
            counts[word] = counts.get(word, 0) + n
    if name in ("labels", "tags"):
        specials = NO_SPECIALS if name == "labels" else TAG_SPECIALS
        words = sorted(counts)
        return Vocabulary(
            words, [counts[w] for w in words], specials=specials, out_of_vocabulary="error"
        )
    return Vocabulary.build(counts, min_count=config.min_count, max_size=config.max_size)


def _labels_as_rows(folder: Path, count: int, column: Column, width: int) -> Column:
    """Store the labels as (N, classes) of 0 and 1: one label or several look the same."""
    flat = map_items(folder / "labels.items", column.dtype, column.items)
    offsets = map_items(folder / "labels.offsets", "int64", count + 1)
    rows = np.zeros((count, width), np.uint8)
    rows[np.repeat(np.arange(count), np.diff(offsets)), flat] = 1
    del flat, offsets
    (folder / "labels.items").write_bytes(rows.tobytes())
    (folder / "labels.offsets").unlink()
    return Column(dtype="uint8", items=rows.size, vocabulary="labels", ragged=False)
