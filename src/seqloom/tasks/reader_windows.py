"""How long passages are cut into windows: between paragraphs and sentences."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from seqloom.text.sentences import split_sentences

_LINE_END = re.compile(r"[\n\u2028\u2029]\s*")
_STOP = re.compile(r"[.!?…。！？][\"'”’)\]}»」』）】》〉]*\s*$")
_BEFORE = 8  # characters before the end of a line in which a stop is looked for


def cut_passage(
    text: str,
    spans: Sequence[tuple[int, int]],
    *,
    window: int,
    piece: int,
    overlap: int,
    language: str = "auto",
) -> list[tuple[int, int]]:
    r"""Return the first word and the one after the last of each window of a passage.

    A passage of at most `window` words is one window. A longer one is cut into paragraphs, and
    a paragraph of more than `window` words into sentences. Neighbors share a window as `pack` says.

    Args:
        text: The passage.
        spans: Where each of its words begins and ends.
        window: The most words of a window.
        piece: Words up to which neighbors share a window.
        overlap: Words of the window before that are read again at most, whole paragraphs or
            sentences. A sentence of more than `piece` words is cut after each so many words.
        language: Whose sentences, as `split_sentences` takes it.

    >>> text = "Ada slept. Max ran far.\n\nEva sang. Bob sat."
    >>> words = [match.span() for match in re.finditer(r"\S+", text)]
    >>> cut_passage(text, words, window=5, piece=3, overlap=0)
    [(0, 5), (5, 9)]
    >>> cut_passage(text, words, window=4, piece=3, overlap=0)
    [(0, 2), (2, 5), (5, 9)]
    """
    if len(spans) <= window:
        return [(0, len(spans))]
    piece = min(piece, window)
    overlap = min(overlap, piece - 1)
    starts = [start for start, _ in spans]
    edges = [0]
    for begin, end in _paragraphs(text):
        last = bisect_left(starts, end)
        if last - edges[-1] > window:
            for sentence in split_sentences(text[begin:end], language):
                _add(edges, bisect_left(starts, begin + sentence.end), piece, overlap or piece)
        _add(edges, last, window, overlap or piece)
    return pack(edges, window, piece, overlap)


def _add(edges: list[int], edge: int, most: int, step: int) -> None:
    """Add an edge, and others before it where it is more than `most` words after the last one."""
    if edge - edges[-1] > most:
        edges += range(edges[-1] + step, edge, step)
    if edge > edges[-1]:
        edges.append(edge)


def _paragraphs(text: str) -> list[tuple[int, int]]:
    """Where paragraphs begin and end: at blank lines, and at the end of a line after a stop."""
    found, begin = [], 0
    for match in _LINE_END.finditer(text):
        blank = any(letter in match[0][1:] for letter in "\n\u2028\u2029")
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if blank or _STOP.search(before):
            found.append((begin, match.end()))
            begin = match.end()
    return [*found, (begin, len(text))]


def pack(edges: Sequence[int], window: int, piece: int, overlap: int) -> list[tuple[int, int]]:
    """Return stretches that hold what lies between neighboring `edges`.

    Each begins with the end of the one before, up to `overlap` words. It goes on while it has at
    most `piece` words; after at most `overlap` words, such as those of a heading, what comes next
    may have more, up to `window` words in all.

    >>> pack([0, 3, 5, 9, 10, 17], window=8, piece=6, overlap=2)
    [(0, 5), (3, 9), (9, 17)]
    """

    def fits(first: int, last: int) -> bool:
        size = edges[last] - edges[first]
        return size <= piece or (size <= window and edges[last - 1] - edges[first] <= overlap)

    found, first, last = [], 0, 0
    while True:
        last += 1
        while last + 1 < len(edges) and fits(first, last + 1):
            last += 1
        found.append((edges[first], edges[last]))
        if last + 1 == len(edges):
            return found
        again, first = first, last
        while first - 1 > again and edges[last] - edges[first - 1] <= overlap:
            first -= 1
        while first < last and not fits(first, last + 1):
            first += 1
