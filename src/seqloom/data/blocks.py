"""Records of several lines, ended by a blank one: sentences in columns, SemEval's relations."""

from __future__ import annotations

from collections.abc import Iterator

from seqloom.data.problems import Problems
from seqloom.data.sources import LINE_OVERHEAD, read_every_line
from seqloom.files import Source

MAX_BLOCK_BYTES = 16 << 20  # a block that takes more is given up, so that memory stays bounded

Block = list[tuple[int, str]]  # the lines of a record with their numbers


def read_blocks(path: Source, problems: Problems) -> Iterator[Block]:
    """Yield each run of lines that are not blank.

    A block that lost a line (bad UTF-8, say) is left out; the lost line is counted already.
    """
    block: Block = []
    size, whole = 0, True
    for number, line in read_every_line(path, problems):
        if line is None:
            whole = False
        elif line.strip(" \t\r"):
            size += len(line) + LINE_OVERHEAD
            if size <= MAX_BLOCK_BYTES or not block:
                block.append((number, line))
            elif whole:
                whole = False
                problems.report(
                    f"the record that begins here does not end within {len(block):,} lines; "
                    "end each with a blank line",
                    path,
                    block[0][0],
                )
        else:
            if block and whole:
                yield block
            block, size, whole = [], 0, True
    if block and whole:
        yield block
