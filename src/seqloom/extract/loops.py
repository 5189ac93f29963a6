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
def repeated_terms(rows, terms, frequency, kept):  # type: ignore[no-untyped-def]
    """List the pairs of sentences with several terms in common, as edges of 1 less their number.

    Added to one for each common term, they make one for each pair. A pair stands in the row of the
    later sentence. Only sentences with a `kept` term in common are looked at, but then all their
    terms count. A sentence itself is listed too, so that no edge leads back to it.
    """
    n = len(rows) - 1
    starts, _, sentences = sentences_of_terms(rows, terms, frequency)
    out_rows = np.zeros(n + 1, np.int64)
    columns, weights = np.empty(16 * n, np.int32), np.empty(16 * n)
    counts = np.zeros(n, np.int32)
    touched = np.empty(n + 1, np.int32)
    is_common = np.zeros(len(frequency), np.bool_)  # terms of the row at hand that are not kept
    at = 0
    for i in range(n):
        count, has_common = 0, False
        for k in range(rows[i], rows[i + 1]):
            t = terms[k]
            if not kept[t]:
                is_common[t] = has_common = True
                continue
            m = starts[t]
            while sentences[m] < i:
                j = sentences[m]
                touched[count] = j  # without a branch, which could not be foreseen
                count += counts[j] == 0
                counts[j] += 1
                m += 1
        columns, weights = _with_room(columns, weights, at + count + 1)
        for c in range(count):
            j = touched[c]
            if has_common:
                for k in range(rows[j], rows[j + 1]):
                    counts[j] += is_common[terms[k]]
            if counts[j] > 1:
                columns[at], weights[at] = j, 1.0 - counts[j]
                at += 1
            counts[j] = 0
        columns[at], weights[at] = i, np.float64(rows[i] - rows[i + 1])
        at += 1
        for k in range(rows[i], rows[i + 1]):
            is_common[terms[k]] = False
        out_rows[i + 1] = at
    return out_rows, columns[:at], weights[:at]


@compiled
def similar_pairs(  # type: ignore[no-untyped-def]
    rows, terms, values, frequency, logs, kept, threshold, own, binary
):
    """List the pairs of sentences of a similarity above `threshold` as edges.

    The similarity is the sum over common terms of the product of their values, none negative,
    divided by the sum of the sentences' `logs` where there are any. A pair stands in the row of the
    later sentence. Only sentences with a `kept` term in common are looked at, but then all their
    terms count. `own` lists a sentence as its own neighbor too; `binary` makes every weight 1.
    """
    n = len(rows) - 1
    starts, entries, sentences = sentences_of_terms(rows, terms, frequency)
    of_terms = values[entries]
    out_rows = np.zeros(n + 1, np.int64)
    columns, weights = np.empty(16 * n, np.int32), np.empty(16 * n)
    sums = np.zeros(n)  # 0 of those that are not touched
    touched = np.empty(n + 1, np.int32)
    common = np.zeros(len(frequency))  # of the row at hand, the values of terms that are not kept
    at = 0
    for i in range(n):
        count, has_common = 0, False
        for k in range(rows[i], rows[i + 1]):
            t, value = terms[k], values[k]
            if value == 0.0:
                continue
            if own:
                if sums[i] == 0.0:
                    touched[count] = i
                    count += 1
                sums[i] += value * value
            if not kept[t]:
                common[t] = value
                has_common = True
                continue
            m = starts[t]
            while sentences[m] < i:
                j = sentences[m]
                touched[count] = j  # without a branch, which could not be foreseen
                count += sums[j] == 0.0
                sums[j] += value * of_terms[m]
                m += 1
        columns, weights = _with_room(columns, weights, at + count)
        for c in range(count):
            j = touched[c]
            s, sums[j] = sums[j], 0.0
            if has_common and j != i:
                for k in range(rows[j], rows[j + 1]):
                    s += common[terms[k]] * values[k]
            if len(logs):
                norm = logs[i] + logs[j]
                s = s / norm if norm > 0 else 0.0
            if s > threshold:
                columns[at], weights[at] = j, 1.0 if binary else s
                at += 1
        if has_common:
            for k in range(rows[i], rows[i + 1]):
                common[terms[k]] = 0.0
        out_rows[i + 1] = at
    return out_rows, columns[:at], weights[:at]


@compiled
def _with_room(columns, weights, size):  # type: ignore[no-untyped-def]
    """The same, made longer if they are shorter than that."""
    if size > len(columns):
        columns = np.concatenate((columns, np.empty(size, np.int32)))
        weights = np.concatenate((weights, np.empty(size)))
    return columns, weights


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
    """List, as keys `a * size + b`, the pairs a > b of terms less than `window` apart."""
    room = 0
    for i in range(len(offsets) - 1):
        room += (offsets[i + 1] - offsets[i]) * (window - 1)
    keys = np.empty(room, np.int64)
    at = 0
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            for m in range(k + 1, min(k + window, offsets[i + 1])):
                a, b = np.int64(ids[k]), np.int64(ids[m])
                if a != b:
                    keys[at] = max(a, b) * size + min(a, b)
                    at += 1
    return keys[:at].copy()
