r"""Forward and backward sums over all alignments of labels with steps, compiled.

A target of L labels becomes $l'$, its labels with a blank before, between and after them. With
$y_t(s)$ the probability of label $l'_s$ at step t,

$$\alpha_t(s) = y_t(s) \sum_{s' \to s} \alpha_{t-1}(s'), \quad
\beta_t(s) = \sum_{s \to s'} y_{t+1}(s') \beta_{t+1}(s'), \quad
p(l \mid x) = \sum_s \alpha_t(s) \beta_t(s) \text{ at any } t$$

where $s \to s'$ if s' is s, s + 1, or s + 2 with a label other than that of s in it.

Both are kept as plain numbers whose largest at each step is 1, and the logarithms of the scales
apart: products and sums alone, no logarithm a state. A number below `TINY` of the largest becomes
0. What that may have cost is bounded by $\alpha_t(s) \beta_t(s)$ with one factor `TINY` and the
other at most its scale; where the bound is not far below p, the row is done again by logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from seqloom.compiled import compiled

TINY = 1e-250
LOG_TINY = math.log(TINY)
LOST = 1e-300  # a y below it is 0: of what is left at a step, that is less than TINY
LEAST = 1e-40  # as long as the largest before scaling is not below this
FAR = 40.0  # e^-40 of the result is below the last bit of a double


@compiled
def _states(target: Any, size: int, blank: int, labels: Any, skips: Any) -> int:
    """Write down the labels of the states, and which can be reached over the blank before them."""
    count = 2 * size + 1
    for s in range(count):
        labels[s] = target[s // 2] if s % 2 else blank
        skips[s] = s > 1 and s % 2 == 1 and labels[s] != labels[s - 2]
    return count


@compiled
def _forward(
    rows: Any, labels: Any, skips: Any, y: Any, alpha: Any, tops: Any, scales: Any, lows: Any
) -> float:
    """Write y and alpha; the log-probability, or infinity where it is in doubt."""
    T, S = y.shape
    total = 0.0
    for t in range(T):
        top = rows[t, labels[0]]
        for s in range(1, S, 2):
            top = max(top, rows[t, labels[s]])
        most, low = 0.0, False
        for s in range(S):
            y[t, s] = math.exp(rows[t, labels[s]] - top)
            if y[t, s] < LOST:
                y[t, s], low = 0.0, True
            if t == 0:
                value = 1.0 if s < 2 else 0.0
            else:
                value = alpha[t - 1, s]
                if s > 0:
                    value += alpha[t - 1, s - 1]
                if skips[s]:
                    value += alpha[t - 1, s - 2]
            value *= y[t, s]
            alpha[t, s] = value
            if not value <= most:  # also where it is not a number
                most = value
        if not LEAST < most < math.inf:
            return math.inf
        for s in range(S):
            alpha[t, s] /= most
            if 0 < alpha[t, s] < TINY:
                alpha[t, s], low = 0.0, True
        total += top + math.log(most)
        tops[t], scales[t], lows[t] = top, total, low
    end = alpha[T - 1, S - 1] + (alpha[T - 1, S - 2] if S > 1 else 0.0)
    return total + math.log(end) if end > 0 else math.inf


@compiled
def _backward(
    labels: Any,
    skips: Any,
    y: Any,
    alpha: Any,
    beta: Any,
    tops: Any,
    scales: Any,
    lows: Any,
    posteriors: Any,
) -> float:
    """Write beta and the posteriors; the logarithm of what may be missing of the probability."""
    T, S = y.shape
    missing, total = -math.inf, 0.0
    for t in range(T - 1, -1, -1):
        most, low, both = 0.0, lows[t], 0.0
        for s in range(S):
            if t == T - 1:
                value = 1.0 if s > S - 3 else 0.0
            else:
                value = beta[t + 1, s] * y[t + 1, s]
                if s + 1 < S:
                    value += beta[t + 1, s + 1] * y[t + 1, s + 1]
                if s + 2 < S and skips[s + 2]:
                    value += beta[t + 1, s + 2] * y[t + 1, s + 2]
            beta[t, s] = value
            most = max(most, value)
        if t < T - 1:
            total += tops[t + 1]
            low = low or lows[t + 1]
        for s in range(S):
            beta[t, s] /= most
            if 0 < beta[t, s] < TINY:
                beta[t, s], low = 0.0, True
            both += beta[t, s] * alpha[t, s]
        if not (most > LEAST and both > 0):
            return math.inf
        total += math.log(most)
        if low:
            missing = max(missing, scales[t] + total + LOG_TINY)
        for s in range(S):
            posteriors[t, labels[s]] += alpha[t, s] * beta[t, s] / both
    return missing


@compiled
def _log_add(a: Any, b: Any) -> Any:
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@compiled
def _by_logarithms(  # noqa: PLR0912 (the states' neighbours)
    rows: Any, labels: Any, skips: Any, alpha: Any, beta: Any, posteriors: Any
) -> Any:
    """The same, slower, for any numbers."""
    T, S = alpha.shape
    for t in range(T):
        for s in range(S):
            if t == 0:
                value = 0.0 if s < 2 else -math.inf
            else:
                value = alpha[t - 1, s]
                if s > 0:
                    value = _log_add(value, alpha[t - 1, s - 1])
                if skips[s]:
                    value = _log_add(value, alpha[t - 1, s - 2])
            alpha[t, s] = value + rows[t, labels[s]]
    found = alpha[T - 1, S - 1]
    if S > 1:
        found = _log_add(found, alpha[T - 1, S - 2])
    if found == -math.inf:
        return found
    for back in range(T):
        t = T - 1 - back
        for s in range(S):
            if back == 0:
                value = 0.0 if s > S - 3 else -math.inf
            else:
                value = beta[t + 1, s] + rows[t + 1, labels[s]]
                if s + 1 < S:
                    value = _log_add(value, beta[t + 1, s + 1] + rows[t + 1, labels[s + 1]])
                if s + 2 < S and skips[s + 2]:
                    value = _log_add(value, beta[t + 1, s + 2] + rows[t + 1, labels[s + 2]])
            beta[t, s] = value
            posteriors[t, labels[s]] += math.exp(alpha[t, s] + value - found)
    return found


@compiled
def alignment_sums(
    log_probs: Any, targets: Any, lengths: Any, sizes: Any, blank: int, found: Any, posteriors: Any
) -> None:
    """Write each row's log-probability, and how probable each label is at each step given it.

    Args:
        log_probs: (B, T, C).
        targets: (B, L), padded.
        lengths: (B,), steps of each row.
        sizes: (B,), labels of each row.
        blank: The number of the blank.
        found: (B,), written.
        posteriors: (B, T, C), all 0, written; a row that no alignment leads to stays 0.
    """
    most, longest = int(lengths.max()), 2 * int(sizes.max()) + 1
    room = np.empty((3, most * longest))
    tops, scales, lows = np.empty(most), np.empty(most), np.empty(most, np.bool_)
    labels, skips = np.empty(longest, np.int64), np.empty(longest, np.bool_)
    for b in range(len(log_probs)):
        T, S = int(lengths[b]), _states(targets[b], sizes[b], blank, labels, skips)
        alpha = room[0, : T * S].reshape(T, S)
        beta = room[1, : T * S].reshape(T, S)
        y = room[2, : T * S].reshape(T, S)
        found[b] = _forward(log_probs[b], labels, skips, y, alpha, tops, scales, lows)
        missing = math.inf
        if found[b] < math.inf:
            missing = _backward(labels, skips, y, alpha, beta, tops, scales, lows, posteriors[b])
        if missing > found[b] - FAR or found[b] == math.inf:
            posteriors[b] = 0
            found[b] = _by_logarithms(log_probs[b], labels, skips, alpha, beta, posteriors[b])
