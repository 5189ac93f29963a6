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
def walk(rows, columns, weights, damping, tolerance, steps):  # type: ignore[no-untyped-def]
    """The scores of the nodes of a graph whose edges are listed, and the steps it took.

    Without weights every edge is 1.
    """
    n = len(rows) - 1
    weighted = len(weights) > 0
    total = np.zeros(n)
    for i in range(n):
        if weighted:
            for k in range(rows[i], rows[i + 1]):
                total[i] += weights[k]
        else:
            total[i] = rows[i + 1] - rows[i]
    score = np.ones(n)
    share = np.empty(n)
    step = 0
    while step < steps:
        step += 1
        for i in range(n):
            share[i] = score[i] / total[i] if total[i] > 0 else 0.0
        change = 0.0
        for i in range(n):
            s = 0.0
            if weighted:
                for k in range(rows[i], rows[i + 1]):
                    s += weights[k] * share[columns[k]]
            else:
                for k in range(rows[i], rows[i + 1]):
                    s += share[columns[k]]
            s = (1.0 - damping) + damping * s
            change += abs(s - score[i])
            score[i] = s
        if change <= tolerance * n:
            break
    return score, step


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
    starts, entries, sentences = sentences_of_terms(rows, terms, frequency)

    longest = 0
    for i in range(n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    group_of = np.full(longest + 1, -1, np.int64)
    for i in range(n):
        group_of[offsets[i + 1] - offsets[i]] = 0
    groups = 0
    logs = np.empty(longest + 1)
    for length in range(1, longest + 1):
        if group_of[length] == 0:
            logs[groups] = np.log(length)
            group_of[length] = groups
            groups += 1
    norm = np.zeros((groups, groups))
    for a in range(groups):
        for b in range(groups):
            if logs[a] + logs[b] > 0:
                norm[a, b] = 1.0 / (logs[a] + logs[b])

    # A cell is a term and a length; a term of one sentence alone joins nothing and has none.
    cell_of = np.full(len(terms), -1, np.int64)
    cell_group = np.empty(len(terms), np.int64)
    cell_starts = np.zeros(size + 1, np.int64)
    seen = np.full(max(groups, 1), -1, np.int64)
    cells = 0
    for t in range(size):
        begin = cells
        if frequency[t] > 1:
            for k in range(starts[t], starts[t + 1]):
                i = sentences[k]
                group = group_of[offsets[i + 1] - offsets[i]]
                if seen[group] < begin:
                    seen[group] = cells
                    cell_group[cells] = group
                    cells += 1
                cell_of[entries[k]] = seen[group]
        cell_starts[t + 1] = cells

    own = np.zeros(n)  # what a sentence would hand to itself
    for i in range(n):
        shared = 0
        for k in range(rows[i], rows[i + 1]):
            if cell_of[k] >= 0:
                shared += 1
        if shared:
            group = group_of[offsets[i + 1] - offsets[i]]
            own[i] = shared * norm[group, group]

    held = np.empty(cells)
    handed = np.empty(cells)
    share = np.ones(n)
    received = np.empty(n)
    total = np.zeros(n)
    score = np.ones(n)
    step = -1  # the first round adds up the edges of each sentence
    while step < steps:
        held[:] = 0.0
        for i in range(n):
            for k in range(rows[i], rows[i + 1]):
                if cell_of[k] >= 0:
                    held[cell_of[k]] += share[i]
        for t in range(size):
            for a in range(cell_starts[t], cell_starts[t + 1]):
                s = 0.0
                for b in range(cell_starts[t], cell_starts[t + 1]):
                    s += norm[cell_group[a], cell_group[b]] * held[b]
                handed[a] = s
        for i in range(n):
            s = 0.0
            for k in range(rows[i], rows[i + 1]):
                if cell_of[k] >= 0:
                    s += handed[cell_of[k]]
            received[i] = s - own[i] * share[i]
        step += 1
        if step == 0:
            for i in range(n):
                # Less than rounding leaves of its own part is nothing.
                total[i] = received[i] if received[i] > 1e-9 * own[i] else 0.0
        else:
            change = 0.0
            for i in range(n):
                s = 1.0 - damping
                if total[i] > 0:
                    s += damping * received[i]
                change += abs(s - score[i])
                score[i] = s
            if change <= tolerance * n:
                break
        for i in range(n):
            share[i] = score[i] / total[i] if total[i] > 0 else 0.0
    return score, step


@compiled
def cosine_walk(rows, terms, values, size, damping, tolerance, steps):  # type: ignore[no-untyped-def]
    """Continuous LexRank: every pair joined by its cosine, without listing the pairs.

    `values` are the sentences as vectors of length 1, so the product with the matrix of cosines is
    two products with them. A sentence without terms has no edge.
    """
    n = len(rows) - 1
    sums = np.empty(size)
    share = np.ones(n)
    total = np.zeros(n)
    score = np.ones(n)
    received = np.empty(n)
    step = -1
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
        step += 1
        if step == 0:
            total[:] = received
        else:
            change = 0.0
            for i in range(n):
                s = (1.0 - damping) + damping * received[i]
                change += abs(s - score[i])
                score[i] = s
            if change <= tolerance * n:
                break
        for i in range(n):
            share[i] = score[i] / total[i] if total[i] > 0 else 0.0
    return score, step


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
