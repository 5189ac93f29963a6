"""Normalization against unicodedata, and the places it remembers."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.errors import ConfigError
from seqloom.text import Normalizer
from texts import any_text

FORMS = ["NFC", "NFD", "NFKC", "NFKD"]
normalizers = st.builds(
    Normalizer,
    form=st.sampled_from(["none", *FORMS]),
    lowercase=st.booleans(),
    straight_quotes=st.booleans(),
    drop_controls=st.booleans(),
    single_blanks=st.booleans(),
)


@pytest.mark.parametrize("form", FORMS)
@given(text=any_text)
def test_the_text_is_that_of_unicodedata(form, text):
    assert Normalizer(form=form)(text).text == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_every_character_alone_and_after_another(form):
    normalizer = Normalizer(form=form)
    for code in range(0x30000):
        if not 0xD800 <= code < 0xE000:
            text = f"e{chr(code)}\u0323"
            assert normalizer(text).text == unicodedata.normalize(form, text), hex(code)


@given(normalizers, any_text)
def test_places_are_inside_the_text_never_empty_and_never_fall(normalizer, text):
    result = normalizer(text)
    assert result.source == text
    before = (0, 0)
    for i in range(len(result.text)):
        start, end = result.span(i, i + 1)
        assert 0 <= start < end <= len(text)
        assert before[0] <= start and before[1] <= end
        before = (start, end)


@given(normalizers, any_text)
def test_normalizing_twice_is_normalizing_once(normalizer, text):
    once = normalizer(text).text
    assert normalizer(once).text == once


@given(normalizers, any_text)
def test_a_character_is_what_its_place_normalizes_to(normalizer, text):
    """What stands at a character's place, normalized alone, holds that character."""
    result = normalizer(text)
    kept = Normalizer(
        form=normalizer.form,
        lowercase=normalizer.lowercase,
        straight_quotes=normalizer.straight_quotes,
    )
    for i, character in enumerate(result.text):
        original = text[slice(*result.span(i, i + 1))]
        if character == " " and normalizer.single_blanks:
            assert any(map(str.isspace, kept(original).text))
        elif character not in "σς":  # which of them depends on the neighbours
            assert character in kept(original).text


@given(any_text)
def test_without_any_step_places_are_exact(text):
    result = Normalizer(form="none")(text)
    assert result.text == text
    assert [result.span(i, i + 1) for i in range(len(text))] == [
        (i, i + 1) for i in range(len(text))
    ]
    assert result.span(0, len(text)) == (0, len(text))


@given(any_text)
def test_lower_case_is_that_of_str(text):
    assert Normalizer(form="none", lowercase=True)(text).text == text.lower()


@given(any_text)
def test_single_blanks_are_those_of_split(text):
    assert Normalizer(form="none", single_blanks=True)(text).text == " ".join(text.split())


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({}, "cafe\u0301", "café"),
        ({"form": "NFKC"}, "ｆｕｌｌ，ﬁne ²", "full,fine 2"),
        ({"form": "NFD"}, "é", "e\u0301"),
        ({"lowercase": True}, "ΟΔΟΣ ΣΑΣ", "οδος σας"),  # the last sigma of a word is another letter
        ({"lowercase": True}, "İİ", "i̇i̇"),
        ({"lowercase": True}, "J\u030c", "ǰ"),  # only the small letter is one character
        ({"straight_quotes": True}, "‘a’ ‚b‛ “c” „d‟ 5′3″ «e»", '\'a\' \'b\' "c" "d" 5\'3" "e"'),
        ({"drop_controls": True}, "a\x00b\u200b\ufeffc\u00add\x7f", "abcd"),
        ({"drop_controls": True}, "a\tb\nc\rd\x0ce\x1cf\x85g", "a\tb\nc\rd\x0ce\x1cf\x85g"),
        ({"drop_controls": True}, "e\u200b\u0301", "é"),  # what was kept apart comes together
        ({"single_blanks": True}, "\t a \u3000\n b  ", "a b"),
        ({"single_blanks": True}, " \n ", ""),
        (
            {
                "form": "NFKC",
                "lowercase": True,
                "straight_quotes": True,
                "drop_controls": True,
                "single_blanks": True,
            },
            "\ufeff  Ｔｈｅ\u3000“Ｅｎｄ”\x00 ",
            'the "end"',
        ),
    ],
)
def test_options(options, text, expected):
    assert Normalizer(**options)(text).text == expected


@pytest.mark.parametrize(
    ("options", "text", "word", "original"),
    [
        ({"form": "NFKC"}, "a ﬁne day", "fine", "ﬁne"),
        ({}, "a cafe\u0301 b", "café", "cafe\u0301"),
        ({"form": "NFD"}, "a café b", "cafe\u0301", "café"),
        ({"form": "NFKC"}, "x ﬁ\u0323 y", "ị", "ﬁ\u0323"),  # one cluster, of which all is meant
        ({"lowercase": True}, "x İZMİR y", "i̇zmi̇r", "İZMİR"),
        ({"single_blanks": True}, "  a \t\n b ", "a b", "a \t\n b"),
        ({"drop_controls": True}, "x a\u00adb y", "ab", "a\u00adb"),
        ({"drop_controls": True, "lowercase": True}, "\0 İ\0Z ", "i̇z", "İ\0Z"),
    ],
)
def test_places_lead_to_the_original_spelling(options, text, word, original):
    result = Normalizer(**options)(text)
    start = result.text.index(word)
    begin, end = result.span(start, start + len(word))
    assert text[begin:end] == original


def test_an_empty_stretch_has_a_place():
    result = Normalizer(form="NFKC")("aﬁb")
    assert result.span(1, 1) == (1, 1)
    assert result.span(4, 4) == (3, 3)
    assert Normalizer(form="none")("ab").span(1, 1) == (1, 1)
    assert Normalizer(single_blanks=True)("  ").span(0, 0) == (2, 2)


def test_repr_shows_the_text():
    assert repr(Normalizer()("a")) == "Normalized('a')"


@pytest.mark.parametrize("form", ["nfc", "", None])
def test_an_unknown_form_is_refused(form):
    with pytest.raises(ConfigError, match=f"unknown Unicode form {form!r}"):
        Normalizer(form=form)


def test_a_long_text_is_read_in_one_go():
    text = "cafe\u0301 İ “ﬁne”\x00 \u3000" * 20_000
    normalizer = Normalizer(
        form="NFKC", lowercase=True, straight_quotes=True, drop_controls=True, single_blanks=True
    )
    assert normalizer(text).text.count("fine") == 20_000
