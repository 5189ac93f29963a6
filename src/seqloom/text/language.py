"""Which rules a text wants: English, Chinese or neither, told by its characters and small words."""

from __future__ import annotations

import re

from seqloom.text.scripts import HAN, HANGUL, KANA

SAMPLE = 2000  # characters looked at: the answer does not change after a page

_HAN_RUN = re.compile(f"[{HAN}]+")
_OTHER_CJK_RUN = re.compile(f"[{KANA}{HANGUL}]+")
_WORD = re.compile(rf"[^\W\d_{HAN}{KANA}{HANGUL}]+")
_ENGLISH = frozenset(
    "the of and to a in is that it for was on are as with he be at by i this had not but from or "
    "have an they which you were her she his all we will there been one has their would what if so "
    "no when who can more up out do my me your how about into than them then these did some him "
    "its".split()
)
ENGLISH_SHARE = 0.15  # of English running words, at least so many are among the commonest
CERTAIN_LENGTH = 12  # shorter texts may well hold none of those words


def detect_language(text: str) -> str:
    """Return "zh", "en" or "und" (undetermined: another language, or no words at all).

    Chinese characters are set against words, since one of them says about as much as one word.
    Text in Latin letters counts as English unless it is long enough to show that the commonest
    English words are missing. Kana or hangul in more than a tenth of the characters mean Japanese
    or Korean, which we have no rules for.

    Examples:
        >>> [detect_language(text) for text in ("我喜欢用 Python 编程", "the word 中国", "42")]
        ['zh', 'en', 'und']
    """
    sample = text[:SAMPLE].lower()
    han = sum(map(len, _HAN_RUN.findall(sample)))
    other_cjk = sum(map(len, _OTHER_CJK_RUN.findall(sample)))
    words = _WORD.findall(sample)  # of scripts that put blanks between them
    if other_cjk * 10 > han + other_cjk:
        return "und"
    if han > len(words):
        return "zh"
    if not words or not all(word[0] < "\u0250" for word in words[:CERTAIN_LENGTH]):
        return "und"
    common = sum(word in _ENGLISH for word in words)
    if len(words) < CERTAIN_LENGTH or common >= ENGLISH_SHARE * len(words):
        return "en"
    return "und"
