"""Compiled searches for the best paths of the linear-chain conditional random field, row by row."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled, inner


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
