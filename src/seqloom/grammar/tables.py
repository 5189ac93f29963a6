r"""A grammar as the arrays its compiled loops read.

What takes time in a chart is the sum over where two parts meet. It depends on the two symbols
alone, not on the rule they come from, so it is done once for each *pair* (B, C), and rules are
applied to the sums: $O(n^3 \cdot \text{pairs} + n^2 \cdot \text{rules})$. A pair that begins with a
preterminal can meet in one place only.

Chains of unary rules are summed beforehand. With U the matrix of $p(A \to B)$ over the symbols that
stand alone on the right of a rule, all chains together are $(I - U)^{-1}$. In the same way all
chains of left corners are $(I - L)^{-1}$, $L_{AB} = \sum_C p(A \to B C) + p(A \to B)$ (Jelinek and
Lafferty 1991; Stolcke 1995, section 4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.grammar.rules import Floats, Numbers, Rules, add_at

Unsigned = NDArray[np.uint32]  # of these numba does not ask whether they count from the end


class Rows(NamedTuple):
    """A sparse matrix row by row.

    Args:
        starts: Where each row begins; one more at the end.
        columns: The column of each value.
        values: The values.
    """

    starts: Numbers
    columns: Unsigned
    values: Floats


class Tables(NamedTuple):
    """What the compiled loops know of a grammar.

    Args:
        size: How many symbols there are.
        preterminals: How many of these are preterminals, the first ones.
        root: The symbol on top.
        tag_pairs: How many pairs begin with a preterminal, the first ones.
        left: B of each pair.
        right: C of each pair.
        slot: For pairs that begin with a phrase, where the chart keeps B.
        kept: The symbols the chart keeps, by slot.
        binary: By symbol, its pairs and the probability of the rule.
        alone: The symbols with rules that may stand alone on the right of a rule.
        chains: By place in `alone`, the symbols chains of unary rules lead to, and their sums.
        chain_tags: The same for the preterminals they lead to.
        unary: By symbol, its unary rules with a phrase on the right.
        unary_tags: By symbol, its unary rules with a preterminal on the right.
        corners: By symbol, its left corners and their probabilities.
        inner: The symbols with rules that are left corners of others.
        corner_chains: Between these, the sums over chains of left corners.
    """

    size: int
    preterminals: int
    root: int
    tag_pairs: int
    left: Unsigned
    right: Unsigned
    slot: Unsigned
    kept: Numbers
    binary: Rows
    alone: Numbers
    chains: Rows
    chain_tags: Rows
    unary: Rows
    unary_tags: Rows
    corners: Rows
    inner: Numbers
    corner_chains: Floats


def make_tables(rules: Rules) -> Tables:
    """The tables of a grammar; `rules` must be tight."""
    size, tags = len(rules.names), rules.preterminals
    keys = rules.left.astype(np.int64) * size + rules.right
    pairs, pair = np.unique(keys, return_inverse=True)
    left, right = (pairs // size).astype(np.int32), (pairs % size).astype(np.int32)
    # By left symbol, so preterminals come first.
    tag_pairs = int(np.searchsorted(left, tags))
    # Pairs that begin with phrases lie in the order of their second symbol, for the memory's sake.
    order = np.concatenate(
        [np.arange(tag_pairs), tag_pairs + np.lexsort((left[tag_pairs:], right[tag_pairs:]))]
    )
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    left, right = left[order], right[order]
    kept = np.unique(left[tag_pairs:]).astype(np.int32)
    alone = np.unique(rules.unary_child[rules.unary_child >= tags]).astype(np.int32)
    is_tag = rules.unary_child < tags
    chains, chain_tags = _chains(rules, alone)
    inner = np.unique(np.concatenate([alone, kept])).astype(np.int32)
    corners = _add(
        size,
        np.concatenate([rules.parent, rules.unary_parent]),
        np.concatenate([rules.left, rules.unary_child]),
        np.concatenate([rules.prob, rules.unary_prob]),
    )
    return Tables(
        size=size,
        preterminals=tags,
        root=rules.root,
        tag_pairs=tag_pairs,
        left=left.astype(np.uint32),
        right=right.astype(np.uint32),
        slot=np.searchsorted(kept, left[tag_pairs:]).astype(np.uint32),
        kept=kept,
        binary=_rows(size, rules.parent, place[pair], rules.prob),
        alone=alone,
        chains=chains,
        chain_tags=chain_tags,
        unary=_rows(
            size,
            rules.unary_parent[~is_tag],
            rules.unary_child[~is_tag],
            rules.unary_prob[~is_tag],
        ),
        unary_tags=_rows(
            size, rules.unary_parent[is_tag], rules.unary_child[is_tag], rules.unary_prob[is_tag]
        ),
        corners=corners,
        inner=inner,
        corner_chains=_all_chains(_dense(corners, inner)),
    )


def _chains(rules: Rules, alone: Numbers) -> tuple[Rows, Rows]:
    """All chains of unary rules from the symbols of `alone`: to each other, and to preterminals."""
    size, tags = len(rules.names), rules.preterminals
    one = _rows(size, rules.unary_parent, rules.unary_child, rules.unary_prob)
    among = _all_chains(_dense(one, alone))
    to_tags = np.zeros((len(alone), tags))
    for row, symbol in enumerate(alone.tolist()):
        span = slice(one.starts[symbol], one.starts[symbol + 1])
        columns = one.columns[span]
        to_tags[row, columns[columns < tags]] = one.values[span][columns < tags]
    to_tags = among @ to_tags
    return _sparse(among, alone), _sparse(to_tags, np.arange(tags, dtype=np.int32))


def _sparse(matrix: Floats, symbols: Numbers) -> Rows:
    """What is not 0 of a matrix, whose columns are symbols."""
    rows, columns = np.nonzero(matrix)
    return _rows(len(matrix), rows, symbols[columns], matrix[rows, columns])


def _all_chains(steps: Floats) -> Floats:
    found = np.linalg.inv(np.eye(len(steps)) - steps).astype(np.float64)
    # What is 0 may come out as a rounding error, also below 0.
    return np.where(found > 1e-300, found, 0.0)


def _rows(size: int, rows: NDArray[Any], columns: NDArray[Any], values: Floats) -> Rows:
    order = np.lexsort((columns, rows))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=size))])
    return Rows(
        starts.astype(np.int32),
        np.ascontiguousarray(columns[order], np.uint32),
        np.ascontiguousarray(values[order], np.float64),
    )


def _add(size: int, rows: Numbers, columns: Numbers, values: Floats) -> Rows:
    """Rows in which values of the same place are added."""
    keys, where = np.unique(rows.astype(np.int64) * size + columns, return_inverse=True)
    return _rows(size, keys // size, keys % size, add_at(where, values, len(keys)))


def _dense(matrix: Rows, symbols: Numbers) -> Floats:
    """The part of a matrix between some symbols."""
    place = {int(symbol): i for i, symbol in enumerate(symbols)}
    found = np.zeros((len(symbols), len(symbols)))
    for row, symbol in enumerate(symbols.tolist()):
        for at in range(matrix.starts[symbol], matrix.starts[symbol + 1]):
            column = place.get(int(matrix.columns[at]))
            if column is not None:
                found[row, column] += matrix.values[at]
    return found
