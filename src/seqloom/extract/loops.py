"""The compiled loops of extractive summarizers. `reference` says the same without tricks.

A document comes as `ids`, the terms of its sentences one after the other, and `offsets`, where each
sentence begins. `rows` and `terms` are the same with each term once a sentence.
"""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled


@compiled
def distinct_terms(ids, offsets, size):  # type: ignore[no-untyped-def]
    """Return each sentence's different terms, how often each occurs in it, and how many have it."""
    n = len(offsets) - 1
    rows = np.zeros(n + 1, np.int64)
    terms = np.empty(len(ids), np.int32)
    counts = np.empty(len(ids), np.float64)
    frequency = np.zeros(size, np.int64)
    place = np.full(size, -1, np.int64)
    at = 0
    for i in range(n):
        begin = at
        for k in range(offsets[i], offsets[i + 1]):
            term = ids[k]
            if place[term] >= begin:
                counts[place[term]] += 1.0
            else:
                place[term] = at
                terms[at] = term
                counts[at] = 1.0
                frequency[term] += 1
                at += 1
        rows[i + 1] = at
    return rows, terms[:at].copy(), counts[:at].copy(), frequency


@compiled
def sentences_of_terms(rows, terms, frequency):  # type: ignore[no-untyped-def]
    """Return, term by term, the entries of `terms` that name it and the sentences they are in."""
    starts = np.zeros(len(frequency) + 1, np.int64)
    for t in range(len(frequency)):
        starts[t + 1] = starts[t] + frequency[t]
    fill = starts[:-1].copy()
    entries = np.empty(len(terms), np.int64)
    sentences = np.empty(len(terms), np.int32)
    for i in range(len(rows) - 1):
        for k in range(rows[i], rows[i + 1]):
            at = fill[terms[k]]
            entries[at] = k
            sentences[at] = i
            fill[terms[k]] = at + 1
    return starts, entries, sentences


@compiled
def rarest_terms(frequency, limit):  # type: ignore[no-untyped-def]
    """Mark the rarest terms whose sentences make at most `limit` pairs together."""
    most = 0
    for t in range(len(frequency)):
        most = max(most, frequency[t])
    of_frequency = np.zeros(most + 1, np.int64)
    for t in range(len(frequency)):
        of_frequency[frequency[t]] += 1
    pairs, highest = 0, 1
    for f in range(2, most + 1):
        pairs += of_frequency[f] * f * f
        if pairs > limit:
            break
        highest = f
    return frequency <= highest


@compiled
def similarity_edges(  # type: ignore[no-untyped-def]
    rows, terms, values, frequency, logs, kept, threshold, own, binary
):
    """List the pairs of sentences of a similarity above `threshold`, row by row.

    The similarity is the sum over common terms of the product of their values, divided by the sum
    of the sentences' `logs` where there are any. Only sentences with a `kept` term in common are
    looked at, but then all their terms count. `own` lists a sentence as its own neighbor too;
    `binary` leaves out the weights.
    """
    n = len(rows) - 1
    starts, entries, sentences = sentences_of_terms(rows, terms, frequency)
    out_rows = np.zeros(n + 1, np.int64)
    columns = np.empty(max(16 * n, 16), np.int32)
    weights = np.empty(0 if binary else max(16 * n, 16))
    sums = np.zeros(n)
    stamp = np.full(n, -1, np.int64)
    touched = np.empty(n, np.int32)
    common = np.zeros(len(frequency))  # of the row at hand, the values of terms that are not kept
    at = 0
    for i in range(n):
        count, has_common = 0, False
        for k in range(rows[i], rows[i + 1]):
            t = terms[k]
            if not kept[t]:
                common[t] = values[k]
                has_common = True
                continue
            for m in range(starts[t], starts[t + 1]):
                j = sentences[m]
                if stamp[j] != i:
                    stamp[j] = i
                    sums[j] = 0.0
                    touched[count] = j
                    count += 1
                sums[j] += values[k] * values[entries[m]]
        if own and rows[i + 1] > rows[i] and stamp[i] != i:
            stamp[i] = i
            sums[i] = 0.0
            touched[count] = i
            count += 1
        for c in range(count):
            j = touched[c]
            if j == i and not own:
                continue
            s = sums[j]
            if has_common:
                for k in range(rows[j], rows[j + 1]):
                    if common[terms[k]] != 0.0:
                        s += common[terms[k]] * values[k]
            if len(logs):
                norm = logs[i] + logs[j]
                s = s / norm if norm > 0 else 0.0
            if s > threshold:
                if at == len(columns):
                    columns = np.concatenate((columns, np.empty(at, np.int32)))
                    if not binary:
                        weights = np.concatenate((weights, np.empty(at)))
                columns[at] = j
                if not binary:
                    weights[at] = s
                at += 1
        if has_common:
            for k in range(rows[i], rows[i + 1]):
                common[terms[k]] = 0.0
        out_rows[i + 1] = at
    return out_rows, columns[:at], weights[:at]


@compiled
def choose_diverse(  # type: ignore[no-untyped-def]
    score, allowed, sizes, budget, count, diversity, rows, terms, values, starts, entries, sentences
):
    """Choose sentences one by one by score less likeness to those chosen, as far as they fit."""
    n = len(score)
    likeness = np.zeros(n)
    sums = np.zeros(n)
    free = allowed.copy()
    chosen = np.empty(min(count, n), np.int64)
    at = 0
    left = budget
    while at < len(chosen):
        best, highest = -1, -np.inf
        for i in range(n):
            if free[i]:
                value = (1.0 - diversity) * score[i] - diversity * likeness[i]
                if value > highest:
                    best, highest = i, value
        if best < 0:
            break
        free[best] = False
        if sizes[best] > left:
            continue
        left -= sizes[best]
        chosen[at] = best
        at += 1
        for k in range(rows[best], rows[best + 1]):
            t = terms[k]
            for m in range(starts[t], starts[t + 1]):
                sums[sentences[m]] += values[k] * values[entries[m]]
        for k in range(rows[best], rows[best + 1]):
            t = terms[k]
            for m in range(starts[t], starts[t + 1]):
                j = sentences[m]
                likeness[j] = max(likeness[j], sums[j])
        for k in range(rows[best], rows[best + 1]):
            t = terms[k]
            for m in range(starts[t], starts[t + 1]):
                sums[sentences[m]] = 0.0
    return chosen[:at]


@compiled
def neighbor_words(ids, offsets, size, window):  # type: ignore[no-untyped-def]
    """List, as keys `a * size + b`, the pairs of terms less than `window` apart in a sentence."""
    room = 0
    for i in range(len(offsets) - 1):
        room += (offsets[i + 1] - offsets[i]) * (window - 1) * 2
    keys = np.empty(room, np.int64)
    at = 0
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            for m in range(k + 1, min(k + window, offsets[i + 1])):
                a, b = np.int64(ids[k]), np.int64(ids[m])
                if a != b:
                    keys[at] = a * size + b
                    keys[at + 1] = b * size + a
                    at += 2
    return keys[:at].copy()
