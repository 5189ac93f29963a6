"""Trees of a treebank made plain: no function tags, no traces, one symbol on top."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from seqloom.data.datasets import dataset_names, open_dataset
from seqloom.data.examples import Tree
from seqloom.data.trees import read_trees
from seqloom.errors import DataError

TOP = "TOP"
TRACE = "-NONE-"
_FUNCTION = re.compile("[-=|].*", re.DOTALL)  # NP-SBJ-1, NP=2, ADVP|PRT
_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LCB-": "{",
    "-RCB-": "}",
    "-LSB-": "[",
    "-RSB-": "]",
}
_ESCAPES = {mark: name for name, mark in _BRACKETS.items() if mark in "()"}


def open_trees(source: Any) -> Iterator[Tree]:
    """The trees of a file, of a named data set ("NAME:SPLIT"), or of an iterable of `Tree`.

    Raises:
        DataError: If something else is given.
    """
    if isinstance(source, (str, PathLike)):
        yield from _from_file(fspath(source))
        return
    if not isinstance(source, Iterable):
        raise DataError(f"a grammar is read off trees, got {source!r}; give a file or trees")
    for number, item in enumerate(source):
        if not isinstance(item, Tree):
            raise DataError(
                f"a grammar is read off trees, got {item!r} as tree {number}; "
                "read a treebank with seqloom.data.read_trees"
            )
        yield item


def _from_file(name: str) -> Iterable[Tree]:
    if Path(name).exists() or name.partition(":")[0] not in dataset_names():
        return read_trees(name)
    data_set, split, variant = [*name.split(":"), None, None][:3]
    assert data_set is not None
    return _trees_only(open_dataset(data_set, split, variant=variant), name)


def _trees_only(records: Iterable[Any], name: str) -> Iterator[Tree]:
    for record in records:
        if not isinstance(record, Tree):
            raise DataError(f"a grammar is read off trees, and {name} holds {record!r}")
        yield record


def plain_tree(tree: Tree, normalize: Callable[[str], str] | None = None) -> Tree | None:
    r"""The tree as a grammar is read off it; None if there is no word in it.

    Function tags and indices are cut off labels (`NP-SBJ-1` is NP), traces and what holds nothing
    else are dropped, and so is a node over a single node of its own label. The symbol TOP is put
    above all. Words are as typed: `-LRB-` is "(", `1\/2` is "1/2".

    Args:
        tree: A tree of a treebank.
        normalize: What is done to each word besides.

    Examples:
        >>> from seqloom.data.trees import parse_trees
        >>> text = "( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (NP (NN home)))) (. .)))"
        >>> bracketed(plain_tree(parse_trees(text)[0]))
        '(TOP (S (VP (VB Go) (NP (NN home))) (. .)))'
    """
    done: dict[int, Tree | None] = {}
    for node in reversed(tree.nodes()):  # children before parents
        below = [done[id(child)] for child in node.children]
        done[id(node)] = _plain_node(node, below, normalize or str)
    found = done[id(tree)]
    if found is None:
        return None
    return found if found.label == TOP else Tree(TOP, (found,))


def _plain_node(
    node: Tree, below: list[Tree | None], normalize: Callable[[str], str]
) -> Tree | None:
    label = _plain_label(node.label)
    if node.word is not None:
        return None if node.label == TRACE else Tree(label, (), normalize(_typed(node.word)))
    children = tuple(child for child in below if child is not None)
    if not children:
        return None
    if len(children) == 1 and children[0].label == label and children[0].word is None:
        return children[0]
    return Tree(label, children)


def _plain_label(label: str) -> str:
    return (_FUNCTION.sub("", label) or label) if label else TOP


def _typed(word: str) -> str:
    return _BRACKETS.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def sentences(trees: Iterable[Tree]) -> list[list[str]]:
    """The words of each tree as the model reads them, trees without words left out."""
    plain = (plain_tree(tree) for tree in trees)
    return [tree.leaves() for tree in plain if tree is not None]


def bracketed(tree: Tree) -> str:
    """A tree on one line, brackets among its words written `-LRB-` and `-RRB-`."""
    pieces: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.word is not None:
            pieces.append(f" ({node.label} {_ESCAPES.get(node.word, node.word)})")
        else:
            pieces.append(f" ({node.label}")
            waiting += [")", *reversed(node.children)]
    return "".join(pieces).lstrip()
