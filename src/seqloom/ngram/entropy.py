"""Pruning by relative entropy: leaving out the n-grams that a back-off model can do without."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, in_threads, inner, prefetch
from seqloom.errors import ConfigError
from seqloom.ngram.levels import Ngrams, Reals, Rows
from seqloom.ngram.linked import (
    Flat,
    backed_off,
    check_distribution,
    flatten,
    renormalize,
    sums_of,
    to_ngrams,
)
from seqloom.ngram.words import BOS, EOS, NONE
from seqloom.ngram.workspace import Workspace

_U = np.uint64
_1, _32 = _U(1), _U(32)
_NONE = np.uint32(NONE)
_LN10 = math.log(10)
_NONE_FREE = 1e-12  # less than this left by the words seen after a history: all words were
_AHEAD = 16  # rows ahead of a loop whose cells are on their way from memory


def prune_by_entropy(ngrams: Ngrams, threshold: float, place: Workspace | None = None) -> Ngrams:
    r"""Leave out every n-gram whose loss raises the model's own perplexity by less than a share.

    Without the n-gram $h w$ the distribution after h changes, and the relative entropy between
    the two models is

    $$D = -p(h) \{ p(w|h) [\log p(w|h') + \log \alpha'(h) - \log p(w|h)]
    + [\log \alpha'(h) - \log \alpha(h)] (1 - \sum_{v: hv} p(v|h)) \}$$

    $$\alpha'(h) = \frac{1 - \sum_{v: hv} p(v|h) + p(w|h)}{1 - \sum_{v: hv} p(v|h') + p(w|h')}$$

    with h' the history without its first word. It goes if $e^D - 1 <$ threshold, unless a longer
    n-gram that stays goes on from it. Words stay. All decisions look at the model as it was; at
    the end $\alpha(h) = (1 - \sum p(v|h)) / (1 - \sum p(v|h'))$ again for what is left, so that
    the result sums to 1 where the model did.

    Paper: Stolcke (1998), "Entropy-based Pruning of Backoff Language Models", equations 3 to 5.
    Differs from the paper: $p(h)$ begins with $p(\text{</s>})$ where h begins with `<s>`, which is
    never predicted itself; there are as many of both. SRILM has it so.

    $p(h)$ is the product of the model's own probabilities. In Kneser-Ney models those of lower
    orders say after how many words a word occurs, not how often, so $p(h)$ is wrong and pruning
    costs more than it does with other smoothings: Chelba et al. (2010), "Study on Interaction
    between Entropy Pruning and Kneser-Ney Smoothing".

    Args:
        ngrams: The model; it is left as it is.
        threshold: The least relative increase of perplexity an n-gram must be worth, such as
            1e-8. At 0 all stay, those that cost nothing among them.
        place: Where columns go.

    Returns:
        The smaller model; of a lower order if no n-gram of the highest is left.

    Raises:
        ConfigError: If the threshold is negative, or the model no distribution (stupid back-off).
    """
    if not threshold >= 0:
        raise ConfigError(f"threshold must be at least 0, got {threshold}; 1e-8 is usual")
    check_distribution(ngrams, "prune_by_entropy")
    place = place or Workspace()
    flat = flatten(ngrams, place)
    keep = _worth_keeping(flat, threshold, place)
    flat = _compact(flat, keep, place)
    renormalize(flat, place)
    return to_ngrams(flat, ngrams.words, ngrams.about | {"entropy_threshold": threshold}, place)


def _worth_keeping(flat: Flat, threshold: float, place: Workspace) -> NDArray[np.bool_]:
    """Which n-grams stay, decided from the highest order down."""
    starts, order, context, prob = flat.starts, len(flat.starts) - 1, flat.context, flat.prob
    keep: NDArray[np.bool_] = place.zeros(starts[-1], np.bool_)
    keep[: starts[1]] = True
    if order == 1:
        return keep
    joint: Reals = place.empty(starts[-2], np.float64)
    joint[: starts[1]] = prob[: starts[1]]
    joint[BOS] = prob[EOS]
    for o in range(1, order - 1):
        for start, end in place.chunks(starts[o + 1] - starts[o]):
            rows = slice(starts[o] + start, starts[o] + end)
            joint[rows] = joint[context[rows]] + prob[rows]
    sums = in_threads(lambda o: sums_of(flat, o, place), reversed(range(1, order)))
    for o in reversed(range(1, order)):
        rest = (joint, sums.pop(0), threshold, keep)
        place.in_pieces(_decide, starts[o], starts[o + 1], starts[o - 1], *flat[1:], *rest)
    return keep


def _compact(flat: Flat, keep: NDArray[np.bool_], place: Workspace) -> Flat:
    """Leave out the rows that do not stay, within the columns; orders that become empty too."""
    names: Rows = place.empty(len(keep), np.uint32)
    starts: list[int] = [0]
    for low, high in pairwise(flat.starts):
        n = starts[-1]
        for start, end in place.chunks(high - low):
            n = int(_move_up(low + start, low + end, n, keep, names, *flat[1:]))
        if n == starts[-1]:
            break
        starts.append(n)
    _, context, suffix, word, prob, backoff = flat
    return Flat(starts, context[:n], suffix[:n], word[:n], prob[:n], backoff[: starts[-2]])


@compiled
def _decide(start, end, low, context, suffix, word, prob, backoff, joint, sums, threshold, keep):  # type: ignore[no-untyped-def]
    """Keep what is worth it and what longer n-grams need; `keep` has the latter already."""
    for i in range(start, end):
        if i + _AHEAD < end:
            prefetch(sums, 2 * np.int64(context[i + _AHEAD] - low))
            prefetch(suffix, np.int64(context[i + _AHEAD]))
            prefetch(prob, np.int64(suffix[i + _AHEAD]))
        h = context[i]
        if not keep[i]:
            increase = 0.0  # of <s>, which is never predicted
            if word[i] != BOS:
                lower = backed_off(suffix[i], suffix[h], context, suffix, prob, backoff)
                at = 2 * np.int64(h - low)
                distance = _distance(prob[i], lower, backoff[h], sums[at], sums[at + 1])
                increase = math.expm1(max(math.exp(joint[h] * _LN10) * distance, 0.0))
            keep[i] = not increase < threshold
        if keep[i]:
            keep[h] = True


@inner
def _distance(prob, lower, backoff, seen, seen_lower):  # type: ignore[no-untyped-def]
    """D / p(h) in the notation of `prune_by_entropy`, all logarithms given to base 10."""
    p, shorter = math.exp(prob * _LN10), math.exp(lower * _LN10)
    left, free = max(1 - seen, 0.0), max(1 - seen_lower, 0.0)
    if free + shorter <= 0:  # the shorter history has no room for the word
        return np.inf if p > 0 else 0.0
    after = math.log10((left + p) / (free + shorter))
    change = p * (lower + after - prob) if p > 0 else 0.0
    if left > _NONE_FREE:
        change += left * (after - backoff)
    return -change * _LN10


@compiled
def _move_up(start, end, n, keep, names, context, suffix, word, prob, backoff):  # type: ignore[no-untyped-def]
    """Move the rows that stay to row n and on.

    `names` gets the new row of what stays; of what goes, that of its longest suffix that stays.
    """
    for i in range(start, end):
        nearest = names[suffix[i]] if suffix[i] != _NONE else _NONE
        if not keep[i]:
            names[i] = nearest
            continue
        names[i] = n
        context[n] = names[context[i]] if context[i] != _NONE else _NONE
        suffix[n] = nearest
        word[n], prob[n] = word[i], prob[i]
        if i < len(backoff):
            backoff[n] = backoff[i]
        n += 1
    return n
