"""From the scores of a network to the tags of sentences, their probabilities and other readings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.data.ragged import Ragged
from seqloom.errors import InputError
from seqloom.metrics.spans import Scheme, convert_tags, is_allowed
from seqloom.nn.crf import CRF, FORBIDDEN
from seqloom.tasks.tagger_objective import best_tags, each_part
from seqloom.tasks.tagger_results import Tagged
from seqloom.tasks.tagger_words import TokenReader, TokenSequences

MOST_READINGS = 1000
"""So many readings are given, and so many paths looked for, at most."""


class TagSet(NamedTuple):
    """The tags of a tagger.

    Args:
        names: The tags it is trained with, sorted.
        scheme: The scheme of the data, None if the tags mark no spans.
        inner: The scheme it is trained with.
    """

    names: list[str]
    scheme: Scheme | None
    inner: Scheme | None

    def outward(self, ids: NDArray[np.int64]) -> list[str]:
        """Return the tags of numbers, in the scheme of the data."""
        tags = [self.names[i] for i in ids.tolist()]
        if self.scheme is None or self.scheme == self.inner:
            return tags
        return convert_tags(tags, self.scheme)

    def constraints(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return which transitions, first and last tags are legal, None where all are."""
        if self.inner is None:
            return None
        scheme, names = self.inner, self.names
        pairs = [[is_allowed(a, b, scheme) for b in names] for a in names]
        first = [is_allowed(None, b, scheme) for b in names]
        last = [is_allowed(a, None, scheme) for a in names]
        return torch.tensor(pairs), torch.tensor(first), torch.tensor(last)


def read_items(reader: TokenReader | None, items: Sequence[Any]) -> TokenSequences:
    """Return sentences of words, or of vectors, as a network reads them."""
    if reader is None:
        return TokenSequences(Ragged.of(items, np.float32))
    return reader(items)


def predict_tags(
    model: Any, reader: TokenReader | None, tags: TagSet, items: Sequence[Any]
) -> list[list[str]]:
    """Return the tags of sentences; one without a word has none."""
    found: list[list[str]] = [[] for _ in items]
    there = [place for place, item in enumerate(items) if len(item)]
    if there:
        rows = best_tags(model, read_items(reader, [items[i] for i in there]))
        for place, row in zip(there, rows, strict=True):
            found[place] = tags.outward(row)
    return found


class _Reading(NamedTuple):
    """Tags of a sentence in the scheme of the data.

    Args:
        tags: The tags.
        score: The logarithm of the summed powers of the scores of all paths found that say it.
        path: The best of them.
    """

    tags: tuple[str, ...]
    score: float
    path: NDArray[np.int64]


@torch.no_grad()
def describe_tags(
    model: Any, reader: TokenReader | None, tags: TagSet, items: Sequence[Any], count: int
) -> list[Tagged]:
    """Return the tags of sentences with their probabilities and, of `count` above 1, readings."""
    found = [Tagged((), ()) for _ in items]
    there = [place for place, item in enumerate(items) if len(item)]
    if not there:
        return found
    layer = model.output
    sequences = read_items(reader, [items[i] for i in there])
    for index, scores, lengths in each_part(model, sequences):
        rows = _readings(layer, scores, lengths, count, tags)
        shares = layer.marginals(scores, lengths).cpu().numpy()
        total = torch.zeros(len(index))
        if isinstance(layer, CRF):  # the scores of a softmax are log-probabilities already
            total = layer.log_partition(scores, lengths)
        for place, best, share, whole in zip(index, rows, shares, total.tolist(), strict=True):
            item = items[there[place]]
            readings = tuple((each.tags, each.score - whole) for each in best)
            found[there[place]] = Tagged(
                tuple(item) if reader is not None else (),
                readings[0][0],
                (),
                _tag_shares(share, best[0], tags),
                readings if count > 1 else (),
            )
    return found


def _readings(
    layer: Any, scores: Tensor, lengths: Tensor, count: int, tags: TagSet
) -> list[list[_Reading]]:
    """The `count` best readings of each row, fewer if its `MOST_READINGS` best paths say no more.

    More paths are looked for as long as too many of them say the same.

    Raises:
        InputError: If no path of a row is legal.
    """
    found: list[list[_Reading]] = [[] for _ in range(len(lengths))]
    rows, wanted = list(range(len(lengths))), count
    while rows and wanted <= MOST_READINGS:
        paths = layer.best(scores[rows], lengths[rows], wanted)
        left = []
        for row, ids, totals in zip(
            rows, paths.tags.cpu().numpy(), paths.scores.tolist(), strict=True
        ):
            size = sum(score > FORBIDDEN / 2 for score in totals)  # there may be fewer
            if not size:
                raise InputError(
                    f"a sentence of {int(lengths[row])} words must have legal tags, got a model "
                    f"without any, of {', '.join(tags.names)}; fit it anew"
                )
            found[row] = _merged(ids[:size, : int(lengths[row])], totals, tags)[:count]
            if len(found[row]) < count and size == wanted:
                left.append(row)
        rows, wanted = left, 2 * wanted
    return found


def _merged(paths: NDArray[np.int64], scores: Sequence[float], tags: TagSet) -> list[_Reading]:
    """What paths say, the best first; those that say the same are one."""
    found: dict[tuple[str, ...], _Reading] = {}
    for path, score in zip(paths, scores, strict=False):
        said = tuple(tags.outward(path))
        first = found.setdefault(said, _Reading(said, -np.inf, path))
        found[said] = first._replace(score=float(np.logaddexp(first.score, score)))
    return sorted(found.values(), key=lambda each: -each.score)


def _tag_shares(shares: NDArray[Any], reading: _Reading, tags: TagSet) -> tuple[float, ...]:
    """How probable each tag is: the shares of all that would say it between its neighbors."""
    names = [tags.names[i] for i in reading.path.tolist()]
    found = []
    for t, said in enumerate(reading.tags):
        same = [int(reading.path[t])]
        if tags.scheme is not None and tags.scheme != tags.inner:
            around = tuple(names[max(t - 1, 0) : t]), tuple(names[t + 1 : t + 2])
            alike = [_said(*around, name, tags.scheme) == said for name in tags.names]
            same = np.flatnonzero(alike).tolist()
        found.append(min(1.0, float(shares[t, same].sum())))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _said(before: tuple[str, ...], after: tuple[str, ...], tag: str, scheme: Scheme) -> str:
    """The tag in another scheme, which depends on its neighbors."""
    return convert_tags([*before, tag, *after], scheme)[len(before)]
