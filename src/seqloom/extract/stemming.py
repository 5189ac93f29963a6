"""The stem of an English word, so that its forms are one term."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from seqloom.compiled import compiled


def _table(endings: Mapping[str, str]) -> NDArray[np.uint8]:
    """Endings, the longest first, a row each: its length, that of what it becomes, and both."""
    table = np.zeros((len(endings), 16), np.uint8)
    for row, ending in zip(table, sorted(endings, key=len, reverse=True), strict=True):
        becomes = endings[ending]
        row[0], row[1] = len(ending), len(becomes)
        row[2 : 2 + len(ending)] = list(ending.encode())
        row[9 : 9 + len(becomes)] = list(becomes.encode())
    return table


_STEP_2 = _table({
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "abli": "able", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
})  # fmt: skip
_STEP_3 = _table({
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
})  # fmt: skip
_STEP_4 = _table(
    dict.fromkeys(
        "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(), ""
    )
)
A, B, D, E, G, I, L, N, O, S, T, W, X, Y, Z = b"abdegilnostwxyz"  # noqa: E741
_IS_VOWEL = np.array([chr(code) in "aeiou" for code in range(256)])


def stem(word: str) -> str:
    """Take the endings off an English word in small letters.

    Paper: Porter (1980), "An algorithm for suffix stripping", Program 14(3), steps 1a to 5b.

    Examples:
        >>> [stem(word) for word in ("relational", "hopping", "flies", "generalizations")]
        ['relat', 'hop', 'fli', 'gener']
    """
    codes = np.array([*word.encode("ascii"), 0], np.uint32)
    return "".join(map(chr, codes[: stem_codes(codes, len(word))].tolist()))


@compiled
def _is_consonant(w, i):  # type: ignore[no-untyped-def]
    """Whether a letter is one; y is a vowel after a consonant."""
    if w[i] != Y:
        return not _IS_VOWEL[w[i]]
    turns = True  # a run of y takes turns, and the first after a consonant is a vowel
    while i > 0 and w[i - 1] == Y:
        i -= 1
        turns = not turns
    return turns if i == 0 or _IS_VOWEL[w[i - 1]] else not turns


@compiled
def _measure(w, n):  # type: ignore[no-untyped-def]
    """The paper's m: how often consonants follow vowels."""
    count, after_vowel = 0, False
    for i in range(n):
        if _is_consonant(w, i):
            count += after_vowel
            after_vowel = False
        else:
            after_vowel = True
    return count


@compiled
def _has_vowel(w, n):  # type: ignore[no-untyped-def]
    i = 0
    while i < n and _is_consonant(w, i):
        i += 1
    return i < n


@compiled
def _ends_short(w, n):  # type: ignore[no-untyped-def]
    """The paper's *o: consonant, vowel, consonant that is not w, x or y."""
    if n < 3 or w[n - 1] in (W, X, Y):
        return False
    return _is_consonant(w, n - 1) and not _is_consonant(w, n - 2) and _is_consonant(w, n - 3)


@compiled
def _find_ending(w, n, table):  # type: ignore[no-untyped-def]
    """The row of the longest ending that a word has, or -1."""
    for k in range(len(table)):
        size = int(table[k, 0])
        if size > n or w[n - 1] != table[k, 1 + size]:
            continue
        same = True
        for j in range(size):
            if w[n - size + j] != table[k, 2 + j]:
                same = False
                break
        if same:
            return k
    return -1


@compiled
def _replaced(w, n, table, k):  # type: ignore[no-untyped-def]
    """Put what an ending becomes in its place; the new length."""
    n -= int(table[k, 0])
    for j in range(int(table[k, 1])):
        w[n + j] = table[k, 9 + j]
    return n + int(table[k, 1])


@compiled
def _step_1a(w, n):  # type: ignore[no-untyped-def]
    """Plurals: -sses, -ies, -s."""
    if w[n - 1] != S or w[n - 2] == S:
        return n
    doubled = n > 3 and w[n - 2] == E and w[n - 3] == S and w[n - 4] == S
    return n - 2 if doubled or (n > 2 and w[n - 2] == E and w[n - 3] == I) else n - 1


@compiled
def _step_1b(w, n):  # type: ignore[no-untyped-def]
    """-eed, -ed, -ing."""
    cut = 0
    if n > 1 and w[n - 1] == D and w[n - 2] == E:
        if n > 2 and w[n - 3] == E:
            return n - 1 if _measure(w, n - 3) > 0 else n
        cut = 2
    elif n > 2 and w[n - 1] == G and w[n - 2] == N and w[n - 3] == I:
        cut = 3
    if not cut or not _has_vowel(w, n - cut):
        return n
    n -= cut
    last, before = w[n - 1], w[n - 2] if n > 1 else 0
    broken = (
        (before == A and last == T) or (before == B and last == L) or (before == I and last == Z)
    )
    if not broken and last == before and _is_consonant(w, n - 1):
        if last not in (L, S, Z):
            return n - 1
    elif not broken:
        broken = _measure(w, n) == 1 and _ends_short(w, n)
    if broken:
        w[n] = E
        n += 1
    return n


@compiled
def _step_5(w, n):  # type: ignore[no-untyped-def]
    """A last e, and a doubled l."""
    if n and w[n - 1] == E:
        m = _measure(w, n - 1)
        if m > 1 or (m == 1 and not _ends_short(w, n - 1)):
            n -= 1
    if n > 1 and w[n - 1] == L and w[n - 2] == L and _measure(w, n) > 1:
        n -= 1
    return n


@compiled
def stem_codes(w, n):  # type: ignore[no-untyped-def]
    """Stem the n codes that `w` begins with in their place; one more may be needed. The length."""
    if n <= 2:
        return n
    n = _step_1b(w, _step_1a(w, n))
    if w[n - 1] == Y and _has_vowel(w, n - 1):
        w[n - 1] = I
    k = _find_ending(w, n, _STEP_2)
    if k >= 0 and _measure(w, n - int(_STEP_2[k, 0])) > 0:
        n = _replaced(w, n, _STEP_2, k)
    k = _find_ending(w, n, _STEP_3)
    if k >= 0 and _measure(w, n - int(_STEP_3[k, 0])) > 0:
        n = _replaced(w, n, _STEP_3, k)
    k = _find_ending(w, n, _STEP_4)
    if k >= 0:
        size = n - int(_STEP_4[k, 0])
        is_ion = w[size] == I and w[size + 1] == O  # after s or t alone
        if _measure(w, size) > 1 and (not is_ion or w[size - 1] == S or w[size - 1] == T):
            n = size
    return _step_5(w, n)
