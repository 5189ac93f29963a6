"""Sentences with two marked entities and the relation between them (SemEval-2010 Task 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import fspath

from seqloom.data.blocks import Block, read_blocks
from seqloom.data.examples import Relation
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.errors import DataError
from seqloom.files import Source

COMMENT = "Comment"
_SENTENCE = re.compile(r"[ \t]*([0-9]+)\t(.*)")
_MARKER = re.compile(r"<(/?)e([12])>")


def read_relations(path: Source, *, on_error: OnError = "raise") -> Records[Relation]:
    """Read a file of SemEval-2010 Task 8.

    A record is three lines (the last may be absent) and a blank one:

        1<TAB>"The <e1>child</e1> was wrapped into the <e2>cradle</e2>."
        Other
        Comment: any text

    The markers are taken out; `first` and `second` are the spans of e1 and e2 in the text without
    them, as (start, end).

    Args:
        path: The file, compressed or not.
        on_error: "raise" at the first malformed record, or "skip" and count.

    Examples:
        >>> relation = next(iter(read_relations("TRAIN_FILE.TXT")))  # doctest: +SKIP
        >>> relation.label, relation.text[slice(*relation.first)]  # doctest: +SKIP
        ('Component-Whole(e2,e1)', 'configuration')
    """

    def read(problems: Problems) -> Iterator[Relation]:
        for block in read_blocks(path, problems):
            try:
                relation = _relation(path, block)
            except DataError as problem:
                problems.add(problem)
            else:
                yield relation

    return Records(read, fspath(path), on_error)


def _relation(path: Source, block: Block) -> Relation:
    number, line = block[0]
    match = _SENTENCE.fullmatch(line.rstrip())
    if match is None:
        raise DataError(f"must be a number, a tab and a sentence, got {shown(line)}", path, number)
    label = block[1][1].strip() if len(block) > 1 else ""
    if not label or label.startswith(COMMENT) or _SENTENCE.match(label):
        raise DataError(
            f"a sentence must be followed by its label, got {shown(label)} after {match[1]}",
            path,
            number + 1,
        )
    for place, (extra, text) in enumerate(block[2:]):
        if place or not text.lstrip().startswith(COMMENT):
            raise DataError(
                f"a label must be followed by a comment at most and a blank line, "
                f"got {shown(text)}",
                path,
                extra,
            )
    sentence = match[2]
    if len(sentence) > 1 and sentence[0] == sentence[-1] == '"':
        sentence = sentence[1:-1]
    return _without_markers(path, number, sentence, label, match[1])


def _without_markers(path: Source, line: int, sentence: str, label: str, name: str) -> Relation:
    markers = list(_MARKER.finditer(sentence))
    if len(markers) != 4 or len({marker[0] for marker in markers}) != 4:
        found = " ".join(marker[0] for marker in markers) or "none"
        raise DataError(
            f"must have each of <e1> </e1> <e2> </e2> once, got {found} in {shown(sentence)}",
            path,
            line,
        )
    for opening, closing in (markers[:2], markers[2:]):
        if opening[1] or not closing[1] or opening[2] != closing[2]:
            order = " ".join(marker[0] for marker in markers)
            raise DataError(
                f"one entity must end before the other begins, got {order} in {shown(sentence)}",
                path,
                line,
            )
        if not sentence[opening.end() : closing.start()].strip():
            raise DataError(
                f"an entity must not be empty, got {opening[0]}{closing[0]} in {shown(sentence)}",
                path,
                line,
            )
    pieces: list[str] = []
    spans: dict[str, list[int]] = {"1": [], "2": []}
    end = length = 0
    for marker in markers:
        pieces.append(sentence[end : marker.start()])
        end = marker.end()
        length += len(pieces[-1])
        spans[marker[2]].append(length)
    text = "".join([*pieces, sentence[end:]])
    (first, first_end), (second, second_end) = spans["1"], spans["2"]
    return Relation(text, (first, first_end), (second, second_end), label, name)
