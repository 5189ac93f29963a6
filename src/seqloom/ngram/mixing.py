"""Mixing: several back-off models as one, each with its weight.

All models are laid over one set of rows, the n-grams that any of them has (`Flat` of `prune.py`),
so one hash table serves them all and a model is two columns: what it says of every row, backing
off where it lacks it, and its back-offs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled, prefetch
from seqloom.errors import ConfigError, DataError
from seqloom.ngram.corpus import TextSource, read_corpus
from seqloom.ngram.counting import key_of
from seqloom.ngram.levels import Ngrams, Reals, Rows
from seqloom.ngram.linked import (
    Flat,
    backed_off,
    check_distribution,
    find_slot,
    home_of,
    link,
    longest,
    make_table,
    renormalize,
    starts_of,
    to_ngrams,
)
from seqloom.ngram.words import BOS, NONE, Words, add_words, table_size
from seqloom.ngram.workspace import Workspace

_AHEAD = 16  # rows ahead of a loop whose slots are on their way from memory
_ROUNDS, _STILL = 1000, 1e-7  # EM ends when no weight moves more than this
_BYTES = 48  # what a row takes at most, table and columns together; 16 more a model


def mix(
    models: Sequence[Ngrams],
    weights: Sequence[float] | None = None,
    *,
    held_out: TextSource | None = None,
    place: Workspace | None = None,
) -> tuple[Ngrams, list[float]]:
    r"""Interpolate back-off models into one back-off model.

    $$p(w | h) = \sum_i \lambda_i \, p_i(w | h)$$

    for every n-gram $h w$ that one of the models has, each backing off where it lacks it; then
    the back-offs are set so that all probabilities after a history sum to 1. N-grams that no
    model has are backed off to by the one model, so it is near the sum, not equal to it.

    The vocabulary is that of all models together. A word that a model does not know has the
    probability 0 by it, not that of its `<unk>`, whose share stays with `<unk>`: so every model
    sums to 1 over all words. In a history such a word is one that was never seen there.

    Without weights, those that make a text most probable are found by expectation maximization,
    from equal ones on; words that no model knows count as `<unk>`. A round is

    $$\lambda_i \leftarrow \frac{1}{T} \sum_{t=1}^T
    \frac{\lambda_i \, p_i(w_t | h_t)}{\sum_j \lambda_j \, p_j(w_t | h_t)}$$

    Paper: Jelinek and Mercer (1980), "Interpolated Estimation of Markov Source Parameters from
    Sparse Data" for the weights; Stolcke (2002), "SRILM - an Extensible Language Modeling
    Toolkit" for the static model (`ngram -mix-lm`).

    Args:
        models: The models, of any orders; they are left as they are.
        weights: One a model, from 0 on, 1 in all. A model of weight 0 is left out, words and all.
        held_out: A text to find the weights on: a path, a glob, "-", or an iterable of sentences.
        place: Where columns go.

    Returns:
        The model, of the highest order among them, and the weights.

    Raises:
        ConfigError: If the weights make no sense, both or neither of `weights` and `held_out` are
            given, or a model is no distribution (stupid back-off).
        DataError: If there is no held-out text, or no model gives any of it a probability.
    """
    place = place or Workspace()
    if not models:
        raise ConfigError("mix needs at least one model, got none; give a list of models")
    for model in models:
        check_distribution(model, "mix")
    if (weights is None) == (held_out is None):
        what = "neither" if weights is None else "both"
        raise ConfigError(f"mix needs either weights or held_out, got {what}; give one of them")
    shares = None if weights is None else _checked(weights, len(models))
    used = [model for i, model in enumerate(models) if shares is None or shares[i] > 0]
    union = _unite(used, place)
    said = [_lay_over(union.flat, *pair, place) for pair in zip(used, union.rows, strict=True)]
    if shares is None:
        assert held_out is not None
        shares = _fit(union, said, held_out, place)
        if 0 in shares:
            return mix(models, shares, place=place)
    _add(said, [share for share in shares if share > 0], union.flat, place)
    renormalize(union.flat, place)
    about = {
        "smoothing": "mixture",
        "weights": shares,
        "models": [model.about for model in models],
        "distribution": True,
    }
    return to_ngrams(union.flat, union.words, about, place), shares


class _Union(NamedTuple):
    """The words and n-grams of several models; of their probabilities there are none yet.

    Args:
        words: The vocabulary.
        flat: The n-grams.
        table: Finds them.
        rows: By model, the row here of each row there, its orders one after another.
    """

    words: Words
    flat: Flat
    table: NDArray[np.uint64]
    rows: list[Rows]


class _Said(NamedTuple):
    """What one model says of the rows of a union: log10 of probabilities and of back-offs."""

    prob: Reals
    backoff: Reals


def _checked(weights: Any, models: int) -> list[float]:
    listed: list[Any] = list(weights) if isinstance(weights, Iterable) else [None]
    if not all(isinstance(weight, int | float | np.number) for weight in listed):
        raise ConfigError(f"weights must be a list of numbers, one a model, got {weights!r}")
    given = [float(weight) for weight in listed]
    if len(given) != models:
        raise ConfigError(f"weights must be one a model, {models}, got {len(given)}: {given}")
    if not all(weight >= 0 for weight in given) or not abs(sum(given) - 1) <= 1e-6:
        raise ConfigError(
            f"weights must be at least 0 and sum to 1, got {given}, which sum to {sum(given):g}; "
            "divide them by their sum"
        )
    return [weight / sum(given) for weight in given]


def _unite(models: Sequence[Ngrams], place: Workspace) -> _Union:
    """The n-grams of all models: those of the first in its order, then what others add."""
    words, numbers = _join_words([model.words for model in models])
    most = starts_of([sum(model.sizes) for model in models])[-1]
    place.spill_above(most * (_BYTES + 16 * len(models)))
    table = make_table(most)
    context, suffix, word = (place.empty(most, np.uint32) for _ in range(3))
    context[: len(words)], word[: len(words)] = NONE, np.arange(len(words))
    rows: list[Rows] = [place.empty(sum(model.sizes), np.uint32) for model in models]
    for own, number in zip(rows, numbers, strict=True):
        own[: len(number)] = number
    starts = [0, len(words)]
    for o in range(1, max(model.order for model in models)):
        n = starts[-1]
        for model, number, own in zip(models, numbers, rows, strict=True):
            if o < model.order:
                below, here = starts_of(model.sizes)[o - 1 : o + 1]
                level = model.levels[o]
                for start, end in place.chunks(len(level)):
                    n = _join(
                        start, end, level.context, level.word, own[below:], number,
                        table, context, word, own[here:], n,
                    )  # fmt: skip
        starts.append(int(n))
    size, prob = starts[-1], place.empty(starts[-1], np.float64)
    backoff = place.empty(starts[-2], np.float64)
    flat = Flat(starts, context[:size], suffix[:size], word[:size], prob, backoff)
    link(flat, table, place)
    return _Union(words, flat, table, rows)


def _join_words(vocabularies: Sequence[Words]) -> tuple[Words, list[Rows]]:
    """One vocabulary of all, and by vocabulary the number in it of each word."""
    most = sum(map(len, vocabularies))
    pool = np.empty(sum(int(words.offsets[-1]) for words in vocabularies), np.uint8)
    offsets, table = np.zeros(most + 1, np.int64), np.zeros(table_size(most), np.uint64)
    numbers: list[Rows] = []
    count = 0
    for words in vocabularies:
        own = np.empty(len(words), np.uint32)
        count = add_words(
            len(words), words.pool, words.offsets, table, count, pool, offsets, own
        )  # fmt: skip
        numbers.append(own)
    return Words(pool[: offsets[count]], offsets[: count + 1], table), numbers


def _lay_over(flat: Flat, model: Ngrams, rows: Rows, place: Workspace) -> _Said:
    """What a model says of all rows: what it has, and what follows from it by backing off."""
    prob, backoff = (
        place.empty(len(flat.word), np.float64),
        place.zeros(len(flat.backoff), np.float64),
    )
    prob[: flat.starts[1]], prob[flat.starts[1] :] = -np.inf, np.nan
    at = 0
    for level in model.levels:
        for start, end in place.chunks(len(level)):
            own = rows[at + start : at + end]
            prob[own] = level.prob[start:end]
            if len(level.backoff):
                backoff[own] = level.backoff[start:end]
        at += len(level)
    for low, high in pairwise(flat.starts[1:]):
        place.in_pieces(_fill, low, high, flat.context, flat.suffix, prob, backoff)
    return _Said(prob, backoff)


def _add(said: Sequence[_Said], weights: Sequence[float], flat: Flat, place: Workspace) -> None:
    """Fill `prob` with the weighted sum; so too `backoff`, where `renormalize` may leave it."""

    def add(start: int, end: int, columns: list[Reals], goal: Reals) -> None:
        total = np.zeros(end - start)
        for weight, column in zip(weights, columns, strict=True):
            total += weight * 10.0 ** column[start:end]
        with np.errstate(divide="ignore"):
            goal[start:end] = np.log10(total)

    place.in_pieces(add, 0, len(flat.prob), [each.prob for each in said], flat.prob)
    place.in_pieces(add, 0, len(flat.backoff), [each.backoff for each in said], flat.backoff)
    flat.prob[BOS] = said[0].prob[BOS]  # never predicted, so a convention


def _fit(union: _Union, said: Sequence[_Said], source: TextSource, place: Workspace) -> list[float]:
    """The weights that make a text most probable."""
    ids = read_corpus(source, place, words=union.words).ids
    flat = union.flat
    states, logs = np.empty(len(ids), np.uint32), np.empty(len(ids))
    _follow(ids, flat.suffix, union.table, states)
    probs = np.empty((len(said), int(np.count_nonzero(ids != BOS))))
    for row, (prob, backoff) in zip(probs, said, strict=True):
        _score(ids, states, flat.starts[-2], flat.context, flat.suffix, prob, backoff, logs)
        row[:] = 10.0 ** logs[ids != BOS]
    probs = probs[:, probs.sum(0) > 0]
    if not probs.size:
        raise DataError(
            "held_out must hold a word that a model gives a probability, got none in "
            f"{len(ids)} words and marks; give a text like those of the models"
        )
    return fit_shares(probs)


def fit_shares(probs: Reals) -> list[float]:
    """The weights of a mixture that make a text most probable, from equal ones on, by EM.

    Args:
        probs: (M, T) the probability of each word of the text by each model; every word must have
            one by some model.
    """
    weights = np.full(len(probs), 1 / len(probs))
    for _ in range(_ROUNDS):
        moved = weights * (probs / (weights @ probs)).mean(1)
        still = np.abs(moved - weights).max() < _STILL
        weights = moved
        if still:
            break
    return [float(weight) for weight in weights / weights.sum()]


@compiled
def _join(  # type: ignore[no-untyped-def]
    start, end, context, word, below, numbers, table, contexts, words, rows, n
):  # fmt: skip
    """Enter n-grams that are not there yet, from row n on; `rows` gets the row of each."""
    for i in range(start, end):
        if i + _AHEAD < end:
            key = key_of(below[context[i + _AHEAD]], numbers[word[i + _AHEAD]])
            prefetch(table, home_of(table, key))
        key = key_of(below[context[i]], numbers[word[i]])
        slot = find_slot(table, key)
        if table[slot] == 0:
            table[slot], table[slot + 1] = key, n
            contexts[n], words[n] = below[context[i]], numbers[word[i]]
            n += 1
        rows[i] = table[slot + 1]
    return n


@compiled
def _fill(start, end, context, suffix, prob, backoff):  # type: ignore[no-untyped-def]
    """What a model says of the rows of an order it lacks, once lower orders are filled."""
    for i in range(start, end):
        if np.isnan(prob[i]):
            h = context[i]
            prob[i] = backoff[h] + backed_off(suffix[i], suffix[h], context, suffix, prob, backoff)


@compiled
def _follow(ids, suffix, table, states):  # type: ignore[no-untyped-def]
    """By position of a text, the longest n-gram that ends there."""
    for i in range(len(ids)):
        states[i] = BOS if ids[i] == BOS else longest(table, suffix, states[i - 1], ids[i])


@compiled
def _score(ids, states, top, contexts, suffix, prob, backoff, values):  # type: ignore[no-untyped-def]
    """log10 of the probability of each word but `<s>` by one model.

    `top` is the first row of the highest order, whose n-grams are no contexts but their suffixes.
    """
    for i in range(len(ids)):
        if ids[i] != BOS:
            before = states[i - 1]
            context = suffix[before] if before >= top else before
            values[i] = backed_off(states[i], context, contexts, suffix, prob, backoff)
