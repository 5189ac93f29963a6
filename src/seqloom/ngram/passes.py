"""The loops of smoothing over the n-grams of an order.

All work on the rows from `start` to `end`. `sums` has two numbers a history, side by side as they
are needed together. Of what the suffixes name, a window may be there, from row `low` on; rows that
need another one are left for it.
"""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled, prefetch

_AHEAD = 24  # rows ahead of the loop whose sums are on their way from memory
_NONE_FREE = 1e-12  # less than this left by the words seen after a history: all words were


@compiled
def count_before(start, end, suffix, low, count):  # type: ignore[no-untyped-def]
    """Count, for each n-gram, those one word longer that end in it."""
    for i in range(start, end):
        at = np.int64(suffix[i]) - low
        if at >= 0 and at < len(count):
            count[at] += 1


@compiled
def keep_beginnings(start, end, begins, occurs, count):  # type: ignore[no-untyped-def]
    """No word comes before `<s>`: n-grams that begin with it are counted as they occur."""
    for i in range(start, end):
        if begins[i]:
            count[i] = occurs[i]


@compiled
def count_counts(start, end, count, counted):  # type: ignore[no-untyped-def]
    """Count how many n-grams have each small count."""
    for i in range(start, end):
        if count[i] < len(counted):
            counted[count[i]] += 1


@compiled
def add_up(  # type: ignore[no-untyped-def]
    start, end, context, count, occurs, begins, full, threshold, spared,
    discounts, per_type, scale, sums,
):  # fmt: skip
    """Pass 1: by history, the denominator without its constant and what is left of it.

    What is left is added up from what was taken, not subtracted, so that it is exact when small.
    """
    most = len(discounts) - 1
    for i in range(start, end):
        if i + _AHEAD < end:
            prefetch(sums, 2 * np.int64(context[i + _AHEAD]))
        c = count[i]
        if c == 0 or not (full or begins[i]):
            continue
        at = 2 * np.int64(context[i])
        sums[at] += c + per_type
        if occurs[i] > threshold or i < spared:
            sums[at + 1] += (1 - scale) * c + scale * discounts[min(c, most)] + per_type
        else:
            sums[at + 1] += c + per_type


@compiled
def cover(  # type: ignore[no-untyped-def]
    start, end, context, suffix, count, occurs, threshold, spared, low, lower, covered
):  # fmt: skip
    """Back-off only: by history, the lower order's probability of the words seen after it."""
    for i in range(start, end):
        at = np.int64(suffix[i]) - low if low >= 0 else np.int64(0)
        if at < 0 or at >= len(lower):
            continue
        if count[i] > 0 and (occurs[i] > threshold or i < spared):
            covered[context[i]] += lower[at]


@compiled
def settle_sums(start, end, sums, covered, constant, spare, scale):  # type: ignore[no-untyped-def]
    """Turn each history's sums into the factor of its counts and its back-off weight."""
    for i in range(start, end):
        total, left = sums[2 * i], sums[2 * i + 1]
        if total == 0:  # nothing was seen after it
            sums[2 * i + 1] = 1.0
            continue
        more = constant if left > 0 else max(constant, spare)
        total += more
        left += more
        if len(covered) > 0 and left > 0:
            if 1 - covered[i] <= _NONE_FREE:  # every word was seen: they share what is left
                total -= left
                left = 0.0
            else:
                left /= 1 - covered[i]
        sums[2 * i] = scale / total
        sums[2 * i + 1] = left / total


@compiled
def weigh_counts(  # type: ignore[no-untyped-def]
    start, end, context, suffix, count, discounts, sums, low, lower, interpolated, probs
):  # fmt: skip
    """Pass 2: the probabilities, from settled sums and the probabilities of the order below.

    `low` is negative where there is one probability for all.
    """
    most = len(discounts) - 1
    flat = low < 0
    for i in range(start, end):
        if i + _AHEAD < end:
            prefetch(sums, 2 * np.int64(context[i + _AHEAD]))
            if not flat:  # one outside the window is harmless
                prefetch(lower, np.int64(suffix[i + _AHEAD]) - low)
        near = np.int64(0) if flat else np.int64(suffix[i]) - low
        if near < 0 or near >= len(lower):
            continue
        c = count[i]
        at = 2 * np.int64(context[i])
        p = sums[at] * (c - discounts[min(c, most)])
        if interpolated or c == 0:
            p += sums[at + 1] * lower[near]
        probs[i] = min(p, 1.0)
