r"""Filling the blank of a sentence $L \_ R$ with one word $w$.

By one model that reads from left to right, a word is as good as the sentence it makes:

$$s(w) = \log P(L\, w\, R)$$

By two, one of which reads from right to left ($\overleftarrow{P}$), both say it:

$$s(w) = \tfrac{1}{2} \left(\log P(L\, w\, R) + \log \overleftarrow{P}(L\, w\, R)\right)$$

A model that sees both sides (a masked one) says $\log p(w \mid L, R)$ itself. In each case the
probability of a word is $e^{s(w)}$, divided by its sum over the words that were tried.

The sentence is scored for a number of candidates only: those of the highest

$$\log p(w \mid L) \quad\text{or}\quad
\log p(w \mid L) + \log \overleftarrow{p}(w \mid R) - \log p(w)$$

where $p(w)$ is the word's share of the training text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, DataError
from seqloom.tasks.generation import next_log_probs
from seqloom.tasks.language_engine import FillsBlanks, Floats, Ids
from seqloom.tasks.parts import check_alike

if TYPE_CHECKING:
    from seqloom.tasks.language_model import LanguageModel

BLANK = re.compile("_{3,}")
PIECE = 64  # sentences scored at a time


class Filling(NamedTuple):
    """A word for a blank: the word, its probability among those tried, and the text with it."""

    word: str
    probability: float
    text: str


def fill(
    model: LanguageModel,
    text: str,
    k: int,
    *,
    right: LanguageModel | None,
    candidates: int,
) -> list[Filling]:
    """The k likeliest words for the blank of a text.

    Raises:
        DataError: If there is not one blank.
        ConfigError: If the models do not go together.
    """
    if k < 1 or candidates < k:
        raise ConfigError(f"k must be at least 1 and candidates at least k, got {k}, {candidates}")
    _check_models(model, right)
    sides = BLANK.split(text)
    if len(sides) != 2:
        raise DataError(
            f"a text to fill must hold one blank, written ___, got {len(sides) - 1} in {text!r}"
        )
    words = [model.pipeline_.words(side) for side in sides]
    left, rest = (model.vocabulary_.encode(side) for side in words)
    if isinstance(model.engine_, FillsBlanks):
        scores = np.asarray(model.engine_.fill_log_probs(left, rest), np.float64)
        tried = _plain(model)
        scores = scores[tried]
    else:
        tried = _candidates(model, right, left, rest, candidates)
        scores = sentence_scores(model, right, left, rest, tried)
    if not len(tried) or scores.max() == -np.inf:
        return []
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    best = np.argsort(-chances, kind="stable")[:k]
    found = []
    for place in best.tolist():
        if chances[place] > 0:
            word = model.vocabulary_.decode([tried[place]])[0]
            whole = model.pipeline_.detokenize([*words[0], word, *words[1]])
            found.append(Filling(word, float(chances[place]), whole))
    return found


def _check_models(model: LanguageModel, right: LanguageModel | None) -> None:
    if model.reverse_:
        raise ConfigError(
            "the model that fills must read from left to right, got one with reverse=True; "
            "hand it to another as right="
        )
    if right is None:
        return
    if isinstance(model.engine_, FillsBlanks):
        raise ConfigError("a model that sees both sides needs no other, got right=; leave it out")
    check_alike([model, right], reverse=False)
    if not right.reverse_:
        raise ConfigError(
            "right must read from right to left, got a model with reverse=False; fit it with "
            "reverse=True"
        )


def _plain(model: LanguageModel) -> NDArray[np.int64]:
    """The ids of words that are not special."""
    vocabulary = model.vocabulary_
    return np.arange(len(vocabulary.specials.names()), len(vocabulary.words))


def _candidates(
    model: LanguageModel, right: LanguageModel | None, left: Ids, rest: Ids, count: int
) -> NDArray[np.int64]:
    """The words to try, the most promising first."""
    plain = _plain(model)
    promise = _beside(model, right, left, rest)[plain]
    return plain[np.argsort(-promise, kind="stable")[:count]]


def _beside(model: LanguageModel, right: LanguageModel | None, left: Ids, rest: Ids) -> Floats:
    """How well each word goes with what stands beside it."""
    end = model.reader.end
    found = next_log_probs(model.engine_, left, end)
    if right is not None:
        found = found + next_log_probs(right.engine_, rest[::-1], end) - unigram(model)
    return found


def unigram(model: LanguageModel) -> Floats:
    """The logarithm of each id's share of the training text, all counts raised by one."""
    counts = model.vocabulary_.counts
    shares = np.ones(len(model.vocabulary_))
    if counts is not None:
        first = len(model.vocabulary_.specials.names())
        shares[first : first + len(counts)] += counts
    found: Floats = np.log(shares / shares.sum())
    return found


def sentence_scores(
    model: LanguageModel,
    right: LanguageModel | None,
    left: Ids,
    rest: Ids,
    tried: Sequence[int] | NDArray[np.int64],
) -> Floats:
    """s(w) of each word, from the whole sentence."""
    end = model.reader.end
    whole = [np.array([*left, word, *rest, end], np.int32) for word in tried]
    scores = _totals(model, whole)
    if right is not None:
        turned = [np.array([*each[-2::-1], end], np.int32) for each in whole]
        scores = (scores + _totals(right, turned)) / 2
    return scores


def _totals(model: LanguageModel, sequences: list[Ids]) -> Floats:
    found = []
    for begin in range(0, len(sequences), PIECE):
        rows = model.engine_.log_probs(sequences[begin : begin + PIECE])
        found += [float(np.sum(row)) for row in rows]
    return np.array(found)
