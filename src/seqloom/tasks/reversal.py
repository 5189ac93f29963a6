"""Sentences read from right to left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqloom.data.batches import EncodedData
from seqloom.data.prepared import PreparedData
from seqloom.data.ragged import Ragged


def turn(ids: NDArray[np.int32], end: int) -> NDArray[np.int32]:
    """Turn every sentence of a text around; the end of each stays where it is.

    >>> turn(np.array([5, 6, 7, 1, 8, 9, 1], np.int32), end=1).tolist()
    [7, 6, 5, 1, 9, 8, 1]
    """
    ends = np.flatnonzero(np.asarray(ids) == end)
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [len(ids)]])
    mirrored = np.arange(len(ids))
    words = stops - starts
    inside = np.repeat(starts + stops - 1, words)
    places = np.delete(mirrored, ends)
    mirrored[places] = inside - places
    turned_ids: NDArray[np.int32] = np.asarray(ids)[mirrored]
    return turned_ids


def turned(data: PreparedData) -> PreparedData:
    """Prepared text with every sentence turned around, in memory."""
    vocabulary = data.vocabularies["words"]
    ids = data.data.sequences["ids"]
    flat = turn(ids.flat, vocabulary[vocabulary.specials.eos])
    columns = EncodedData({"ids": Ragged(flat, ids.offsets)})
    found = PreparedData(data.header, columns, data.vocabularies, data.pipeline)
    found.content = data.content
    return found
