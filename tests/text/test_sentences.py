"""Where sentences end, in a table by hand, and offsets for every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import ConfigError
from seqloom.text import split_sentences
from texts import any_text

# "|" marks where one sentence ends and the next begins.
ENGLISH = [
    "",
    "No stop at all",
    "One.| Two!| Three?| Four",
    "He left.|\n\tShe stayed.",
    # titles, initials, abbreviations
    "Mr. Fox met Mrs. Hen and Dr. Wolf.| They ate.",
    "John F. Kennedy was born in 1917.| He died in 1963.",
    "J. R. R. Tolkien wrote it.",
    "She lives in the U.S. with him.",
    "She lives in the U.S. Senate building.",
    "She lives in the U.S.| He does not.",
    "We met at 5 p.m.| It rained.",
    "Bring apples, pears, etc.| Then go.",
    "He works for Acme Inc. in Rome.",
    "He works for Acme Inc.| The firm is old.",
    "See e.g. Smith, vol. 3, p. 7.",
    "She got a Ph.D. in May.",
    "It was I.| He knew.",
    "St. Paul is in Minnesota.| So is Minneapolis.",
    # numbers
    "It cost $3.50 in 1.5 days.| Then 2.0 came.",
    "Version 3.11 is out.| 4.0 is not.",
    "Chanel No. 5 is old.| No.| It is not.",
    "1. The first thing.| 2. The second.",
    # ellipses and several marks
    "Wait. . . what is it?| Who?",
    "Wait... what is it?",
    "Wait...| What is it?",
    "Well… maybe.| Really?!| Yes!!!",
    # quotes and brackets
    'He said, "Go."| She went.',
    '"Why?" he asked.| "No idea!" she said.',
    "“Is it?”| “It is.”",
    "'Stop!'| They stopped.",
    "(He left.)| She stayed.",
    "He left (at last).| She stayed.",
    "He left.| (She stayed.)",
    "He ran [see p. 4].| She too.",
    "Yahoo! is a firm? yes",
    # lines
    "A Heading|\n\nThe text begins.| It goes on.",
    "A Heading|\n  \t\nThe text",
    "A Heading|\r\n\r\nThe text",
    "This line is\nwrapped here.| And\nhere.",
    "- Who are you?|\n- The cook.",
    # other scripts inside
    "The word 你好。|means hello.",
    "example.com is a site.| So is a.b.c there.",
]
CHINESE = [
    "没有句号",
    "今天下雨。|明天晴！|后天呢？|不知道",
    "他说：“走吧！”|我们就走了。|真好",
    "“你是谁？”|他问。",
    "（他走了。）|她没走。",
    "《红楼梦》很长。|我读过。",
    "真的吗？！|是的！！！",
    "他走了……|\n她没走",
    "第一行|\n第二行。|\n\n第三行",
    "一行|\u2028二行|\u2029三行",
    "价格是3.14元。|涨了2.5%。",
    "他用Python 3.11编程。|很好!|好吗?|好",
    "「快走！」|她喊道。",
    "他说“好。”|然后走了。",
    "我爱你。 |你呢？",
]


def check(text, language, expected):
    spans = split_sentences(text, language)
    assert [s.text for s in spans] == expected
    assert all(text[s.start : s.end] == s.text for s in spans)


@pytest.mark.parametrize("marked", ENGLISH)
def test_english(marked):
    expected = [piece.strip() for piece in marked.split("|") if piece.strip()]
    check(marked.replace("|", ""), "en", expected)


@pytest.mark.parametrize("marked", CHINESE)
def test_chinese(marked):
    expected = [piece.strip() for piece in marked.split("|") if piece.strip()]
    check(marked.replace("|", ""), "zh", expected)
    check(marked.replace("|", ""), "auto", expected)


@given(any_text, st.sampled_from(["en", "zh", "auto"]))
def test_sentences_hold_every_visible_character_once_and_in_order(text, language):
    end = 0
    for sentence in split_sentences(text, language):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text and sentence.text == sentence.text.strip()
        assert end <= sentence.start
        assert not text[end : sentence.start].strip()
        end = sentence.end
    assert not text[end:].strip()


@given(st.lists(st.text("abc", min_size=2, max_size=5).map(str.capitalize), min_size=1))
def test_plain_sentences_come_apart_as_they_were_put_together(words):
    sentences = [f"{word} sat there." for word in words]
    assert [s.text for s in split_sentences(" ".join(sentences), "en")] == sentences


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match=r"unknown language 'english'.*auto, en, zh"):
        split_sentences("a", "english")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("unit", [".", "?", "…", "'", ".'", "?!", "。", "\n ", ". ", "A. ", "a."])
def test_long_runs_are_split(unit, language):
    """Patterns that look back and forth would take minutes for these."""
    text = unit * (100_000 // len(unit)) + "x"
    joined = "".join(sentence.text for sentence in split_sentences(text, language))
    assert "".join(joined.split()) == "".join(text.split())
