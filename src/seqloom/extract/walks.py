"""The compiled random walks of extractive summarizers. `reference` says the same without tricks.

A document comes as for `loops`.
"""

# ruff: noqa: PLR0912, PLR0917
# Compiled loops take columns.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled
from seqloom.extract.loops import distinct_terms, sentences_of_terms

Floats = NDArray[np.float64]
Edges = tuple[NDArray[np.int64], NDArray[np.int32], Floats]
"""Edges by rows, each in that of the later node: where rows begin, the earlier nodes, weights."""
NO_EDGES: Edges = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))


def walk_edges(edges: Edges, damping: float, tolerance: float, steps: int) -> Floats:
    """The scores of the nodes of a graph whose edges are all listed."""
    rows, no_terms, no_values = np.zeros_like(edges[0]), np.empty(0, np.int32), np.empty(0)
    found: Floats
    found, _ = walk(rows, no_terms, no_values, 0, edges, damping, tolerance, steps)
    return found


@compiled
def _moved(score, total, received, damping):  # type: ignore[no-untyped-def]
    """Take a step of the walk: what is received becomes the score; return how far scores moved."""
    change = 0.0
    for i in range(len(score)):
        s = 1.0 - damping
        if total[i] > 0:
            s += damping * received[i]
        change += abs(s - score[i])
        score[i] = s
    return change


@compiled
def walk(rows, terms, values, size, edges, damping, tolerance, steps):  # type: ignore[no-untyped-def]
    """The scores of sentences in a walk over a graph, and the steps it took.

    An edge weighs the product of two sentences' vectors and what `edges` adds to it. The entries of
    the vectors are `values`, so that a product with all these weights is two products with the
    vectors, and no pair is listed. `edges` lead both ways.
    """
    n = len(rows) - 1
    edge_rows, columns, weights = edges
    sums = np.empty(size)
    share = np.ones(n)
    total = np.zeros(n)
    score = np.ones(n)
    received = np.empty(n)
    step = -1  # the first round adds up the edges of each sentence
    while step < steps:
        sums[:] = 0.0
        for i in range(n):
            for k in range(rows[i], rows[i + 1]):
                sums[terms[k]] += values[k] * share[i]
        for i in range(n):
            s = 0.0
            for k in range(rows[i], rows[i + 1]):
                s += values[k] * sums[terms[k]]
            received[i] = s
        for i in range(len(edge_rows) - 1):
            s = 0.0
            for k in range(edge_rows[i], edge_rows[i + 1]):
                j = columns[k]
                s += weights[k] * share[j]
                if j != i:
                    received[j] += weights[k] * share[i]
            received[i] += s
        step += 1
        if step == 0:
            total[:] = received
        elif _moved(score, total, received, damping) <= tolerance * n:
            break
        for i in range(n):
            share[i] = score[i] / total[i] if total[i] > 0 else 0.0
    return score, step


@compiled
def _length_groups(offsets):  # type: ignore[no-untyped-def]
    """The group of each sentence by its length, and the norm 1 / (log + log) of two groups.

    A sentence without terms is in group -1; two of one term each have the norm 0.
    """
    n = len(offsets) - 1
    longest = 0
    for i in range(n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    group_of = np.full(longest + 1, -1, np.int64)
    for i in range(n):
        group_of[offsets[i + 1] - offsets[i]] = 0
    group_of[0] = -1
    count = 0
    logs = np.empty(longest + 1)
    for length in range(1, longest + 1):
        if group_of[length] == 0:
            logs[count] = np.log(length)
            group_of[length] = count
            count += 1
    norm = np.zeros((count, count))
    for a in range(count):
        for b in range(count):
            if logs[a] + logs[b] > 0:
                norm[a, b] = 1.0 / (logs[a] + logs[b])
    groups = np.empty(n, np.int64)
    for i in range(n):
        groups[i] = group_of[offsets[i + 1] - offsets[i]]
    return groups, norm


@compiled
def _cells(rows, terms, frequency, groups):  # type: ignore[no-untyped-def]
    """The cells of each sentence, row by row, the group of each cell, and where each term begins.

    A cell is a term and a group of sentences that have it. A term of one sentence alone joins
    nothing and has none.
    """
    starts, entries, sentences = sentences_of_terms(rows, terms, frequency)
    cell_of = np.full(len(terms), -1, np.int64)
    cell_groups = np.empty(len(terms), np.int64)
    term_starts = np.zeros(len(frequency) + 1, np.int64)
    seen = np.full(len(groups), -1, np.int64)
    count, joining = 0, 0
    for t in range(len(frequency)):
        if frequency[t] < 2:
            continue
        begin = count
        for k in range(starts[t], starts[t + 1]):
            group = groups[sentences[k]]
            if seen[group] < begin:
                seen[group] = count
                cell_groups[count] = group
                count += 1
            cell_of[entries[k]] = seen[group]
        joining += 1
        term_starts[joining] = count
    cell_rows = np.zeros(len(rows), np.int64)
    cells = np.empty(len(terms), np.int64)
    at = 0
    for i in range(len(groups)):
        for k in range(rows[i], rows[i + 1]):
            if cell_of[k] >= 0:
                cells[at] = cell_of[k]
                at += 1
        cell_rows[i + 1] = at
    return cell_rows, cells, cell_groups[:count], term_starts[: joining + 1]


@compiled
def textrank_walk(ids, offsets, size, damping, tolerance, steps):  # type: ignore[no-untyped-def]
    """Weighted TextRank over all pairs of sentences, without listing the pairs.

    An edge is the number of common terms over a norm that depends on the two lengths alone. So for
    each term the shares of the sentences that have it are added up by length, each length collects
    from all others by their norm, and hands the sum back to its sentences. A step costs what the
    text is long, and, for a term, the square of how many different lengths its sentences have.
    """
    n = len(offsets) - 1
    rows, terms, _, frequency = distinct_terms(ids, offsets, size)
    groups, norm = _length_groups(offsets)
    rows, cells, cell_groups, term_starts = _cells(rows, terms, frequency, groups)
    own = np.zeros(n)  # what a sentence would hand to itself
    for i in range(n):
        if rows[i + 1] > rows[i]:
            own[i] = (rows[i + 1] - rows[i]) * norm[groups[i], groups[i]]
    held = np.empty(len(cell_groups))
    handed = np.empty(len(cell_groups))
    share = np.ones(n)
    received = np.empty(n)
    total = np.zeros(n)
    score = np.ones(n)
    step = -1  # the first round adds up the edges of each sentence
    while step < steps:
        held[:] = 0.0
        for i in range(n):
            for k in range(rows[i], rows[i + 1]):
                held[cells[k]] += share[i]
        for t in range(len(term_starts) - 1):
            for a in range(term_starts[t], term_starts[t + 1]):
                s = 0.0
                for b in range(term_starts[t], term_starts[t + 1]):
                    s += norm[cell_groups[a], cell_groups[b]] * held[b]
                handed[a] = s
        for i in range(n):
            s = 0.0
            for k in range(rows[i], rows[i + 1]):
                s += handed[cells[k]]
            received[i] = s - own[i] * share[i]
        step += 1
        if step == 0:
            for i in range(n):
                # Less than rounding leaves of its own part is nothing.
                total[i] = received[i] if received[i] > 1e-9 * own[i] else 0.0
        elif _moved(score, total, received, damping) <= tolerance * n:
            break
        for i in range(n):
            share[i] = score[i] / total[i] if total[i] > 0 else 0.0
    return score, step
