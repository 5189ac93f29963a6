"""Which words of a text get a vector, and the files of their tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.data.prepared import PrepareConfig, PreparedData
from seqloom.errors import DataError
from seqloom.text.vocabulary import Specials, Vocabulary

NO_SPECIALS = Specials(pad="", unk="", bos="", eos="")


def most_frequent(
    data: PreparedData, limits: PrepareConfig
) -> tuple[Vocabulary, NDArray[np.int32]]:
    """The words of a text that are frequent enough, by falling count, and the row of each id."""
    from seqloom.word2vec.model import count_ids

    own = data.vocabularies["words"]
    counts = count_ids(data.data.sequences["ids"].flat, len(own))
    counts[: len(own.specials.names())] = 0
    counts[len(own.words) :] = 0  # buckets of unknown words
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= limits.min_count][: limits.max_size]
    rows = np.full(len(own), -1, np.int32)
    rows[order] = np.arange(len(order))
    words = [own.words[i] for i in order.tolist()]
    known = Vocabulary(
        words, counts[order].tolist(), specials=NO_SPECIALS, out_of_vocabulary="error"
    )
    return known, rows


def write_table(path: Path, table: NDArray[np.float32]) -> None:
    """Write a table to a file of numpy."""
    with path.open("wb") as stream:
        np.save(stream, table, allow_pickle=False)


def read_table(path: Path) -> NDArray[np.float32]:
    """Read a table that `write_table` wrote."""
    try:
        table = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"is no table of vectors ({error})", path) from None
    if table.dtype != np.float32 or table.ndim != 2:
        raise DataError(f"must be a table of float32, got {table.dtype} {table.shape}", path)
    return np.asarray(table)
