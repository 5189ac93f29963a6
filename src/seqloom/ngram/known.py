"""Text as numbers by a vocabulary that does not grow, for scoring."""

from __future__ import annotations

import numpy as np

from seqloom.compiled import compiled, prefetch
from seqloom.ngram.eights import scan_word_fast
from seqloom.ngram.words import BOS, EOS, UNK, first_slot, is_blank, look_from

PADDING = bytes(8)  # blanks behind a text, which is read eight bytes at a time

_U = np.uint64
_1, _LOW = _U(1), _U(0xFFFFFFFF)
_MARK = _U(0xFFFFFFFFFFFFFFFF)  # of a position that is a sentence's mark


@compiled
def tokenize_known(text, at, stop, ids, table, pool, offsets, keys, slots, starts, ends):  # type: ignore[no-untyped-def]
    """What `words.tokenize` gives for whole lines, from byte `at` to `stop`, quicker.

    First every word is found and its slot called for, then they are looked up: the ways to memory
    overlap. `keys` to `ends` are room to work in; all hold twice as many as there are bytes.
    PADDING, at least, stands behind `stop`.
    """
    n, in_line = _U(0), False
    while at < stop:
        if not in_line:
            ids[n] = BOS
            slots[n] = _MARK
            n += _1
            in_line = True
        if is_blank(text[at]):
            if text[at] == 10:
                ids[n] = EOS
                slots[n] = _MARK
                n += _1
                in_line = False
            at += 1
            continue
        end, key, _ = scan_word_fast(text, at)
        slot = first_slot(key, table)
        prefetch(table, slot)
        keys[n], slots[n], starts[n], ends[n] = key, slot, at, end
        n += _1
        at = end
    kept = _U(0)
    for i in range(n):
        number = ids[i]
        if slots[i] != _MARK:
            start, end = np.int64(starts[i]), np.int64(ends[i])
            is_long = end - start > 8
            entry = table[
                look_from(text, start, end, slots[i], keys[i], is_long, table, pool, offsets) + _1
            ]
            number = np.uint32((entry & _LOW) - _1) if entry != 0 else np.uint32(UNK)
            if number in (BOS, EOS):
                continue
        ids[kept] = number
        kept += _1
    return kept
