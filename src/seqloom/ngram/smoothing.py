"""From counts to a back-off model, by any of the methods of smoothing.

All are one rule an order (`methods.py`), so there is one set of loops: add up each history's
denominator and what is left of it, then go through the n-grams once more for their probabilities.
What an order needs from its own counts is independent of other orders, so they share the cores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import in_threads
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.discounts import Facts, Rule
from seqloom.ngram.levels import CountLevel, Counts, Level, Ngrams, Reals, Rows
from seqloom.ngram.methods import SMOOTHINGS, Smoothing, smoothing
from seqloom.ngram.mixture import fit_weights
from seqloom.ngram.passes import (
    add_up,
    count_before,
    count_counts,
    cover,
    keep_beginnings,
    settle_sums,
    weigh_counts,
)
from seqloom.ngram.pruning import kept_rows, prune_levels, thresholds_of
from seqloom.ngram.words import BOS, EOS, UNK
from seqloom.ngram.workspace import Workspace

__all__ = ["SMOOTHINGS", "Smoothing", "smooth", "smoothing"]


def _to_stderr(line: str) -> None:
    print(f"seqloom: {line}", file=sys.stderr)  # noqa: T201


def smooth(
    counts: Counts,
    smoothing: Smoothing,
    place: Workspace,
    *,
    held_out: Rows | None = None,
    prune: Sequence[int] = (),
    closed: bool = False,
    say: Callable[[str], None] = _to_stderr,
) -> Ngrams:
    """Turn counts into a back-off model.

    The list `counts.levels` is emptied, so that columns are free once they are used; to use counts
    twice, pass `Counts(counts.words, [*counts.levels], counts.tokens)`.

    Args:
        counts: What the text holds.
        smoothing: How to smooth, see `methods.py`.
        place: Where columns go.
        held_out: Text to find the weights of a mixture on, as word numbers.
        prune: By order, the count up to which an n-gram is left out; the last holds for all higher
            orders. Discounts and denominators come from all n-grams; what the pruned ones had goes
            to shorter histories.
        closed: Whether `<unk>` has no probability: every word there will be is in the vocabulary.
        say: Called with one line if discounts were undefined and the fallback was used.

    Raises:
        ConfigError: A setting does not fit the order or another setting.
        DataError: A text for a closed vocabulary holds words outside it.
    """
    if closed:
        _check_closed(counts, smoothing)
    levels = [_as_unigrams(counts.levels[0]), *counts.levels[1:]]
    thresholds = thresholds_of(prune, len(levels))
    _check_length("discounts", smoothing.discounted, len(levels), exact=False)
    kept_words = kept_rows(levels[0], 1, thresholds[0], place)
    vocabulary = int(kept_words.sum()) - 1 - closed  # without <s>
    weights = _weights(levels, smoothing, held_out, vocabulary, place)
    counts.levels.clear()
    last = _last_in_suffix_order(levels, place) if smoothing.continuation else []

    def prepare(order: int) -> _Prepared:
        count, counted = _count(levels, order, smoothing, last, place)
        facts = Facts(
            order=order,
            counted=counted,
            kind="count" if count is levels[order - 1].count else "adjusted count",
            vocabulary=vocabulary,
            weight=weights[order - 1],
        )
        rule = smoothing.rule(facts)
        full = not smoothing.uniform or order == len(levels)
        sums = _add_up_order(levels, order, count, rule, thresholds[order - 1], full, place)
        return _Prepared(rule, count, sums)

    prepared = in_threads(prepare, reversed(range(1, len(levels) + 1)))[::-1]
    rules = [each.rule for each in prepared]
    _explain(rules, smoothing, counts.tokens, say)
    made, kept = _make(levels, prepared, smoothing, thresholds, vocabulary, place)
    if closed:
        made[0].prob[UNK] = -np.inf
    words = counts.words
    if kept:
        made = prune_levels(made, kept, place)
        words = words.only(kept_words) if thresholds[0] else words
    about: dict[str, Any] = {
        "smoothing": smoothing.name,
        "discounts": [list(rule.discounts[1:]) for rule in rules],
        "tokens": counts.tokens,
        "distribution": smoothing.backoff is None,
    }
    if smoothing.mixture:
        about["weights"] = list(weights)
    if kept:
        about["prune"] = thresholds
    if closed:
        about["closed"] = True
    missing = 0.0 if smoothing.backoff is None else math.log10(smoothing.backoff)
    return Ngrams(words, made, missing_backoff=missing, about=about)


@dataclass
class _Prepared:
    """What is known of an order before the probabilities of the order below are.

    `sums` has two numbers a history: first its denominator and what is left of it, then the factor
    of its counts and its back-off weight.
    """

    rule: Rule
    count: NDArray[np.uint32]
    sums: Reals


def _as_unigrams(level: CountLevel) -> CountLevel:
    """Order 1 like any other: all words after the empty history, row 0; `<s>` never predicted."""
    count = level.count.copy()
    count[BOS] = 0
    context = np.zeros(len(level), np.uint32)
    return CountLevel(context, level.suffix, level.word, count, level.begins)


def _check_closed(counts: Counts, smoothing: Smoothing) -> None:
    unknown = int(counts.levels[0].count[UNK])
    if unknown:
        raise DataError(
            f"a closed vocabulary must hold every word of the text, got {unknown:,} others; "
            "leave the vocabulary open"
        )
    if not smoothing.interpolate_unigrams:
        raise ConfigError(
            "interpolate_unigrams=False gives what is left to <unk>, which a closed vocabulary "
            "does not have; choose one of the two"
        )


def _check_length(what: str, length: int, order: int, *, exact: bool) -> None:
    if length > order or (exact and length != order):
        raise ConfigError(
            f"{what} must be {'as many as' if exact else 'no more than'} the orders, {order}, "
            f"got {length}; give one an order from order 1 on"
        )


def _weights(
    levels: Sequence[CountLevel],
    smoothing: Smoothing,
    held_out: Rows | None,
    vocabulary: int,
    place: Workspace,
) -> tuple[float, ...]:
    if not smoothing.mixture:
        return (1.0,) * len(levels)
    if smoothing.weights is not None:
        _check_length("weights", len(smoothing.weights), len(levels), exact=True)
        return smoothing.weights
    if held_out is None or not (held_out != BOS).any():
        raise ConfigError(
            f"{smoothing.name} needs a text to find the weights of its orders on, got "
            f"{'none' if held_out is None else 'an empty one'}; give `held_out` or `weights`"
        )
    return fit_weights(levels, held_out, vocabulary, place)


def _explain(
    rules: Sequence[Rule], smoothing: Smoothing, tokens: int, say: Callable[[str], None]
) -> None:
    """Say in one line where and why discounts are the fallback."""
    bad = [(order, rule) for order, rule in enumerate(rules, 1) if rule.undefined]
    if bad:
        orders = ", ".join(str(order) for order, _ in bad)
        used = ", ".join(f"{discount:g}" for discount in bad[0][1].discounts[1:])
        say(
            f"{', '.join(rule.undefined for _, rule in bad)}, so the {smoothing.name} discounts of "
            f"order {orders} are undefined (corpus: {tokens} tokens) and {used} took their place; "
            f"use smoothing='witten-bell' or add text"
        )


def _count(
    levels: Sequence[CountLevel],
    order: int,
    smoothing: Smoothing,
    last: Sequence[int],
    place: Workspace,
) -> tuple[NDArray[np.uint32], list[int]]:
    """The counts an order is smoothed by, and how many n-grams have each small count."""
    level = levels[order - 1]
    count = level.count
    if smoothing.continuation and order < len(levels):
        count = place.zeros(len(level), np.uint32)
        for low, window in place.windows(count, changes=True):
            for start, end in place.chunks(len(levels[order])):
                count_before(start, end, levels[order].suffix, low, window)
        for start, end in place.chunks(len(level)):
            keep_beginnings(start, end, level.begins, level.count, count)
    counted = np.zeros(smoothing.highest_count + 1, np.int64)
    for start, end in place.chunks(len(level)):
        count_counts(start, end, count, counted)
    if order <= len(last):
        row = last[order - 1]
        for used, change in ((count[row], -1), (level.count[row], 1)):
            if used < len(counted):
                counted[used] += change
    return count, counted.tolist()


def _last_in_suffix_order(levels: Sequence[CountLevel], place: Workspace) -> list[int]:
    """By order, below the highest, the row of the last n-gram when read from its end.

    For this one lmplz adds the count of occurrences to its counts of counts, not the number of
    words before it (its `AdjustCounts::Run`, where the loop is over), which shows in the discounts
    of a small text. To have the same discounts is worth the oddity. Its n-grams are sorted by
    their last word, then by the one before, with `<s>` before each sentence; from the order on at
    which the last one begins with `<s>`, higher ones are not concerned.
    """
    rows: list[int] = []
    for order, level in enumerate(levels[:-1], 1):
        if order == 1:
            found = np.flatnonzero(level.count)
        else:
            pieces = [
                start + np.flatnonzero(level.suffix[start:end] == np.uint32(rows[-1]))
                for start, end in place.chunks(len(level))
            ]
            found = np.concatenate([np.empty(0, np.int64), *pieces])
        if not len(found):
            break
        first: NDArray[Any] = found
        for shorter in reversed(levels[1:order]):
            first = shorter.context[first]
        rows.append(int(found[first.argmax()]))
        if first.max() == BOS:
            break
    return rows


def _add_up_order(
    levels: Sequence[CountLevel],
    order: int,
    count: NDArray[np.uint32],
    rule: Rule,
    threshold: int,
    full: bool,
    place: Workspace,
) -> Reals:
    level = levels[order - 1]
    sums = place.zeros(2 * len(levels[order - 2]), np.float64) if order > 1 else np.zeros(2)
    discounts = np.array(rule.discounts)
    spared = EOS + 1 if order == 1 else 0
    for start, end in place.chunks(len(level)):
        add_up(
            start, end, level.context, count, level.count, level.begins, full, threshold, spared,
            discounts, rule.per_type, rule.scale, sums,
        )  # fmt: skip
    return sums


def _make(
    levels: list[CountLevel],
    prepared: list[_Prepared],
    smoothing: Smoothing,
    thresholds: Sequence[int],
    vocabulary: int,
    place: Workspace,
) -> tuple[list[Level], dict[int, NDArray[np.bool_]]]:
    """The model with all n-grams, and which to keep of the orders that are pruned.

    Both lists are emptied order by order, which frees their columns.
    """
    made: list[Level] = []
    kept: dict[int, NDArray[np.bool_]] = {}
    below = uniform = np.full(1, 1 / vocabulary)
    for order, threshold in enumerate(thresholds, 1):
        level, own = levels.pop(0), prepared.pop(0)
        lower = uniform if smoothing.uniform else below
        probs = _probabilities(level, own, order, smoothing, lower, threshold, place)
        if made:
            made[-1].backoff = _backoffs(own.sums, smoothing, place)
            _logs(below, place)
        if threshold:
            kept[order] = kept_rows(level, order, threshold, place)
        context = level.context if order > 1 else np.empty(0, np.uint32)
        made.append(Level(context, level.word, probs, np.empty(0)))
        below = probs
    _logs(below, place)
    return made, kept


def _probabilities(
    level: CountLevel,
    own: _Prepared,
    order: int,
    smoothing: Smoothing,
    lower: Reals,
    threshold: int,
    place: Workspace,
) -> Reals:
    """The probabilities of an order from those of the order below; settles its histories too."""
    rule, sums = own.rule, own.sums
    covered = np.empty(0)
    if not smoothing.interpolated:
        covered = place.zeros(len(sums) // 2, np.float64) if order > 1 else np.zeros(1)
        if smoothing.backoff is None or order == 1:
            spared = EOS + 1 if order == 1 else 0
            for low, window in _windows(lower, order, smoothing, place):
                for start, end in place.chunks(len(level)):
                    cover(
                        start, end, level.context, level.suffix, own.count, level.count,
                        threshold, spared, low, window, covered,
                    )  # fmt: skip

    def settle(start: int, end: int) -> None:
        settle_sums(start, end, sums, covered, rule.constant, rule.spare, rule.scale)

    place.in_pieces(settle, 0, len(sums) // 2)
    left = 0.0
    if order == 1 and not smoothing.interpolate_unigrams:
        left, sums[1] = sums[1], 0.0
    probs = place.empty(len(level), np.float64)
    discounts = np.array(rule.discounts)

    for low, window in _windows(lower, order, smoothing, place):

        def weigh(start: int, end: int, low: int = low, window: Reals = window) -> None:
            weigh_counts(
                start, end, level.context, level.suffix, own.count,
                discounts, sums, low, window, smoothing.interpolated, probs,
            )  # fmt: skip

        place.in_pieces(weigh, 0, len(level))
    if order == 1:
        probs[UNK] += left
        probs[BOS] = 1.0  # lmplz's convention
    return probs


def _windows(
    lower: Reals, order: int, smoothing: Smoothing, place: Workspace
) -> Iterable[tuple[int, Reals]]:
    """The probabilities of the order below in windows, or the one that all words share, at -1."""
    return [(-1, lower)] if order == 1 or smoothing.uniform else place.windows(lower)


def _backoffs(sums: Reals, smoothing: Smoothing, place: Workspace) -> Reals:
    column = place.empty(len(sums) // 2, np.float64)

    def fill(start: int, end: int) -> None:
        if smoothing.backoff is None:
            _log10(sums[2 * start + 1 : 2 * end : 2], column[start:end])
        else:
            column[start:end] = math.log10(smoothing.backoff)

    place.in_pieces(fill, 0, len(column))
    return column


def _logs(column: Reals, place: Workspace) -> None:
    """Probabilities to logarithms, in place."""
    place.in_pieces(lambda low, high: _log10(column[low:high], column[low:high]), 0, len(column))


def _log10(x: Reals, out: Reals) -> None:
    """Numpy's logarithm works on several numbers at once; that of 0 is -inf here."""
    with np.errstate(divide="ignore"):
        np.log10(x, out=out)
