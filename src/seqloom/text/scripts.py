"""Which characters belong to which script: the few classes our rules need, as regex ranges."""

from __future__ import annotations

import re

HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
CJK = HAN + KANA + HANGUL  # written without blanks between words, or close to it
# Characters that belong to the one before them: accents, variation selectors, joiners, skin tones.
MARKS = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
)

_HAS_CJK = re.compile(f"[{CJK}]")


def has_cjk(text: str) -> bool:
    """Whether the text holds any Chinese, Japanese or Korean character."""
    return _HAS_CJK.search(text) is not None
