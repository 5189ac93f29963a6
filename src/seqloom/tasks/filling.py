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

Of a model of subword pieces the words tried are single pieces, with the blank before them if the
text has one there. The sentence a word makes is cut into pieces anew, so $P(L\, w\, R)$ is what
`score` says of it; a masked model tries pieces that stay whole then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, DataError
from seqloom.tasks.generation import next_log_probs
from seqloom.tasks.language_engine import FillsBlanks, Floats, Ids
from seqloom.tasks.parts import check_alike
from seqloom.tasks.setting_checks import check_count

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
    check_count("k", k)
    check_count("candidates", candidates, k)
    _check_models(model, right)
    sides = BLANK.split(text)
    if len(sides) != 2:
        raise DataError(
            f"a text to fill must hold one blank, written ___, got {len(sides) - 1} in {text!r}"
        )
    try_words = _try_words if model.pipeline_.subword is None else _try_pieces
    tried = try_words(model, right, sides, candidates)
    if not len(tried.scores) or tried.scores.max() == -np.inf:
        return []
    chances = np.exp(tried.scores - tried.scores.max())
    chances /= chances.sum()
    best = np.argsort(-chances, kind="stable")[:k]
    return [
        Filling(tried.words[place], float(chances[place]), tried.text(place))
        for place in best.tolist()
        if chances[place] > 0
    ]


class _Tried(NamedTuple):
    """The words that were tried, s(w) of each, and what makes the whole text of one's number."""

    words: Sequence[str]
    scores: Floats
    text: Callable[[int], str]


def _try_words(
    model: LanguageModel, right: LanguageModel | None, sides: Sequence[str], count: int
) -> _Tried:
    """Try whole words of the vocabulary."""
    words = [model.pipeline_.words(side) for side in sides]
    left, rest = (model.vocabulary_.encode(side) for side in words)
    if isinstance(model.engine_, FillsBlanks):
        tried = _plain(model)
        scores = np.asarray(model.engine_.fill_log_probs(left, rest), np.float64)[tried]
    else:
        tried = _candidates(model, right, left, rest, count)
        scores = sentence_scores(model, right, left, rest, tried)
    names = model.vocabulary_.decode(tried)

    def text(place: int) -> str:
        return model.pipeline_.detokenize([*words[0], names[place], *words[1]])

    return _Tried(names, scores, text)


def _try_pieces(
    model: LanguageModel, right: LanguageModel | None, sides: Sequence[str], count: int
) -> _Tried:
    """Try subword pieces that are words."""
    before, after = sides
    left, rest = model.reader.encode(before.rstrip()), model.reader.encode(after)
    sees_both = isinstance(model.engine_, FillsBlanks)
    if isinstance(model.engine_, FillsBlanks):
        promise = np.asarray(model.engine_.fill_log_probs(left, rest), np.float64)
    else:
        promise = _beside(model, right, left, rest)
    tried: dict[str, int] = {}
    whole = []
    for piece, word in _piece_words(model, promise, follows_blank=before[-1:].isspace()):
        ids = model.reader.encode(before + word + after)
        if word in tried or (sees_both and ids.tolist() != [*left, piece, *rest]):
            continue
        tried[word] = piece
        whole.append(ids)
        if len(tried) == count:
            break
    words = list(tried)
    scores = promise[list(tried.values())] if sees_both else _whole_scores(model, right, whole)

    def text(place: int) -> str:
        return model.pipeline_.detokenize(model.pipeline_.words(before + words[place] + after))

    return _Tried(words, scores, text)


def _piece_words(
    model: LanguageModel, promise: Floats, *, follows_blank: bool
) -> Iterator[tuple[int, str]]:
    """Pieces with the words they are, the most promising first; parts of characters are none."""
    plain = _plain(model)
    order = plain[np.argsort(-promise[plain], kind="stable")].tolist()
    shown = model.pipeline_.shown(model.vocabulary_.decode(order))
    for piece, spelled in zip(order, shown, strict=True):
        word = spelled.strip()
        if word and "\ufffd" not in word and (spelled[0].isspace() == follows_blank):
            yield piece, word


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
    return _whole_scores(model, right, [np.array([*left, word, *rest]) for word in tried])


def _whole_scores(
    model: LanguageModel, right: LanguageModel | None, sentences: Sequence[NDArray[Any]]
) -> Floats:
    """What each sentence scores."""
    end = model.reader.end
    whole = [np.array([*sentence, end], np.int32) for sentence in sentences]
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
