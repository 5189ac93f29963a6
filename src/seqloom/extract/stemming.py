"""The stem of an English word, so that its forms are one term."""

from __future__ import annotations

import re

_VOWEL = re.compile(r"[aeiouy]")
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "abli": "able", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split()
_ENDING_2 = re.compile(f"(?:{'|'.join(sorted(_STEP_2, key=len, reverse=True))})$")
_ENDING_3 = re.compile(f"(?:{'|'.join(sorted(_STEP_3, key=len, reverse=True))})$")
_ENDING_4 = re.compile(f"(?:{'|'.join(sorted(_STEP_4, key=len, reverse=True))})$")
_SHAPES = {code: "v" if chr(code) in "aeiou" else "c" for code in range(128)}
_MEASURE = re.compile(r"v+c+")


def stem(word: str) -> str:
    """Take the endings off an English word in small letters.

    Paper: Porter (1980), "An algorithm for suffix stripping", Program 14(3), steps 1a to 5b.

    Examples:
        >>> [stem(word) for word in ("relational", "hopping", "flies", "generalizations")]
        ['relat', 'hop', 'fli', 'gener']
    """
    if len(word) < 3:
        return word
    word = _step_1a(word)
    word = _step_1b(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for ending, becomes in ((_ENDING_2, _STEP_2), (_ENDING_3, _STEP_3)):
        match = ending.search(word)
        if match and _measure(word[: match.start()]) > 0:
            word = word[: match.start()] + becomes[match.group()]
    match = _ENDING_4.search(word)
    if match:
        rest = word[: match.start()]
        if _measure(rest) > 1 and (match.group() != "ion" or rest.endswith(("s", "t"))):
            word = rest
    return _step_5(word)


def _shape(word: str) -> str:
    """Each letter as "v" or "c"; y is a vowel after a consonant."""
    if "y" not in word:
        return word.translate(_SHAPES)
    found, before = [], "v"
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and before == "c")
        before = "v" if is_vowel else "c"
        found.append(before)
    return "".join(found)


def _measure(word: str) -> int:
    """The paper's m: how often consonants follow vowels."""
    return len(_MEASURE.findall(_shape(word)))


def _has_vowel(word: str) -> bool:
    return _VOWEL.search(word) is not None and "v" in _shape(word)


def _ends_short(word: str) -> bool:
    """The paper's *o: consonant, vowel, consonant that is not w, x or y."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _step_1a(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and _has_vowel(word[: -len(ending)]):
            word = word[: -len(ending)]
            if word.endswith(("at", "bl", "iz")):
                return word + "e"
            if _doubled(word) and word[-1] not in "lsz":
                return word[:-1]
            if _measure(word) == 1 and _ends_short(word):
                return word + "e"
            return word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        m = _measure(rest)
        if m > 1 or (m == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
