r"""Compiled sums over all paths of the linear-chain conditional random field.

With $P = e^{A - \max A}$ and $E_t = e^{s_t - \max s_t}$ the recursions are products and sums alone,

$$\alpha_1 = e^{b - \max b} \odot E_1, \quad \alpha_t = (\alpha_{t-1} P) \odot E_t, \quad
\beta_n = e^{e - \max e}, \quad \beta_{t-1} = P (E_t \odot \beta_t)$$

divided at each step by their largest element (Rabiner 1989, "A Tutorial on Hidden Markov Models",
Proc. IEEE 77(2), section V.A); the logarithms of these are added up. All rows are multiplied with P
together: they are taken by falling length, so that those that have a step t are the first ones.

A transition that is not allowed is an exact 0 in P. The least of the other elements of P, E, alpha
and beta is known at each step, and with it whether a product can be too small for a number. Where
one can, the row is in doubt: `totals_by_logs` and `marginals_by_logs` do it again, term by term.

All arrays hold 64-bit numbers.
"""

from __future__ import annotations

import math

import numpy as np

from seqloom.compiled import compiled, compiled_sums, inner, inner_sums

TINY = 1e-290  # a number above it has all its digits
FORBIDDEN = -1e30
"""What a transition costs that is not allowed: no sum of scores makes up for it, and unlike minus
infinity it has a gradient of 0."""


@inner
def _least(values, powers):  # type: ignore[no-untyped-def]
    found = math.inf
    for i in range(len(values)):
        if powers[i] < found and not values[i] < FORBIDDEN / 2:
            found = powers[i]
    return found


@compiled
def least_power(values, powers):  # type: ignore[no-untyped-def]
    """The least power of a value that is not forbidden; both have one axis."""
    return _least(values, powers)


@inner_sums
def _products(rows, count, columns, found):  # type: ignore[no-untyped-def]
    """`found[r, j]` = the sum over i of `rows[r, i] * columns[j, i]`, four rows by two columns.

    Of the last ones, some are done twice where the numbers are not multiples of four and two.
    """
    K = len(columns)
    for r in range(0, count, 4):
        r1, r2, r3 = min(r + 1, count - 1), min(r + 2, count - 1), min(r + 3, count - 1)
        x0, x1, x2, x3 = rows[r], rows[r1], rows[r2], rows[r3]
        for j in range(0, K, 2):
            j1 = min(j + 1, K - 1)
            left, right = columns[j], columns[j1]
            a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            for i in range(K):
                p, q = left[i], right[i]
                a0 += x0[i] * p
                a1 += x1[i] * p
                a2 += x2[i] * p
                a3 += x3[i] * p
                b0 += x0[i] * q
                b1 += x1[i] * q
                b2 += x2[i] * q
                b3 += x3[i] * q
            found[r, j], found[r1, j], found[r2, j], found[r3, j] = a0, a1, a2, a3
            found[r, j1], found[r1, j1], found[r2, j1], found[r3, j1] = b0, b1, b2, b3


@inner_sums
def _scale(values):  # type: ignore[no-untyped-def]
    """Divide by the largest; return it, and the least that is not 0 of what is left."""
    most, least = 0.0, math.inf
    for value in values:
        most = max(most, value)
        if 0 < value < least:
            least = value
    factor = 1 / most
    for j in range(len(values)):
        values[j] *= factor
    return most, least * factor


@compiled_sums
def forward_sums(  # type: ignore[no-untyped-def]
    scores, powers, lengths, order, columns, first, last, leasts, lows, alphas, totals, doubts
):
    r"""Write $\alpha$, the logarithm of each row's sum, and which rows are in doubt.

    Args:
        scores: s (B, T, K).
        powers: E (B, T, K).
        lengths: Steps of each row (B,).
        order: The rows by falling length (B,).
        columns: The columns of P as rows (K, K).
        first: $e^{b - \max b}$ (K,).
        last: $e^{e - \max e}$ (K,).
        leasts: The least of P, first and last that is allowed (3,).
        lows: Written (B, T), the least of E at each step.
        alphas: Written (T, B, K), steps first and rows in order; 0 on padding.
        totals: Written (B,); without the maxima of A, s, b and e.
        doubts: Set to True where `totals` does not hold (B,).
    """
    B, T, K = scores.shape
    sums, low = np.empty((B, K)), np.empty(B)
    low[:] = leasts[1]
    totals[:] = 0.0
    count = B
    for t in range(T):
        while count and lengths[order[count - 1]] <= t:
            count -= 1
        alphas[t, count:] = 0.0
        if t:
            _products(alphas[t - 1], count, columns, sums)
        for r in range(count):
            b = order[r]
            before = sums[r] if t else first
            step = leasts[0] if t else 1.0
            after, power = alphas[t, r], powers[b, t]
            lows[b, t] = _least(scores[b, t], power)
            for j in range(K):
                after[j] = before[j] * power[j]
            if not low[r] * step * lows[b, t] >= TINY:
                doubts[b] = True
            most, low[r] = _scale(after)
            totals[b] += math.log(most)
            if t == lengths[b] - 1:
                total = 0.0
                for j in range(K):
                    total += after[j] * last[j]
                if not (low[r] * leasts[2] >= TINY and total >= TINY):
                    doubts[b] = True
                totals[b] += math.log(total)


@compiled_sums
def backward_sums(  # type: ignore[no-untyped-def]  # noqa: PLR0912
    powers, lengths, order, matrix, last, leasts, lows, alphas, weights, unary, ahead, doubts
):
    r"""Marginals, which are the gradient of the total, times a weight a row.

    $$p(y_t = j) = \frac{\alpha_t(j) \beta_t(j)}{\sum_i \alpha_t(i) \beta_t(i)}, \quad
    p(y_{t-1} = i, y_t = j) = \frac{\alpha_{t-1}(i) P_{ij} E_t(j) \beta_t(j)}{
    \sum_i \alpha_{t-1}(i) \sum_j P_{ij} E_t(j) \beta_t(j)}$$

    Args:
        powers: (B, T, K); and so on as in `forward_sums`.
        lengths: (B,).
        order: (B,).
        matrix: P (K, K).
        last: (K,).
        leasts: (3,).
        lows: What `forward_sums` wrote.
        alphas: The same.
        weights: What each row counts (B,).
        unary: Written (B, T, K), of each tag at each step; 0 on padding.
        ahead: Written (T, B, K), $E_t \beta_t$ divided as above and times the weight: of the
            transitions over all steps, the marginals are P times what `alphas` of every step but
            the last and this of every step but the first make as a product of matrices.
        doubts: Set to True where what was written does not hold (B,).
    """
    B, T, K = powers.shape
    betas, low = np.empty((B, K)), np.empty(B)
    count = 0
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            _products(ahead[t + 1], count, matrix, betas)
        while count < B and lengths[order[count]] > t:
            betas[count] = last
            count += 1
        for r in range(count, B):
            unary[order[r], t] = 0.0
            ahead[t, r] = 0.0
        for r in range(count):
            b, beta, alpha = order[r], betas[r], alphas[t, r]
            total = 0.0
            for j in range(K):
                total += alpha[j] * beta[j]
            if not total >= TINY:
                doubts[b] = True
            share = weights[b] / total
            for j in range(K):
                unary[b, t, j] = share * alpha[j] * beta[j]
            if t < lengths[b] - 1:
                for j in range(K):
                    ahead[t + 1, r, j] *= share
            if t:
                low[r] = _scale(beta)[1]
                if not low[r] * lows[b, t] * leasts[0] >= TINY:
                    doubts[b] = True
                for j in range(K):
                    ahead[t, r, j] = powers[b, t, j] * beta[j]


@inner
def _log_sum(first, second):  # type: ignore[no-untyped-def]
    """The logarithm of the sum of the exponentials of the sums of two rows, term by term."""
    largest = -np.inf
    for i in range(len(first)):
        largest = max(largest, first[i] + second[i])
    total = 0.0
    for i in range(len(first)):
        value = first[i] + second[i]
        if value != -np.inf:
            total += math.exp(value - largest)
    return largest + math.log(total)


@inner
def _alphas_by_logs(scores, columns, start, end, alphas):  # type: ignore[no-untyped-def]
    T, K = scores.shape
    for j in range(K):
        alphas[0, j] = start[j] + scores[0, j]
    for t in range(1, T):
        for j in range(K):
            alphas[t, j] = scores[t, j] + _log_sum(alphas[t - 1], columns[j])
    return _log_sum(alphas[T - 1], end)


@compiled
def totals_by_logs(scores, lengths, columns, start, end, doubts, totals):  # type: ignore[no-untyped-def]
    r"""The logarithm of the sum over all paths of each row in doubt, for scores of any size.

    $$\alpha_t(j) = s_t(j) + \log \sum_i e^{\alpha_{t-1}(i) + A_{ij}}$$

    Args:
        scores: (B, T, K).
        lengths: (B,).
        columns: The columns of A as rows (K, K).
        start: Of the first tag (K,).
        end: Of the last tag (K,).
        doubts: (B,).
        totals: Written where there is doubt (B,).
    """
    alphas = np.empty(scores.shape[1:])
    for b in range(len(scores)):
        if doubts[b]:
            totals[b] = _alphas_by_logs(scores[b, : lengths[b]], columns, start, end, alphas)


@compiled
def marginals_by_logs(  # type: ignore[no-untyped-def]
    scores, lengths, matrix, columns, start, end, doubts, weights, unary, pairs
):
    r"""Marginals of each row in doubt, times its weight.

    $$\beta_t(i) = \log \sum_j e^{A_{ij} + s_{t+1}(j) + \beta_{t+1}(j)}, \quad
    p(y_t = j) = e^{\alpha_t(j) + \beta_t(j) - \log Z}, \quad
    p(y_{t-1} = i, y_t = j) = e^{\alpha_{t-1}(i) + A_{ij} + s_t(j) + \beta_t(j) - \log Z}$$

    Args:
        scores: (B, T, K); and so on as in `totals_by_logs`.
        lengths: (B,).
        matrix: A (K, K).
        columns: (K, K).
        start: (K,).
        end: (K,).
        doubts: (B,).
        weights: (B,).
        unary: Written where there is doubt (B, T, K).
        pairs: Added to (K, K).
    """
    T, K = scores.shape[1:]
    alphas, beta, ahead = np.empty((T, K)), np.empty(K), np.empty(K)
    for b in range(len(scores)):
        if not doubts[b]:
            continue
        n, weight = lengths[b], weights[b]
        total = _alphas_by_logs(scores[b, :n], columns, start, end, alphas)
        beta[:] = end
        for t in range(n - 1, -1, -1):
            for j in range(K):
                unary[b, t, j] = weight * math.exp(alphas[t, j] + beta[j] - total)
                ahead[j] = scores[b, t, j] + beta[j]
            if t == 0:
                break
            for i in range(K):
                before = alphas[t - 1, i] - total
                for j in range(K):
                    pairs[i, j] += weight * math.exp(before + matrix[i, j] + ahead[j])
                beta[i] = _log_sum(ahead, matrix[i])


@compiled
def take_scores(scores, tags, lengths, matrix, start, end, totals):  # type: ignore[no-untyped-def]
    """Take the score of a given path of each row from its total; scores (B, T, K), tags (B, T)."""
    for b in range(len(tags)):
        n = lengths[b]
        total = start[tags[b, 0]] + end[tags[b, n - 1]]
        for t in range(n):
            total += scores[b, t, tags[b, t]]
            if t:
                total += matrix[tags[b, t - 1], tags[b, t]]
        totals[b] -= total


@compiled
def take_paths(tags, lengths, weights, unary, pairs, firsts, lasts):  # type: ignore[no-untyped-def]
    """Take a given path of each row, times its weight, from marginals."""
    for b in range(len(tags)):
        weight, n = weights[b], lengths[b]
        firsts[tags[b, 0]] -= weight
        lasts[tags[b, n - 1]] -= weight
        for t in range(n):
            unary[b, t, tags[b, t]] -= weight
            if t:
                pairs[tags[b, t - 1], tags[b, t]] -= weight
