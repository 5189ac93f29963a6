"""Word tokenizers: English by rules in the manner of the Penn Treebank, Chinese by dictionary.

Every visible character of the text ends up in exactly one word, and a word is always a slice of the
text: quotes and brackets are not rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Literal, Protocol, get_args

from seqloom.errors import BackendError, ConfigError, DataError, one_of
from seqloom.text.abbreviations import ANY_CASE, CAPITALIZED
from seqloom.text.detokenize import detokenize_chinese, detokenize_english
from seqloom.text.language import detect_language
from seqloom.text.scripts import CJK, MARKS
from seqloom.text.tokens import Tokens

Language = Literal["auto", "en", "zh"]

_APOSTROPHE = "['’]"
_CLITIC = rf"{_APOSTROPHE}(?i:s|m|d|re|ve|ll)(?!\w)"  # John's, I'm, he'd, we're, I've, she'll
_LETTER = rf"[^\W_{CJK}]"  # a letter or digit of a script that puts blanks between words
_WORD = rf"(?>(?:{_LETTER}[{MARKS}]*+)+)"
_ABBREVIATION = f"(?:(?i:{'|'.join(sorted(ANY_CASE))})|{'|'.join(sorted(CAPITALIZED))})"

# Alternatives are tried in order at each place; the first two settle nine words in ten. A repeat
# that may end in failure is bounded, so that no text takes more than linear time. What must not be
# given back is written `(?>(?:...)*)`: Python before 3.11.5 reads `(?:...)*+` wrongly.
ENGLISH_WORD = re.compile(
    rf"""
    [A-Za-z]++(?![\w'’.@:&${MARKS}-])              # a plain word
  | <unk>                                          # what a corpus writes for a word it left out
  | [^\w\s'’.@#\-`{MARKS}](?![{MARKS}])            # a lone symbol
  | (?:https?://|www\.)[^\s<>"{CJK}]*[\w/=\#&]     # an address
  | [\w.+-]{{1,64}}+@\w[\w-]*+(?>(?:\.[\w-]++)+)   # an electronic mail address
  | (?=[A-Za-z]{{2,7}}\.(?!\w)){_ABBREVIATION}\.   # Mr.  etc.  Inc.
  | (?>(?:[A-Z][a-z]?\.|[a-z]\.){{2,9}})(?!\w)(?>(?:-{_WORD})*)  # U.S.  e.g.  Ph.D.  U.S.-based
  | [A-HJ-Z]\.(?=\s+[A-Z])                         # F. of John F. Kennedy
  | [A-Z]{{1,2}}\$(?=\d)                           # US$ of US$5
  | {_LETTER}+?(?=[nN]{_APOSTROPHE}[tT](?!\w))     # do of don't
  | [nN]{_APOSTROPHE}[tT](?!\w)                    # n't
  | {_CLITIC}
  | \d++(?>(?:[.,:/]\d++){{1,9}}){_LETTER}*+(?>(?:-{_WORD})*)     # 3,000.50  12:30pm  7.5-inch
  | (?<![^\s([{{"“$])[-.]\d++(?>(?:[.,]\d++){{0,9}})  # -5  .5
  | [@\#][^\W\d_]\w*+                              # a handle or a tag
  | {_WORD}(?>(?:(?:(?!{_CLITIC}){_APOSTROPHE}|[-_&]){_WORD})*)  # o'clock  well-known  AT&T
  | \.\.++ | --++ | ``|''                          # an ellipsis, a dash, the Treebank's quotes
  | \S[{MARKS}]*+(?>(?:(?<=\u200d)\S[{MARKS}]*+)*)  # anything else, with what belongs to it
    """,
    re.VERBOSE,
)


class Segmenter(Protocol):
    """Cuts Chinese text into words whose concatenation is the text."""

    def cut(self, text: str) -> list[str]:
        """The words of `text`, blanks included, so that "".join(words) == text."""
        ...


class WordTokenizer:
    """Words of English or Chinese text.

    English follows the Penn Treebank's conventions (`do n't`, `John 's`, `U.S.`), other
    languages that put blanks between words are read by the same rules, and a Chinese character in
    English text is a word of its own. Chinese is cut by rjieba's dictionary and hidden Markov
    model, or by a `segmenter` of yours.

    `detokenize(words(x)) == x` is promised for English typed in the usual way: one blank between
    words, none before `,.;:!?%)]}` or an ellipsis, none after `([{$#`, none around a slash, double
    quotes in pairs, apostrophes and hyphens inside words (`boys'` is not exact), stops inside words
    only as in `U.S.`, `3.5` and addresses, dashes and other symbols between blanks. And for Chinese
    in which blanks stand only between two words of ASCII letters or digits, unless the dictionary
    cuts such a word (it knows `T恤`, so it finds it in `XT恤`). With "auto", the language of the
    words must be as clear as that of the text was.

    Args:
        language: "en", "zh", or "auto" to detect it for each text.
        segmenter: What cuts Chinese text; rjieba if left out.

    Examples:
        >>> WordTokenizer("en").words("He doesn't live in the U.S., does he?")
        ['He', 'does', "n't", 'live', 'in', 'the', 'U.S.', ',', 'does', 'he', '?']
        >>> WordTokenizer().words("我来到北京清华大学")
        ['我', '来到', '北京', '清华大学']
    """

    def __init__(self, language: Language = "auto", segmenter: Segmenter | None = None) -> None:
        if language not in get_args(Language):
            raise ConfigError(one_of("language", language, get_args(Language)))
        self.language: Language = language
        self._segmenter = segmenter

    def words(self, text: str) -> list[str]:
        """The words of `text`."""
        language = detect_language(text) if self.language == "auto" else self.language
        return self._cut_chinese(text) if language == "zh" else ENGLISH_WORD.findall(text)

    def __call__(self, text: str) -> Tokens:
        """The words of `text` with their offsets."""
        return Tokens(text, self.words(text))

    def detokenize(self, words: Sequence[str]) -> str:
        """The text these words would be typed as; see the class for when that is exact."""
        language = detect_language(" ".join(words)) if self.language == "auto" else self.language
        return detokenize_chinese(words) if language == "zh" else detokenize_english(words)

    def _cut_chinese(self, text: str) -> list[str]:
        if self._segmenter is None:
            words = _cut_by_dictionary(text)
            if _BLANK.search(text) is None:
                return words  # nothing to leave out, as in most Chinese text
        else:
            words = self._segmenter.cut(text)
            if "".join(words) != text:
                raise DataError(
                    "a segmenter must return words that make up the text, blanks included; "
                    f"got {words[:8]} for {text[:40]!r}"
                )
        return [word for word in words if word and not word.isspace()]


_BLANK = re.compile(r"\s")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _cut_by_dictionary(text: str) -> list[str]:
    """The words rjieba finds; half a surrogate pair is to it what a replaced character is."""
    try:
        return _rjieba().cut(text)
    except UnicodeEncodeError:
        words = _rjieba().cut(_SURROGATE.sub("\ufffd", text))
    ends = accumulate(map(len, words))
    return [text[end - len(word) : end] for word, end in zip(words, ends, strict=True)]


@cache
def _rjieba() -> Segmenter:
    try:
        import rjieba
    except ModuleNotFoundError:
        raise BackendError(
            "Chinese words need rjieba, which is not installed; pip install rjieba, or prepare "
            "the data where it is (seqloom prepare)"
        ) from None
    return rjieba.Jieba()


class WhitespaceTokenizer:
    """Words as they are set apart by blanks already: for text that was tokenized before.

    `detokenize(words(x)) == x` is promised where words are set apart by single spaces.
    """

    def words(self, text: str) -> list[str]:
        """The words of `text`."""
        return text.split()

    def __call__(self, text: str) -> Tokens:
        """The words of `text` with their offsets."""
        return Tokens(text, text.split())

    def detokenize(self, words: Sequence[str]) -> str:
        """The words with a space between each two."""
        return " ".join(words)


class CharacterTokenizer:
    """Every character a word, blanks included; `detokenize(words(x)) == x` for every text."""

    def words(self, text: str) -> list[str]:
        """The characters of `text`."""
        return list(text)

    def __call__(self, text: str) -> Tokens:
        """The characters of `text` with their offsets."""
        return Tokens(text, list(text), [(i, i + 1) for i in range(len(text))])

    def detokenize(self, words: Sequence[str]) -> str:
        """The characters put together."""
        return "".join(words)
