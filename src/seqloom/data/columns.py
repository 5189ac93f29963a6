"""Sentences written one word a line: CoNLL columns and CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import fspath
from typing import Literal

from seqloom.data.blocks import Block, read_blocks
from seqloom.data.examples import TaggedTokens
from seqloom.data.lines import BLANKS
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.errors import ConfigError, DataError, one_of
from seqloom.files import Source

DOCUMENT_START = "-DOCSTART-"
CONLLU_COLUMNS = 10
CONLLU_TAGS = {"upos": 3, "xpos": 4}
_FORM = 1
_CONLLU_ID = re.compile(r"([0-9]{1,9})(?:([-.])([0-9]{1,9}))?")


def read_tagged(
    path: Source,
    *,
    token: int = 0,
    tag: int = -1,
    separator: str | None = None,
    drop_digit: bool = False,
    on_error: OnError = "raise",
) -> Records[TaggedTokens]:
    """Read sentences in CoNLL columns: one word a line, a blank line after each sentence.

    Lines that begin with `-DOCSTART-` are left out. Every line must have as many columns as the
    first; a sentence with one that has not is malformed as a whole.

    Args:
        path: The file, compressed or not.
        token: The column of the word, from 0; a negative one counts from the right.
        tag: The column of its tag.
        separator: What stands between columns; by default blanks and tabs, any number of them.
        drop_digit: Take the last character, which must be a digit, off each word: Weibo NER
            writes the place of a character in its word there ("口0", "腔1").
        on_error: "raise" at the first malformed sentence, or "skip" and count.

    Examples:
        >>> sentence = next(iter(read_tagged("train.txt")))  # doctest: +SKIP
        >>> sentence.tokens[:2], sentence.tags[:2]  # doctest: +SKIP
        (('Confidence', 'in'), ('B-NP', 'B-PP'))
    """
    if separator == "":
        raise ConfigError("separator must not be empty; leave it out for blanks and tabs")

    def split(line: str) -> list[str]:
        return split_columns(line) if separator is None else line.split(separator)

    def read(problems: Problems) -> Iterator[TaggedTokens]:
        first: tuple[int, int] | None = None  # the line that sets the number of columns, and it
        for block in read_blocks(path, problems):
            lines = [(number, split(line)) for number, line in block]
            lines = [line for line in lines if line[1][0] != DOCUMENT_START]
            if not lines:
                continue
            if first is None:
                first = lines[0][0], len(lines[0][1])
                _check_columns(path, first, token, tag)
            try:
                sentence = _sentence(path, lines, first, (token, tag), drop_digit)
            except DataError as problem:
                problems.add(problem)
            else:
                yield sentence

    return Records(read, fspath(path), on_error)


def split_columns(line: str) -> list[str]:
    """The columns of a line, set apart by blanks and tabs; other spaces belong to words."""
    return BLANKS.split(line.strip(" \t"))


def _check_columns(path: Source, first: tuple[int, int], token: int, tag: int) -> None:
    """The word and its tag must be in columns of their own; if not, the whole file is refused."""
    line, columns = first
    there = all(-columns <= column < columns for column in (token, tag))
    if not there or token % columns == tag % columns:
        raise DataError(
            f"must have a column for token={token} and another for tag={tag}, got {columns} in all",
            path,
            line,
        )


def _sentence(
    path: Source,
    lines: list[tuple[int, list[str]]],
    first: tuple[int, int],
    columns: tuple[int, int],
    drop_digit: bool,
) -> TaggedTokens:
    tokens, tags = [], []
    for number, fields in lines:
        if len(fields) != first[1]:
            raise DataError(
                f"must have {first[1]} columns as line {first[0]} has, got {len(fields)}: "
                f"{shown(fields)}",
                path,
                number,
            )
        token, tag = fields[columns[0]], fields[columns[1]]
        if drop_digit:
            if not (token[-1:].isascii() and token[-1:].isdigit()):
                raise DataError(f"a word must end in a digit, got {shown(token)}", path, number)
            token = token[:-1]
        if not token or not tag:
            raise DataError(f"must have a word and a tag, got {shown(fields)}", path, number)
        tokens.append(token)
        tags.append(tag)
    return TaggedTokens(tuple(tokens), tuple(tags), lines[0][0])


def read_conllu(
    path: Source, *, tag: Literal["upos", "xpos"] = "upos", on_error: OnError = "raise"
) -> Records[TaggedTokens]:
    """Read the words and tags of a Universal Dependencies file (CoNLL-U).

    The words are the syntactic ones: "don't", written as the range 2-3, gives "do" and "n't".
    Empty nodes (8.1) are no words and are left out.

    Args:
        path: The file, compressed or not.
        tag: "upos" for the universal part of speech, "xpos" for the treebank's own.
        on_error: "raise" at the first malformed sentence, or "skip" and count.

    Examples:
        >>> sentences = read_conllu("en_ewt-ud-dev.conllu", tag="xpos")  # doctest: +SKIP
    """
    if tag not in CONLLU_TAGS:
        raise ConfigError(one_of("tag", tag, CONLLU_TAGS))

    def read(problems: Problems) -> Iterator[TaggedTokens]:
        for block in read_blocks(path, problems):
            lines = [line for line in block if not line[1].startswith("#")]
            if not lines:
                continue
            try:
                sentence = _conllu_sentence(path, lines, tag)
            except DataError as problem:
                problems.add(problem)
            else:
                yield sentence

    return Records(read, fspath(path), on_error)


def _conllu_sentence(path: Source, lines: Block, tag: str) -> TaggedTokens:
    tokens: list[str] = []
    tags: list[str] = []
    range_end = empty_nodes = 0
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) != CONLLU_COLUMNS:
            raise DataError(
                f"must have {CONLLU_COLUMNS} columns with tabs between, got {len(fields)}: "
                f"{shown(line)}",
                path,
                number,
            )
        match = _CONLLU_ID.fullmatch(fields[0])
        head, mark, tail = match.groups("") if match else ("0", "", "")
        if not mark and int(head) == len(tokens) + 1:
            word, value = fields[_FORM], fields[CONLLU_TAGS[tag]]
            if not word or value in ("", "_"):
                raise DataError(
                    f"{shown(word)} must have a tag in {tag}, got {value!r}", path, number
                )
            tokens.append(word)
            tags.append(value)
            empty_nodes = 0
        elif mark == "-" and range_end < int(head) == len(tokens) + 1 < int(tail):
            range_end = int(tail)
        elif mark == "." and int(head) == len(tokens) and int(tail) == empty_nodes + 1:
            empty_nodes += 1
        else:
            raise DataError(
                f"the id must be {len(tokens) + 1}, or a range or empty node that fits there, "
                f"got {shown(fields[0])}",
                path,
                number,
            )
    if not tokens or range_end > len(tokens):
        raise DataError(
            f"the sentence must hold {range_end or 1} words or more, got {len(tokens)}",
            path,
            lines[0][0],
        )
    return TaggedTokens(tuple(tokens), tuple(tags))
