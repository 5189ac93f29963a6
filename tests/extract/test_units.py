"""Sentences, items and headings: where they are, whatever the text."""

from __future__ import annotations

import re
import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqloom.extract import Reader, characters, reference, split_units
from seqloom.extract.characters import CLASSES, SMALL, codes_of, text_of
from seqloom.extract.cutting import LONGEST_UNIT
from seqloom.extract.english import WORDS, write_sentences
from seqloom.text import split_sentences
from seqloom.text.scripts import has_cjk

PIECES = [
    "a", "cats", " ", "  ", "\n", "\n\n", "\r\n", ".", "!", "?", "…", "。", "Mr", "approx", "U.S",
    "The", "the", '"', "”", ")", "(", "3", "1.", " I", "Gen", "%", "'", "“", "Zoo", ",", ". The",
    " etc. 5", "No. 5", "Nos. ", "²", "٣. ", "é", "st. The", "St. It", "J. ", "x.y.z", "\u2028",
]  # fmt: skip
LINES = [
    *PIECES, "- ", "# ", "####### ", ">", "(a) ", "(1", "12) ", "（三）", "一、", "1234. ", "# #",
    "–\t", "word " * 30, "Fish\n\n", "* x\n", ":\n", ",\n", "\n \n", "；", "`", "*",
]  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_compiled_english_sentences_are_those_of_the_splitter(text):
    codes, _ = codes_of(text)
    found = np.empty((len(text), 2), np.int64)
    count = write_sentences(codes, 0, len(text), CLASSES, WORDS, found, 0)
    expected = [(s.start, s.end) for s in split_sentences(text, "en")]
    assert [*map(tuple, found[:count].tolist())] == expected


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=20).map("".join))
@example(("word " * 450 + "w" * 3000 + "\n") * 2)
def test_compiled_units_are_those_of_the_reference(text):
    assert [*map(tuple, split_units(text, "en")[0])] == reference.english_units(text)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=20))
def test_classes_of_characters_are_pythons(text):
    codes, classes = codes_of(text)
    assert text_of(codes) == text
    assert bool(classes & characters.CJK) == has_cjk(text)
    for character, code in zip(text, codes, strict=True):
        own = CLASSES[code]
        assert bool(own & characters.SPACE) == (re.match(r"\s", character) is not None)
        assert bool(own & characters.WORD) == (re.match(r"[^\W_]", character) is not None)
        assert bool(own & characters.LETTER) == (re.match(r"[^\W\d_]", character) is not None)
        assert own & characters.ODD or chr(SMALL[code]) == character.lower()


def texts_of(text: str, language: str = "auto") -> list[str]:
    return [text[unit.start : unit.end] for unit in split_units(text, language)[0]]


ODD = st.text(
    st.one_of(
        st.sampled_from("ab .!?\r\n\t-*#>1。！？我们的，“”.%\u3000\u2028"),
        st.sampled_from(["\U0001f600", "\u200d", "\ufe0f", "é", "\u0301", "İ", "\U00020000"]),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=80,
)


@settings(max_examples=600, deadline=None)
@given(ODD, st.sampled_from(["auto", "en", "zh"]))
def test_units_are_in_order_trimmed_and_lose_no_sentence(text, language):
    units, _ = split_units(text, language)
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        piece = text[unit.start : unit.end]
        assert piece == piece.strip() and len(piece) <= LONGEST_UNIT
        end = unit.end
    covered = "".join(text[u.start : u.end] for u in units)
    marks = set("-*+•·▪‣◦–—#>()（）、．.一二三四五六七八九十" + string.ascii_letters)
    missing = set(text) - set(covered)
    assert all(c.isspace() or c in marks or c.isdigit() for c in missing)


def test_headings_lists_and_quotations():
    text = (
        "# A title\n\nFirst sentence here. Second one.\n\n- An apple. It is red.\n- A pear\n"
        "2. Third of all.\n\n> Said someone else.\n\nShort heading\n\nThe end."
    )
    units, _ = split_units(text)
    assert [text[u.start : u.end] for u in units] == [
        "A title", "First sentence here.", "Second one.", "An apple.", "It is red.", "A pear",
        "Third of all.", "Said someone else.", "Short heading", "The end.",
    ]  # fmt: skip
    assert [i for i, u in enumerate(units) if u.is_heading] == [0, 8]


def test_wrapped_lines_are_one_sentence_and_a_narrow_line_stands_alone():
    wrapped = (
        "The first line of a sentence that is\nwrapped at forty characters and goes on\nto end."
    )
    assert texts_of(wrapped) == [wrapped]
    assert texts_of("The News\nThe cat that was lost for a week came home today.\n") == [
        "The News",
        "The cat that was lost for a week came home today.",
    ]


def test_dialogue_keeps_its_speakers():
    text = '"Where were you?" she asked. "Out," he said.\n\n"Out where?"'
    assert texts_of(text) == ['"Where were you?" she asked.', '"Out," he said.', '"Out where?"']


def test_chinese_sentences_that_end_in_a_half_width_stop():
    text = (
        "目的:了解情况.方法:对我院2002～2005年的数据(DDDs)进行分析."
        "占64.18%.其中C.I.B-19最多.结论:提高质量."
    )
    assert texts_of(text) == [
        "目的:了解情况.", "方法:对我院2002～2005年的数据(DDDs)进行分析.", "占64.18%.",
        "其中C.I.B-19最多.", "结论:提高质量.",
    ]  # fmt: skip


def test_each_paragraph_of_mixed_text_is_read_in_its_own_language():
    text = "The first paragraph is in English. It has two sentences.\n\n第二段是中文。它也有两句。"
    assert texts_of(text) == [
        "The first paragraph is in English.", "It has two sentences.",
        "第二段是中文。", "它也有两句。",
    ]  # fmt: skip
    document = Reader().read(text)
    assert {"english", "paragraph", "中文"} <= set(document.terms)


def test_a_text_without_stops_is_cut_at_blanks():
    text = "word " * 5000
    pieces = texts_of(text)
    assert all(len(piece) <= LONGEST_UNIT for piece in pieces)
    assert " ".join(pieces) == text.strip()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_offsets_survive_carriage_returns(language):
    text = (
        "One is here.\r\n\r\nTwo is there.\r\n"
        if language == "en"
        else "一在这里。\r\n二在那里。\r\n"
    )
    expected = (
        ["One is here.", "Two is there."] if language == "en" else ["一在这里。", "二在那里。"]
    )
    assert texts_of(text) == expected
