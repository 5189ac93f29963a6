"""Text a line a record, and pairs of files whose lines belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from os import PathLike, fspath

from seqloom.data.examples import TaggedTokens, Text, TextPair
from seqloom.data.problems import OnError, Problems, Records, shown
from seqloom.data.sources import read_every_line, read_lines
from seqloom.errors import ConfigError, DataError
from seqloom.files import Source

BLANKS = re.compile(r"[ \t]+")  # never \s: a no-break space belongs to the word around it


def read_text(
    paths: Source | Sequence[Source],
    *,
    strip: bool = False,
    keep_blank: bool = False,
    on_error: OnError = "raise",
) -> Records[Text]:
    """Read text files with one sentence or document a line; blank lines are left out.

    Args:
        paths: A file, or several that are read one after the other.
        strip: Take blanks off both ends of each line.
        keep_blank: Keep blank lines, as texts without words: the published perplexities of
            WikiText count an end of sentence for each of them.
        on_error: "raise" at the first malformed line, or "skip" and count.

    Examples:
        >>> for example in read_text(["news.txt", "more.txt.xz"]):  # doctest: +SKIP
        ...     print(example.text)
    """
    files = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not files:
        raise ConfigError("paths must name at least one file, got none")

    def read(problems: Problems) -> Iterator[Text]:
        for path in files:
            for _, line in read_lines(path, problems):
                stripped = line.strip()
                if stripped or keep_blank:
                    yield Text(stripped if strip else line)

    more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    return Records(read, fspath(files[0]) + more, on_error)


def read_parallel(
    source_path: Source, target_path: Source, *, on_error: OnError = "raise"
) -> Records[TextPair]:
    """Read two files whose lines are translations (or summaries) of each other.

    Raises:
        DataError: While it is iterated, if the files have unequal numbers of lines, or (unless
            skipped) one side of a pair is blank.

    Examples:
        >>> pairs = read_parallel("train.en", "train.de")  # doctest: +SKIP
    """

    def read(problems: Problems) -> Iterator[TextPair]:
        for number, source, target in _aligned(source_path, target_path, problems):
            if source is None or target is None:
                continue
            if source.strip() and target.strip():
                yield TextPair(source, target)
                continue
            side, other = ("target", source) if source.strip() else ("source", target)
            problems.report(
                f"a pair must have two sides, got an empty {side} beside {shown(other)}",
                target_path if side == "target" else source_path,
                number,
            )

    return Records(read, fspath(source_path), on_error)


def read_token_lines(
    tokens_path: Source, tags_path: Source, *, on_error: OnError = "raise"
) -> Records[TaggedTokens]:
    """Read sentences from one file and their tags from another, both with blanks between.

    This is how the slot-filling sets (ATIS, SNIPS) come: `seq.in` beside `seq.out`.

    Raises:
        DataError: While it is iterated, if the files have unequal numbers of lines, or (unless
            skipped) a sentence has more tokens than tags, or fewer, or none.

    Examples:
        >>> sentences = read_token_lines("seq.in", "seq.out")  # doctest: +SKIP
    """

    def read(problems: Problems) -> Iterator[TaggedTokens]:
        for number, words, labels in _aligned(tokens_path, tags_path, problems):
            if words is None or labels is None:
                continue
            tokens, tags = _split(words), _split(labels)
            if tokens and len(tokens) == len(tags):
                yield TaggedTokens(tokens, tags)
                continue
            problems.report(
                f"must have one tag a token, got {len(tokens)} tokens and {len(tags)} tags "
                f"for {shown(words)}",
                tokens_path,
                number,
            )

    return Records(read, fspath(tokens_path), on_error)


def _split(line: str) -> tuple[str, ...]:
    line = line.strip(" \t")
    return tuple(BLANKS.split(line)) if line else ()


def _aligned(
    first: Source, second: Source, problems: Problems
) -> Iterator[tuple[int, str | None, str | None]]:
    """Yield (number, line of the first, line of the second); None is a line that was skipped."""
    counts = [0, 0]
    for left, right in zip_longest(
        read_every_line(first, problems), read_every_line(second, problems)
    ):
        counts[0] += left is not None
        counts[1] += right is not None
        if left is not None and right is not None:
            yield left[0], left[1], right[1]
    if counts[0] != counts[1]:
        raise DataError(
            f"must have as many lines as {fspath(second)}, got {counts[0]:,} and {counts[1]:,}",
            first,
            min(counts) + 1,
        )
