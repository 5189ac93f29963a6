"""Sentences of English and Chinese text, with their offsets."""

from __future__ import annotations

import re

from seqloom.errors import ConfigError, one_of
from seqloom.text.abbreviations import CAPITALIZED, OTHERS, TITLES
from seqloom.text.language import detect_language
from seqloom.text.tokens import Span

_CLOSERS = "\"'”’)\\]}»」』）】》〉"
# A stop, what closes with it, then white space: perhaps the end of an English sentence.
# A run of stops is looked at once, from its first one, so that no text takes more than linear time.
_ENGLISH_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++|[。！？])[{_CLOSERS}]*+(?=\s)|[。！？]++[{_CLOSERS}]*+"
)
_CHINESE_END = re.compile(
    rf"(?:[。！？!?]++|(?<![.…])[.…]++(?=[{_CLOSERS}])|\.(?=\s))[{_CLOSERS}]*+"
)
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"[\n\u2028\u2029]\s*")
_LAST_WORD = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*)\.$")
_NEXT = re.compile(r"\s+[\"'“‘(\[«]*(\S)(\S*)")
# A capital after these abbreviations begins a sentence only if the word is one that begins many.
STARTERS = frozenset(
    "The This That These Those It He She They We I You In On At A An And But Or So If When While "
    "As For From After Before There Here What Who Where Why How However Although Then His Her Its "
    "Their Our My Your No Not Some All Many Most Both Each Every One".split()
)


def split_sentences(text: str, language: str = "auto") -> list[Span]:
    """Return the sentences of a text, in order, trimmed of white space, with their offsets.

    A blank line always ends a sentence. A single line break does so in Chinese, where lines are
    not wrapped between words; in English it counts as a space. Stops after titles, abbreviations,
    initials and inside numbers do not end one.

    Args:
        text: Any text.
        language: "en", "zh" or "auto".

    Examples:
        >>> [s.text for s in split_sentences("Mr. Fox paid $3.50. He left.")]
        ['Mr. Fox paid $3.50.', 'He left.']
        >>> [s.text for s in split_sentences("他说：“走吧！”我们就走了。真好")]
        ['他说：“走吧！”', '我们就走了。', '真好']
    """
    if language not in ("auto", "en", "zh"):
        raise ConfigError(one_of("language", language, ("auto", "en", "zh")))
    if language == "auto":
        language = detect_language(text)
    hard_end = _LINE if language == "zh" else _PARAGRAPH
    sentences: list[Span] = []
    start = 0
    for block in [*hard_end.finditer(text), None]:
        end = block.start() if block else len(text)
        _split_block(text, start, end, language, sentences)
        start = block.end() if block else end
    return sentences


def _split_block(text: str, start: int, end: int, language: str, out: list[Span]) -> None:
    pattern = _CHINESE_END if language == "zh" else _ENGLISH_END
    begin = start
    for match in pattern.finditer(text, start, end):
        if language != "zh" and not _ends_english(text, begin, match, end):
            continue
        _add(text, begin, match.end(), out)
        begin = match.end()
    _add(text, begin, end, out)


def _add(text: str, start: int, end: int, out: list[Span]) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        start += len(piece) - len(piece.lstrip())
        out.append(Span(stripped, start, start + len(stripped)))


def _ends_english(text: str, begin: int, match: re.Match[str], end: int) -> bool:
    """Decide whether a stop followed by white space ends the sentence that began at `begin`."""
    stop = match.group()
    following = _NEXT.match(text, match.end(), end)
    if following is None or stop[0] in "。！？":
        return True
    first, rest = following.groups()
    if stop[0] in "!?":
        return not first.islower()
    if first.islower() or first == ".":
        return False  # "approx. five", "… and so on", ". . ."
    if stop != ".":
        return True  # an ellipsis, or a stop with a quote or bracket after it
    if match.start() - begin < 9 and text[begin : match.start()].strip().isdigit():
        return False  # "1. The first of a list"
    last = _LAST_WORD.search(text, max(begin, match.start() - 40), match.end())
    if last is None:
        return True
    word = last.group(1)
    lower = word.lower()
    if word in ("No", "Nos") and first.isdigit():
        return False
    if lower in TITLES and (word[0].isupper() or lower not in LOWER_WORDS):
        return False
    dotted = "." in word and max(map(len, word.split("."))) <= 2  # U.S, e.g, Ph.D
    if dotted or len(word) == 1 or lower in OTHERS or word in CAPITALIZED:
        # U.S., J., Inc., etc.: the stop has two jobs if a likely first word follows.
        begins_name = len(word) == 1 and word.isupper() and word != "I"
        return not begins_name and (first + rest).rstrip(",;:'’") in STARTERS
    return True


LOWER_WORDS = frozenset(word.lower() for word in CAPITALIZED) | {"st", "ft", "mt", "pres", "ms"}
"""What is a title only with a capital: in lower case it means something else."""
