"""Bracketed trees: the Penn Treebank's, over many lines, and the sentiment treebank's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import fspath

from seqloom.data.examples import Tree
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.sources import LinesAgain, NumberedLine, read_every_line
from seqloom.files import Source

MAX_TREE_CHARACTERS = 1 << 20  # a bracket that stays open longer is taken for one never closed
MAX_DEPTH = 200  # printing, comparing and pickling a tree are recursive: stay within Python's limit

# An opening bracket with its label, a closing one, or a word. Blanks are ASCII's only: the words
# of the sentiment treebank hold no-break spaces.
_PIECE = re.compile(r"\([ \t\r\n\f\v]*[^ \t\r\n\f\v()]*|\)|[^ \t\r\n\f\v()]+")


def read_trees(
    path: Source, *, max_depth: int = MAX_DEPTH, on_error: OnError = "raise"
) -> Records[Tree]:
    """Read bracketed trees, each over one line or many, such as `(S (NP (NNP Ann)) (VP ...))`.

    The empty bracket the Penn Treebank puts around a tree is dropped. When trees are skipped,
    reading goes on at the next line that begins with a bracket.

    Args:
        path: The file, compressed or not.
        max_depth: How deep brackets may be nested.
        on_error: "raise" at the first malformed tree, or "skip" and count.

    Examples:
        >>> tree = next(iter(read_trees("dev.txt")))  # doctest: +SKIP
        >>> tree.label, tree.leaves()[:3]  # doctest: +SKIP
        ('3', ['It', "'s", 'a'])
    """

    def read(problems: Problems) -> Iterator[Tree]:
        for number, text in _tree_texts(path, max_depth, problems):
            try:
                trees = parse_trees(text, max_depth=max_depth)
            except ValueError as error:
                problems.report(f"{error}: {shown(text.strip())}", path, number)
            else:
                yield from trees

    return Records(read, fspath(path), on_error)


def parse_trees(text: str, *, max_depth: int = MAX_DEPTH) -> list[Tree]:
    """Return the trees written in a text.

    Raises:
        ValueError: If brackets do not match, a node has no label or nothing below it, or holds
            both words and nodes.

    Examples:
        >>> parse_trees("(NP (DT the) (NN cat))")[0].leaves()
        ['the', 'cat']
    """
    found: list[Tree] = []
    labels: list[str] = []
    below: list[list[Tree]] = [found]  # the finished children of each open bracket; trees first
    word: str | None = None
    for piece in _PIECE.findall(text):
        if piece[0] == "(":
            if word is not None:
                raise ValueError(
                    f"a node must hold one word or nodes, got {shown(word)} and a node"
                )
            labels.append(piece[1:].strip())
            below.append([])
            if len(labels) > max_depth:
                raise ValueError(f"brackets must not be nested deeper than {max_depth}")
        elif piece == ")" and not labels:
            raise ValueError("a bracket is closed that was never opened")
        elif not labels:
            raise ValueError(f"a tree must begin with '(', got {shown(piece)}")
        elif piece != ")":
            if word is not None or below[-1]:
                raise ValueError(f"a node must hold one word or nodes, got {shown(piece)} besides")
            word = piece
        else:
            children, label = below.pop(), labels.pop()
            below[-1].append(_node(label, children, word, top=not labels))
            word = None
    if labels:
        raise ValueError(f"{len(labels)} brackets are opened and never closed")
    return found


def _node(label: str, children: list[Tree], word: str | None, *, top: bool) -> Tree:
    if word is None and not children:
        raise ValueError(f"a node must hold a word or nodes, got none below {label!r}")
    if not label and not top:
        raise ValueError("a node within a tree must have a label, got ''")
    if not label and len(children) == 1:
        return children[0]
    return Tree(label, tuple(children), word)


def _tree_texts(path: Source, max_depth: int, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield (line it begins at, text) for each run of lines in which the brackets close."""
    lines = LinesAgain(read_every_line(path, problems))
    while True:
        taken, whole = _until_closed(lines, max_depth)
        if not taken:
            return
        number, start = taken[0]
        if whole:
            yield number, "\n".join(line for _, line in taken if line is not None)
            continue
        if start is not None and taken[-1][1] is not None:
            problems.report(f"a bracket is opened and never closed: {shown(start)}", path, number)
        lines.put_back(taken[1:])
        for number, line in lines:  # read on where the next tree seems to begin
            if line is not None and line.startswith("("):
                lines.put_back([(number, line)])
                break


def _until_closed(lines: Iterator[NumberedLine], max_depth: int) -> tuple[list[NumberedLine], bool]:
    """Take lines, blank ones left out, until as many brackets are closed as were opened.

    Returns the lines and whether they are whole: nothing was lost, and all brackets closed
    before the file ended, the text grew too long or the brackets too deep.
    """
    taken: list[NumberedLine] = []
    depth = size = 0
    for number, line in lines:
        if line is None:
            return [*taken, (number, line)], False
        if not line.strip():
            continue
        taken.append((number, line))
        depth += line.count("(") - line.count(")")
        size += len(line)
        if depth <= 0:
            return taken, True
        if depth > max_depth or size > MAX_TREE_CHARACTERS:
            break
    return taken, False
