"""Readers for files that only one data set, or one family of them, writes that way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from os import fspath
from pathlib import PurePosixPath
from typing import TypeVar

from seqloom.data.datasets.archives import Member, iter_members
from seqloom.data.examples import LabeledText, TaggedTokens, Text, TextPair
from seqloom.data.fields import read_labeled
from seqloom.data.lines import read_parallel, read_text
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.rows import Row, read_rows
from seqloom.data.sources import read_lines
from seqloom.data.trees import read_trees
from seqloom.errors import DataError
from seqloom.files import Source, open_bytes
from seqloom.text import TextConfig, TextPipeline
from seqloom.text.sentences import split_sentences

In = TypeVar("In")
Out = TypeVar("Out")

_WIKITEXT_JOINT = re.compile(r" @([-.,])@ ")
UNKNOWN = "<unk>"  # how WikiText writes a rare word
_BROWN_TEXT = re.compile(r"c[a-r]\d\d")
_PENN = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-"}
_PKU_ENTITY_END = re.compile(r"\][A-Za-z]+$")


def read_every_text(path: Source, *, on_error: OnError = "raise") -> Records[Text]:
    """Read a text a line, blank lines too: published perplexities count their line ends."""

    def read(problems: Problems) -> Iterator[Text]:
        for _, line in read_lines(path, problems):
            yield Text(line)

    return Records(read, fspath(path), on_error)


def read_label_first(path: Source, *, on_error: OnError = "raise") -> Records[LabeledText]:
    """Read lines of a label, a blank and a text."""

    def read(problems: Problems) -> Iterator[LabeledText]:
        for number, line in read_lines(path, problems):
            label, _, text = line.partition(" ")
            if label and text:
                yield LabeledText(text, (label,))
            else:
                problems.report(
                    f"must be a label, a blank and a text, got {shown(line)}", path, number
                )

    return Records(read, fspath(path), on_error)


def read_tree_texts(
    path: Source, *, phrases: bool = False, on_error: OnError = "raise"
) -> Records[LabeledText]:
    """Read the sentences of the sentiment treebank as negative ("0") or positive ("1").

    Classes 0 and 1 of a tree are negative, 3 and 4 positive; those of class 2 are left out.

    Args:
        path: The file of trees.
        phrases: Whether to read every phrase of a tree, each with a label once, as Kim (2014,
            section 3) trains.
        on_error: "raise" at the first malformed tree, or "skip" and count.
    """
    trees = read_trees(path, on_error=on_error)

    def read(problems: Problems) -> Iterator[LabeledText]:
        seen = set()
        for tree in trees:
            for node in tree.nodes() if phrases else [tree]:
                if node.label not in "0134":
                    continue
                example = LabeledText(" ".join(node.leaves()), ("0" if node.label < "2" else "1",))
                if not phrases or example not in seen:
                    seen.add(example)
                    yield example
        problems.count += trees.skipped
        problems.first.extend(trees.problems)

    return Records(read, fspath(path), on_error)


def read_review_sentences(
    path: Source, *, shortest: int, longest: int, on_error: OnError = "raise"
) -> Records[LabeledText]:
    """Read the different sentences of reviews as the treebank writes them.

    Words stand between blanks, brackets as "-LRB-", quotation marks as backquotes and apostrophes.

    Args:
        path: JSON lines of reviews.
        shortest: Words of a sentence, at least.
        longest: At most.
        on_error: "raise" at the first malformed review, or "skip" and count.

    Returns:
        Each sentence once, with the label of the first review that has it.
    """
    reviews = read_labeled(path, on_error=on_error)

    def read(problems: Problems) -> Iterator[LabeledText]:
        pipeline, seen = TextPipeline(TextConfig(language="en")), set()
        for review in reviews:
            for sentence in split_sentences(review.text.replace("<br />", "\n"), "en"):
                words = pipeline.words(sentence.text)
                text = " ".join(as_in_penn(words))
                if shortest <= len(words) <= longest and text not in seen:
                    seen.add(text)
                    yield LabeledText(text, review.labels)
        problems.count += reviews.skipped
        problems.first.extend(reviews.problems)

    return Records(read, fspath(path), on_error)


def as_in_penn(words: Sequence[str]) -> Iterator[str]:
    """Brackets and quotation marks as the Penn Treebank writes them.

    >>> list(as_in_penn(["(", '"', "good", '"', ")"]))
    ['-LRB-', '``', 'good', "''", '-RRB-']
    """
    is_open = False
    for word in words:
        if word == '"':
            is_open = not is_open
            yield "``" if is_open else "''"
        else:
            yield _PENN.get(word, word)


def read_label_by_file(
    *paths: Source,
    labels: Sequence[str],
    encoding: str = "utf-8",
    on_error: OnError = "raise",
) -> Records[LabeledText]:
    """Read a text a line from several files, each with its label."""

    def read(problems: Problems) -> Iterator[LabeledText]:
        for path, label in zip(paths, labels, strict=True):
            with open_bytes(path) as stream:
                for number, line in enumerate(stream, start=1):
                    try:
                        text = line.decode(encoding).strip()
                    except UnicodeDecodeError as error:
                        problems.report(f"is not {encoding} ({error.reason})", path, number)
                        continue
                    if text:
                        yield LabeledText(text, (label,))

    return Records(read, fspath(paths[0]), on_error)


def read_label_lines(
    text_path: Source, label_path: Source, *, on_error: OnError = "raise"
) -> Records[LabeledText]:
    """Read texts from one file and their labels from the lines of another."""
    pairs = read_parallel(text_path, label_path, on_error=on_error)
    return made_of(pairs, lambda pair: LabeledText(pair.source, (pair.target,)))


def read_numbered_labels(
    path: Source, names_path: Source, *, on_error: OnError = "raise"
) -> Records[LabeledText]:
    """Read lines of a text, a tab and a number: the line of the label in the file of names."""

    def read(problems: Problems) -> Iterator[LabeledText]:
        names = [name.strip() for _, name in read_lines(names_path)]
        for number, line in read_lines(path, problems):
            text, _, label = line.rpartition("\t")
            if text and label.isdecimal() and int(label) < len(names):
                yield LabeledText(text, (names[int(label)],))
            else:
                problems.report(
                    f"must be a text, a tab and a number below {len(names)}, got {shown(line)}",
                    path,
                    number,
                )

    return Records(read, fspath(path), on_error)


def read_first_target(path: Source, *, on_error: OnError = "raise") -> Records[TextPair]:
    """Read JSON lines with lists of sentences, `source` and `target`: all of one, first of two."""

    def make(row: Row) -> TextPair:
        source, target = _strings(row, "source"), _strings(row, "target")
        if not source or not target:
            raise DataError("source and target must hold a sentence", row.path, row.line)
        return TextPair(" ".join(source), target[0])

    return made_of(read_rows(path, format="jsonl", on_error=on_error), make)


def read_poems(path: Source, *, on_error: OnError = "raise") -> Records[Text]:
    """Read JSON lines with `paragraphs`: a text a poem, a line a verse."""
    rows = read_rows(path, format="jsonl", on_error=on_error)
    return made_of(rows, lambda row: Text("\n".join(_strings(row, "paragraphs"))))


def read_wikitext(
    path: Source, *, known: bool = False, on_error: OnError = "raise"
) -> Records[Text]:
    """Read WikiText as text: `state @-@ of @-@ the @-@ art` becomes `state-of-the-art`.

    Args:
        path: The file.
        known: Whether to give sentences, those with an unknown word left out.
        on_error: "raise" at the first malformed line, or "skip" and count.
    """

    def make(line: Text) -> Text:
        return Text(_WIKITEXT_JOINT.sub(r"\1", line.text).strip())

    texts = made_of(read_text(path, strip=True, on_error=on_error), make)
    return _known_sentences(texts) if known else texts


def _known_sentences(texts: Records[Text]) -> Records[Text]:
    def read(problems: Problems) -> Iterator[Text]:
        for text in texts:
            for sentence in split_sentences(text.text, "en"):
                if UNKNOWN not in sentence.text:
                    yield Text(sentence.text)
        problems.count, problems.mended = texts.skipped, texts.mended
        problems.first.extend(texts.problems)

    return Records(read, texts.name)


def read_brown(path: Source, *, on_error: OnError = "raise") -> Records[TaggedTokens]:
    """Read the Brown Corpus: an archive of texts ca01 to cr09, a sentence of word/tag a line."""

    def read(problems: Problems) -> Iterator[TaggedTokens]:
        for member in iter_members(path):
            name = PurePosixPath(member.name).name
            if not _BROWN_TEXT.fullmatch(name):
                continue
            for number, line in _member_lines(member, path):
                if line.strip():
                    place = f"{fspath(path)}/{name}"
                    sentence = _tagged(line.split(), place, number, problems)
                    if sentence is not None:
                        yield sentence

    return Records(read, fspath(path), on_error)


def read_pku(path: Source, *, on_error: OnError = "raise") -> Records[TaggedTokens]:
    """Read lines of word/tag with brackets around compound entities: `[中央/n 电视台/n]nt`.

    The brackets and the entity's tag are taken off; the words keep their own tags.
    """

    def read(problems: Problems) -> Iterator[TaggedTokens]:
        for number, line in read_lines(path, problems):
            if line.strip():
                pieces = [_without_brackets(piece) for piece in line.split()]
                sentence = _tagged(pieces, path, number, problems)
                if sentence is not None:
                    yield sentence

    return Records(read, fspath(path), on_error)


def read_lines_by_member(path: Source, *, on_error: OnError = "raise") -> Records[LabeledText]:
    """Read an archive of .txt files: each line a text, labeled with the name of its file."""

    def read(_: Problems) -> Iterator[LabeledText]:
        for member in iter_members(path):
            label = PurePosixPath(member.name).stem
            for _number, line in _member_lines(member, path):
                if line.strip():
                    yield LabeledText(line.strip(), (label,))

    return Records(read, fspath(path), on_error)


def read_text_by_member(path: Source, *, on_error: OnError = "raise") -> Records[LabeledText]:
    """Read an archive of .txt files: each a text, labeled with the name of its file."""

    def read(_: Problems) -> Iterator[LabeledText]:
        for member in iter_members(path):
            lines = [line for _number, line in _member_lines(member, path)]
            yield LabeledText("\n".join(lines).strip(), (PurePosixPath(member.name).stem,))

    return Records(read, fspath(path), on_error)


def read_analogies(path: Source, *, on_error: OnError = "raise") -> Records[Row]:
    """Read `a b c d` lines under `: section` lines, as rows section, a, b, c, d."""

    def read(problems: Problems) -> Iterator[Row]:
        section = ""
        for number, line in read_lines(path, problems):
            words = line.split()
            if line.startswith(":"):
                section = line[1:].strip()
            elif len(words) == 4:
                fields = dict(zip("abcd", words, strict=True))
                yield Row({"section": section, **fields}, fspath(path), number)
            elif words:
                problems.report(f"must be four words, got {shown(line)}", path, number)

    return Records(read, fspath(path), on_error)


def read_scored_pairs(path: Source, *, on_error: OnError = "raise") -> Records[Row]:
    """Read lines of two words and a number, with tabs between; lines that begin with # are left."""

    def read(problems: Problems) -> Iterator[Row]:
        for number, line in read_lines(path, problems):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                first, second, score = line.split("\t")
                fields = {"first": first, "second": second, "score": float(score)}
            except ValueError:
                problems.report(f"must be two words and a number, got {shown(line)}", path, number)
            else:
                yield Row(fields, fspath(path), number)

    return Records(read, fspath(path), on_error)


def made_of(records: Records[In], make: Callable[[In], Out]) -> Records[Out]:
    """Records made of other records, with what those skipped counted on."""

    def read(problems: Problems) -> Iterator[Out]:
        for record in records:
            try:
                made = make(record)
            except DataError as problem:
                problems.add(problem)
            else:
                yield made
        problems.count += records.skipped
        problems.mended += records.mended
        problems.first.extend(records.problems)

    return Records(read, records.name, records.on_error)


def _strings(row: Row, name: str) -> list[str]:
    value = row.fields.get(name)
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise DataError(f"{name!r} must be a list of texts, got {shown(value)}", row.path, row.line)
    return value


def _member_lines(member: Member, archive: Source) -> Iterator[tuple[int, str]]:
    try:
        text = member.read().decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{member.name} is not UTF-8 ({error})", archive) from None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        yield number, line.removesuffix("\r")


def _without_brackets(piece: str) -> str:
    """Take the signs of a compound entity off a word/tag: `[中央/n`, `电视台/n]nt`."""
    if piece.startswith("[") and not piece.startswith("[/"):
        piece = piece[1:]
    return _PKU_ENTITY_END.sub("", piece)


def _tagged(
    pieces: Sequence[str], path: Source, line: int, problems: Problems
) -> TaggedTokens | None:
    """A sentence of word/tag pieces; None if one is malformed and was reported."""
    tokens, tags = [], []
    for piece in pieces:
        token, _, tag = piece.rpartition("/")
        if not token or not tag:
            problems.report(f"must be word/tag, got {shown(piece)}", path, line)
            return None
        tokens.append(token)
        tags.append(tag)
    return TaggedTokens(tuple(tokens), tuple(tags))
