"""The compiled loops over charts of spans."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled, inner
from seqloom.grammar.rules import Floats
from seqloom.grammar.tables import Rows, Tables


@inner
def _sum_row(rows: Rows, at: int, x: Floats) -> float:
    """A row of a sparse matrix times a vector; four sums, so that none waits for the one before."""
    v, c, one, two = rows.values, rows.columns, np.uint64(1), np.uint64(2)
    start, n = np.uint64(rows.starts[at]), np.uint64(rows.starts[at + 1] - rows.starts[at])
    a0 = a1 = a2 = a3 = 0.0
    fours = n >> two
    for q in range(fours):
        r = start + (q << two)
        a0 += v[r] * x[c[r]]
        a1 += v[r + one] * x[c[r + one]]
        a2 += v[r + two] * x[c[r + two]]
        a3 += v[r + one + two] * x[c[r + one + two]]
    for q in range(fours << two, n):
        a0 += v[start + q] * x[c[start + q]]
    return (a0 + a1) + (a2 + a3)


@inner
def _best_row(rows: Rows, at: int, x: Floats) -> float:
    """The largest product of that sum."""
    best = 0.0
    for r in range(rows.starts[at], rows.starts[at + 1]):
        best = max(best, rows.values[r] * x[rows.columns[r]])
    return best


@compiled
def inside_column(t: Tables, emission: Floats, chart: Floats, end: int, column: Floats) -> None:
    r"""Sum over the trees of all spans that end at `end`, the shortest first.

    $$I_{ij}(A) = \sum_{A \to BC} p \sum_{i<k<j} I_{ik}(B)\, I_{kj}(C)
    + \sum_{A \to B} p\, I_{ij}(B)$$

    Args:
        t: The grammar.
        emission: p(word | preterminal), word by word.
        chart: I of the symbols that are kept (begin, end, slot); the column is filled in.
        end: j.
        column: I of all symbols (begin, symbol) for this j; filled in.
    """
    met, base = np.zeros(len(t.left)), np.zeros(t.size)
    stands_alone = np.zeros(t.size, np.bool_)
    stands_alone[t.alone] = True
    for begin in range(end - 1, -1, -1):
        row = column[begin]
        row[:] = 0.0
        is_word = begin == end - 1
        if is_word:
            row[: t.preterminals] = emission[begin]
        else:
            _meet(t, emission, chart, begin, end, column, met)
            for symbol in range(t.preterminals, t.size):
                base[symbol] = _sum_row(t.binary, symbol, met)
        for place in range(len(t.alone)):
            total = _sum_row(t.chains, place, base)
            if is_word:
                total += _sum_row(t.chain_tags, place, row)
            row[t.alone[place]] = total
        for symbol in range(t.preterminals, t.size):
            if stands_alone[symbol]:
                continue
            total = base[symbol] + _sum_row(t.unary, symbol, row)
            if is_word:
                total += _sum_row(t.unary_tags, symbol, row)
            row[symbol] = total
        chart[begin, end] = row[t.kept]


@inner
def _meet(t, emission, chart, begin, end, column, met):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """For each pair, the sum over where its two parts meet inside a span."""
    word, after = emission[begin], column[begin + 1]
    for p in range(t.tag_pairs):
        met[p] = word[t.left[p]] * after[t.right[p]]
    phrases, right = met[t.tag_pairs :], t.right[t.tag_pairs :]
    phrases[:] = 0.0
    for middle in range(begin + 1, end):
        first, second = chart[begin, middle], column[middle]
        for p in range(len(t.slot)):
            phrases[p] += first[t.slot[p]] * second[right[p]]


@compiled
def best_column(t: Tables, emission: Floats, chart: Floats, end: int, column: Floats) -> None:
    """The same with the best tree in place of the sum over trees."""
    met = np.zeros(len(t.left))
    for begin in range(end - 1, -1, -1):
        row = column[begin]
        row[:] = 0.0
        if begin == end - 1:
            row[: t.preterminals] = emission[begin]
            for symbol in range(t.preterminals, t.size):
                row[symbol] = _best_row(t.unary_tags, symbol, row)
        else:
            _meet_best(t, emission, chart, begin, end, column, met)
            for symbol in range(t.preterminals, t.size):
                row[symbol] = _best_row(t.binary, symbol, met)
        changed = True
        while changed:  # ends: a chain that comes back to a symbol is worth no more than none
            changed = False
            for symbol in t.alone:
                best = _best_row(t.unary, symbol, row)
                if best > row[symbol]:
                    row[symbol], changed = best, True
        for symbol in range(t.preterminals, t.size):
            row[symbol] = max(row[symbol], _best_row(t.unary, symbol, row))
        chart[begin, end] = row[t.kept]


@inner
def _meet_best(t, emission, chart, begin, end, column, met):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """For each pair, the best product of its two parts inside a span."""
    word, after = emission[begin], column[begin + 1]
    for p in range(t.tag_pairs):
        met[p] = word[t.left[p]] * after[t.right[p]]
    phrases, right = met[t.tag_pairs :], t.right[t.tag_pairs :]
    phrases[:] = 0.0
    for middle in range(begin + 1, end):
        first, second = chart[begin, middle], column[middle]
        for p in range(len(t.slot)):
            phrases[p] = max(phrases[p], first[t.slot[p]] * second[right[p]])


@inner
def _spread(rows: Rows, at: int, weight: float, x: Floats) -> None:
    """Add a row of a sparse matrix, times a weight, to a vector."""
    for r in range(rows.starts[at], rows.starts[at + 1]):
        x[rows.columns[r]] += weight * rows.values[r]


@compiled
def predict(t: Tables, waiting: Floats, expected: Floats, begun: Floats) -> None:
    r"""What may begin at a place, given the symbols that are waited for there.

    $$G = F (I - L)^{-1}, \qquad g_{BC} = \sum_A G_A\, p(A \to BC)$$

    Args:
        t: The grammar.
        waiting: F, by symbol: the probability that this one is to come next.
        expected: G of the preterminals; filled in.
        begun: g, by pair; filled in.
    """
    is_inner = np.zeros(t.size, np.bool_)
    is_inner[t.inner] = True
    g = waiting.copy()
    for symbol in range(t.preterminals, t.size):
        if not is_inner[symbol]:  # no left corner of another: no chain leads back to it
            _spread(t.corners, symbol, waiting[symbol], g)
    g[t.inner] = g[t.inner] @ t.corner_chains
    for symbol in t.inner:
        for r in range(t.corners.starts[symbol], t.corners.starts[symbol + 1]):
            if t.corners.columns[r] < t.preterminals:
                g[t.corners.columns[r]] += g[symbol] * t.corners.values[r]
    expected[:] = g[: t.preterminals]
    begun[:] = 0.0
    for symbol in range(t.preterminals, t.size):
        _spread(t.binary, symbol, g[symbol], begun)


@compiled
def complete(  # noqa: PLR0917 (numba takes no keywords)
    t: Tables, emission: Floats, chart: Floats, begun: Floats, end: int, waiting: Floats
) -> None:
    r"""The symbols that are waited for after `end` words.

    $$F_j(C) = \sum_{i<j} \sum_B g_{i,BC}\, I_{ij}(B)$$

    Args:
        t: The grammar.
        emission: p(word | preterminal), word by word.
        chart: I of the symbols that are kept.
        begun: g, place by place.
        end: j.
        waiting: F_j; filled in.
    """
    waiting[:] = 0.0
    for p in range(t.tag_pairs):
        waiting[t.right[p]] += begun[end - 1, p] * emission[end - 1, t.left[p]]
    for begin in range(end):
        done = chart[begin, end]
        for q in range(len(t.slot)):
            p = t.tag_pairs + q
            waiting[t.right[p]] += begun[begin, p] * done[t.slot[q]]
