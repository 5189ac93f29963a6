"""From text to a counted language model, in one call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from typing import Any

from seqloom.errors import ConfigError
from seqloom.ngram.corpus import Corpus, Symbols, TextSource, read_blocks, read_corpus
from seqloom.ngram.counting import count_ngrams
from seqloom.ngram.levels import Ngrams
from seqloom.ngram.methods import Smoothing
from seqloom.ngram.methods import smoothing as smoothing_named
from seqloom.ngram.smoothing import smooth
from seqloom.ngram.words import SPECIALS, UNK, Words, split_bytes
from seqloom.ngram.workspace import Workspace, parse_size

HIGHEST_ORDER = 8
_BYTES = 48  # what an n-gram takes at most while it is counted and smoothed


def _quiet(line: str) -> None:
    del line


def estimate(
    source: TextSource,
    *,
    order: int = 3,
    smoothing: str | Smoothing = "modified-kneser-ney",
    prune: Sequence[int] = (),
    vocabulary: str | PathLike[str] | Iterable[str] | None = None,
    min_count: int = 1,
    closed: bool = False,
    symbols: Symbols = "count",
    held_out: TextSource | None = None,
    memory: int | str | None = None,
    temporary: str | None = None,
    place: Workspace | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Ngrams:
    """Estimate a back-off model from text, one sentence a line, words between blanks.

    Args:
        source: A path, a glob pattern, "-" for standard input, or an iterable of sentences;
            `Path` objects in an iterable are files. Compressed files are read as they are.
        order: The length of the longest n-grams, 1 to 8.
        smoothing: The name of a smoothing, or one made by `seqloom.ngram.smoothing_named`.
        prune: By order, the count up to which n-grams are left out; the last holds for the rest.
        vocabulary: A file of words, or the words; others count as `<unk>`. All of the text's if
            not given.
        min_count: Words that occur less often count as `<unk>`.
        closed: Whether the vocabulary is all there will ever be: `<unk>` gets no probability.
        symbols: What `<unk>`, `<s>` and `</s>` in the text mean: "count" takes `<unk>` for the
            unknown word and skips the marks, "skip" skips all three, "error" refuses them.
        held_out: Text that Jelinek-Mercer's weights are fitted on.
        memory: The most memory to hold, as bytes or as "2G"; half of the machine's by default.
            What does not fit goes to temporary files.
        temporary: The folder for these.
        place: A workspace to use instead of `memory` and `temporary`.
        say: Told how it goes, line by line; warnings go to standard error if not given.
        options: Of the smoothing, such as `delta`.

    Returns:
        The model as plain columns; `NgramModel.of`, `write_store` and `write_arpa` take it.

    Raises:
        ConfigError: If a setting makes no sense.
        DataError: If a text cannot be read, or the disk is full.
    """
    if not 1 <= order <= HIGHEST_ORDER:
        raise ConfigError(f"order must lie between 1 and {HIGHEST_ORDER}, got {order}")
    if min_count < 1:
        raise ConfigError(f"min_count must be at least 1, got {min_count}")
    if not isinstance(smoothing, Smoothing):
        smoothing = smoothing_named(smoothing, **options)
    elif options:
        raise ConfigError(f"options belong to a smoothing by name, got {', '.join(options)}")
    place = place or Workspace(None if memory is None else parse_size(memory), temporary)
    warn, tell = say or _to_stderr, say or _quiet
    began = time.monotonic()
    words = None if vocabulary is None else read_vocabulary(vocabulary)
    corpus = read_corpus(source, place, words=words, min_count=min_count, symbols=symbols)
    tell(f"{len(corpus.ids) - 2 * corpus.lines:,} words, {len(corpus.words):,} different, "
         f"{corpus.lines:,} lines ({time.monotonic() - began:.1f} s)")  # fmt: skip
    _warn_of_symbols(corpus, symbols, warn)
    place.spill_above(len(corpus.ids) * _BYTES * order)
    counts = count_ngrams(corpus.ids, corpus.words, order, place)
    sizes = [len(level) for level in counts.levels]
    tell(f"counted {', '.join(f'{n:,}' for n in sizes)} n-grams of orders 1 to {order} "
         f"({time.monotonic() - began:.1f} s)")  # fmt: skip
    del corpus
    extra = None
    if held_out is not None:
        extra = read_corpus(held_out, place, words=counts.words, symbols=symbols).ids
    ngrams = smooth(counts, smoothing, place, held_out=extra, prune=prune, closed=closed, say=warn)
    tell(f"smoothed ({time.monotonic() - began:.1f} s)")
    return ngrams


def read_vocabulary(source: str | PathLike[str] | Iterable[str]) -> Words:
    """The words of a file, between blanks or one a line, or of an iterable."""
    if isinstance(source, str | PathLike):
        listed = (word for block in read_blocks(fspath(source)) for word in split_bytes(block))
        return Words.of(listed)
    return Words.of(source)


def _to_stderr(line: str) -> None:
    print(f"seqloom: {line}", file=sys.stderr)  # noqa: T201


def _warn_of_symbols(corpus: Corpus, symbols: Symbols, warn: Callable[[str], None]) -> None:
    skipped = [
        f"{word} {times:,} times"
        for number, (word, times) in enumerate(zip(SPECIALS, corpus.seen, strict=True))
        if times and not (symbols == "count" and number == UNK)
    ]
    if skipped:
        warn(f"the text itself holds {', '.join(skipped)}; skipped (see symbols)")
