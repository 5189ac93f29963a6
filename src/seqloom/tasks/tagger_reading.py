"""From the scores of a network to the tags of sentences, their probabilities and other readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.data.ragged import Ragged
from seqloom.metrics.spans import Scheme, convert_tags, is_allowed
from seqloom.nn.crf import CRF, FORBIDDEN
from seqloom.tasks.tagger_objective import best_tags, each_part
from seqloom.tasks.tagger_results import Tagged
from seqloom.tasks.tagger_words import TokenReader, TokenSequences


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
        paths = layer.best(scores, lengths, count)
        shares = layer.marginals(scores, lengths)
        total = torch.zeros(len(index), device=scores.device)
        if isinstance(layer, CRF):  # the scores of a softmax are log-probabilities already
            total = layer.log_partition(scores, lengths)
        for row, place in enumerate(index.tolist()):
            n, item = int(lengths[row]), items[there[place]]
            chosen = shares[row, :n].gather(1, paths.tags[row, 0, :n, None])[:, 0]
            readings = tuple(
                (tuple(tags.outward(path[:n].cpu().numpy())), float(score - total[row]))
                for path, score in zip(paths.tags[row], paths.scores[row], strict=True)
                if score > FORBIDDEN / 2  # there may be fewer than were asked for
            )
            found[there[place]] = Tagged(
                tuple(item) if reader is not None else (),
                readings[0][0],
                (),
                tuple(chosen.tolist()),
                readings if count > 1 else (),
            )
    return found
