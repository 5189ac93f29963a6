"""English in the manner of the Penn Treebank, Chinese by dictionary, and both written back."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given

from seqloom.errors import BackendError, ConfigError
from seqloom.text import WordTokenizer, words
from seqloom.text.detokenize import detokenize_chinese, detokenize_english
from texts import any_text, chinese, english

ENGLISH = WordTokenizer("en")
CHINESE = WordTokenizer("zh")

# Where the Treebank's guidelines (Santorini 1990; the Linguistic Data Consortium's tokenizer.sed)
# have a say, they are followed: words on the right are set apart by "|".
TREEBANK = [
    # contractions and possessives
    ("I don't know.", "I|do|n't|know|."),
    ("I don’t know.", "I|do|n’t|know|."),
    ("They can't and won't", "They|ca|n't|and|wo|n't"),
    ("I'm what he'd say we're, you've seen", "I|'m|what|he|'d|say|we|'re|,|you|'ve|seen"),
    ("She'll see", "She|'ll|see"),
    ("John's book", "John|'s|book"),
    ("John’s book", "John|’s|book"),
    ("the boys' books", "the|boys|'|books"),
    ("IT'S DONE, ISN'T IT?", "IT|'S|DONE|,|IS|N'T|IT|?"),
    ("I'd've gone at five o'clock", "I|'d|'ve|gone|at|five|o'clock"),
    ("the O'Neills' house", "the|O'Neills|'|house"),
    ("rock'n'roll", "rock'n'roll"),
    ("sand and Kent", "sand|and|Kent"),
    # abbreviations and initials
    ("Mr. Smith met Dr. Jones.", "Mr.|Smith|met|Dr.|Jones|."),
    ("Acme Inc., of course", "Acme|Inc.|,|of|course"),
    ("apples, pears, etc.", "apples|,|pears|,|etc."),
    ("in the U.S., e.g. at 5 a.m.", "in|the|U.S.|,|e.g.|at|5|a.m."),
    ("the <unk> of <unk>, <unknown>", "the|<unk>|of|<unk>|,|<|unknown|>"),
    ("a U.S.-based firm", "a|U.S.-based|firm"),
    ("She has a Ph.D. now", "She|has|a|Ph.D.|now"),
    ("John F. Kennedy and J. R. R. Tolkien", "John|F.|Kennedy|and|J.|R.|R.|Tolkien"),
    ("It was I. He left.", "It|was|I|.|He|left|."),
    ("He co. ran", "He|co|.|ran"),
    ("Gen. Lee; gen. x", "Gen.|Lee|;|gen|.|x"),
    ("The end.", "The|end|."),
    ("I saw it in Jan. and Sept. too", "I|saw|it|in|Jan.|and|Sept.|too"),
    # numbers, money, percentages
    ("3,000.50 and 1/2 at 12:30", "3,000.50|and|1/2|at|12:30"),
    ("$5.20, £3 and 7.5%", "$|5.20|,|£|3|and|7.5|%"),
    ("US$5 or HK$7", "US$|5|or|HK$|7"),
    ("about 10,000.", "about|10,000|."),
    ("the 10,000th and 21st", "the|10,000th|and|21st"),
    ("1.5km in the 1990s", "1.5km|in|the|1990s"),
    ("a 7.5-inch, 20-year-old pipe", "a|7.5-inch|,|20-year-old|pipe"),
    ("from -5 to .5 (-3.2)", "from|-5|to|.5|(|-3.2|)"),
    ("version 1.2.3, ip 127.0.0.1", "version|1.2.3|,|ip|127.0.0.1"),
    # hyphens, dashes, ellipses, quotes, brackets
    ("a well-known, state-of-the-art thing", "a|well-known|,|state-of-the-art|thing"),
    ("yes -- no--maybe", "yes|--|no|--|maybe"),
    ("yes—no – maybe", "yes|—|no|–|maybe"),
    ("Well... so.. what…", "Well|...|so|..|what|…"),
    ('He said, "Go!"', 'He|said|,|"|Go|!|"'),
    ("“Go,” she said.", "“|Go|,|”|she|said|."),
    ("`` Go , '' he said", "``|Go|,|''|he|said"),
    ("(see [4]; {x})", "(|see|[|4|]|;|{|x|}|)"),
    ("Really?!", "Really|?|!"),
    ("and/or", "and|/|or"),
    ("AT&T and R&D", "AT&T|and|R&D"),
    ("snake_case", "snake_case"),
    # addresses, handles, tags
    ("see https://example.org/a_b?c=d&e=f#g.", "see|https://example.org/a_b?c=d&e=f#g|."),
    ("(www.example.org)", "(|www.example.org|)"),
    ('"http://a.org/"', '"|http://a.org/|"'),
    ("mail jo.doe+x@mail.example.co.uk, please", "mail|jo.doe+x@mail.example.co.uk|,|please"),
    ("@jo_doe loves #nlp and #1", "@jo_doe|loves|#nlp|and|#|1"),
    # scripts, accents, emoji
    ("naïve café's cafe\u0301", "naïve|café|'s|cafe\u0301"),
    ("Ünïcödé don't", "Ünïcödé|do|n't"),
    ("good 👍🏽👩\u200d👩\u200d👧 ❤\ufe0f!", "good|👍🏽|👩\u200d👩\u200d👧|❤\ufe0f|!"),
    ("1\ufe0f\u20e3 first", "1\ufe0f\u20e3|first"),
    ("the word 中国 means China", "the|word|中|国|means|China"),
    ("pay 3.5元 now", "pay|3.5|元|now"),
    ("мы не знаем", "мы|не|знаем"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), TREEBANK, ids=[text for text, _ in TREEBANK])
def test_english_words(text, words):
    assert ENGLISH.words(text) == words.split("|")


# Sentences whose cut is the same in the usual textbooks and in every segmenter.
CUTS = [
    ("我来到北京清华大学", "我|来到|北京|清华大学"),
    ("我爱北京天安门。", "我|爱|北京|天安门|。"),
    ("今天是星期天！", "今天|是|星期天|！"),
    ("他是中国人，我们是朋友。", "他|是|中国|人|，|我们|是|朋友|。"),
    ("我喜欢用 Python 编程", "我|喜欢|用|Python|编程"),
    ("2008年奥运会", "2008|年|奥运会"),
    ("价格是3.14元", "价格|是|3.14|元"),
]


@pytest.mark.parametrize(("text", "words"), CUTS, ids=[text for text, _ in CUTS])
def test_chinese_words(text, words):
    assert CHINESE.words(text) == words.split("|") == WordTokenizer().words(text)


def test_language_is_found_for_each_text():
    tokenizer = WordTokenizer("auto")
    assert tokenizer.words("I don't") == ["I", "do", "n't"]
    assert tokenizer.words("我爱北京") == ["我", "爱", "北京"]
    assert tokenizer.detokenize(["I", "do", "n't"]) == "I don't"
    assert tokenizer.detokenize(["我", "爱", "北京"]) == "我爱北京"


# Back to text


@given(english())
def test_english_comes_back_as_typed(text):
    assert ENGLISH.detokenize(ENGLISH.words(text)) == text


@given(chinese())
def test_chinese_comes_back_as_typed(text):
    assert CHINESE.detokenize(CHINESE.words(text)) == text


@pytest.mark.parametrize("language", ["en", "zh"])
@given(text=any_text)
def test_writing_back_changes_blanks_alone(language, text):
    tokenizer = WordTokenizer(language)
    written = tokenizer.detokenize(tokenizer.words(text))
    assert "".join(written.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ('He said , " do n\'t ! "', 'He said, "don\'t!"'),
        ('" A " and " B " .', '"A" and "B".'),
        ("`` Go , '' he said .", "``Go,'' he said."),
        ("( a [ b ] { c } )", "(a [b] {c})"),
        ("I 'd 've paid US$ 5 or 7 % … so ...", "I'd've paid US$5 or 7%… so..."),
        ("« Oui » , “ yes ” ‘ no ’", "«Oui», “yes” ‘no’"),
    ],
)
def test_english_blanks(words, text):
    assert detokenize_english(words.split()) == text


def test_chinese_blanks():
    words = ["我", "用", "Visual", "Studio", "2022", "编程", "，", "C", "++"]
    assert detokenize_chinese(words) == "我用Visual Studio 2022编程，C++"


# What is refused, and what a hostile text may not do


@pytest.mark.parametrize("language", ["zh", "auto"])
def test_half_a_surrogate_pair_is_cut_as_a_replaced_character_is(language):
    text = "我们\ud800去北京。\udfff \ud83d 天安门"
    plain = re.sub("[\ud800-\udfff]", "\ufffd", text)
    found, expected = WordTokenizer(language)(text), WordTokenizer(language)(plain)
    assert found.spans == expected.spans
    assert [text[start:end] for start, end in found.spans] == list(found.words)
    assert "\ud800" in found.words and "北京" in found.words


@pytest.mark.parametrize("language", ["eng", "", None, 3])
def test_an_unknown_language_is_refused(language):
    with pytest.raises(ConfigError, match=f"unknown language {language!r}.*auto, en, zh"):
        WordTokenizer(language)


def test_the_nearest_language_is_named():
    with pytest.raises(ConfigError, match="'eng'; did you mean 'en'"):
        WordTokenizer("eng")


def test_chinese_without_rjieba_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setattr(words, "_rjieba", words._rjieba.__wrapped__)  # the one that is not cached
    with pytest.raises(BackendError, match="pip install rjieba"):
        WordTokenizer("zh").words("中国")


@pytest.mark.parametrize(
    "unit",
    "a. 1. a__ . ? a+ a@ a@a. a' n' a- a& www. http:// \u200d A.b. -1, 1,".split(),
)
def test_long_runs_are_read(unit):
    """Patterns that look back and forth would take minutes for these."""
    text = unit * (200_000 // len(unit)) + "xa"
    assert "".join(ENGLISH.words(text)) == text


def test_no_pattern_has_a_group_that_python_before_3_11_5_reads_wrongly():
    """`(?:...)*+` with something to give back inside matches too little there."""
    possessive = re.compile(r"\)(?:[*+?]|\{\{?\d*,?\d*\}?\})\+")
    assert possessive.search(r"(?:a|b)*+") and possessive.search(r"(?:a|b){{2,9}}+")
    sources = Path(words.__file__).parents[1].rglob("*.py")
    found = [
        (path.name, line)
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if possessive.search(line) and not line.startswith("#")
    ]
    assert found == []
