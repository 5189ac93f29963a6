r"""Compiled loops of the linear-chain conditional random field, row by row.

All arrays hold 64-bit numbers. A sum over the tags before each tag is a product of two vectors of
powers, $\sum_i e^{\alpha_i - m} e^{A_{ij} - a}$, with m the largest $\alpha$ and a the largest
transition, so that a step takes K exponentials and logarithms, not K squared. Where such a sum is
so small that digits may be lost, it is taken again term by term with its own largest one; so
results hold for scores of any size.
"""

from __future__ import annotations

import math

import numpy as np

from seqloom.compiled import compiled, inner

TINY = 1e-280  # below it a sum of powers is taken again
LARGE = 600.0  # an exponent above which pairs are taken one by one


@inner
def _largest(values):  # type: ignore[no-untyped-def]
    found = -np.inf
    for value in values:
        found = max(found, value)
    return found


@inner
def _log_sum(first, second):  # type: ignore[no-untyped-def]
    """The logarithm of the sum of the exponentials of the sums of two rows, term by term."""
    largest = -np.inf
    for i in range(len(first)):
        largest = max(largest, first[i] + second[i])
    total = 0.0
    for i in range(len(first)):
        total += math.exp(first[i] + second[i] - largest)
    return largest + math.log(total)


@inner
def _products(weights, matrix, sums):  # type: ignore[no-untyped-def]
    """`sums[j]` = the sum over i of `weights[i] * matrix[i, j]`."""
    sums[:] = 0.0
    for i in range(len(weights)):
        weight = weights[i]
        row = matrix[i]
        for j in range(len(sums)):
            sums[j] += weight * row[j]


@compiled
def forward_loop(scores, lengths, transitions, powers, top, start, end, alphas, totals):  # type: ignore[no-untyped-def]
    r"""$\alpha_t(j) = s_t(j) + \log \sum_i e^{\alpha_{t-1}(i) + A_{ij}}$, and each row's total.

    Args:
        scores: (B, T, K).
        lengths: (B,).
        transitions: A (K, K), from row to column, and its columns as rows (2, K, K).
        powers: $e^{A - top}$, in the same two orders (2, K, K).
        top: The largest transition.
        start: Of the first tag (K,).
        end: Of the last tag (K,).
        alphas: Written (B, T, K).
        totals: Written (B,), the logarithm of the partition function.
    """
    K = scores.shape[2]
    u, sums = np.empty(K), np.empty(K)
    for b in range(len(scores)):
        for j in range(K):
            alphas[b, 0, j] = start[j] + scores[b, 0, j]
        for t in range(1, lengths[b]):
            before = alphas[b, t - 1]
            m = _largest(before)
            for i in range(K):
                u[i] = math.exp(before[i] - m)
            _products(u, powers[0], sums)
            for j in range(K):
                if sums[j] < TINY:
                    alphas[b, t, j] = scores[b, t, j] + _log_sum(before, transitions[1, j])
                else:
                    alphas[b, t, j] = scores[b, t, j] + m + top + math.log(sums[j])
        totals[b] = _log_sum(alphas[b, lengths[b] - 1], end)


@compiled
def backward_loop(  # type: ignore[no-untyped-def]  # noqa: PLR0912
    scores,
    lengths,
    transitions,
    powers,
    top,
    end,
    alphas,
    totals,
    weights,
    unary,
    pairs,
    firsts,
    lasts,
):
    r"""Marginals, which are the gradient of the total, times a weight a row.

    $$\beta_t(i) = \log \sum_j e^{A_{ij} + s_{t+1}(j) + \beta_{t+1}(j)}, \quad
    p(y_t = j) = e^{\alpha_t(j) + \beta_t(j) - \log Z}, \quad
    p(y_{t-1} = i, y_t = j) = e^{\alpha_{t-1}(i) + A_{ij} + s_t(j) + \beta_t(j) - \log Z}$$

    Args:
        scores: (B, T, K); and so on as in `forward_loop`.
        lengths: (B,).
        transitions: (2, K, K).
        powers: (2, K, K).
        top: The largest transition.
        end: (K,).
        alphas: What `forward_loop` wrote.
        totals: The same.
        weights: What each row counts (B,).
        unary: Written (B, T, K), of each tag at each step; must be 0 before.
        pairs: Added to (K, K), of each transition over all steps.
        firsts: Added to (K,), of each first tag.
        lasts: Added to (K,), of each last tag.
    """
    K = scores.shape[2]
    u, v, sums = np.empty(K), np.empty(K), np.empty(K)
    ahead, beta = np.empty(K), np.empty(K)
    outer = np.zeros((K, K))
    for b in range(len(scores)):
        n, weight, total = lengths[b], weights[b], totals[b]
        beta[:] = end
        for t in range(n - 1, -1, -1):
            for j in range(K):
                unary[b, t, j] = weight * math.exp(alphas[b, t, j] + beta[j] - total)
            if t == n - 1:
                lasts += unary[b, t]
            if t == 0:
                firsts += unary[b, t]
                break
            before = alphas[b, t - 1]
            for j in range(K):
                ahead[j] = scores[b, t, j] + beta[j]
            m, most = _largest(before), _largest(ahead)
            for j in range(K):
                u[j] = math.exp(before[j] - m)
                v[j] = math.exp(ahead[j] - most)
            exponent = m + most + top - total
            if exponent > LARGE:
                for i in range(K):
                    for j in range(K):
                        power = before[i] + transitions[0, i, j] + ahead[j] - total
                        pairs[i, j] += weight * math.exp(power)
            else:
                scale = weight * math.exp(exponent)
                for i in range(K):
                    share = scale * u[i]
                    row = outer[i]
                    for j in range(K):
                        row[j] += share * v[j]
            _products(v, powers[1], sums)
            for i in range(K):
                if sums[i] < TINY:
                    beta[i] = _log_sum(ahead, transitions[0, i])
                else:
                    beta[i] = most + top + math.log(sums[i])
    for i in range(K):
        for j in range(K):
            pairs[i, j] += outer[i, j] * powers[0, i, j]


@compiled
def count_loop(tags, lengths, weights, unary, pairs, firsts, lasts):  # type: ignore[no-untyped-def]
    """Take a given path of each row, times its weight, from what `backward_loop` wrote."""
    for b in range(len(tags)):
        weight, n = weights[b], lengths[b]
        firsts[tags[b, 0]] -= weight
        lasts[tags[b, n - 1]] -= weight
        for t in range(n):
            unary[b, t, tags[b, t]] -= weight
            if t:
                pairs[tags[b, t - 1], tags[b, t]] -= weight


@compiled
def path_loop(scores, tags, lengths, transitions, start, end, found):  # type: ignore[no-untyped-def]
    """The score of a given path of each row."""
    for b in range(len(tags)):
        n = lengths[b]
        total = start[tags[b, 0]] + end[tags[b, n - 1]]
        for t in range(n):
            total += scores[b, t, tags[b, t]]
            if t:
                total += transitions[tags[b, t - 1], tags[b, t]]
        found[b] = total


@compiled
def viterbi_loop(scores, lengths, transitions, start, end, paths, totals):  # type: ignore[no-untyped-def]
    """The best path of each row and its score; of equal ones, that of the earlier tags.

    Args:
        scores: (B, T, K).
        lengths: (B,).
        transitions: (K, K), from row to column.
        start: Of the first tag (K,).
        end: Of the last tag (K,).
        paths: Written (B, T).
        totals: Written (B,).
    """
    T, K = scores.shape[1:]
    back = np.empty((T, K), np.int32)
    best, found = np.empty(K), np.empty(K)
    for b in range(len(scores)):
        n = lengths[b]
        for j in range(K):
            best[j] = start[j] + scores[b, 0, j]
        for t in range(1, n):
            came = back[t]
            for j in range(K):
                found[j] = best[0] + transitions[0, j]
                came[j] = 0
            for i in range(1, K):
                here = best[i]
                row = transitions[i]
                for j in range(K):
                    value = here + row[j]
                    if value > found[j]:
                        found[j] = value
                        came[j] = i
            for j in range(K):
                best[j] = found[j] + scores[b, t, j]
        last = 0
        for j in range(K):
            best[j] += end[j]
            if best[j] > best[last]:
                last = j
        totals[b] = best[last]
        for t in range(n - 1, -1, -1):
            paths[b, t] = last
            if t:
                last = back[t, last]


@inner
def _put(value, state, rank, values, states, ranks):  # type: ignore[no-untyped-def]
    """Put a value into a list of falling values; the last one falls out."""
    place = len(values) - 1
    if not value > values[place]:
        return
    while place > 0 and value > values[place - 1]:
        values[place] = values[place - 1]
        states[place] = states[place - 1]
        ranks[place] = ranks[place - 1]
        place -= 1
    values[place] = value
    states[place] = state
    ranks[place] = rank


@compiled
def best_paths_loop(scores, lengths, transitions, start, end, paths, totals):  # type: ignore[no-untyped-def]  # noqa: PLR0912
    """The N best paths of each row, the best first, each tag keeping its N best beginnings.

    Args:
        scores: (B, T, K); and so on as in `viterbi_loop`.
        lengths: (B,).
        transitions: (K, K).
        start: (K,).
        end: (K,).
        paths: Written (B, N, T).
        totals: Written (B, N); of paths that do not exist, minus infinity.
    """
    T, K = scores.shape[1:]
    N = paths.shape[1]
    states, ranks = np.empty((T, K, N), np.int32), np.empty((T, K, N), np.int32)
    best, found = np.empty((K, N)), np.empty((K, N))
    last_states, last_ranks = np.empty(N, np.int32), np.empty(N, np.int32)
    for b in range(len(scores)):
        n = lengths[b]
        best[:] = -np.inf
        for j in range(K):
            best[j, 0] = start[j] + scores[b, 0, j]
        for t in range(1, n):
            found[:] = -np.inf
            for j in range(K):
                for i in range(K):
                    for r in range(N):
                        if best[i, r] == -np.inf:
                            break
                        value = best[i, r] + transitions[i, j] + scores[b, t, j]
                        _put(value, i, r, found[j], states[t, j], ranks[t, j])
            best[:] = found
        totals[b] = -np.inf
        for j in range(K):
            for r in range(N):
                if best[j, r] > -np.inf:
                    _put(best[j, r] + end[j], j, r, totals[b], last_states, last_ranks)
        for k in range(N):
            if totals[b, k] == -np.inf:
                break
            state, rank = last_states[k], last_ranks[k]
            for t in range(n - 1, -1, -1):
                paths[b, k, t] = state
                if t:
                    state, rank = states[t, state, rank], ranks[t, state, rank]
