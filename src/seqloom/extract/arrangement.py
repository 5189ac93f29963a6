"""A document's terms numbered by themselves, its headings apart, in compiled code."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled


@compiled
def numbered(ids):  # type: ignore[no-untyped-def]
    """Numbers in the order of their first occurrence, from 0 on, and what each stands for."""
    size = 16
    while size < 2 * len(ids):
        size *= 2
    place = np.full(size, -1, np.int32)
    own = np.empty(len(ids), np.int32)
    kinds = np.empty(len(ids), np.int32)
    count = 0
    for i in range(len(ids)):
        slot = (np.int64(ids[i]) * 40503) & (size - 1)
        while place[slot] >= 0 and kinds[place[slot]] != ids[i]:
            slot = (slot + 1) & (size - 1)
        if place[slot] < 0:
            place[slot] = count
            kinds[count] = ids[i]
            count += 1
        own[i] = place[slot]
    return own, kinds[:count]


@compiled
def apart(ids, offsets, is_heading):  # type: ignore[no-untyped-def]
    """The numbers of sentences, those of headings after them, and where each sentence begins.

    Negative numbers are left out.
    """
    n = len(offsets) - 1
    found = np.empty(len(ids), np.int32)
    ends = np.zeros(n + 1, np.int64)
    at, sentences = 0, 0
    for of_headings in (False, True):
        for i in range(n):
            if is_heading[i] == of_headings:
                for k in range(offsets[i], offsets[i + 1]):
                    if ids[k] >= 0:
                        found[at] = ids[k]
                        at += 1
                if not of_headings:
                    sentences += 1
                    ends[sentences] = at
    return found[:at], ends[: sentences + 1]


@compiled
def arranged(ids, offsets, units, with_headings):  # type: ignore[no-untyped-def]
    """Terms numbered from 0 on, where sentences begin, the terms, and which units are sentences.

    Headings are none unless they are wanted or there is nothing else; their terms come last.
    """
    n = len(units)
    headings = 0
    for i in range(n):
        headings += units[i, 2]
    left_out = np.zeros(n, np.bool_)
    if not with_headings and headings < n:
        for i in range(n):
            left_out[i] = units[i, 2] != 0
    found, begins = apart(ids, offsets, left_out)
    own, kinds = numbered(found)
    kept = np.empty(len(begins) - 1, np.int64)
    count = 0
    for i in range(n):
        if not left_out[i]:
            kept[count] = i
            count += 1
    return own, begins, kinds, kept
