"""How much of a test text was already seen in training: shared runs of n words, counted exactly.

Every n-gram of the test text gets a number, built order by order: the number of its first k words
times the vocabulary size plus its next word is looked up among the test's own (k+1)-grams. The
training text walks through the same tables, so nothing is hashed away and memory depends on the
test text alone; the training text is streamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqloom.errors import ConfigError, DataError

Ids = NDArray[np.int64]

BLOCK_TOKENS = 1 << 20  # how many training words are held at once
ABSENT = -1  # a word the test text does not have, and the gap between two sentences


@dataclass(frozen=True, slots=True)
class Overlap:
    """What `overlap` counted.

    Attributes:
        n: Length of the runs of words.
        ngrams: Running n-grams of the test text (each occurrence counts).
        ngrams_seen: How many of them occur in the training text.
        distinct: Different n-grams of the test text.
        distinct_seen: How many of those occur in the training text.
        sentences: Test sentences of at least n words.
        sentences_seen: Those whose every n-gram occurs in the training text.
        short_sentences: Test sentences of fewer than n words: they have no n-gram and no vote.
    """

    n: int
    ngrams: int
    ngrams_seen: int
    distinct: int
    distinct_seen: int
    sentences: int
    sentences_seen: int
    short_sentences: int

    @property
    def share(self) -> float:
        """Share of the running n-grams that occur in the training text, from 0 to 1."""
        return self.ngrams_seen / self.ngrams

    @property
    def distinct_share(self) -> float:
        """Share of the different n-grams that occur in the training text, from 0 to 1."""
        return self.distinct_seen / self.distinct


def overlap(train: Iterable[Sequence[str]], test: Iterable[Sequence[str]], n: int = 8) -> Overlap:
    """Count the n-grams of `test` that also occur in `train`.

    An n-gram lies within one sentence (one item of the iterable). `train` is read once, in a
    stream; `test` is held in memory.

    Args:
        train: Sentences as sequences of words (or a string, for its characters).
        test: Sentences of the same kind.
        n: How many words in a row count as one match; 8 finds copied text and passes over idiom.

    Returns:
        The counts and shares, exact.

    Raises:
        ConfigError: If n is below 1.
        DataError: If no test sentence has n words.

    Examples:
        >>> overlap([["a", "b", "c"]], [["x", "a", "b"], ["b", "c"]], n=2).share
        0.6666666666666666
    """
    if n < 1:
        raise ConfigError(f"n must be at least 1, got {n}")
    words: dict[str, int] = {}
    held = [[words.setdefault(word, len(words)) for word in sentence] for sentence in test]
    lengths = np.array([len(sentence) for sentence in held], dtype=np.int64)
    per_sentence = np.maximum(lengths - n + 1, 0)
    long_enough = per_sentence > 0
    if not long_enough.any():
        raise DataError(
            f"no test sentence has n={n} words (the longest has {lengths.max(initial=0)}); "
            "use a smaller n"
        )
    ids = np.fromiter((i for sentence in held for i in sentence), np.int64, int(lengths.sum()))
    starts = np.repeat(np.cumsum(lengths) - lengths - _before(per_sentence), per_sentence)
    starts += np.arange(len(starts))
    tables, codes = _number_ngrams(ids, starts, n, len(words))

    seen = np.zeros(int(codes.max()) + 1, dtype=bool)
    for block in _blocks(train, words):
        seen[_walk(block, tables, len(words))] = True

    hits = seen[codes]
    seen_per_sentence = np.add.reduceat(hits, _before(per_sentence)[long_enough], dtype=np.int64)
    return Overlap(
        n=n,
        ngrams=len(codes),
        ngrams_seen=int(hits.sum()),
        distinct=len(seen),
        distinct_seen=int(seen.sum()),
        sentences=int(long_enough.sum()),
        sentences_seen=int((seen_per_sentence == per_sentence[long_enough]).sum()),
        short_sentences=int((~long_enough).sum()),
    )


def _before(counts: Ids) -> Ids:
    """For each entry, the sum of those before it."""
    return np.cumsum(counts) - counts


def _number_ngrams(ids: Ids, starts: Ids, n: int, vocab_size: int) -> tuple[list[Ids], Ids]:
    """Return the sorted keys of the orders 2..n, and the number of the n-gram at each start."""
    tables = []
    codes = ids[starts] if n > 1 else np.unique(ids[starts], return_inverse=True)[1]
    for k in range(1, n):
        keys, codes = np.unique(codes * vocab_size + ids[starts + k], return_inverse=True)
        tables.append(keys)
    return tables, codes.astype(np.int64).ravel()


def _blocks(train: Iterable[Sequence[str]], words: dict[str, int]) -> Iterator[Ids]:
    """The training text as word numbers, sentences kept apart by ABSENT."""
    block: list[int] = []
    for sentence in train:
        block.extend([words.get(word, ABSENT) for word in sentence])
        block.append(ABSENT)
        if len(block) >= BLOCK_TOKENS:
            yield np.array(block, dtype=np.int64)
            block = []
    if block:
        yield np.array(block, dtype=np.int64)


def _walk(block: Ids, tables: list[Ids], vocab_size: int) -> Ids:
    """Numbers of the test n-grams that occur in a block of training text."""
    places = np.flatnonzero(block != ABSENT)
    codes = block[places]
    for k, keys in enumerate(tables, start=1):
        inside = places + k < len(block)
        places, codes = places[inside], codes[inside]
        follows = block[places + k]
        wanted = codes * vocab_size + follows
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        matches = (follows != ABSENT) & (keys[found] == wanted)
        places, codes = places[matches], found[matches]
    return codes
